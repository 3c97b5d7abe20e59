/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_WAIT_H
#define POLL_WAIT_H

/* How a reactor goes to sleep without losing a wake-up. */

#include "core/log.h"
#include <stdbool.h>
#include <stdint.h>

struct reactor;

/* What has just been done, in the order of a sleep. tests/model/sleep.pml uses the same names. */
enum wait_step {
	WAIT_BEGUN,
	WAIT_PUBLISHED,	 /* sleeping is set, and a full fence is behind it */
	WAIT_ARMED_ONE,	 /* after each source */
	WAIT_ARMED,	 /* every source is armed */
	WAIT_POLLED_ONE, /* after each source */
	WAIT_POLLED_AGAIN,
	WAIT_CHECKED, /* stop flag and deadline do not forbid it */
	WAIT_OFFLINE, /* the next step blocks */
	WAIT_WOKEN,
	WAIT_ONLINE,
	WAIT_AWAKE, /* sleeping is cleared */
	WAIT_DISARMED,
	WAIT_STEPS,
};

enum wake_cause {
	WAKE_FD,
	WAKE_TIMER,
	WAKE_CAP,
	WAKE_OTHER, /* a signal; an application's loop that went on for reasons of its own */
};

struct wait {
	uint64_t deadline_us; /* of the sleep that was prepared */
	uint64_t cap_us;      /* the safety cap's end, or SOURCE_NEVER */
	struct log_limit arm_log;
	/* For tests: called after each step. It is looked at on the way to sleep only. */
	void (*hook)(struct reactor *reactor, enum wait_step step, void *arg);
	void *hook_arg;
};

void wait_step(struct reactor *reactor, enum wait_step step);

/* Whether to try to sleep after a turn that did this much work. */
bool wait_wanted(const struct reactor *reactor, int work);

/*
 * One sleep: prepare, block, finish. After 0 from wait_prepare() everything that happens makes the epoll set readable,
 * and wait_finish() must follow; -EBUSY: there is something to do, and nothing is to be finished.
 */
int wait_prepare(struct reactor *reactor);
enum wake_cause wait_block(struct reactor *reactor);
void wait_finish(struct reactor *reactor, enum wake_cause cause);

/*
 * wait_block() in two halves, for a loop that blocks elsewhere: until the epoll set is readable, and for no longer than
 * the time that the first half returns (SOURCE_NEVER: without end). The second half does not block.
 */
uint64_t wait_lend(struct reactor *reactor);
enum wake_cause wait_take_back(struct reactor *reactor);

#endif
