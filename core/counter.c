/* SPDX-License-Identifier: Apache-2.0 */
#include "core/counter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xrdma/lcore.h>

__thread uint64_t *t_counter_cells;

static struct counter *g_counters[COUNTER_MAX]; /* by slot */
static unsigned g_counter_count;
static void (*g_fetch)(void);
static uint64_t g_shared_cells[COUNTER_MAX]; /* of threads that are no lcore */

static uint64_t **g_cells; /* by lcore index */
static unsigned g_cells_count;

#define CELLS_BYTES (COUNTER_MAX * sizeof(uint64_t))

static bool
name_taken(const char *name)
{
	for (unsigned slot = 0; slot < g_counter_count; slot++) {
		if (strcmp(g_counters[slot]->name, name) == 0)
			return true;
	}
	return false;
}

int
counter_add_table(struct counter *table, size_t n)
{
	unsigned before = g_counter_count;

	if (n > COUNTER_MAX - g_counter_count)
		return -ENOSPC;
	for (size_t i = 0; i < n; i++) {
		if (name_taken(table[i].name)) {
			g_counter_count = before;
			return -EEXIST;
		}
		table[i].slot = g_counter_count;
		g_counters[g_counter_count++] = &table[i];
	}
	return 0;
}

/* Fresh pages that nobody has touched: the lcore's own first add puts them on its own NUMA node. */
static uint64_t *
map_cells(void)
{
	void *cells = mmap(NULL, CELLS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return cells == MAP_FAILED ? NULL : cells;
}

static void
unmap_cells(void)
{
	for (unsigned i = 0; i < g_cells_count; i++)
		munmap(g_cells[i], CELLS_BYTES);
	free(g_cells);
	g_cells = NULL;
	g_cells_count = 0;
}

int
counter_init(void)
{
	unsigned count = lcore_count();

	g_cells = calloc(count, sizeof *g_cells);
	if (!g_cells)
		return -ENOMEM;
	for (; g_cells_count < count; g_cells_count++) {
		g_cells[g_cells_count] = map_cells();
		if (!g_cells[g_cells_count]) {
			unmap_cells();
			return -ENOMEM;
		}
	}
	return 0;
}

void
counter_fini(void)
{
	t_counter_cells = NULL;
	unmap_cells();
	g_counter_count = 0;
	g_fetch = NULL;
	memset(g_shared_cells, 0, sizeof g_shared_cells);
}

void
counter_attach(const struct lcore *lcore)
{
	t_counter_cells = g_cells[lcore->index];
}

void
counter_add_shared(const struct counter *counter, uint64_t n)
{
	__atomic_fetch_add(&g_shared_cells[counter->slot], n, __ATOMIC_RELAXED);
}

void
counter_raise(const struct counter *counter, const struct lcore *lcore, uint64_t value)
{
	uint64_t *cell = &g_cells[lcore->index][counter->slot];
	uint64_t before = __atomic_load_n(cell, __ATOMIC_RELAXED);

	while (before < value &&
	       !__atomic_compare_exchange_n(cell, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void
counter_on_read(void (*fetch)(void))
{
	g_fetch = fetch;
}

uint64_t
counter_read(const struct counter *counter, const struct lcore *lcore)
{
	uint64_t sum;

	if (lcore)
		return __atomic_load_n(&g_cells[lcore->index][counter->slot], __ATOMIC_RELAXED);
	sum = __atomic_load_n(&g_shared_cells[counter->slot], __ATOMIC_RELAXED);
	for (unsigned i = 0; i < g_cells_count; i++)
		sum += __atomic_load_n(&g_cells[i][counter->slot], __ATOMIC_RELAXED);
	return sum;
}

XR_API int
xr_counter_foreach(unsigned lcore, xr_counter_fn *fn, void *arg)
{
	const struct lcore *one = lcore == XR_LCORE_NONE ? NULL : lcore_find(lcore);

	if (!one && lcore != XR_LCORE_NONE)
		return -EINVAL;
	if (g_fetch)
		g_fetch();
	for (unsigned slot = 0; slot < g_counter_count; slot++)
		fn(g_counters[slot]->name, g_counters[slot]->help, counter_read(g_counters[slot], one), arg);
	return 0;
}
