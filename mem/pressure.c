/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/pressure.h"
#include "core/clock.h"
#include "core/lcore.h"
#include "mem/growth.h"
#include "mem/outbox.h"
#include "mem/pool_private.h"
#include "mem/pressure_private.h"

#define WORD_BITS (8 * sizeof(unsigned long))

static void (*g_wake)(unsigned lcore_index);

void
pressure_set_wake(void (*wake)(unsigned lcore_index))
{
	__atomic_store_n(&g_wake, wake, __ATOMIC_RELEASE);
}

static void
wake_lcore(unsigned lcore_index)
{
	void (*wake)(unsigned index) = __atomic_load_n(&g_wake, __ATOMIC_ACQUIRE);

	if (wake && lcore_index < pool_config_of()->lcores)
		wake(lcore_index);
}

/* ---- the caches of a tight pool ---- */

static void
set_gate(const struct pool *pool, struct cache *cache)
{
	__atomic_store_n(&cache->limit, pool->tight ? 0 : cache->max, __ATOMIC_RELAXED);
}

static void
set_gates(struct pool *pool)
{
	struct cache *cache;

	cds_list_for_each_entry (cache, &pool->caches, in_pool)
		set_gate(pool, cache);
}

void
pressure_cache_add(struct pool *pool, struct cache *cache)
{
	pthread_mutex_lock(&pool->lock);
	cds_list_add_tail(&cache->in_pool, &pool->caches);
	set_gate(pool, cache);
	pthread_mutex_unlock(&pool->lock);
}

void
pressure_cache_del(struct pool *pool, struct cache *cache)
{
	pthread_mutex_lock(&pool->lock);
	cds_list_del(&cache->in_pool);
	pthread_mutex_unlock(&pool->lock);
}

size_t
pressure_cached(const struct pool *pool)
{
	const struct cache *cache;
	size_t count = 0;

	cds_list_for_each_entry (cache, &pool->caches, in_pool)
		count += __atomic_load_n(&cache->count, __ATOMIC_RELAXED);
	return count;
}

/* What has been let out is let in again only when the reserve is well filled: the caches shall not flap. */
static bool
is_short(const struct pool *pool)
{
	size_t reserve = pool_reserve(pool);

	return pool->idle < reserve + (pool->tight ? reserve / 2 : 0) && !pool_may_grow(pool);
}

/* ---- who waits ---- */

static void
wake_waiters(struct pool *pool)
{
	unsigned words = (unsigned)((pool_config_of()->lcores + WORD_BITS - 1) / WORD_BITS);

	counter_add(&g_pool_counters[POOL_WAKES], pool->waiting);
	for (unsigned word = 0; word < words; word++)
		for (; pool->waiters[word]; pool->waiters[word] &= pool->waiters[word] - 1)
			wake_lcore((unsigned)(word * WORD_BITS) + (unsigned)__builtin_ctzl(pool->waiters[word]));
	__atomic_store_n(&pool->waiting, 0, __ATOMIC_RELAXED);
}

void
pressure_review(struct pool *pool)
{
	bool tight;

	if (pool->waiting > 0 && pool->idle > 0)
		wake_waiters(pool);
	tight = pool->waiting > 0 || is_short(pool);
	if (tight == pool->tight)
		return;
	pool->tight = tight;
	set_gates(pool);
}

static bool
is_waiting(const struct pool *pool, unsigned index)
{
	return pool->waiters[index / WORD_BITS] >> index % WORD_BITS & 1;
}

static void
add_waiter(struct pool *pool, unsigned index)
{
	if (is_waiting(pool, index))
		return;
	pool->waiters[index / WORD_BITS] |= 1ul << index % WORD_BITS;
	__atomic_store_n(&pool->waiting, pool->waiting + 1, __ATOMIC_RELAXED);
	counter_add(&g_pool_counters[POOL_WAITS], 1);
}

static void
del_waiter(struct pool *pool, unsigned index)
{
	pool->waiters[index / WORD_BITS] &= ~(1ul << index % WORD_BITS);
	__atomic_store_n(&pool->waiting, pool->waiting - 1, __ATOMIC_RELAXED);
}

/* Who keeps some is told to bring them home: it may be asleep with them. */
static void
call_in_cached(struct pool *pool, unsigned index)
{
	const struct cache *cache;

	cds_list_for_each_entry (cache, &pool->caches, in_pool)
		if (cache->lcore_index != index && __atomic_load_n(&cache->count, __ATOMIC_RELAXED) > 0)
			wake_lcore(cache->lcore_index);
}

/* True: it waits, or has been woken meanwhile. */
static bool
still_waits(struct pool *pool, unsigned index)
{
	if (!is_waiting(pool, index))
		return true;
	if (pool->idle > 0) {
		del_waiter(pool, index);
		return false;
	}
	call_in_cached(pool, index);
	return true;
}

/*
 * Registers, then looks again. Blocks that are put on the stack come by the lock. Those in an outbox are either found
 * by collecting, or whoever puts one there afterwards sees that somebody waits. Those that an lcore caches: it has
 * either stored its count before our look at it, or sees its gate shut when it looks once more before it sleeps (the
 * fence here, and the one in the protocol of going to sleep).
 */
bool
pressure_wait(enum block_type type)
{
	struct pool *pool = block_home(type);
	unsigned index;
	bool waits;

	if (!pool || !t_lcore || t_lcore->index >= pool_config_of()->lcores)
		return true;
	index = t_lcore->index;
	pthread_mutex_lock(&pool->lock);
	add_waiter(pool, index);
	pool->tight = true;
	set_gates(pool);
	growth_retry(pool);
	pthread_mutex_unlock(&pool->lock);
	outbox_collect(pool);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	pthread_mutex_lock(&pool->lock);
	waits = still_waits(pool, index);
	pressure_review(pool);
	pthread_mutex_unlock(&pool->lock);
	return waits;
}

/* ---- how much there is ---- */

/* A step ahead of need has just been refused. */
static bool
is_put_off(const struct backoff *early)
{
	uint64_t at_us = __atomic_load_n(&early->at_us, __ATOMIC_RELAXED);

	return at_us && clock_now_us() < at_us;
}

/* Of regions that may still be mapped. A machine that has just had no memory, or none to spare, is not counted on. */
static size_t
unmapped_bytes(const struct pool *pool)
{
	const struct pool_config *config = pool_config_of();
	unsigned regions = __atomic_load_n(&pool->regions, __ATOMIC_RELAXED);
	size_t step = config->increase_bytes, budget = region_budget() / step;
	size_t more = regions < config->max_regions ? config->max_regions - regions : 0;

	if (config->user_memory || __atomic_load_n(&pool->need.at_us, __ATOMIC_RELAXED) || is_put_off(&pool->early))
		return 0;
	return (more < budget ? more : budget) * step;
}

size_t
pressure_capacity_bytes(enum block_type type)
{
	const struct pool *pool = block_home(type);

	if (!pool)
		return 0;
	return __atomic_load_n(&pool->blocks, __ATOMIC_RELAXED) * block_bytes(type) + unmapped_bytes(pool);
}

/* Also those in the caches of other lcores and on their way home: they come when somebody is short of them. */
static size_t
free_blocks(struct pool *pool)
{
	size_t boxed = outbox_count(pool), count;

	pthread_mutex_lock(&pool->lock);
	count = pool->idle + pressure_cached(pool) + boxed;
	pthread_mutex_unlock(&pool->lock);
	return count;
}

size_t
pressure_available_bytes(enum block_type type)
{
	struct pool *pool = block_home(type);

	return pool ? free_blocks(pool) * block_bytes(type) + unmapped_bytes(pool) : 0;
}
