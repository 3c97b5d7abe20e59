/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_STAT_H
#define POLL_STAT_H

/* What a reactor counts about itself. Each figure belongs to the lcore that it happened on. */

#include "core/counter.h"

enum reactor_stat {
	STAT_TURNS,
	STAT_BUSY_TURNS,
	STAT_BUSY_US,
	STAT_IDLE_US,
	STAT_SLEEP_US,
	STAT_SLEEPS,
	STAT_WAKES_FD,
	STAT_WAKES_TIMER,
	STAT_WAKES_CAP,
	STAT_WAKES_EMPTY,
	STAT_WAKES_RESCUED,
	STAT_ARMED_FOUND,
	STAT_MESSAGES,
	STAT_POSTS_WOKE,
	STAT_STALLS,
	STAT_STALL_US,
	STAT_DRIVEN_POLL,
	STAT_DRIVEN_EVENT,
	STAT_DRIVEN_ADAPTIVE,
	STAT_COUNT,
};

extern struct counter g_stats[STAT_COUNT];

static inline void
stat_add(enum reactor_stat which, uint64_t n)
{
	counter_add(&g_stats[which], n);
}

#endif
