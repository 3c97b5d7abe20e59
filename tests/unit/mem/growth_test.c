/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lcore.h"
#include "mem/growth.h"
#include "mem/pool_private.h"
#include "mem/pressure.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>

#define LOW (FIXTURE_BLOCKS / 4)

static struct xr_block *all[8 * FIXTURE_BLOCKS];

/* ---- a machine whose memory is said here ---- */

static struct hugepage_sys g_real;
static size_t g_available;
static bool g_slow; /* mapping waits for g_map */
static sem_t g_map, g_mapping;
static __thread bool t_rich; /* this thread finds memory in any case */

static void *
only_ordinary(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_HUGETLB) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return mmap(addr, len, prot, flags, fd, offset);
}

static size_t
available(void)
{
	if (__atomic_load_n(&g_slow, __ATOMIC_ACQUIRE)) {
		sem_post(&g_mapping);
		sem_wait(&g_map);
	}
	return t_rich ? SIZE_MAX : __atomic_load_n(&g_available, __ATOMIC_RELAXED);
}

static bool
no_transparent(void)
{
	return false;
}

static void
set_slow(bool slow)
{
	__atomic_store_n(&g_slow, slow, __ATOMIC_RELEASE);
}

static void
set_available(size_t bytes)
{
	__atomic_store_n(&g_available, bytes, __ATOMIC_RELAXED);
}

static void
start(unsigned max_regions, size_t max_bytes)
{
	g_real = g_hugepage_sys;
	g_hugepage_sys.mmap = only_ordinary;
	g_hugepage_sys.available_bytes = available;
	g_hugepage_sys.transparent = no_transparent;
	sem_init(&g_map, 0, 0);
	sem_init(&g_mapping, 0, 0);
	set_available(SIZE_MAX);
	set_slow(false);
	fixture_start_with(max_regions, max_bytes, 1);
	ASSERT_EQ(pool_grow(pool_of(0, BLOCK_DEFAULT)), 0);
	ASSERT_FATAL(growth_start() == 0);
}

static void
stop(void)
{
	fixture_stop();
	g_hugepage_sys = g_real;
}

static void
sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Until the pool has so many regions; for a machine that is busy with other things it waits long. */
static bool
has_regions(unsigned regions)
{
	for (int i = 0; i < 6000; i++) {
		if (fixture_figures(BLOCK_DEFAULT).regions == regions)
			return true;
		sleep_ms(5);
	}
	return false;
}

/* In small parts: the last one may have been for a cache. */
static void
take(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ASSERT_EQ(pool_get(pool_of(0, BLOCK_DEFAULT), all + i, 1), 1);
}

static void
put(unsigned n)
{
	pool_put(pool_of(0, BLOCK_DEFAULT), all, n);
}

/* ---- */

static void
test_ahead_of_need(void)
{
	start(4, 0);
	take(FIXTURE_BLOCKS - LOW);
	sleep_ms(20);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	put(FIXTURE_BLOCKS - LOW);
	take(FIXTURE_BLOCKS - LOW + 1);
	CU_ASSERT_TRUE(has_regions(2));
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).free, FIXTURE_BLOCKS + LOW - 1);
	ASSERT_EQ(pool_of(0, BLOCK_DEFAULT)->grown_count, 1);
	put(FIXTURE_BLOCKS - LOW + 1);
	stop();
}

/* Caches that are full leave few blocks, but nobody uses them. */
static void
test_idle_pool_stays(void)
{
	struct xr_block *block;

	start(4, 0);
	fixture_lcore_start(2 * FIXTURE_BLOCKS);
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_EQ(block_cache_count(BLOCK_DEFAULT), FIXTURE_BLOCKS - 1);
	sleep_ms(20);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	block_drop(block);
	fixture_lcore_stop();
	stop();
}

static void
test_caps_hold(void)
{
	start(2, 0);
	take(FIXTURE_BLOCKS);
	CU_ASSERT_TRUE(has_regions(2));
	ASSERT_EQ(pool_get(pool_of(0, BLOCK_DEFAULT), all + FIXTURE_BLOCKS, FIXTURE_BLOCKS),
		  FIXTURE_BLOCKS - 2 * FIXTURE_BLOCKS / 8);
	sleep_ms(20);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 2);
	put(2 * FIXTURE_BLOCKS - 2 * FIXTURE_BLOCKS / 8);
	stop();
	start(4, FIXTURE_REGION_BYTES);
	take(FIXTURE_BLOCKS - 32);
	sleep_ms(20);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	put(FIXTURE_BLOCKS - 32);
	stop();
}

static void *
take_one(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)pool_get(pool_of(0, BLOCK_DEFAULT), &all[FIXTURE_BLOCKS], 1);
}

/* While a region is mapped: receives don't wait, what comes back is to be had, who needs a block at any price waits. */
static void
test_others_go_on(void)
{
	struct pool *pool;
	struct xr_block *block;
	pthread_t thread;
	void *got;

	start(4, 0);
	pool = pool_of(0, BLOCK_DEFAULT);
	set_slow(true);
	take(FIXTURE_BLOCKS);
	sem_wait(&g_mapping);
	ASSERT_EQ(pool_get_recv(pool, &block, 1), 0);
	ASSERT_EQ(errno, EAGAIN);
	CU_ASSERT_PTR_NULL(block_alloc_recv(BLOCK_DEFAULT));
	ASSERT_EQ(errno, EAGAIN);
	pool_put(pool, all, 1);
	ASSERT_EQ(pool_get_recv(pool, all, 1), 1);
	ASSERT_EQ(pool->limit_hits, 0);
	ASSERT_FATAL(pthread_create(&thread, NULL, take_one, NULL) == 0);
	sleep_ms(10);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	set_slow(false);
	sem_post(&g_map);
	pthread_join(thread, &got);
	ASSERT_EQ((uintptr_t)got, 1);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 2);
	pool_await(pool);
	ASSERT_EQ(pool_get_recv(pool, &block, 1), 1);
	pool_put(pool, &block, 1);
	put(FIXTURE_BLOCKS + 1);
	stop();
}

static void *
take_large(void *arg)
{
	(void)arg;
	return block_alloc(BLOCK_LARGE);
}

/* A pool's first region is worth waiting for: there is nothing to go on with. */
static void
test_first_region(void)
{
	struct xr_block *block;

	start(2, 0);
	block = block_alloc_recv(BLOCK_LARGE);
	CU_ASSERT_FATAL(block != NULL);
	block_drop(block);
	ASSERT_EQ(pool_of(0, BLOCK_LARGE)->grown_count, 0);
	stop();
}

/* ---- a machine without memory ---- */

static unsigned g_woken;

static void
count_wake(unsigned lcore_index)
{
	ASSERT_EQ(lcore_index, 7);
	__atomic_fetch_add(&g_woken, 1, __ATOMIC_RELAXED);
}

/* It is one line; who waits is woken when the machine has some again, without having to ask. */
static void
test_waits_for_the_machine(void)
{
	struct lcore lcore = {.index = 7};
	struct pool *pool;
	struct xr_block *block;

	g_woken = 0;
	pressure_set_wake(count_wake);
	t_lcore = &lcore;
	start(4, 0);
	pool = pool_of(0, BLOCK_DEFAULT);
	set_available(0);
	ASSERT_EQ(pool_get_recv(pool, all, FIXTURE_BLOCKS), FIXTURE_BLOCKS);
	for (int i = 0; i < 1000 && pool_get_recv(pool, &block, 1) == 0 && errno == EAGAIN; i++)
		sleep_ms(5);
	ASSERT_EQ(errno, ENOMEM);
	ASSERT_EQ(pressure_capacity_bytes(BLOCK_DEFAULT), FIXTURE_REGION_BYTES);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	sleep_ms(350); /* it is tried again meanwhile */
	ASSERT_EQ(__atomic_load_n(&g_woken, __ATOMIC_RELAXED), 0);
	set_available(SIZE_MAX);
	CU_ASSERT_TRUE(has_regions(2));
	for (int i = 0; i < 1000 && __atomic_load_n(&g_woken, __ATOMIC_RELAXED) == 0; i++)
		sleep_ms(5);
	ASSERT_EQ(__atomic_load_n(&g_woken, __ATOMIC_RELAXED), 1);
	put(FIXTURE_BLOCKS);
	growth_stop();
	for (unsigned i = 0, errors = 0; i < log_capture_count(); i++) {
		errors += log_capture_level(i) == XR_LOG_ERROR;
		CU_ASSERT(errors <= 1);
	}
	stop();
	t_lcore = NULL;
	pressure_set_wake(NULL);
}

/* Ahead of need it leaves the machine as much again; when it is needed it takes what there is. */
static void
test_spares_the_machine(void)
{
	struct pool *pool;

	start(4, 0);
	pool = pool_of(0, BLOCK_DEFAULT);
	set_available(2 * FIXTURE_REGION_BYTES - 1);
	take(FIXTURE_BLOCKS - 1);
	for (int i = 0; i < 1000 && pressure_capacity_bytes(BLOCK_DEFAULT) != FIXTURE_REGION_BYTES; i++)
		sleep_ms(5);
	CU_ASSERT(__atomic_load_n(&pool->early.at_us, __ATOMIC_RELAXED) != 0);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	ASSERT_EQ(pool_get(pool, all + FIXTURE_BLOCKS - 1, 2), 1);
	ASSERT_EQ(pool_get(pool, all + FIXTURE_BLOCKS, 1), 1);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 2);
	put(FIXTURE_BLOCKS + 1);
	growth_stop();
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_STR(log_capture_line(0), "memory: node 0 is short of memory: no further region of default blocks before "
					"it is needed");
	stop();
}

/* Whoever begins to wait for what was ordered ahead of need makes it a need. */
static void
test_ahead_becomes_a_need(void)
{
	struct lcore lcore = {.index = 7};
	struct xr_block *block;
	pthread_t thread;
	void *large;

	g_woken = 0;
	pressure_set_wake(count_wake);
	t_lcore = &lcore;
	start(2, 0);
	set_available(2 * FIXTURE_REGION_BYTES - 1);
	set_slow(true);
	ASSERT_FATAL(pthread_create(&thread, NULL, take_large, NULL) == 0);
	sem_wait(&g_mapping); /* so the thread has begun nothing of what follows */
	take(FIXTURE_BLOCKS);
	CU_ASSERT_TRUE(pool_of(0, BLOCK_DEFAULT)->ahead);
	CU_ASSERT_PTR_NULL(block_alloc_recv(BLOCK_DEFAULT));
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	set_slow(false);
	sem_post(&g_map);
	pthread_join(thread, &large);
	CU_ASSERT_TRUE(has_regions(2));
	growth_stop();
	ASSERT_EQ(__atomic_load_n(&g_woken, __ATOMIC_RELAXED), 1);
	block = large;
	block_drop(block);
	put(FIXTURE_BLOCKS);
	stop();
	t_lcore = NULL;
	pressure_set_wake(NULL);
}

/* A region that is being mapped has its part of the cap; when it fails the part is for the pool that lacked it. */
static void
test_cap_comes_back(void)
{
	struct lcore lcore = {.index = 7};
	struct xr_block *block;
	pthread_t thread;
	void *large;

	pressure_set_wake(count_wake);
	t_lcore = &lcore;
	start(2, 2 * FIXTURE_REGION_BYTES);
	set_available(0);
	set_slow(true);
	ASSERT_FATAL(pthread_create(&thread, NULL, take_large, NULL) == 0);
	sem_wait(&g_mapping);
	ASSERT_EQ(pool_get_recv(pool_of(0, BLOCK_DEFAULT), all, FIXTURE_BLOCKS), FIXTURE_BLOCKS);
	ASSERT_EQ(pool_get_recv(pool_of(0, BLOCK_DEFAULT), &block, 1), 0);
	ASSERT_EQ(errno, ENOMEM);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	set_slow(false);
	sem_post(&g_map);
	pthread_join(thread, &large);
	CU_ASSERT_PTR_NULL(large);
	set_available(SIZE_MAX);
	CU_ASSERT_TRUE(has_regions(2));
	put(FIXTURE_BLOCKS);
	stop();
	t_lcore = NULL;
	pressure_set_wake(NULL);
}

/* ---- the thread rests ---- */

/* When it will look at the pool again by itself. */
static uint64_t
due_us(struct pool *pool)
{
	uint64_t due;

	growth_stop();
	due = pool->due_us;
	ASSERT_FATAL(growth_start() == 0);
	return due;
}

/* When a limit has come in the way of what failed before, it looks no more. */
static void
test_rests_at_a_limit(void)
{
	struct lcore lcore = {.index = 7};
	struct region *region;
	struct xr_block *block;
	struct pool *pool;

	pressure_set_wake(count_wake);
	t_lcore = &lcore;
	start(4, 2 * FIXTURE_REGION_BYTES);
	pool = pool_of(0, BLOCK_DEFAULT);
	set_available(0);
	ASSERT_EQ(pool_get_recv(pool, all, FIXTURE_BLOCKS), FIXTURE_BLOCKS);
	for (int i = 0; i < 1000 && pool_get_recv(pool, &block, 1) == 0 && errno == EAGAIN; i++)
		sleep_ms(5);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	t_rich = true;
	ASSERT_EQ(fixture_region(BLOCK_LARGE, 0, FIXTURE_REGION_BYTES, &region), 0);
	t_rich = false;
	for (int i = 0; i < 200 && due_us(pool) != 0; i++)
		sleep_ms(20);
	ASSERT_EQ(due_us(pool), 0);
	put(FIXTURE_BLOCKS);
	stop();
	t_lcore = NULL;
	pressure_set_wake(NULL);
}

/* A step ahead of need is not due before one in need is: the machine has just had nothing for that. */
static void
test_rests_until_the_machine_is_asked(void)
{
	struct pool *pool;
	uint64_t due = 0;

	start(4, 0);
	pool = pool_of(0, BLOCK_DEFAULT);
	set_available(0);
	take(FIXTURE_BLOCKS - 1);
	for (int i = 0; i < 1000 && due == 0; i++) {
		sleep_ms(5);
		due = due_us(pool);
	}
	CU_ASSERT(due != 0);
	growth_stop();
	pool->need = (struct backoff){.at_us = due + 3600000000u, .after_us = 3600000000u};
	ASSERT_FATAL(growth_start() == 0);
	for (int i = 0; i < 200 && due_us(pool) != pool->need.at_us; i++)
		sleep_ms(20);
	ASSERT_EQ(due_us(pool), pool->need.at_us);
	put(FIXTURE_BLOCKS - 1);
	stop();
}

/* ---- beside memory of the application's ---- */

static char g_own[2 << 20] __attribute__((aligned(4096)));

static bool g_refuse_own;

static int
register_slowly(unsigned device, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	(void)device, (void)len;
	*handle = addr;
	*lkey = 1;
	if (addr != g_own)
		return 0;
	sem_post(&g_mapping);
	sem_wait(&g_map);
	return g_refuse_own ? -EIO : 0;
}

static void
unregister(unsigned device, void *handle)
{
	(void)device, (void)handle;
}

static const struct mem_device_ops g_slow_ops = {.register_range = register_slowly, .unregister_range = unregister};

static void *
add_own(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)pool_add(pool_of(0, BLOCK_DEFAULT), g_own, sizeof g_own);
}

/* One region after the other, whoever brings it: who waits has the application's, or else the library's. */
static void
beside_own_memory(bool refuse)
{
	struct xr_block *block;
	struct lcore lcore = {.index = 0};
	struct pool *pool;
	pthread_t thread;
	void *status;

	g_refuse_own = refuse;
	start(2, 0);
	pool = pool_of(0, BLOCK_DEFAULT);
	t_lcore = &lcore;
	ASSERT_EQ(mem_device_add(0, &g_slow_ops), 0);
	ASSERT_FATAL(pthread_create(&thread, NULL, add_own, NULL) == 0);
	sem_wait(&g_mapping);
	ASSERT_EQ(pool_get_recv(pool, all, FIXTURE_BLOCKS), FIXTURE_BLOCKS);
	ASSERT_EQ(pool_get_recv(pool, &block, 1), 0);
	ASSERT_EQ(errno, EAGAIN);
	CU_ASSERT_TRUE(pressure_wait(BLOCK_DEFAULT));
	sleep_ms(20);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 1);
	sem_post(&g_map);
	pthread_join(thread, &status);
	ASSERT_EQ((intptr_t)status, refuse ? -EIO : 0);
	CU_ASSERT_TRUE(has_regions(2));
	ASSERT_EQ(region_at(pool->region_index[1])->user, !refuse);
	ASSERT_EQ(pool_get_recv(pool, all + FIXTURE_BLOCKS, 1), 1);
	put(FIXTURE_BLOCKS + 1);
	stop();
	t_lcore = NULL;
}

static void
test_beside_own_memory(void)
{
	beside_own_memory(false);
	beside_own_memory(true);
}

static void
test_start_and_stop(void)
{
	fixture_start(1);
	growth_stop();
	CU_ASSERT_FALSE(growth_has_thread());
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(growth_start(), 0);
		CU_ASSERT_TRUE(growth_has_thread());
		growth_stop();
	}
	fixture_stop();
}

UNIT_SUITE("growth", {"a region comes ahead of need", test_ahead_of_need},
	   {"an idle pool stays as it is", test_idle_pool_stays}, {"caps hold", test_caps_hold},
	   {"the others go on meanwhile", test_others_go_on}, {"a first region is waited for", test_first_region},
	   {"it waits for the machine", test_waits_for_the_machine}, {"it spares the machine", test_spares_the_machine},
	   {"a step ahead of need becomes a need", test_ahead_becomes_a_need},
	   {"a part of the cap comes back", test_cap_comes_back}, {"it rests at a limit", test_rests_at_a_limit},
	   {"it rests until the machine is asked again", test_rests_until_the_machine_is_asked},
	   {"beside memory of the application's", test_beside_own_memory}, {"start and stop", test_start_and_stop});
