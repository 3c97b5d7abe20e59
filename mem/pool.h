/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_POOL_H
#define MEM_POOL_H

/*
 * The pool of one node and one block type: its regions, cut into blocks as they are asked for, and the free ones on a
 * stack under a mutex. The lcores come here in batches, through their caches (block.c); other threads each time.
 *
 * A free block has its header written, with a count of 1, and is poisoned: to allocate it touches none of its lines.
 */

#include "core/counter.h"
#include "mem/block.h"

struct pool_config {
	unsigned nodes;	      /* pools for nodes 0..nodes-1 */
	size_t initial_bytes; /* the first region of first_type */
	size_t increase_bytes;
	enum block_type first_type;
	unsigned max_regions; /* per pool */
	size_t max_bytes;     /* over all, 0: no cap; for the log line, regions watch it */
};

struct pool;

struct pool_figures {
	unsigned regions;
	size_t blocks;
	size_t free; /* on the stack or not yet cut; those in the lcores' caches are not free */
};

/* After region_init(). -ENOMEM. */
int pool_init(const struct pool_config *config);

/* Logs the blocks that are still out. */
void pool_fini(void);

/* A node beyond the machine's gives the first pool's; NULL before pool_init(). */
struct pool *pool_of(unsigned node, enum block_type type);

/* Maps one more region when nothing is free. A negative errno after one rate-limited log line. */
int pool_grow(struct pool *pool);

/*
 * Up to n blocks with one reference each; how many. Grows when there is none: blocks for that long. 0 at the limit,
 * with errno ENOMEM.
 */
unsigned pool_get(struct pool *pool, struct xr_block **blocks, unsigned n);

/* Blocks of this pool without a user. Never fails. */
void pool_put(struct pool *pool, struct xr_block *const *blocks, unsigned n);

void pool_figures(struct pool *pool, struct pool_figures *figures);

enum pool_counter {
	POOL_REGIONS,
	POOL_BYTES,
	POOL_LIMIT,
	POOL_COUNTERS,
};

extern struct counter g_pool_counters[POOL_COUNTERS];

#endif
