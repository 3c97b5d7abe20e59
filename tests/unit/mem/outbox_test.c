/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/outbox.h"
#include "mem/poison.h"
#include "mem/pool_private.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <semaphore.h>

static struct xr_block *all[FIXTURE_BLOCKS];

static size_t
on_stack(enum block_type type)
{
	return __atomic_load_n(&pool_of(0, type)->idle, __ATOMIC_RELAXED);
}

/* The thread is none of the node's lcores: its frees travel in batches. */
static void
test_batches(void)
{
	const struct {
		enum block_type type;
		unsigned blocks, batch;
	} cases[] = {{BLOCK_DEFAULT, 100, 32}, {BLOCK_LARGE, 20, 4}, {BLOCK_HUGE, 1, 1}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t before;

		fixture_start(1);
		ASSERT_EQ(block_alloc_several(cases[i].type, all, cases[i].blocks), cases[i].blocks);
		before = on_stack(cases[i].type);
		for (unsigned freed = 0; freed < cases[i].blocks;) {
			block_drop(all[freed++]);
			ASSERT_EQ(on_stack(cases[i].type), before + freed / cases[i].batch * cases[i].batch);
			ASSERT_EQ(fixture_figures(cases[i].type).free, before + freed);
			ASSERT_EQ(outbox_count(pool_of(0, cases[i].type)), freed % cases[i].batch);
		}
		outbox_flush();
		ASSERT_EQ(on_stack(cases[i].type), before + cases[i].blocks);
		ASSERT_EQ(pool_of(0, cases[i].type)->remote_frees, cases[i].blocks);
		fixture_stop();
	}
}

static void *
free_three(void *arg)
{
	struct xr_block **blocks = arg;

	for (int i = 0; i < 3; i++)
		block_drop(blocks[i]);
	return NULL;
}

static void
test_thread_ends(void)
{
	pthread_t thread;

	fixture_start(1);
	ASSERT_EQ(block_alloc_several(BLOCK_DEFAULT, all, 3), 3);
	ASSERT_FATAL(pthread_create(&thread, NULL, free_three, all) == 0);
	pthread_join(thread, NULL);
	ASSERT_EQ(on_stack(BLOCK_DEFAULT), FIXTURE_BLOCKS);
	fixture_stop();
}

static sem_t g_freed, g_end;

static void *
free_and_stay(void *arg)
{
	free_three(arg);
	sem_post(&g_freed);
	sem_wait(&g_end);
	return NULL;
}

/* The thread outlives the floor, and a second floor: what it had is nobody's loss. */
static void
test_thread_outlives_the_floor(void)
{
	pthread_t thread;

	sem_init(&g_freed, 0, 0);
	sem_init(&g_end, 0, 0);
	fixture_start(1);
	ASSERT_EQ(block_alloc_several(BLOCK_DEFAULT, all, 3), 3);
	ASSERT_FATAL(pthread_create(&thread, NULL, free_and_stay, all) == 0);
	sem_wait(&g_freed);
	fixture_stop();
	fixture_start(1);
	sem_post(&g_end);
	pthread_join(thread, NULL);
	fixture_stop();
}

/* An empty pool finds what is on its way, also that of threads that are about something else. */
static void
test_collected_when_empty(void)
{
	pthread_t thread;

	sem_init(&g_freed, 0, 0);
	sem_init(&g_end, 0, 0);
	fixture_start(1);
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, all, FIXTURE_BLOCKS), FIXTURE_BLOCKS);
	ASSERT_FATAL(pthread_create(&thread, NULL, free_and_stay, all) == 0);
	sem_wait(&g_freed);
	ASSERT_EQ(on_stack(BLOCK_DEFAULT), 0);
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, all, 5), 3);
	sem_post(&g_end);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < FIXTURE_BLOCKS; i++)
		block_drop(all[i]);
	fixture_stop();
}

/* An lcore of node 0 frees blocks of node 1: they are home at the end of the turn, and counted. */
static void
test_other_nodes_blocks(void)
{
	struct pool *far;

	fixture_start_with(1, 0, 2);
	fixture_lcore_start(16);
	far = pool_of(1, BLOCK_DEFAULT);
	ASSERT_EQ(pool_get(far, all, 10), 10);
	for (unsigned i = 0; i < 10; i++) {
		memory_unpoison(all[i], block_bytes(BLOCK_DEFAULT));
		block_drop(all[i]);
	}
	ASSERT_EQ(far->idle, FIXTURE_BLOCKS - 10);
	block_turn_end();
	ASSERT_EQ(far->idle, FIXTURE_BLOCKS);
	ASSERT_EQ(far->remote_frees, 10);
	ASSERT_EQ(pool_of(0, BLOCK_DEFAULT)->remote_frees, 0);
	fixture_lcore_stop();
	fixture_stop();
}

UNIT_SUITE("outbox", {"frees travel in batches", test_batches}, {"a thread that ends sends its own", test_thread_ends},
	   {"a thread may outlive the floor", test_thread_outlives_the_floor},
	   {"an empty pool collects", test_collected_when_empty},
	   {"another node's blocks go home each turn", test_other_nodes_blocks});
