/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/wait.h"

#include "core/log.h"
#include "poll/reactor_private.h"
#include <errno.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

/*
 * The danger: work comes after the loop has looked for it and before it sleeps, and nothing wakes the loop. The cure is
 * the same for every kind of source: first make it wake us, then look once more, then sleep.
 *
 * A message's producer pushes, then looks at `sleeping`; the sleeper sets `sleeping`, then looks at the queue; a full
 * fence between the two steps on each side, so at least one of them sees the other. A completion queue reports only
 * what completes after it was armed, so what completed before is found by the poll after arming. The kernel's wait
 * looks at the sockets itself, as its first step. A stop sets its flag, then rings: either the flag is seen or the
 * ring ends the wait. Timers are not armed by anybody but this thread: the deadline is taken last, when no callback can
 * run any more.
 */

/* How long a wake-up may trail behind its work before the cap says that it was lost. */
#define RESCUE_GRACE_US 10000

void
wait_step(struct reactor *reactor, enum wait_step step)
{
	if (__builtin_expect(reactor->wait.hook != NULL, 0))
		reactor->wait.hook(reactor, step, reactor->wait.hook_arg);
}

bool
wait_wanted(const struct reactor *reactor, int work)
{
	const struct drive *drive = &reactor->drive;

	if (drive->mode == WAIT_POLL || drive->holds)
		return false;
	if (drive->mode == WAIT_ADAPTIVE)
		return !work && reactor->now_us - reactor->worked_us >= drive->spin_us;
	/* Without completion queues arming is free, and the blocking wait itself is the look at the sockets. */
	return !work || !reactor->sources.cq_count;
}

static int
arm(struct reactor *reactor)
{
	struct source *refused;
	int error = source_list_arm(&reactor->sources, reactor, &refused);

	if (error && error != -EBUSY)
		log_limited(&reactor->wait.arm_log, XR_LOG_WARNING, "lcore %u stays awake: %s cannot be armed: %s",
			    reactor->lcore->id, refused->name, strerror(-error));
	return error;
}

static bool
found_again(struct reactor *reactor)
{
	if (!reactor_poll(reactor, SOURCES_BEFORE_WAIT))
		return false;
	stat_add(STAT_ARMED_FOUND, 1);
	return true;
}

/* The end of the safety cap for a sleep that begins now. */
static uint64_t
cap_end(uint64_t now_us)
{
	uint64_t cap_ms = (uint64_t)option_int(&g_wait_cap_ms);

	return cap_ms ? now_us + cap_ms * 1000 : SOURCE_NEVER;
}

/* Nothing after this may run a callback: it could arm a timer that the deadline does not know. */
static bool
may_block(struct reactor *reactor)
{
	struct wait *wait = &reactor->wait;

	if (reactors_stopping())
		return false;
	reactor_read_clock(reactor);
	wait->deadline_us = source_list_deadline(&reactor->sources, reactor);
	wait->cap_us = cap_end(reactor->now_us);
	return wait->deadline_us > reactor->now_us;
}

static void
awake(struct reactor *reactor)
{
	mailbox_set_sleeping(&reactor->mailbox, false);
	wait_step(reactor, WAIT_AWAKE);
	source_list_disarm(&reactor->sources, reactor);
	wait_step(reactor, WAIT_DISARMED);
}

static bool
prepare(struct reactor *reactor)
{
	wait_step(reactor, WAIT_BEGUN);
	mailbox_set_sleeping(&reactor->mailbox, true);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	wait_step(reactor, WAIT_PUBLISHED);
	if (arm(reactor))
		return false;
	wait_step(reactor, WAIT_ARMED);
	if (found_again(reactor))
		return false;
	wait_step(reactor, WAIT_POLLED_AGAIN);
	if (!may_block(reactor))
		return false;
	wait_step(reactor, WAIT_CHECKED);
	return true;
}

int
wait_prepare(struct reactor *reactor)
{
	if (prepare(reactor))
		return 0;
	awake(reactor);
	return -EBUSY;
}

static enum wake_cause
cause_of(struct reactor *reactor, int ready)
{
	if (ready > 0)
		return WAKE_FD;
	if (ready < 0)
		return WAKE_OTHER;
	reactor_read_clock(reactor);
	if (reactor->now_us >= reactor->wait.deadline_us)
		return WAKE_TIMER;
	return reactor->now_us >= reactor->wait.cap_us ? WAKE_CAP : WAKE_OTHER;
}

uint64_t
wait_lend(struct reactor *reactor)
{
	const struct wait *wait = &reactor->wait;
	uint64_t until_us = wait->deadline_us < wait->cap_us ? wait->deadline_us : wait->cap_us;

	stat_add(STAT_SLEEPS, 1);
	reactor->spends = STAT_SLEEP_US;
	urcu_qsbr_thread_offline();
	wait_step(reactor, WAIT_OFFLINE);
	return until_us == SOURCE_NEVER ? SOURCE_NEVER : until_us - reactor->now_us;
}

/* Back from the block, which has found so many events. */
static enum wake_cause
come_back(struct reactor *reactor, int ready)
{
	wait_step(reactor, WAIT_WOKEN);
	urcu_qsbr_thread_online();
	wait_step(reactor, WAIT_ONLINE);
	return cause_of(reactor, ready);
}

enum wake_cause
wait_take_back(struct reactor *reactor)
{
	return come_back(reactor, fd_source_wait(&reactor->fds, 0));
}

enum wake_cause
wait_block(struct reactor *reactor)
{
	uint64_t timeout_us = wait_lend(reactor);

	return come_back(reactor, fd_source_wait(&reactor->fds, timeout_us));
}

/*
 * The cap has ended the sleep, and everything is armed still. Work that is here now, and whose wake-up does not come
 * either, would have been slept through for ever. Only the mailbox and the completion queues are looked at: no
 * callback of the application's runs before the verdict, as its doings could raise an event that hides the loss.
 */
static enum wake_cause
check_rescue(struct reactor *reactor)
{
	if (!mailbox_overslept(&reactor->mailbox)) {
		if (!reactor_poll(reactor, SOURCES_CQ))
			return WAKE_CAP;
		if (fd_source_wait(&reactor->fds, RESCUE_GRACE_US) > 0)
			return WAKE_FD;
	}
	stat_add(STAT_WAKES_RESCUED, 1);
	return WAKE_CAP;
}

void
wait_finish(struct reactor *reactor, enum wake_cause cause)
{
	static const enum reactor_stat stats[] = {
		[WAKE_FD] = STAT_WAKES_FD, [WAKE_TIMER] = STAT_WAKES_TIMER, [WAKE_CAP] = STAT_WAKES_CAP};

	if (cause == WAKE_CAP)
		cause = check_rescue(reactor);
	if (cause != WAKE_OTHER)
		stat_add(stats[cause], 1);
	awake(reactor);
}
