/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/block.h"
#include "core/lcore.h"
#include "mem/block_cache.h"
#include "mem/outbox.h"
#include "mem/poison.h"
#include "mem/pool.h"
#include "mem/pressure_private.h"
#include "mem/user_block.h"
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE_BYTES 64u

/* No block has no references: none belongs here. */
static struct cache g_none;

__thread struct cache *t_caches[BLOCK_TYPES + 1] = {&g_none, &g_none, &g_none, &g_none};

const char *
block_type_name(enum block_type type)
{
	static const char *const names[BLOCK_TYPES] = {"default", "large", "huge"};

	return names[type];
}

static bool
is_lcores(const struct cache *cache)
{
	return cache != &g_none;
}

static struct cache *
cache_create(unsigned node, enum block_type type, unsigned max)
{
	size_t bytes = sizeof(struct cache) + max * sizeof(struct xr_block *);
	struct cache *cache =
		aligned_alloc(CACHE_LINE_BYTES, (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES);

	if (!cache)
		return NULL;
	*cache = (struct cache){
		.max = max,
		.sole = (struct xr_block){.refs = 1, .type = (uint8_t)type, .node = (uint8_t)node}.sole,
		.pool = pool_of(node, type),
		.lcore_index = t_lcore ? t_lcore->index : UINT_MAX,
	};
	pressure_cache_add(cache->pool, cache);
	return cache;
}

int
block_cache_init(unsigned node, const unsigned max[BLOCK_TYPES])
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++) {
		struct cache *cache = cache_create(node, type, max[type]);

		if (!cache) {
			block_cache_fini();
			return -ENOMEM;
		}
		t_caches[type] = cache;
	}
	return 0;
}

static void
cache_destroy(struct cache *cache)
{
	pool_put(cache->pool, cache->blocks, cache->count);
	pressure_cache_del(cache->pool, cache);
	pool_recv_slots_add(cache->pool, cache->recv_slots);
	free(cache);
}

void
block_cache_fini(void)
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++) {
		struct cache *cache = t_caches[type];

		t_caches[type] = &g_none;
		if (is_lcores(cache))
			cache_destroy(cache);
	}
	outbox_flush();
}

unsigned
block_cache_count(enum block_type type)
{
	return t_caches[type]->count;
}

/* Plain for the lcore itself, whole for who reads the figures. */
static inline void
set_count(struct cache *cache, unsigned count)
{
	__atomic_store_n(&cache->count, count, __ATOMIC_RELAXED);
}

static unsigned
half(const struct cache *cache)
{
	return (cache->max + 1) / 2;
}

static bool
refill(struct cache *cache)
{
	set_count(cache, pool_get(cache->pool, cache->blocks, half(cache)));
	return cache->count > 0;
}

/* The longest unused, at the bottom, go. */
static void
spill(struct cache *cache, unsigned n)
{
	struct xr_block **rest = cache->blocks + n;

	pool_put(cache->pool, cache->blocks, n);
	set_count(cache, cache->count - n);
	memmove(cache->blocks, rest, cache->count * sizeof *cache->blocks);
}

/* Of the processor that a thread without an lcore happens to run on. */
static struct pool *
nearest_pool(enum block_type type)
{
	unsigned node;

	return pool_of(getcpu(NULL, &node) == 0 ? node : 0, type);
}

struct pool *
block_home(enum block_type type)
{
	const struct cache *cache = t_caches[type];

	return is_lcores(cache) ? cache->pool : nearest_pool(type);
}

typedef unsigned pool_get_fn(struct pool *pool, struct xr_block **blocks, unsigned n);

static unsigned
get_from_pool(struct pool *pool, struct xr_block **blocks, unsigned n, pool_get_fn *get)
{
	if (pool)
		return get(pool, blocks, n);
	errno = ENOMEM;
	return 0;
}

static struct xr_block *
pop(struct cache *cache)
{
	unsigned count = cache->count - 1;

	set_count(cache, count);
	return cache->blocks[count];
}

/* A shut cache is not filled. */
struct xr_block *
block_alloc_uncached(enum block_type type)
{
	struct cache *cache = t_caches[type];
	struct xr_block *block;

	if (__atomic_load_n(&cache->limit, __ATOMIC_RELAXED) > 0) {
		if (!refill(cache))
			return NULL;
		block = pop(cache);
	} else if (get_from_pool(block_home(type), &block, 1, pool_get) == 0) {
		return NULL;
	}
	memory_unpoison(block, block_bytes(type));
	return block;
}

static unsigned
alloc_several(enum block_type type, struct xr_block **blocks, unsigned n, pool_get_fn *get)
{
	struct cache *cache = t_caches[type];
	unsigned count = cache->count < n ? cache->count : n, got = 1;

	if (count > 0) {
		set_count(cache, cache->count - count);
		memcpy(blocks, cache->blocks + cache->count, count * sizeof *blocks);
	}
	for (; count < n && got > 0; count += got)
		got = get_from_pool(block_home(type), blocks + count, n - count, get);
	for (unsigned i = 0; i < count; i++)
		memory_unpoison(blocks[i], block_bytes(type));
	return count;
}

unsigned
block_alloc_several(enum block_type type, struct xr_block **blocks, unsigned n)
{
	return alloc_several(type, blocks, n, pool_get);
}

unsigned
block_alloc_bulk(enum block_type type, struct xr_block **blocks, unsigned n)
{
	return alloc_several(type, blocks, n, pool_get_recv);
}

/* Without blocks in the cache it takes several, as block_alloc() does, but not of the reserve. */
struct xr_block *
block_alloc_recv(enum block_type type)
{
	struct cache *cache = t_caches[type];
	struct xr_block *block;

	if (cache->count == 0 && __atomic_load_n(&cache->limit, __ATOMIC_RELAXED) > 0)
		set_count(cache, pool_take(cache->pool, cache->blocks, half(cache)));
	return block_alloc_bulk(type, &block, 1) ? block : NULL;
}

void
block_await(enum block_type type)
{
	struct pool *pool = block_home(type);

	if (pool)
		pool_await(pool);
}

/* ---- freeing ---- */

/* A free block's count is 1, so that allocating it need not write there. */
static void
mark_free(struct xr_block *block)
{
	block->refs = 1;
	memory_poison(block, block_bytes(block->type));
}

static void
push(struct cache *cache, struct xr_block *block)
{
	cache->blocks[cache->count] = block;
	set_count(cache, cache->count + 1);
}

/* Nobody holds it any more. */
static void
free_block(struct xr_block *block)
{
	struct cache *cache = t_caches[block->type];
	struct pool *home;

	if (block_is_user(block)) {
		user_block_free(user_block_of(block));
		return;
	}
	home = pool_of(block->node, block->type);
	mark_free(block);
	if (cache->pool == home && __atomic_load_n(&cache->limit, __ATOMIC_RELAXED) > 0) {
		if (cache->count == cache->max)
			spill(cache, half(cache));
		push(cache, block);
	} else {
		outbox_put(home, block, cache->pool != home);
	}
}

void
block_drop_uncached(struct xr_block *block)
{
	if (__atomic_load_n(&block->refs, __ATOMIC_ACQUIRE) == 1 ||
	    __atomic_sub_fetch(&block->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free_block(block);
}

void
block_turn_end(void)
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++) {
		struct cache *cache = t_caches[type];

		if (__builtin_expect(cache->count > __atomic_load_n(&cache->limit, __ATOMIC_RELAXED), 0))
			spill(cache, cache->count);
	}
	outbox_flush();
}

/* ---- figures ---- */

void
block_recv_slots_add(enum block_type type, int n)
{
	struct cache *cache = t_caches[type];

	if (is_lcores(cache))
		__atomic_store_n(&cache->recv_slots, cache->recv_slots + n, __ATOMIC_RELAXED);
	else if (block_home(type))
		pool_recv_slots_add(block_home(type), n);
}
