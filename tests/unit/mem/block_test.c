/* SPDX-License-Identifier: Apache-2.0 */
#include "core/queue.h"
#include "mem/poison.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>

/* Every block of the pool and back, twice: nothing is lost on the way through a cache of any size. */
static void
all_through_cache(unsigned cached)
{
	static struct xr_block *all[2 * FIXTURE_BLOCKS];
	const unsigned total = 2 * FIXTURE_BLOCKS;

	fixture_start(2);
	fixture_lcore_start(cached);
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < total; i++) {
			all[i] = fixture_any_block(BLOCK_DEFAULT);
			ASSERT_FATAL(all[i] != NULL);
			CU_ASSERT(all[i]->refs == 1 && all[i]->type == BLOCK_DEFAULT);
			memset(block_payload(all[i]), round, block_payload_bytes(BLOCK_DEFAULT));
		}
		CU_ASSERT_PTR_NULL(fixture_any_block(BLOCK_DEFAULT));
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), total);
		for (unsigned i = 0; i < total; i++) {
			block_drop(all[i]);
			CU_ASSERT(block_cache_count(BLOCK_DEFAULT) <= cached);
		}
		ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	}
	fixture_lcore_stop();
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).free, total);
	fixture_stop();
}

static void
test_caches_of_any_size(void)
{
	const unsigned sizes[] = {0, 1, 2, 3, 128, 2 * FIXTURE_BLOCKS};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		all_through_cache(sizes[i]);
}

static void
test_types_have_their_sizes(void)
{
	ASSERT_EQ(block_payload_bytes(BLOCK_DEFAULT), 8160);
	ASSERT_EQ(block_payload_bytes(BLOCK_LARGE), 65504);
	ASSERT_EQ(block_payload_bytes(BLOCK_HUGE), 2097120);
	ASSERT_STR(block_type_name(BLOCK_DEFAULT), "default");
	ASSERT_STR(block_type_name(BLOCK_LARGE), "large");
	ASSERT_STR(block_type_name(BLOCK_HUGE), "huge");
}

/* The warm path takes the same block again and leaves the pool alone. */
static void
test_cache_is_a_stack(void)
{
	struct xr_block *first, *second;
	size_t free_before;

	fixture_start(1);
	fixture_lcore_start(8);
	first = block_alloc(BLOCK_DEFAULT);
	ASSERT_FATAL(first != NULL);
	free_before = fixture_figures(BLOCK_DEFAULT).free;
	block_drop(first);
	second = block_alloc(BLOCK_DEFAULT);
	CU_ASSERT(first == second);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).free, free_before);
	block_drop(second);
	fixture_lcore_stop();
	fixture_stop();
}

static void
test_references(void)
{
	struct xr_block *block;

	fixture_start(1);
	block = block_alloc(BLOCK_LARGE);
	ASSERT_FATAL(block != NULL);
	block_hold(block);
	block_hold(block);
	ASSERT_EQ(block->refs, 3);
	block_drop(block);
	block_drop(block);
	ASSERT_EQ(fixture_in_use(BLOCK_LARGE), 1);
	block_drop(block);
	ASSERT_EQ(fixture_in_use(BLOCK_LARGE), 0);
	block = block_alloc(BLOCK_LARGE);
	ASSERT_EQ(block->refs, 1);
	block_drop(block);
	fixture_stop();
}

static void
test_bulk(void)
{
	static struct xr_block *blocks[3 * FIXTURE_BLOCKS];
	unsigned count;

	fixture_start(2);
	fixture_lcore_start(16);
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, blocks, 0), 0);
	block_drop(block_alloc(BLOCK_DEFAULT)); /* some are in the cache */
	count = block_alloc_bulk(BLOCK_DEFAULT, blocks, 20);
	ASSERT_EQ(count, 20);
	count += block_alloc_bulk(BLOCK_DEFAULT, blocks + count, 3 * FIXTURE_BLOCKS - count);
	ASSERT_EQ(count, 2 * FIXTURE_BLOCKS);
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, blocks + count, 1), 0);
	for (unsigned i = 0; i < count; i++) {
		CU_ASSERT(blocks[i]->refs == 1);
		block_payload(blocks[i])[0] = 1;
		block_drop(blocks[i]);
	}
	fixture_lcore_stop();
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).free, count);
	fixture_stop();
}

static void
test_limit_and_recovery(void)
{
	struct xr_block *blocks[2];

	fixture_start(1);
	fixture_lcore_start(2);
	blocks[0] = block_alloc(BLOCK_HUGE);
	ASSERT_FATAL(blocks[0] != NULL);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_PTR_NULL(block_alloc(BLOCK_HUGE));
	ASSERT_EQ(log_capture_count(), 1);
	block_drop(blocks[0]);
	blocks[1] = block_alloc(BLOCK_HUGE);
	CU_ASSERT(blocks[1] == blocks[0]);
	block_drop(blocks[1]);
	fixture_lcore_stop();
	fixture_stop();
}

static void
test_without_a_floor(void)
{
	CU_ASSERT_PTR_NULL(block_alloc(BLOCK_DEFAULT));
	ASSERT_EQ(errno, ENOMEM);
}

/* A block of another node's pool does not stay in this one's cache. */
static void
test_foreign_blocks_go_home(void)
{
	struct xr_block *foreign;
	struct pool_figures figures;

	fixture_start_with(1, 0, 2);
	fixture_lcore_start(8);
	ASSERT_EQ(pool_get(pool_of(1, BLOCK_DEFAULT), &foreign, 1), 1);
	memory_unpoison(foreign, block_bytes(BLOCK_DEFAULT));
	block_drop(foreign);
	ASSERT_EQ(block_cache_count(BLOCK_DEFAULT), 0);
	pool_figures(pool_of(1, BLOCK_DEFAULT), &figures);
	ASSERT_EQ(figures.free, figures.blocks);
	fixture_lcore_stop();
	fixture_stop();
}

struct parcel {
	struct queue_node node;
	struct xr_block *block;
};

enum {
	PARCELS = 20000,
	WINDOW = 512
};

static struct parcel g_parcels[PARCELS];
static struct queue g_parcel_queue;
static unsigned g_arrived;

static void *
drop_what_comes(void *arg)
{
	struct queue_node *node;

	(void)arg;
	fixture_lcore_start(32);
	while (g_arrived < PARCELS) {
		if (queue_pop(&g_parcel_queue, &node) != QUEUE_GOT) {
			sched_yield();
			continue;
		}
		block_drop(((struct parcel *)node)->block);
		__atomic_store_n(&g_arrived, g_arrived + 1, __ATOMIC_RELEASE);
	}
	fixture_lcore_stop();
	return NULL;
}

/* Blocks wander from one lcore's cache to the other's and come back through the pool. */
static void
test_freed_on_another_lcore(void)
{
	pthread_t thread;

	fixture_start(3);
	fixture_lcore_start(32);
	queue_init(&g_parcel_queue);
	g_arrived = 0;
	ASSERT_FATAL(pthread_create(&thread, NULL, drop_what_comes, NULL) == 0);
	for (unsigned i = 0; i < PARCELS; i++) {
		while (i - __atomic_load_n(&g_arrived, __ATOMIC_ACQUIRE) >= WINDOW)
			sched_yield();
		g_parcels[i].block = block_alloc(BLOCK_DEFAULT);
		ASSERT_FATAL(g_parcels[i].block != NULL);
		memset(block_payload(g_parcels[i].block), (int)i, 64);
		if (i % 3 == 0) { /* both hold it for a while */
			block_hold(g_parcels[i].block);
			queue_push(&g_parcel_queue, &g_parcels[i].node);
			block_drop(g_parcels[i].block);
		} else {
			queue_push(&g_parcel_queue, &g_parcels[i].node);
		}
	}
	pthread_join(thread, NULL);
	fixture_lcore_stop();
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	CU_ASSERT(fixture_figures(BLOCK_DEFAULT).regions <= 3);
	fixture_stop();
}

UNIT_SUITE("block", {"types have the wire's sizes", test_types_have_their_sizes},
	   {"caches of any size lose nothing", test_caches_of_any_size}, {"a cache is a stack", test_cache_is_a_stack},
	   {"references", test_references}, {"bulk takes what there is", test_bulk},
	   {"the limit is an error and passes", test_limit_and_recovery},
	   {"without a pool there are no blocks", test_without_a_floor},
	   {"blocks of another node go home", test_foreign_blocks_go_home},
	   {"blocks freed on another lcore", test_freed_on_another_lcore});
