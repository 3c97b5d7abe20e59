/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_COUNTER_H
#define CORE_COUNTER_H

/*
 * Counters: one cell per lcore, written by that lcore alone with a plain add, read by anybody with relaxed loads. A
 * floor declares its counters in a table; a thread that is no lcore adds to a shared cell with an atomic.
 */

#include "core/lcore.h"
#include <xrdma/counter.h>

#define COUNTER_MAX 256 /* per process; counter_add_table() refuses more */

struct counter {
	const char *name;
	const char *help;
	unsigned slot; /* set by counter_add_table() */
};

/* Cells of the calling lcore; NULL on other threads. */
extern __thread uint64_t *t_counter_cells __attribute__((tls_model("initial-exec")));

/* Adds a table of n counters, before counter_init(). -EEXIST, -ENOSPC: nothing is added. */
int counter_add_table(struct counter *table, size_t n);

/* Allocates the cells of every lcore, each lcore's on cache lines of their own. After lcore_init(). -ENOMEM. */
int counter_init(void);

/* Forgets cells and tables. The lcores' threads have ended, but for the calling one. */
void counter_fini(void);

/* Called by each worker on its own thread before it counts anything. */
void counter_attach(const struct lcore *lcore);

void counter_add_shared(const struct counter *counter, uint64_t n);

static inline void
counter_add(const struct counter *counter, uint64_t n)
{
	uint64_t *cells = t_counter_cells;

	if (__builtin_expect(cells != NULL, 1)) {
		uint64_t *cell = &cells[counter->slot];

		__atomic_store_n(cell, *cell + n, __ATOMIC_RELAXED);
	} else {
		counter_add_shared(counter, n);
	}
}

/* Lifts an lcore's cell to at least this value: for figures that others than the lcore fetch. Any thread. */
void counter_raise(const struct counter *counter, const struct lcore *lcore, uint64_t value);

/* Fetches figures that nobody counts; called by xr_counter_foreach() on its thread. Until counter_fini(). */
void counter_on_read(void (*fetch)(void));

/* The value of one lcore, or with NULL the sum over everything. */
uint64_t counter_read(const struct counter *counter, const struct lcore *lcore);

#endif
