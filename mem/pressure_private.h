/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_PRESSURE_PRIVATE_H
#define MEM_PRESSURE_PRIVATE_H

/*
 * A pool is tight when somebody waits for its blocks, or when it can't grow and is down to its reserve. The caches of
 * its lcores are shut then: what is in them goes home at the end of the turn, what is freed goes home without stopping
 * there. So no cache hides a block from who starves, and block_alloc() finds none there that the reserve is short of.
 */

#include "mem/block_cache.h"
#include "mem/pool.h"

void pressure_cache_add(struct pool *pool, struct cache *cache);
void pressure_cache_del(struct pool *pool, struct cache *cache);

/* ---- with the pool's lock held ---- */

/* Blocks came or went, or growth has ended: shuts or opens the caches, wakes who waits if there are some. */
void pressure_review(struct pool *pool);

/* Blocks in the caches of the pool's lcores; may be a little old. */
size_t pressure_cached(const struct pool *pool);

#endif
