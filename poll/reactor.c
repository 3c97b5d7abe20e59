/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/reactor_private.h"

#include <assert.h>
#include <urcu/urcu-qsbr.h>

__thread struct reactor *t_reactor;

void
reactor_read_clock(struct reactor *reactor)
{
	uint64_t now_us = clock_now_us();

	if (now_us <= reactor->now_us)
		return;
	stat_add(reactor->spends, now_us - reactor->now_us);
	reactor->now_us = now_us;
}

int
reactor_poll(struct reactor *reactor, enum source_choice choice)
{
	int work = source_list_poll(&reactor->sources, reactor, choice);

	if (work)
		reactor->worked_us = reactor->now_us;
	/* The look before a sleep that finds nothing belongs to what came before it, since no clock was read between.
	 */
	if (work || choice == SOURCES_ALL)
		reactor->spends = work ? STAT_BUSY_US : STAT_IDLE_US;
	return work;
}

int
reactor_turn(struct reactor *reactor)
{
	int work;

	reactor_read_clock(reactor);
	work = reactor_poll(reactor, SOURCES_ALL);
	urcu_qsbr_quiescent_state();
	stat_add(STAT_TURNS, 1);
	if (work)
		stat_add(STAT_BUSY_TURNS, 1);
	return work;
}

/* It takes its events from the wait. */
int
reactor_turn_woken(struct reactor *reactor, enum wake_cause cause)
{
	int work = reactor_turn(reactor);

	if (!work && cause == WAKE_FD && !reactors_stopping())
		stat_add(STAT_WAKES_EMPTY, 1);
	return work;
}

/* Sleeps if it may, then does a turn. */
static int
next_turn(struct reactor *reactor, int work_before)
{
	enum wake_cause cause;

	if (!wait_wanted(reactor, work_before) || wait_prepare(reactor) != 0)
		return reactor_turn(reactor);
	cause = wait_block(reactor);
	wait_finish(reactor, cause);
	return reactor_turn_woken(reactor, cause);
}

void
reactor_begin(struct reactor *reactor)
{
	t_reactor = reactor;
	counter_attach(reactor->lcore);
	switches_begin(&reactor->switches, reactor->lcore);
	stall_attach(&reactor->stall, reactor->lcore);
	urcu_qsbr_register_thread();
	reactor->now_us = clock_now_us();
	reactor->worked_us = reactor->now_us;
	reactor->spends = STAT_IDLE_US;
	reactor->running = true;
	/* Stopped before it began: there is nothing to drive. */
	if (!reactors_stopping())
		drive_announce(reactor);
}

void
reactor_end(struct reactor *reactor)
{
	reactor->running = true;
	reactor_read_clock(reactor);
	while (reactor->exit_hook_count) {
		const struct exit_hook *hook = &reactor->exit_hooks[--reactor->exit_hook_count];

		hook->fn(reactor, hook->arg);
	}
	mailbox_close(&reactor->mailbox);
	/* They would point into this reactor for ever, also when they are armed anew after another xr_init(). */
	timer_heap_disarm(&reactor->timers);
	reactor->running = false;
	urcu_qsbr_unregister_thread();
	stall_detach();
	switches_end(&reactor->switches);
}

void
reactor_run(struct reactor *reactor)
{
	int work = 1;

	reactor_begin(reactor);
	while (!reactors_stopping())
		work = next_turn(reactor, work);
	reactor_end(reactor);
}

void
reactor_on_exit(struct reactor *reactor, void (*fn)(struct reactor *reactor, void *arg), void *arg)
{
	assert(reactor->exit_hook_count < EXIT_HOOKS);
	reactor->exit_hooks[reactor->exit_hook_count++] = (struct exit_hook){fn, arg};
}

struct reactor *
reactor_current(void)
{
	return t_reactor;
}

struct lcore *
reactor_lcore(const struct reactor *reactor)
{
	return reactor->lcore;
}

XR_API uint64_t
xr_now_us(void)
{
	return t_reactor ? reactor_now_us(t_reactor) : clock_now_us();
}
