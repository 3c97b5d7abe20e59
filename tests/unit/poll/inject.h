/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_POLL_INJECT_H
#define TESTS_POLL_INJECT_H

/*
 * One event injected after one step of the first sleep, by another thread while the loop stands still: for every kind
 * of event and every step. None may be lost, and none may have to be rescued.
 *
 * Whatever the loop is made of, the event is what ends it: a message, a descriptor, a timer and a stop are injected
 * here; completions are the world's own.
 */

#include "poll/wait.h"

struct reactor;

enum inject_event {
	INJECT_MESSAGE,
	INJECT_FD,
	INJECT_TIMER,
	INJECT_STOP,
	INJECT_RECEIVE, /* a completion that wakes */
	INJECT_SEND,	/* the same on another queue */
	INJECT_EVENTS,
};

/* Steps of a world's own, such as inside a verb, come behind the loop's. */
#define INJECT_STEPS_MAX (WAIT_STEPS + 8)

struct inject_world {
	/* Makes a loop on lcore 0, which reactor_current() is then, in event or adaptive mode; and takes it away. */
	void (*up)(bool adaptive);
	void (*down)(void);
	/* Runs it to its end, on the thread of up(). */
	void (*drive)(struct reactor *reactor);
	/* Makes the completion. Any thread. What polls it calls inject_seen(). */
	void (*complete)(enum inject_event event);
	/* How often each step comes in one sleep; 0: never. */
	unsigned times[INJECT_STEPS_MAX];
	bool two_queues; /* INJECT_SEND differs from INJECT_RECEIVE */
};

/* All events after all steps in one mode, with that wait cap. */
void inject_everywhere(const struct inject_world *world, bool adaptive, int64_t cap_ms);

/* Likewise, in a world of poll/ alone: a reactor with a source like a completion queue, run by drive(). */
void inject_into_reactor(void (*drive)(struct reactor *reactor), bool adaptive, int64_t cap_ms);

/* The loop is behind a step of the world's own. Nothing happens outside of the sleep that is looked at. */
void inject_behind(unsigned step);

/* The completion has been polled: ends the loop. */
void inject_seen(void);

/* ---- a source like a completion queue: an event only for what completes while it is armed, one for each arming ----
 */

void queue_like_start(void (*found)(unsigned completions));
void queue_like_end(void);

/* Any thread. Quietly: behind the sleeper's back, so that nothing tells of it. */
void queue_like_complete(void);
void queue_like_complete_quietly(void);

#endif
