/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/call.h"
#include <stdlib.h>

#define CHUNK_BITS  6u
#define CHUNK_CALLS (1u << CHUNK_BITS)
#define SLOT_MASK   ((1u << CALL_SLOT_BITS) - 1u)
#define MAX_CHUNKS  (1u << (CALL_SLOT_BITS - CHUNK_BITS))
#define GENERATION  ((uint64_t)1 << CALL_SLOT_BITS)

void
call_table_init(struct call_table *table, struct channel_lcore *here, void (*on_timeout)(struct xr_timer *timer))
{
	*table = (struct call_table){.on_timeout = on_timeout, .here = here};
	CDS_INIT_LIST_HEAD(&table->free);
}

void
call_table_fini(struct call_table *table)
{
	for (size_t i = 0; i < table->chunk_count; i++)
		free(table->chunks[i]);
	free(table->chunks);
}

static void
init_call(const struct call_table *table, struct call *call, uint64_t slot)
{
	*call = (struct call){
		.id = GENERATION | slot,
		.timer = XR_TIMER_INIT(table->on_timeout),
		.here = table->here,
	};
}

/* 0, or -1: no memory or no slot numbers left. The directory doubles, so growing to n calls takes log n copies of it.
 */
static int
add_chunk(struct call_table *table)
{
	size_t n = table->chunk_count;
	struct call *chunk;

	if (n == MAX_CHUNKS)
		return -1;
	if ((n & (n - 1)) == 0) {
		struct call **grown = reallocarray(table->chunks, n ? n * 2 : 1, sizeof(struct call *));

		if (!grown)
			return -1;
		table->chunks = grown;
	}
	chunk = malloc(CHUNK_CALLS * sizeof *chunk);
	if (!chunk)
		return -1;
	for (size_t i = 0; i < CHUNK_CALLS; i++) {
		init_call(table, &chunk[i], n << CHUNK_BITS | i);
		cds_list_add_tail(&chunk[i].link, &table->free);
	}
	table->chunks[table->chunk_count++] = chunk;
	return 0;
}

struct call *
call_take(struct call_table *table)
{
	struct call *call;

	if (__builtin_expect(cds_list_empty(&table->free), 0) && add_chunk(table) != 0)
		return NULL;
	call = cds_list_first_entry(&table->free, struct call, link);
	cds_list_del(&call->link);
	call->used = true;
	return call;
}

struct call *
call_find(const struct call_table *table, uint64_t id)
{
	size_t slot = id & SLOT_MASK;
	struct call *call;

	if (slot >> CHUNK_BITS >= table->chunk_count)
		return NULL;
	call = &table->chunks[slot >> CHUNK_BITS][slot & (CHUNK_CALLS - 1)];
	return call->used && call->id == id ? call : NULL;
}

void
call_retire(struct call *call)
{
	call->id += GENERATION;
}

void
call_release(struct call_table *table, struct call *call)
{
	call->used = false;
	cds_list_add(&call->link, &table->free);
}
