/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/pool.h"
#include "core/clock.h"
#include "core/log.h"
#include "mem/poison.h"
#include "mem/region.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* After the machine had no memory, it is asked again this much later. */
#define RETRY_US 100000

struct pool {
	pthread_mutex_t lock; /* the stack and what is left to cut */
	struct xr_block **free;
	size_t free_count;
	size_t room;		 /* for every block of every region */
	char *uncut, *uncut_end; /* of the newest region */
	uint16_t uncut_region;
	uint8_t node;
	uint8_t type;
	unsigned regions;
	size_t blocks;
	/* Held while a region is mapped; the stack goes on meanwhile. */
	pthread_mutex_t grow_lock __attribute__((aligned(64)));
	uint64_t retry_at_us;
	struct log_limit limit_log;
} __attribute__((aligned(64)));

static struct {
	struct pool_config config;
	struct pool *pools; /* [node * BLOCK_TYPES + type] */
} g_pools;

struct counter g_pool_counters[POOL_COUNTERS] = {
	[POOL_REGIONS] = {.name = "mem_regions", .help = "regions mapped"},
	[POOL_BYTES] = {.name = "mem_region_bytes", .help = "bytes of the regions mapped"},
	[POOL_LIMIT] = {.name = "mem_pool_limit_hits", .help = "times a pool was asked for blocks and could not grow"},
};

static void
pool_open(struct pool *pool, unsigned node, unsigned type)
{
	memset(pool, 0, sizeof *pool);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_mutex_init(&pool->grow_lock, NULL);
	pool->node = (uint8_t)node;
	pool->type = (uint8_t)type;
}

int
pool_init(const struct pool_config *config)
{
	size_t count = (size_t)config->nodes * BLOCK_TYPES;

	g_pools.pools = aligned_alloc(_Alignof(struct pool), count * sizeof *g_pools.pools);
	if (!g_pools.pools)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		pool_open(&g_pools.pools[i], i / BLOCK_TYPES, i % BLOCK_TYPES);
	g_pools.config = *config;
	return 0;
}

static void
pool_close(struct pool *pool)
{
	struct pool_figures figures;

	pool_figures(pool, &figures);
	if (figures.free != figures.blocks)
		log_warning("memory: %zu blocks of %zu bytes (node %u) are still in use at the end",
			    figures.blocks - figures.free, block_bytes(pool->type), pool->node);
	free(pool->free);
	pthread_mutex_destroy(&pool->lock);
	pthread_mutex_destroy(&pool->grow_lock);
}

void
pool_fini(void)
{
	if (!g_pools.pools)
		return;
	for (unsigned i = 0; i < g_pools.config.nodes * BLOCK_TYPES; i++)
		pool_close(&g_pools.pools[i]);
	free(g_pools.pools);
	g_pools.pools = NULL;
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

static size_t
uncut_blocks(const struct pool *pool)
{
	return (size_t)(pool->uncut_end - pool->uncut) / block_bytes(pool->type);
}

static size_t
free_blocks(const struct pool *pool)
{
	return pool->free_count + uncut_blocks(pool);
}

static struct xr_block *
cut_block(struct pool *pool)
{
	struct xr_block *block = (struct xr_block *)pool->uncut;

	memory_unpoison(block, sizeof *block);
	*block = (struct xr_block){.refs = 1, .type = pool->type, .node = pool->node, .region = pool->uncut_region};
	memory_poison(block, sizeof *block);
	pool->uncut += block_bytes(pool->type);
	return block;
}

static unsigned
take(struct pool *pool, struct xr_block **blocks, unsigned n)
{
	unsigned count = pool->free_count < n ? (unsigned)pool->free_count : n;

	for (unsigned i = 0; i < count; i++)
		blocks[i] = pool->free[--pool->free_count];
	while (count < n && pool->uncut < pool->uncut_end)
		blocks[count++] = cut_block(pool);
	return count;
}

static unsigned
take_locked(struct pool *pool, struct xr_block **blocks, unsigned n)
{
	unsigned count;

	pthread_mutex_lock(&pool->lock);
	count = take(pool, blocks, n);
	pthread_mutex_unlock(&pool->lock);
	return count;
}

void
pool_put(struct pool *pool, struct xr_block *const *blocks, unsigned n)
{
	pthread_mutex_lock(&pool->lock);
	for (unsigned i = 0; i < n; i++)
		pool->free[pool->free_count++] = blocks[i];
	pthread_mutex_unlock(&pool->lock);
}

/* What the machine refused has been logged where it did. */
static void
report_limit(struct pool *pool, int status)
{
	size_t bytes = block_bytes(pool->type);
	const char *type = block_type_name(pool->type);

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
			    type, bytes, pool->node, pool->regions);
}

static size_t
next_region_bytes(const struct pool *pool)
{
	bool first = pool->regions == 0 && pool->type == g_pools.config.first_type;

	return first ? g_pools.config.initial_bytes : g_pools.config.increase_bytes;
}

/* Before the region is mapped: pool_put() must never fail. */
static int
make_room(struct pool *pool, size_t blocks)
{
	struct xr_block **wider = pool->free;

	pthread_mutex_lock(&pool->lock);
	if (pool->room < pool->blocks + blocks)
		wider = realloc(pool->free, (pool->blocks + blocks) * sizeof(*wider));
	if (wider) {
		pool->free = wider;
		pool->room = pool->blocks + blocks;
	}
	pthread_mutex_unlock(&pool->lock);
	return wider ? 0 : -ENOMEM;
}

static void
add_region(struct pool *pool, const struct region *region)
{
	size_t blocks = region->bytes / block_bytes(pool->type);

	pthread_mutex_lock(&pool->lock);
	pool->blocks += blocks;
	pool->regions++;
	pool->uncut = region->addr;
	pool->uncut_end = region->addr + blocks * block_bytes(pool->type);
	pool->uncut_region = (uint16_t)region->index;
	pthread_mutex_unlock(&pool->lock);
	counter_add(&g_pool_counters[POOL_REGIONS], 1);
	counter_add(&g_pool_counters[POOL_BYTES], region->bytes);
	log_debug("memory: node %u has a further region of %s blocks: %zu MiB in %s", pool->node,
		  block_type_name(pool->type), region->bytes >> 20, page_kind_name(region->pages.kind));
}

static int
map_region(struct pool *pool)
{
	size_t bytes = next_region_bytes(pool);
	struct region *region;
	int status;

	if (pool->regions >= g_pools.config.max_regions)
		return -ENOSPC;
	if (pool->retry_at_us && clock_now_us() < pool->retry_at_us)
		return -ENOMEM;
	pool->retry_at_us = 0;
	status = make_room(pool, bytes / block_bytes(pool->type));
	if (status == 0)
		status = region_create(pool->type, pool->node, bytes, &region);
	if (status == 0)
		add_region(pool, region);
	else if (status != -EDQUOT)
		pool->retry_at_us = clock_now_us() + RETRY_US;
	return status;
}

static bool
is_empty(struct pool *pool)
{
	bool empty;

	pthread_mutex_lock(&pool->lock);
	empty = free_blocks(pool) == 0;
	pthread_mutex_unlock(&pool->lock);
	return empty;
}

/* Who waited here for another thread's region, or was given blocks meanwhile, needs none of its own. */
int
pool_grow(struct pool *pool)
{
	int status = 0;

	pthread_mutex_lock(&pool->grow_lock);
	if (is_empty(pool))
		status = map_region(pool);
	pthread_mutex_unlock(&pool->grow_lock);
	if (status != 0)
		report_limit(pool, status);
	return status;
}

unsigned
pool_get(struct pool *pool, struct xr_block **blocks, unsigned n)
{
	unsigned count;

	while ((count = take_locked(pool, blocks, n)) == 0) {
		if (pool_grow(pool) != 0) {
			errno = ENOMEM;
			return 0;
		}
	}
	return count;
}

void
pool_figures(struct pool *pool, struct pool_figures *figures)
{
	pthread_mutex_lock(&pool->lock);
	figures->regions = pool->regions;
	figures->blocks = pool->blocks;
	figures->free = free_blocks(pool);
	pthread_mutex_unlock(&pool->lock);
}
