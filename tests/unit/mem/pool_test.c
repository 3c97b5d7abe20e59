/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/poison.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <unistd.h>

static struct xr_block *all[8 * FIXTURE_BLOCKS];

/* Takes until the pool gives no more, and then its reserve. */
static unsigned
drain(struct pool *pool, unsigned batch)
{
	unsigned count = 0, got;

	while ((got = pool_get(pool, all + count, batch)) > 0 || (got = pool_get_recv(pool, all + count, batch)) > 0)
		count += got;
	return count;
}

static void
test_grows_to_its_cap(void)
{
	struct pool *pool;
	struct pool_figures figures;
	unsigned count;

	fixture_start(3);
	pool = pool_of(0, BLOCK_DEFAULT);
	pool_figures(pool, &figures);
	ASSERT_EQ(figures.regions, 0);
	count = drain(pool, 64);
	ASSERT_EQ(count, 3 * FIXTURE_BLOCKS);
	ASSERT_EQ(errno, ENOMEM);
	pool_figures(pool, &figures);
	ASSERT_EQ(figures.regions, 3);
	ASSERT_EQ(figures.blocks, count);
	ASSERT_EQ(figures.free, 0);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_STR(log_capture_last(),
		   "memory: no default block (8192 bytes) left on node 0, and its 3 regions are the "
		   "limit (--rdma_memory_pool_max_regions)");
	pool_put(pool, all, count);
	pool_figures(pool, &figures);
	ASSERT_EQ(figures.free, count);
	ASSERT_EQ(drain(pool, 7), count);
	pool_put(pool, all, count);
	fixture_stop();
}

static int
by_address(const void *a, const void *b)
{
	const struct xr_block *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void
test_blocks_are_apart_and_labelled(void)
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++) {
		struct pool *pool;
		unsigned count;

		fixture_start(2);
		pool = pool_of(0, type);
		count = drain(pool, 5);
		ASSERT_EQ(count, 2 * FIXTURE_REGION_BYTES / block_bytes(type));
		qsort(all, count, sizeof *all, by_address);
		for (unsigned i = 0; i < count; i++) {
			memory_unpoison(all[i], block_bytes(type));
			CU_ASSERT(all[i]->refs == 1 && all[i]->type == type && all[i]->node == 0);
			CU_ASSERT(region_find(all[i]) == region_at(all[i]->region));
			CU_ASSERT((uintptr_t)all[i] % block_bytes(type) == 0);
			CU_ASSERT(i == 0 || (size_t)((char *)all[i] - (char *)all[i - 1]) >= block_bytes(type));
			memset(block_payload(all[i]), 1, block_payload_bytes(type));
		}
		pool_put(pool, all, count);
		fixture_stop();
	}
}

static void
test_cap_over_all_pools(void)
{
	struct xr_block *block;
	unsigned count;

	fixture_start_with(4, 2 * FIXTURE_REGION_BYTES, 1);
	count = drain(pool_of(0, BLOCK_DEFAULT), 64);
	ASSERT_EQ(count, 2 * FIXTURE_BLOCKS);
	CU_ASSERT(strstr(log_capture_last(), "limit of 4 MiB (--pool_max_mb)") != NULL);
	ASSERT_EQ(pool_get(pool_of(0, BLOCK_LARGE), &block, 1), 0);
	pool_put(pool_of(0, BLOCK_DEFAULT), all, count);
	fixture_stop();
}

static void
test_last_used_comes_first(void)
{
	struct pool *pool;
	struct xr_block *blocks[3], *again[3];

	fixture_start(1);
	pool = pool_of(0, BLOCK_DEFAULT);
	ASSERT_EQ(pool_get(pool, blocks, 3), 3);
	pool_put(pool, blocks, 3);
	ASSERT_EQ(pool_get(pool, again, 1), 1);
	CU_ASSERT(again[0] == blocks[2]);
	pool_put(pool, again, 1);
	fixture_stop();
}

static void
test_nodes_are_apart(void)
{
	struct xr_block *blocks[2];

	fixture_start_with(1, 0, 2);
	ASSERT_EQ(pool_get(pool_of(0, BLOCK_DEFAULT), &blocks[0], 1), 1);
	ASSERT_EQ(pool_get(pool_of(1, BLOCK_DEFAULT), &blocks[1], 1), 1);
	memory_unpoison(blocks[0], BLOCK_HEADER_BYTES);
	memory_unpoison(blocks[1], BLOCK_HEADER_BYTES);
	ASSERT_EQ(blocks[0]->node, 0);
	ASSERT_EQ(blocks[1]->node, 1);
	CU_ASSERT(blocks[0]->region != blocks[1]->region);
	CU_ASSERT(pool_of(2, BLOCK_DEFAULT) == pool_of(0, BLOCK_DEFAULT));
	pool_put(pool_of(0, BLOCK_DEFAULT), &blocks[0], 1);
	pool_put(pool_of(1, BLOCK_DEFAULT), &blocks[1], 1);
	fixture_stop();
	CU_ASSERT_PTR_NULL(pool_of(0, BLOCK_DEFAULT));
}

static bool g_available;

static size_t
available(void)
{
	return g_available ? SIZE_MAX : 0;
}

/* A machine without memory is asked again, but not by every call. */
static void
test_recovers_when_memory_comes(void)
{
	struct hugepage_sys real = g_hugepage_sys;
	struct xr_block *block;

	fixture_start(1);
	g_hugepage_sys.available_bytes = available;
	g_available = false;
	ASSERT_EQ(pool_get(pool_of(0, BLOCK_DEFAULT), &block, 1), 0);
	ASSERT_EQ(errno, ENOMEM);
	g_available = true;
	for (int i = 0; i < 300 && pool_get(pool_of(0, BLOCK_DEFAULT), &block, 1) == 0; i++)
		usleep(10000);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	pool_put(pool_of(0, BLOCK_DEFAULT), &block, 1);
	g_hugepage_sys = real;
	fixture_stop();
}

static void
test_blocks_still_out_are_reported(void)
{
	struct xr_block *blocks[2];

	fixture_start(1);
	ASSERT_EQ(pool_get(pool_of(0, BLOCK_LARGE), blocks, 2), 2);
	pool_fini();
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_STR(log_capture_last(), "memory: 2 blocks of 65536 bytes (node 0) are still in use at the end");
	fixture_stop();
}

static void *
take_and_put(void *arg)
{
	struct pool *pool = pool_of(0, BLOCK_DEFAULT);
	struct xr_block *blocks[16];
	size_t *failed = arg;

	for (int round = 0; round < 2000; round++) {
		unsigned n = pool_get(pool, blocks, 1 + (unsigned)round % 16);

		*failed += n == 0;
		pool_put(pool, blocks, n);
	}
	return NULL;
}

/* Several that find it empty at once get one region, not one each. */
static void
test_threads_share_growth(void)
{
	enum {
		THREADS = 4
	};
	pthread_t threads[THREADS];
	size_t failed[THREADS] = {0};

	fixture_start(16);
	for (int i = 0; i < THREADS; i++)
		ASSERT_FATAL(pthread_create(&threads[i], NULL, take_and_put, &failed[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		ASSERT_EQ(failed[i], 0);
	}
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	fixture_stop();
}

UNIT_SUITE("pool", {"a pool grows to its cap and no further", test_grows_to_its_cap},
	   {"blocks are apart and labelled", test_blocks_are_apart_and_labelled},
	   {"one cap holds over all pools", test_cap_over_all_pools},
	   {"what was used last comes first", test_last_used_comes_first}, {"nodes are apart", test_nodes_are_apart},
	   {"a pool recovers when memory comes", test_recovers_when_memory_comes},
	   {"blocks still out are reported", test_blocks_still_out_are_reported},
	   {"threads share the growth", test_threads_share_growth});
