/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MEM_FIXTURE_H
#define TESTS_MEM_FIXTURE_H

/* The memory floor without the rest of the library, in small: regions of 2 MiB on one node. */

#include "mem/block_cache.h"
#include "mem/device.h"
#include "mem/growth.h"
#include "mem/mem.h"
#include "mem/pieces.h"
#include "mem/pool.h"
#include "mem/region.h"
#include "mem/tail.h"
#include "mem/user_block.h"
#include "tests/unit/core/log_capture.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdlib.h>

#define FIXTURE_REGION_BYTES ((size_t)2 << 20)
#define FIXTURE_LCORES	     200			   /* that may wait for blocks */
#define FIXTURE_BLOCKS	     (FIXTURE_REGION_BYTES / 8192) /* of the default type in a region */

static inline void
fixture_start_with(unsigned max_regions, size_t max_bytes, unsigned nodes)
{
	struct region_config region = {
		.slot_bytes = FIXTURE_REGION_BYTES,
		.max_bytes = max_bytes,
		.slots = nodes * BLOCK_TYPES * max_regions,
		.user_slots = nodes * BLOCK_TYPES * max_regions,
	};
	struct pool_config pool = {
		.nodes = nodes,
		.initial_bytes = FIXTURE_REGION_BYTES,
		.increase_bytes = FIXTURE_REGION_BYTES,
		.max_regions = max_regions,
		.max_bytes = max_bytes,
		.lcores = FIXTURE_LCORES,
	};

	g_hugepage_told = ~0u; /* the machine's pages are not what is tested here */
	log_capture_start();
	ASSERT_FATAL(region_init(&region) == 0);
	ASSERT_FATAL(pool_init(&pool) == 0);
}

static inline int
fixture_region(enum block_type type, int node, size_t bytes, struct region **region)
{
	struct region_want want = {.type = type, .node = node, .bytes = bytes};

	return region_create(&want, region);
}

static inline void
fixture_start(unsigned max_regions)
{
	fixture_start_with(max_regions, 0, 1);
}

/* Fails the test when a block is still out. */
static inline void
fixture_stop(void)
{
	unsigned lines;

	growth_stop();
	lines = log_capture_count();
	pool_fini();
	if (log_capture_count() != lines)
		CU_FAIL("blocks are still in use");
	device_fini();
	region_fini();
	log_capture_stop();
}

/* The calling thread becomes an lcore of node 0 with that many cached blocks of each type. */
static inline void
fixture_lcore_start(unsigned cached)
{
	const unsigned max[BLOCK_TYPES] = {cached, cached, cached};

	ASSERT_FATAL(block_cache_init(0, max) == 0);
	tail_lcore_init();
	pieces_lcore_init();
	user_block_lcore_init();
}

static inline void
fixture_lcore_stop(void)
{
	mem_lcore_fini();
}

static inline struct pool_figures
fixture_figures(enum block_type type)
{
	struct pool_figures figures;

	pool_figures(pool_of(0, type), &figures);
	return figures;
}

/* A block as long as there is any, the reserve's too. */
static inline struct xr_block *
fixture_any_block(enum block_type type)
{
	struct xr_block *block = block_alloc(type);

	return block ? block : block_alloc_recv(type);
}

/* Blocks that somebody holds, of those that the calling thread's cache does not. */
static inline size_t
fixture_in_use(enum block_type type)
{
	struct pool_figures figures = fixture_figures(type);

	return figures.blocks - figures.free - block_cache_count(type);
}

#endif
