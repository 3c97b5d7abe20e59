/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/region_table.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define NONE (-1)

struct row {
	const char *addr, *end;
	int region; /* NONE: no more */
};

/* Rows stay as they are once it is the current one; those before it are kept, since somebody may be reading them. */
struct table {
	struct table *before;
	unsigned count;
	struct row rows[];
};

static struct table *g_table;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER; /* who changes it */

static struct table *
table_of(unsigned rows)
{
	return malloc(sizeof(struct table) + rows * sizeof(struct row));
}

/* The rows of the old table, but for those that are no more, and one further, in order. */
static void
copy_with(struct table *table, struct table *old, const struct row *row)
{
	unsigned count = 0, at = 0;

	for (; old && at < old->count && old->rows[at].addr < row->addr; at++)
		if (old->rows[at].region != NONE)
			table->rows[count++] = old->rows[at];
	table->rows[count++] = *row;
	for (; old && at < old->count; at++)
		if (old->rows[at].region != NONE)
			table->rows[count++] = old->rows[at];
	table->count = count;
	table->before = old;
}

int
region_table_add(const char *addr, size_t bytes, unsigned region)
{
	struct row row = {addr, addr + bytes, (int)region};
	struct table *table;

	pthread_mutex_lock(&g_lock);
	table = table_of((g_table ? g_table->count : 0) + 1);
	if (table) {
		copy_with(table, g_table, &row);
		__atomic_store_n(&g_table, table, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&g_lock);
	return table ? 0 : -ENOMEM;
}

void
region_table_del(unsigned region)
{
	pthread_mutex_lock(&g_lock);
	for (unsigned i = 0; g_table && i < g_table->count; i++)
		if (g_table->rows[i].region == (int)region)
			__atomic_store_n(&g_table->rows[i].region, NONE, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&g_lock);
}

int
region_table_find(const void *addr)
{
	const struct table *table = __atomic_load_n(&g_table, __ATOMIC_ACQUIRE);
	unsigned first = 0, end = table ? table->count : 0;

	while (first < end) {
		unsigned middle = (first + end) / 2;
		const struct row *row = &table->rows[middle];

		if ((const char *)addr < row->addr)
			end = middle;
		else if ((const char *)addr >= row->end)
			first = middle + 1;
		else
			return __atomic_load_n(&row->region, __ATOMIC_RELAXED);
	}
	return -1;
}

void
region_table_clear(void)
{
	while (g_table) {
		struct table *before = g_table->before;

		free(g_table);
		g_table = before;
	}
}
