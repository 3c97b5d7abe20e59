/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lcore.h"
#include "mem/pressure.h"
#include "mem/pressure_private.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <semaphore.h>

#define RESERVE (FIXTURE_BLOCKS / 8)

static struct xr_block *all[4 * FIXTURE_BLOCKS];

/* ---- who is woken ---- */

static unsigned g_woken[FIXTURE_LCORES]; /* how often */

static void
count_wake(unsigned lcore_index)
{
	__atomic_fetch_add(&g_woken[lcore_index], 1, __ATOMIC_RELAXED);
}

static unsigned
woken(unsigned lcore_index)
{
	return __atomic_load_n(&g_woken[lcore_index], __ATOMIC_RELAXED);
}

static struct lcore g_lcores[FIXTURE_LCORES];

static void
become(unsigned lcore_index)
{
	g_lcores[lcore_index].index = lcore_index;
	t_lcore = &g_lcores[lcore_index];
}

static void
start(unsigned max_regions)
{
	memset(g_woken, 0, sizeof g_woken);
	pressure_set_wake(count_wake);
	fixture_start(max_regions);
	become(0);
}

static void
stop(void)
{
	t_lcore = NULL;
	pressure_set_wake(NULL);
	fixture_stop();
}

static unsigned
take_general(void)
{
	unsigned count = 0;

	while ((all[count] = block_alloc(BLOCK_DEFAULT)))
		count++;
	return count;
}

static unsigned
take_everything(void)
{
	unsigned count = take_general(), got;

	while ((got = block_alloc_bulk(BLOCK_DEFAULT, all + count, 64)) > 0)
		count += got;
	return count;
}

static void
give(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		block_drop(all[i]);
}

/* ---- the reserve ---- */

static void
test_reserve_is_for_receives(void)
{
	unsigned count;

	start(2);
	count = take_general();
	ASSERT_EQ(count, 2 * FIXTURE_BLOCKS - 2 * RESERVE);
	ASSERT_EQ(errno, ENOMEM);
	all[count] = block_alloc_recv(BLOCK_DEFAULT);
	CU_ASSERT_FATAL(all[count] != NULL);
	count++;
	ASSERT_EQ(block_alloc_several(BLOCK_DEFAULT, all + count, 10), 0);
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, all + count, FIXTURE_BLOCKS), 2 * RESERVE - 1);
	count += 2 * RESERVE - 1;
	CU_ASSERT_PTR_NULL(block_alloc_recv(BLOCK_DEFAULT));
	ASSERT_EQ(errno, ENOMEM);
	give(0, count);
	count = take_general();
	ASSERT_EQ(count, 2 * FIXTURE_BLOCKS - 2 * RESERVE);
	give(0, count);
	stop();
}

/* A pool that may still grow has no reserve: it grows. */
static void
test_no_reserve_before_the_limit(void)
{
	struct xr_block *block;

	start(2);
	ASSERT_EQ(block_alloc_several(BLOCK_DEFAULT, all, FIXTURE_BLOCKS), FIXTURE_BLOCKS);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	block = block_alloc(BLOCK_DEFAULT);
	CU_ASSERT_FATAL(block != NULL);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 2);
	block_drop(block);
	give(0, FIXTURE_BLOCKS);
	stop();
}

/* A pool of one block has none to keep back. */
static void
test_reserve_of_a_tiny_pool(void)
{
	struct xr_block *block;

	start(1);
	block = block_alloc(BLOCK_HUGE);
	CU_ASSERT_FATAL(block != NULL);
	block_drop(block);
	stop();
}

/* Blocks that were received into and freed do not become the hoarder's by way of the lcore's cache. */
static void
test_reserve_is_not_lost_through_a_cache(void)
{
	unsigned hoarded, received = 0;

	start(1);
	fixture_lcore_start(64);
	hoarded = take_general();
	for (int i = 0; i < 1000; i++) {
		struct xr_block *block = block_alloc_recv(BLOCK_DEFAULT);

		CU_ASSERT_FATAL(block != NULL);
		received++;
		block_drop(block);
		all[hoarded] = block_alloc(BLOCK_DEFAULT);
		if (all[hoarded])
			hoarded++;
		if (i % 7 == 0)
			block_turn_end();
	}
	ASSERT_EQ(received, 1000);
	ASSERT_EQ(hoarded, FIXTURE_BLOCKS - RESERVE);
	give(0, hoarded);
	fixture_lcore_stop();
	stop();
}

/* ---- waiting ---- */

static void *
drop_one(void *block)
{
	block_drop(block);
	return NULL;
}

static void
drop_on_another_thread(struct xr_block *block)
{
	pthread_t thread;

	ASSERT_FATAL(pthread_create(&thread, NULL, drop_one, block) == 0);
	pthread_join(thread, NULL);
}

static void
test_woken_once(void)
{
	unsigned count;

	start(1);
	fixture_lcore_start(16);
	count = take_everything();
	ASSERT_EQ(count, FIXTURE_BLOCKS);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT)); /* again before it has been woken: still once */
	ASSERT_EQ(woken(0), 0);
	drop_on_another_thread(all[--count]);
	ASSERT_EQ(woken(0), 1);
	drop_on_another_thread(all[--count]);
	ASSERT_EQ(woken(0), 1);
	CU_ASSERT_FALSE(pressure_wait(BLOCK_DEFAULT));
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, all + count, 5), 2);
	count += 2;
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	block_drop(all[--count]); /* its own free counts as well */
	ASSERT_EQ(woken(0), 2);
	give(0, count);
	fixture_lcore_stop();
	stop();
}

/* More lcores than a word has bits; each is woken by one block, and by the first. */
static void
test_many_wait(void)
{
	unsigned count;

	start(1);
	count = take_everything();
	for (unsigned i = 0; i < FIXTURE_LCORES; i++) {
		become(i);
		CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	}
	drop_on_another_thread(all[--count]);
	for (unsigned i = 0; i < FIXTURE_LCORES; i++)
		ASSERT_EQ(woken(i), 1);
	drop_on_another_thread(all[--count]);
	for (unsigned i = 0; i < FIXTURE_LCORES; i++)
		ASSERT_EQ(woken(i), 1);
	give(0, count);
	stop();
}

static void
test_types_wait_apart(void)
{
	struct xr_block *large[64];
	unsigned count, larges;

	start(1);
	count = take_everything();
	larges = block_alloc_bulk(BLOCK_LARGE, large, 64);
	ASSERT_EQ(larges, FIXTURE_REGION_BYTES / 65536);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	while (larges > 0)
		block_drop(large[--larges]);
	ASSERT_EQ(woken(0), 0);
	give(0, count);
	ASSERT_EQ(woken(0), 1);
	stop();
}

static void
test_no_lcore_waits_for_nothing(void)
{
	unsigned count;

	start(1);
	t_lcore = NULL;
	count = take_everything();
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	give(0, count);
	for (unsigned i = 0; i < FIXTURE_LCORES; i++)
		ASSERT_EQ(woken(i), 0);
	stop();
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	ASSERT_EQ(pressure_capacity_bytes(BLOCK_DEFAULT), 0);
	ASSERT_EQ(pressure_available_bytes(BLOCK_DEFAULT), 0);
}

/* ---- blocks that others keep ---- */

static struct {
	sem_t go, done;
	struct xr_block *block;
} g_other;

static void
other_start(void *(*fn)(void *arg), struct xr_block *block, pthread_t *thread)
{
	sem_init(&g_other.go, 0, 0);
	sem_init(&g_other.done, 0, 0);
	g_other.block = block;
	ASSERT_FATAL(pthread_create(thread, NULL, fn, NULL) == 0);
	sem_wait(&g_other.done);
}

static void
other_next(void)
{
	sem_post(&g_other.go);
	sem_wait(&g_other.done);
}

/* A thread of the application's frees one, and goes on to do something else. */
static void *
free_and_live_on(void *arg)
{
	(void)arg;
	block_drop(g_other.block);
	sem_post(&g_other.done);
	sem_wait(&g_other.go);
	return NULL;
}

static void
test_outboxes_hide_nothing(void)
{
	unsigned count;
	pthread_t thread;

	start(1);
	fixture_lcore_start(16);
	count = take_everything();
	other_start(free_and_live_on, all[--count], &thread);
	ASSERT_EQ(pressure_available_bytes(BLOCK_DEFAULT), 8192);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	ASSERT_EQ(woken(0), 1); /* collecting has brought the block home */
	all[count] = block_alloc_recv(BLOCK_DEFAULT);
	CU_ASSERT_FATAL(all[count] != NULL);
	count++;
	sem_post(&g_other.go);
	pthread_join(thread, NULL);
	give(0, count);
	fixture_lcore_stop();
	stop();
}

/* An lcore of the same node that keeps blocks, sleeps, and is woken for a turn. */
static void *
lcore_with_blocks(void *arg)
{
	(void)arg;
	become(1);
	fixture_lcore_start(16);
	block_drop(block_alloc(BLOCK_DEFAULT));
	CU_ASSERT(block_cache_count(BLOCK_DEFAULT) > 0);
	sem_post(&g_other.done);
	sem_wait(&g_other.go);
	block_turn_end();
	ASSERT_EQ(block_cache_count(BLOCK_DEFAULT), 0);
	sem_post(&g_other.done);
	sem_wait(&g_other.go);
	block_drop(g_other.block);
	ASSERT_EQ(block_cache_count(BLOCK_DEFAULT), 1);
	fixture_lcore_stop();
	return NULL;
}

static void
test_caches_hide_nothing(void)
{
	unsigned count;
	pthread_t thread;

	start(1);
	other_start(lcore_with_blocks, NULL, &thread);
	fixture_lcore_start(16);
	count = take_everything();
	CU_ASSERT(count < FIXTURE_BLOCKS);
	ASSERT_EQ(pressure_available_bytes(BLOCK_DEFAULT), (FIXTURE_BLOCKS - count) * 8192);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	ASSERT_EQ(woken(1), 1);
	ASSERT_EQ(woken(0), 0);
	other_next();
	ASSERT_EQ(woken(0), 1);
	ASSERT_EQ(count + block_alloc_bulk(BLOCK_DEFAULT, all + count, FIXTURE_BLOCKS), FIXTURE_BLOCKS);
	for (unsigned i = 1; i < FIXTURE_BLOCKS; i++)
		block_drop(all[i]);
	block_turn_end();
	g_other.block = all[0];
	sem_post(&g_other.go);
	pthread_join(thread, NULL);
	fixture_lcore_stop();
	stop();
}

/* Threads take and give without a pause while two wait; whoever was told to wait is woken, or the test hangs. */
enum {
	WAITERS = 2,
	ROUNDS = 3000
};

static sem_t g_bells[WAITERS];

static void
ring(unsigned lcore_index)
{
	sem_post(&g_bells[lcore_index]);
}

static void *
eat(void *arg)
{
	unsigned index = (unsigned)(uintptr_t)arg;
	struct xr_block *blocks[40];

	become(index);
	fixture_lcore_start(8);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned count = 0;

		while (count < 40) {
			blocks[count] = block_alloc_recv(BLOCK_LARGE);
			if (blocks[count]) {
				count++;
				continue;
			}
			if (count > 0) {
				block_drop(blocks[--count]);
				break;
			}
			block_turn_end();
			if (pressure_wait(BLOCK_LARGE))
				sem_wait(&g_bells[index]);
			block_turn_end();
		}
		while (count > 0)
			block_drop(blocks[--count]);
		block_turn_end();
	}
	fixture_lcore_stop();
	return NULL;
}

static void
test_no_wake_is_lost(void)
{
	pthread_t threads[WAITERS];

	start(1);
	pressure_set_wake(ring);
	for (unsigned i = 0; i < WAITERS; i++)
		sem_init(&g_bells[i], 0, 0);
	for (uintptr_t i = 0; i < WAITERS; i++)
		ASSERT_FATAL(pthread_create(&threads[i], NULL, eat, (void *)i) == 0);
	for (unsigned i = 0; i < WAITERS; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(fixture_figures(BLOCK_LARGE).free, FIXTURE_REGION_BYTES / 65536);
	stop();
}

/* ---- how much there is ---- */

static void
test_capacity(void)
{
	struct xr_block *block;

	start(3);
	ASSERT_EQ(pressure_capacity_bytes(BLOCK_DEFAULT), 3 * FIXTURE_REGION_BYTES);
	ASSERT_EQ(pressure_available_bytes(BLOCK_DEFAULT), 3 * FIXTURE_REGION_BYTES);
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_EQ(pressure_capacity_bytes(BLOCK_DEFAULT), 3 * FIXTURE_REGION_BYTES);
	ASSERT_EQ(pressure_available_bytes(BLOCK_DEFAULT), 3 * FIXTURE_REGION_BYTES - 8192);
	block_drop(block);
	stop();
	fixture_start_with(4, 2 * FIXTURE_REGION_BYTES, 1);
	block = block_alloc(BLOCK_LARGE);
	ASSERT_EQ(pressure_capacity_bytes(BLOCK_DEFAULT), FIXTURE_REGION_BYTES); /* the cap leaves one */
	ASSERT_EQ(pressure_capacity_bytes(BLOCK_LARGE), 2 * FIXTURE_REGION_BYTES);
	block_drop(block);
	fixture_stop();
}

UNIT_SUITE("pressure", {"the reserve is for receives", test_reserve_is_for_receives},
	   {"no reserve before the limit", test_no_reserve_before_the_limit},
	   {"a pool of one block keeps none back", test_reserve_of_a_tiny_pool},
	   {"the reserve is not lost through a cache", test_reserve_is_not_lost_through_a_cache},
	   {"who waits is woken once", test_woken_once}, {"many wait", test_many_wait},
	   {"types wait apart", test_types_wait_apart},
	   {"a thread that is no lcore waits for nothing", test_no_lcore_waits_for_nothing},
	   {"outboxes hide nothing", test_outboxes_hide_nothing}, {"caches hide nothing", test_caches_hide_nothing},
	   {"no wake is lost", test_no_wake_is_lost}, {"how much there may be", test_capacity});
