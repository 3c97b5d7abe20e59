/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/block.h"
#include "mem/block_cache.h"
#include "mem/poison.h"
#include "mem/pool.h"
#include "mem/user_block.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE_BYTES 64u

/*
 * An lcore's free blocks of one type, all of its own node, as an array of pointers. Refilled and spilled by halves, so
 * that the pool's mutex is taken once for many blocks.
 */
struct cache {
	unsigned count, max, node;
	struct pool *pool;
	struct xr_block *blocks[];
} __attribute__((aligned(CACHE_LINE_BYTES)));

/* NULL: this thread is no lcore, or keeps no blocks of the type. The last one, user memory's, is NULL always. */
static __thread struct cache *t_caches[BLOCK_TYPES + 1] __attribute__((tls_model("initial-exec")));

const char *
block_type_name(enum block_type type)
{
	static const char *const names[BLOCK_TYPES] = {"default", "large", "huge"};

	return names[type];
}

static struct cache *
cache_create(unsigned node, enum block_type type, unsigned max)
{
	size_t bytes = sizeof(struct cache) + max * sizeof(struct xr_block *);
	struct cache *cache =
		aligned_alloc(CACHE_LINE_BYTES, (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES);

	if (cache)
		*cache = (struct cache){.max = max, .node = node, .pool = pool_of(node, type)};
	return cache;
}

int
block_cache_init(unsigned node, const unsigned max[BLOCK_TYPES])
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++) {
		if (max[type] == 0)
			continue;
		t_caches[type] = cache_create(node, type, max[type]);
		if (!t_caches[type]) {
			block_cache_fini();
			return -ENOMEM;
		}
	}
	return 0;
}

void
block_cache_fini(void)
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++) {
		struct cache *cache = t_caches[type];

		if (!cache)
			continue;
		pool_put(cache->pool, cache->blocks, cache->count);
		free(cache);
		t_caches[type] = NULL;
	}
}

unsigned
block_cache_count(enum block_type type)
{
	return t_caches[type] ? t_caches[type]->count : 0;
}

static unsigned
half(const struct cache *cache)
{
	return (cache->max + 1) / 2;
}

static bool
refill(struct cache *cache)
{
	cache->count = pool_get(cache->pool, cache->blocks, half(cache));
	return cache->count > 0;
}

/* The longest unused half, at the bottom, goes. */
static void
spill(struct cache *cache)
{
	unsigned n = half(cache);

	pool_put(cache->pool, cache->blocks, n);
	cache->count -= n;
	memmove(cache->blocks, cache->blocks + n, cache->count * sizeof *cache->blocks);
}

/* Of the processor that a thread without an lcore happens to run on. */
static struct pool *
nearest_pool(enum block_type type)
{
	unsigned node;

	return pool_of(getcpu(NULL, &node) == 0 ? node : 0, type);
}

static struct pool *
pool_behind(const struct cache *cache, enum block_type type)
{
	return cache ? cache->pool : nearest_pool(type);
}

static unsigned
get_from_pool(struct pool *pool, struct xr_block **blocks, unsigned n)
{
	if (pool)
		return pool_get(pool, blocks, n);
	errno = ENOMEM;
	return 0;
}

/* The calls below keep their rare halves out of line, so that the others save no registers. */

__attribute__((noinline)) static struct xr_block *
alloc_without_cached(enum block_type type)
{
	struct cache *cache = t_caches[type];
	struct xr_block *block;

	if (cache && refill(cache))
		block = cache->blocks[--cache->count];
	else if (cache || get_from_pool(nearest_pool(type), &block, 1) == 0)
		return NULL;
	memory_unpoison(block, block_bytes(type));
	return block;
}

struct xr_block *
block_alloc(enum block_type type)
{
	struct cache *cache = t_caches[type];
	struct xr_block *block;

	if (__builtin_expect(!cache || cache->count == 0, 0))
		return alloc_without_cached(type);
	block = cache->blocks[--cache->count];
	memory_unpoison(block, block_bytes(type));
	return block;
}

unsigned
block_alloc_bulk(enum block_type type, struct xr_block **blocks, unsigned n)
{
	struct cache *cache = t_caches[type];
	unsigned count = 0, got = 1;

	if (cache) {
		count = cache->count < n ? cache->count : n;
		cache->count -= count;
		memcpy(blocks, cache->blocks + cache->count, count * sizeof *blocks);
	}
	for (; count < n && got > 0; count += got)
		got = get_from_pool(pool_behind(cache, type), blocks + count, n - count);
	for (unsigned i = 0; i < count; i++)
		memory_unpoison(blocks[i], block_bytes(type));
	return count;
}

/* A free block's count is 1, so that allocating it need not write there. */
static void
mark_free(struct xr_block *block)
{
	block->refs = 1;
	memory_poison(block, block_bytes(block->type));
}

__attribute__((noinline)) static void
free_past_cache(struct xr_block *block)
{
	struct cache *cache = t_caches[block->type];
	struct pool *home;

	if (block_is_user(block)) {
		user_block_free(user_block_of(block));
		return;
	}
	home = pool_of(block->node, block->type);
	mark_free(block);
	if (!cache || cache->pool != home) {
		pool_put(home, &block, 1);
		return;
	}
	spill(cache);
	cache->blocks[cache->count++] = block;
}

void
block_free(struct xr_block *block)
{
	struct cache *cache = t_caches[block->type];

	if (__builtin_expect(!cache || cache->node != block->node || cache->count == cache->max, 0)) {
		free_past_cache(block);
		return;
	}
	mark_free(block);
	cache->blocks[cache->count++] = block;
}
