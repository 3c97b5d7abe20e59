/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_POOL_H
#define MEM_POOL_H

/*
 * The pool of one node and one block type: its regions, cut into blocks as they are asked for, and the free ones on a
 * stack under a mutex. The lcores come here in batches, through their caches (block.c); other threads each time.
 *
 * A free block has its header written, with a count of 1, and is poisoned: to allocate it touches none of its lines.
 *
 * Around it: growth.c maps further regions, outbox.c brings blocks home that were freed elsewhere, pressure.c keeps
 * who waits for blocks.
 */

#include "core/counter.h"
#include "mem/block.h"

#define POOL_REGIONS_MAX 16u

struct pool_config {
	unsigned nodes;	      /* pools for nodes 0..nodes-1 */
	size_t initial_bytes; /* the first region of first_type */
	size_t increase_bytes;
	enum block_type first_type;
	unsigned max_regions; /* per pool, at most POOL_REGIONS_MAX */
	size_t max_bytes;     /* over all, 0: no cap; for the log line, regions watch it */
	unsigned lcores;      /* that may wait for blocks */
	bool user_memory;     /* no other regions than pool_add()'s */
};

struct pool;

struct pool_figures {
	unsigned regions;
	size_t region_bytes;
	size_t blocks;
	size_t free; /* on the stack, not yet cut, or in an outbox; those in the lcores' caches are not free */
};

/* After region_init(). -ENOMEM. */
int pool_init(const struct pool_config *config);

/* Logs the blocks that are still out. */
void pool_fini(void);

/* A node beyond the machine's gives the first pool's; NULL before pool_init(). */
struct pool *pool_of(unsigned node, enum block_type type);

/* How many pools there are, and each of them. */
unsigned pool_count(void);
struct pool *pool_at(unsigned index);

/*
 * Maps one more region when nothing is free; blocks for that long. A negative errno after one rate-limited log line,
 * but for -EPERM: it is the application that adds regions.
 */
int pool_grow(struct pool *pool);

/* Memory of the application's becomes a region; the errors of xr_mem_pool_add() but -EINVAL. */
int pool_add(struct pool *pool, void *addr, size_t bytes);

/*
 * Up to n blocks with one reference each; how many. Without any it waits for a further region. 0 at the limit, where
 * the reserve is left alone, with errno ENOMEM.
 */
unsigned pool_get(struct pool *pool, struct xr_block **blocks, unsigned n);

/*
 * The same for receives: takes the reserve as well, and does not wait when growth.c's thread does the work, but for a
 * pool's first region. Then errno is EAGAIN while a region is on its way.
 */
unsigned pool_get_recv(struct pool *pool, struct xr_block **blocks, unsigned n);

/* What there is without the reserve, and without waiting or asking for more: up to n, maybe 0. */
unsigned pool_take(struct pool *pool, struct xr_block **blocks, unsigned n);

/* Waits until a region that is on its way is there, or isn't. */
void pool_await(struct pool *pool);

/* Blocks of this pool without a user. Never fails. remote: they were freed off the node's own lcores. */
void pool_put(struct pool *pool, struct xr_block *const *blocks, unsigned n);
void pool_put_remote(struct pool *pool, struct xr_block *const *blocks, unsigned n);

/* Receive slots that no cache keeps count of. */
void pool_recv_slots_add(struct pool *pool, long n);

void pool_figures(struct pool *pool, struct pool_figures *figures);

enum pool_counter {
	POOL_REGIONS,
	POOL_BYTES,
	POOL_LIMIT,
	POOL_REMOTE,
	POOL_GROWN,
	POOL_GROWN_US,
	POOL_GROWTH_FAILED,
	POOL_WAITS,
	POOL_WAKES,
	POOL_COUNTERS,
};

extern struct counter g_pool_counters[POOL_COUNTERS];

#endif
