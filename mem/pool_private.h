/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_POOL_PRIVATE_H
#define MEM_POOL_PRIVATE_H

/* The pool as its own files see it: pool.c, growth.c, outbox.c, pressure.c, info.c. */

#include "core/log.h"
#include "mem/pool.h"
#include "mem/region.h"
#include <pthread.h>
#include <stdbool.h>
#include <urcu/list.h>

/* What is left to cut of a region. */
struct uncut {
	char *at, *end;
	uint16_t region;
};

/* After a failure: again so much later, then twice as much, and so on. */
struct backoff {
	uint64_t at_us, after_us; /* 0: nothing has failed */
};

/*
 * Locks, the outer one first: outboxes_lock, an outbox's own, lock, growth.c's own. No lock is held while a region is
 * mapped or registered.
 */
struct pool {
	pthread_mutex_t lock; /* all that follows, if nothing else is said */
	struct xr_block **free;
	size_t free_count;
	size_t room; /* on the stack, for every block of every region */
	struct uncut uncut[POOL_REGIONS_MAX];
	unsigned uncut_first, uncut_end; /* the regions between them aren't cut up yet */
	uint8_t node;
	uint8_t type;
	/* Written under the lock with relaxed stores, for readers without it. */
	size_t idle; /* blocks on the stack or not cut yet */
	size_t blocks;
	unsigned regions;

	/* Pressure. */
	struct cds_list_head caches; /* of the node's lcores */
	bool tight;		     /* the caches are shut, see pressure.c */
	unsigned waiting;	     /* also read without the lock */
	unsigned long *waiters;	     /* a bit per lcore */

	/* Growth. */
	pthread_cond_t grown;
	bool growing;		    /* somebody maps a region, or will */
	bool ordered;		    /* of growth.c's thread */
	bool ahead;		    /* and it is ahead of need */
	bool asked;		    /* growth.c's own lock */
	uint64_t due_us;	    /* growth.c's own lock; 0: never */
	struct backoff need, early; /* when it is tried again after a failure: when needed, and ahead of that */
	size_t region_bytes;
	size_t out_peak;
	uint64_t grown_count, grown_us, limit_hits;
	struct log_limit limit_log;
	unsigned region_index[POOL_REGIONS_MAX];

	/* What was freed elsewhere. */
	pthread_mutex_t outboxes_lock;
	struct cds_list_head outboxes; /* outboxes_lock */
	uint64_t remote_frees;
	long recv_slots; /* of threads that are no lcore; atomic */
} __attribute__((aligned(64)));

const struct pool_config *pool_config_of(void);

/* ---- with the lock held ---- */

/* Why the pool can't have a further region now: 0, -EPERM, -ENOSPC, -EDQUOT, -ENOMEM. */
int pool_obstacle(const struct pool *pool);

static inline bool
pool_may_grow(const struct pool *pool)
{
	return pool->growing || pool_obstacle(pool) == 0;
}

size_t pool_next_region_bytes(const struct pool *pool);

/*
 * An eighth. It has to carry the receives while an application that hoards is being held back: with the defaults 4096
 * blocks, which are all receives of 32 connections at once, and of the smallest pool (32 MiB) still of four. A larger
 * part would be lost to every application that sends and does not hoard.
 */
#define POOL_RESERVE_SHARE 8u

static inline size_t
pool_reserve(const struct pool *pool)
{
	return pool->blocks / POOL_RESERVE_SHARE;
}

/* A mapped region's blocks are the pool's from now on. There is room for them. */
void pool_add_region(struct pool *pool, const struct region *region);

/* ---- without it ---- */

/* Room on the stack for so many blocks more: putting must never fail. By whoever has set growing. -ENOMEM. */
int pool_make_room(struct pool *pool, size_t blocks);

#endif
