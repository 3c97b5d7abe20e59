/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_SWITCHES_H
#define POLL_SWITCHES_H

/*
 * How often the kernel took a worker's processor away, and how often the worker gave it up. The kernel counts that; the
 * loop spends nothing on it: the figures are fetched by who reads counters, and once more by the worker at its end.
 */

#include "core/counter.h"
#include <stdint.h>
#include <sys/types.h>

struct switches {
	const struct lcore *lcore;
	pid_t thread;				     /* 0: it is not running */
	uint64_t given_up_before, taken_away_before; /* by the thread before it was a worker */
};

extern struct counter g_switch_counters[2];

/* On the worker's thread. */
void switches_begin(struct switches *switches, const struct lcore *lcore);
void switches_end(struct switches *switches);

/* Any thread. */
void switches_fetch(struct switches *switches);

int switch_counters_add(void);

#endif
