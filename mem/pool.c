/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/pool.h"
#include "core/clock.h"
#include "core/log.h"
#include "mem/growth.h"
#include "mem/outbox.h"
#include "mem/poison.h"
#include "mem/pool_private.h"
#include "mem/pressure_private.h"
#include "mem/region.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BITS (8 * sizeof(unsigned long))

static struct {
	struct pool_config config;
	struct pool *pools; /* [node * BLOCK_TYPES + type] */
	unsigned long *waiters;
} g_pools;

struct counter g_pool_counters[POOL_COUNTERS] = {
	[POOL_REGIONS] = {.name = "mem_regions", .help = "regions mapped"},
	[POOL_BYTES] = {.name = "mem_region_bytes", .help = "bytes of the regions mapped"},
	[POOL_LIMIT] = {.name = "mem_pool_limit_hits", .help = "times a pool was asked for blocks and could not grow"},
	[POOL_REMOTE] = {.name = "mem_remote_frees", .help = "blocks that were freed off their node's lcores"},
	[POOL_GROWN] = {.name = "mem_regions_grown", .help = "regions mapped after a pool's first"},
	[POOL_GROWN_US] = {.name = "mem_growth_us", .help = "microseconds that mapping those took"},
	[POOL_GROWTH_FAILED] = {.name = "mem_growth_failures", .help = "times a region could not be mapped"},
	[POOL_WAITS] = {.name = "mem_waits", .help = "times an lcore began to wait for blocks"},
	[POOL_WAKES] = {.name = "mem_wakes", .help = "times an lcore was woken since there were blocks again"},
};

/* ---- life ---- */

static size_t
waiter_words(const struct pool_config *config)
{
	return (config->lcores + WORD_BITS - 1) / WORD_BITS;
}

static void
pool_open(struct pool *pool, unsigned node, unsigned type)
{
	memset(pool, 0, sizeof *pool);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_mutex_init(&pool->outboxes_lock, NULL);
	pthread_cond_init(&pool->grown, NULL);
	CDS_INIT_LIST_HEAD(&pool->caches);
	CDS_INIT_LIST_HEAD(&pool->outboxes);
	pool->node = (uint8_t)node;
	pool->type = (uint8_t)type;
}

static int
allocate_pools(const struct pool_config *config, unsigned count)
{
	g_pools.pools = aligned_alloc(_Alignof(struct pool), count * sizeof *g_pools.pools);
	g_pools.waiters = calloc(count * waiter_words(config) + 1, sizeof *g_pools.waiters);
	if (g_pools.pools && g_pools.waiters)
		return 0;
	free(g_pools.pools);
	free(g_pools.waiters);
	g_pools.pools = NULL;
	return -ENOMEM;
}

int
pool_init(const struct pool_config *config)
{
	unsigned count = config->nodes * BLOCK_TYPES;
	int status = allocate_pools(config, count);

	if (status != 0)
		return status;
	for (unsigned i = 0; i < count; i++) {
		pool_open(&g_pools.pools[i], i / BLOCK_TYPES, i % BLOCK_TYPES);
		g_pools.pools[i].waiters = g_pools.waiters + i * waiter_words(config);
	}
	g_pools.config = *config;
	status = outbox_init();
	if (status != 0)
		pool_fini();
	return status;
}

static void
pool_close(struct pool *pool)
{
	if (pool->idle != pool->blocks)
		log_warning("memory: %zu blocks of %zu bytes (node %u) are still in use at the end",
			    pool->blocks - pool->idle, block_bytes(pool->type), pool->node);
	free(pool->free);
	pthread_cond_destroy(&pool->grown);
	pthread_mutex_destroy(&pool->outboxes_lock);
	pthread_mutex_destroy(&pool->lock);
}

void
pool_fini(void)
{
	if (!g_pools.pools)
		return;
	outbox_fini();
	for (unsigned i = 0; i < pool_count(); i++)
		pool_close(&g_pools.pools[i]);
	free(g_pools.waiters);
	free(g_pools.pools);
	g_pools.pools = NULL;
}

const struct pool_config *
pool_config_of(void)
{
	return &g_pools.config;
}

unsigned
pool_count(void)
{
	return g_pools.pools ? g_pools.config.nodes * BLOCK_TYPES : 0;
}

struct pool *
pool_at(unsigned index)
{
	return &g_pools.pools[index];
}

struct pool *
pool_of(unsigned node, enum block_type type)
{
	if (!g_pools.pools)
		return NULL;
	if (node >= g_pools.config.nodes)
		node = 0;
	return &g_pools.pools[node * BLOCK_TYPES + type];
}

/* ---- the stack, and what is left to cut: under the lock ---- */

static void
set_idle(struct pool *pool, size_t idle)
{
	__atomic_store_n(&pool->idle, idle, __ATOMIC_RELAXED);
	if (pool->blocks - idle > pool->out_peak)
		pool->out_peak = pool->blocks - idle;
}

static struct xr_block *
cut_block(struct pool *pool)
{
	struct uncut *uncut = &pool->uncut[pool->uncut_first];
	struct xr_block *block = (struct xr_block *)uncut->at;

	memory_unpoison(block, sizeof *block);
	*block = (struct xr_block){.refs = 1, .type = pool->type, .node = pool->node, .region = uncut->region};
	memory_poison(block, sizeof *block);
	uncut->at += block_bytes(pool->type);
	if (uncut->at == uncut->end)
		pool->uncut_first++;
	return block;
}

/* The last used first, then fresh ones; spared ones are left. */
static unsigned
take(struct pool *pool, struct xr_block **blocks, unsigned n, size_t spared)
{
	unsigned count = 0;

	if (pool->idle <= spared)
		return 0;
	if (n > pool->idle - spared)
		n = (unsigned)(pool->idle - spared);
	while (count < n && pool->free_count > 0)
		blocks[count++] = pool->free[--pool->free_count];
	while (count < n)
		blocks[count++] = cut_block(pool);
	set_idle(pool, pool->idle - count);
	return count;
}

static void
put(struct pool *pool, struct xr_block *const *blocks, unsigned n)
{
	memcpy(pool->free + pool->free_count, blocks, n * sizeof(*blocks));
	pool->free_count += n;
	set_idle(pool, pool->idle + n);
	pressure_review(pool);
}

void
pool_put(struct pool *pool, struct xr_block *const *blocks, unsigned n)
{
	if (n == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	put(pool, blocks, n);
	pthread_mutex_unlock(&pool->lock);
}

void
pool_put_remote(struct pool *pool, struct xr_block *const *blocks, unsigned n)
{
	counter_add(&g_pool_counters[POOL_REMOTE], n);
	pthread_mutex_lock(&pool->lock);
	pool->remote_frees += n;
	put(pool, blocks, n);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- regions ---- */

size_t
pool_next_region_bytes(const struct pool *pool)
{
	bool first = pool->regions == 0 && pool->type == g_pools.config.first_type;

	return first ? g_pools.config.initial_bytes : g_pools.config.increase_bytes;
}

int
pool_obstacle(const struct pool *pool)
{
	if (g_pools.config.user_memory)
		return -EPERM;
	if (pool->regions >= g_pools.config.max_regions)
		return -ENOSPC;
	if (pool_next_region_bytes(pool) > region_budget())
		return -EDQUOT;
	return pool->need.at_us && clock_now_us() < pool->need.at_us ? -ENOMEM : 0;
}

int
pool_make_room(struct pool *pool, size_t blocks)
{
	size_t room = pool->blocks + blocks;
	struct xr_block **wider, **before;

	if (pool->room >= room)
		return 0;
	wider = malloc(room * sizeof(*wider));
	if (!wider)
		return -ENOMEM;
	pthread_mutex_lock(&pool->lock);
	before = pool->free;
	if (pool->free_count > 0)
		memcpy(wider, before, pool->free_count * sizeof(*wider));
	pool->free = wider;
	pool->room = room;
	pthread_mutex_unlock(&pool->lock);
	free(before);
	return 0;
}

void
pool_add_region(struct pool *pool, const struct region *region)
{
	size_t blocks = region->bytes / block_bytes(pool->type);

	pool->region_index[pool->regions] = region->index;
	pool->uncut[pool->uncut_end++] = (struct uncut){
		.at = region->addr,
		.end = region->addr + blocks * block_bytes(pool->type),
		.region = (uint16_t)region->index,
	};
	__atomic_store_n(&pool->regions, pool->regions + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&pool->blocks, pool->blocks + blocks, __ATOMIC_RELAXED);
	set_idle(pool, pool->idle + blocks);
	pool->region_bytes += region->bytes;
	counter_add(&g_pool_counters[POOL_REGIONS], 1);
	counter_add(&g_pool_counters[POOL_BYTES], region->bytes);
}

/* Nobody else adds a region while growing is set. */
static int
add_claimed(struct pool *pool, void *addr, size_t bytes)
{
	struct region *region;
	int status;

	if (pool->regions >= g_pools.config.max_regions)
		return -ENOSPC;
	status = pool_make_room(pool, bytes / block_bytes(pool->type));
	if (status == 0)
		status = region_add(pool->type, pool->node, addr, bytes, &region);
	if (status != 0)
		return status;
	pthread_mutex_lock(&pool->lock);
	pool_add_region(pool, region);
	pthread_mutex_unlock(&pool->lock);
	return 0;
}

int
pool_add(struct pool *pool, void *addr, size_t bytes)
{
	int status;

	pthread_mutex_lock(&pool->lock);
	growth_wait(pool);
	pool->growing = true;
	pthread_mutex_unlock(&pool->lock);
	status = add_claimed(pool, addr, bytes);
	pthread_mutex_lock(&pool->lock);
	pool->growing = false;
	pthread_cond_broadcast(&pool->grown);
	pressure_review(pool);
	if (pool->waiting > 0)
		growth_retry(pool);
	pthread_mutex_unlock(&pool->lock);
	return status;
}

/* ---- taking, and what happens when there is nothing ---- */

/* What the machine refused has been logged where it did. */
static void
report_limit(struct pool *pool, int status)
{
	size_t bytes = block_bytes(pool->type);
	const char *type = block_type_name(pool->type);
	unsigned regions = __atomic_load_n(&pool->regions, __ATOMIC_RELAXED);

	counter_add(&g_pool_counters[POOL_LIMIT], 1);
	if (status == -EDQUOT)
		log_limited(
			&pool->limit_log, XR_LOG_WARNING,
			"memory: no %s block (%zu bytes) left on node %u, and all regions together are at the limit of "
			"%zu MiB (--pool_max_mb)",
			type, bytes, pool->node, g_pools.config.max_bytes >> 20);
	else if (status == -ENOSPC)
		log_limited(&pool->limit_log, XR_LOG_WARNING,
			    "memory: no %s block (%zu bytes) left on node %u, and its %u regions are the limit "
			    "(--rdma_memory_pool_max_regions)",
			    type, bytes, pool->node, regions);
	else if (status == -EPERM)
		log_limited(&pool->limit_log, XR_LOG_WARNING,
			    "memory: no %s block (%zu bytes) left on node %u in the %u regions that the application "
			    "has added with xr_mem_pool_add() (--rdma_memory_pool_user_specified_memory)",
			    type, bytes, pool->node, regions);
}

/* With the lock held, which is given up meanwhile. 0: look again; else why there is nothing to wait for. */
static int
get_more(struct pool *pool, bool receive)
{
	bool collected;
	int status;

	pthread_mutex_unlock(&pool->lock);
	collected = outbox_collect(pool);
	pthread_mutex_lock(&pool->lock);
	if (collected)
		return 0;
	if (!pool->growing) {
		status = pool_obstacle(pool);
		if (status != 0)
			return status;
		growth_begin(pool);
	}
	if (receive && pool->regions > 0 && pool->growing)
		return -EAGAIN;
	growth_wait(pool);
	return 0;
}

/* Of a pool that can't grow, the reserve is kept for the receives. */
static size_t
spared_for(const struct pool *pool, unsigned n, bool receive)
{
	size_t reserve = pool_reserve(pool);

	return receive || pool->idle >= n + reserve || pool_may_grow(pool) ? 0 : reserve;
}

static unsigned
get(struct pool *pool, struct xr_block **blocks, unsigned n, bool receive)
{
	unsigned count;
	int status = 0;

	pthread_mutex_lock(&pool->lock);
	while ((count = take(pool, blocks, n, spared_for(pool, n, receive))) == 0 && status == 0)
		status = get_more(pool, receive);
	if (count == 0 && status != -EAGAIN)
		pool->limit_hits++;
	growth_ahead(pool, count);
	pressure_review(pool);
	pthread_mutex_unlock(&pool->lock);
	if (count > 0)
		return count;
	if (status != -EAGAIN)
		report_limit(pool, status);
	errno = status == -EAGAIN ? EAGAIN : ENOMEM;
	return 0;
}

unsigned
pool_get(struct pool *pool, struct xr_block **blocks, unsigned n)
{
	return get(pool, blocks, n, false);
}

unsigned
pool_get_recv(struct pool *pool, struct xr_block **blocks, unsigned n)
{
	return get(pool, blocks, n, true);
}

unsigned
pool_take(struct pool *pool, struct xr_block **blocks, unsigned n)
{
	unsigned count;

	pthread_mutex_lock(&pool->lock);
	count = take(pool, blocks, n, pool_reserve(pool));
	growth_ahead(pool, count);
	pressure_review(pool);
	pthread_mutex_unlock(&pool->lock);
	return count;
}

void
pool_await(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	growth_wait(pool);
	pthread_mutex_unlock(&pool->lock);
}

int
pool_grow(struct pool *pool)
{
	int status = 0;

	pthread_mutex_lock(&pool->lock);
	while (pool->idle == 0 && status == 0)
		status = get_more(pool, false);
	pthread_mutex_unlock(&pool->lock);
	if (status != 0 && status != -EPERM)
		report_limit(pool, status);
	return status;
}

/* ---- figures ---- */

void
pool_recv_slots_add(struct pool *pool, long n)
{
	__atomic_fetch_add(&pool->recv_slots, n, __ATOMIC_RELAXED);
}

void
pool_figures(struct pool *pool, struct pool_figures *figures)
{
	size_t boxed = outbox_count(pool);

	pthread_mutex_lock(&pool->lock);
	figures->regions = pool->regions;
	figures->region_bytes = pool->region_bytes;
	figures->blocks = pool->blocks;
	figures->free = pool->idle + boxed;
	pthread_mutex_unlock(&pool->lock);
}
