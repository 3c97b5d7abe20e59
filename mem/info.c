/* SPDX-License-Identifier: Apache-2.0 */

/* The figures of each pool, gathered while others go on. */

#include "core/lcore.h"
#include "mem/outbox.h"
#include "mem/pool_private.h"
#include "mem/pressure_private.h"
#include <errno.h>
#include <xrdma/mem.h>

static void
add_region(struct xr_mem_info *info, const struct region *region)
{
	unsigned *const by_pages[PAGE_KINDS] = {
		[PAGE_1G] = &info->regions_1g,
		[PAGE_2M] = &info->regions_2m,
		[PAGE_TRANSPARENT] = &info->regions_transparent,
		[PAGE_ORDINARY] = &info->regions_ordinary,
	};

	if (region->user) {
		info->regions_user++;
		return;
	}
	(*by_pages[region->pages.kind])++;
	if (region->pages.node != region->node)
		info->regions_remote++;
}

/* With the pool's lock held. */
static long
recv_slots(const struct pool *pool)
{
	long slots = __atomic_load_n(&pool->recv_slots, __ATOMIC_RELAXED);
	const struct cache *cache;

	cds_list_for_each_entry (cache, &pool->caches, in_pool)
		slots += __atomic_load_n(&cache->recv_slots, __ATOMIC_RELAXED);
	return slots;
}

/* What is left, or 0: the parts were not read at one instant. */
static size_t
less(size_t whole, size_t part)
{
	return part < whole ? whole - part : 0;
}

static void
fill(struct xr_mem_info *info, struct pool *pool)
{
	size_t boxed = outbox_count(pool);
	long slots;

	pthread_mutex_lock(&pool->lock);
	*info = (struct xr_mem_info){
		.numa_node = pool->node,
		.type = (enum xr_block_type)pool->type,
		.regions = pool->regions,
		.region_bytes = pool->region_bytes,
		.blocks = pool->blocks,
		.free = pool->idle,
		.cached = pressure_cached(pool) + boxed,
		.in_use_peak = pool->out_peak,
		.remote_frees = pool->remote_frees,
		.grown = pool->grown_count,
		.grown_us = pool->grown_us,
		.limit_hits = pool->limit_hits,
	};
	slots = recv_slots(pool);
	for (unsigned i = 0; i < pool->regions; i++)
		add_region(info, region_at(pool->region_index[i]));
	pthread_mutex_unlock(&pool->lock);
	info->recv_slots = slots > 0 ? (size_t)slots : 0;
	info->in_use = less(less(info->blocks, info->free + info->cached), info->recv_slots);
}

/* The index-th of those that have a region. */
static struct pool *
used_pool(unsigned index)
{
	for (unsigned i = 0; i < pool_count(); i++) {
		struct pool *pool = pool_at(i);

		if (__atomic_load_n(&pool->regions, __ATOMIC_RELAXED) > 0 && index-- == 0)
			return pool;
	}
	return NULL;
}

int
xr_mem_info(unsigned index, struct xr_mem_info *info)
{
	struct pool *pool = used_pool(index);

	if (!pool)
		return -ENOENT;
	fill(info, pool);
	return 0;
}

static ssize_t
cached_by(struct pool *pool, const struct lcore *lcore)
{
	const struct cache *cache;
	ssize_t count = -ENOENT;

	pthread_mutex_lock(&pool->lock);
	cds_list_for_each_entry (cache, &pool->caches, in_pool)
		if (cache->lcore_index == lcore->index)
			count = __atomic_load_n(&cache->count, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool->lock);
	return count;
}

ssize_t
xr_mem_cached(unsigned index, unsigned lcore_id)
{
	struct pool *pool = used_pool(index);
	const struct lcore *lcore = lcore_find(lcore_id);

	return pool && lcore ? cached_by(pool, lcore) : -ENOENT;
}
