/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lcores and threads that are none take, share, hand over and free blocks of every type at random, and their pools
 * grow, are emptied and are waited for. In the end every block is where it was at first, and the figures agree.
 *
 * XR_STRESS_S: how long, in seconds.
 */

#include "core/clock.h"
#include "core/lcore.h"
#include "mem/pressure.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>
#include <xrdma/mem.h>

enum {
	LCORES = 4, /* two on each node */
	OTHERS = 3,
	HELD = 200, /* blocks that a thread has at most */
	SHELF = 256 /* blocks that go from hand to hand */
};

static struct lcore g_lcores[LCORES];
static sem_t g_bells[LCORES];
static struct xr_block *g_shelf[SHELF];
static uint64_t g_end_us;
static unsigned long g_turns, g_short, g_waits, g_handed, g_wrong;

static void
ring(unsigned lcore_index)
{
	sem_post(&g_bells[lcore_index]);
}

/* What the pools say of their limits is not what is tested here, and log_capture.h is for one thread. */
static void
log_nothing(enum xr_log_level level, const char *line, void *arg)
{
	(void)level, (void)line, (void)arg;
}

struct hand {
	unsigned count;
	uint32_t random;
	bool is_lcore;
	struct xr_block *held[HELD];
};

static uint32_t
next(struct hand *hand)
{
	hand->random ^= hand->random << 13;
	hand->random ^= hand->random >> 17;
	hand->random ^= hand->random << 5;
	return hand->random;
}

static enum block_type
some_type(struct hand *hand)
{
	uint32_t n = next(hand) % 20;

	return n == 0 ? BLOCK_HUGE : n < 6 ? BLOCK_LARGE : BLOCK_DEFAULT;
}

#define COUNT(what) __atomic_fetch_add(&(what), 1, __ATOMIC_RELAXED)

static void
keep(struct hand *hand, struct xr_block *block)
{
	if (__atomic_load_n(&block->refs, __ATOMIC_RELAXED) != 1)
		COUNT(g_wrong);
	hand->held[hand->count++] = block;
}

static void
drop_some(struct hand *hand)
{
	unsigned at = next(hand) % hand->count;

	block_drop(hand->held[at]);
	hand->held[at] = hand->held[--hand->count];
}

/* Who finds nothing gives one back; an lcore sometimes waits, for a moment: nobody has to wake it at the test's end. */
static void
find_none(struct hand *hand, enum block_type type)
{
	struct timespec until;

	COUNT(g_short);
	if (hand->count > 0)
		drop_some(hand);
	if (!hand->is_lcore || next(hand) % 64)
		return;
	block_turn_end();
	if (!pressure_wait(type))
		return;
	COUNT(g_waits);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 2000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	sem_timedwait(&g_bells[t_lcore->index], &until);
	block_turn_end();
}

static void
take_one(struct hand *hand)
{
	enum block_type type = some_type(hand);
	struct xr_block *block = next(hand) % 2 ? block_alloc(type) : block_alloc_recv(type);

	if (!block) {
		find_none(hand, type);
		return;
	}
	block_payload(block)[next(hand) % block_payload_bytes(type)] = (char)hand->random;
	keep(hand, block);
}

static void
take_many(struct hand *hand)
{
	struct xr_block *blocks[16];
	unsigned n = HELD - hand->count < 16 ? HELD - hand->count : 16;

	n = block_alloc_bulk(BLOCK_DEFAULT, blocks, n);
	while (n > 0)
		keep(hand, blocks[--n]);
}

/* A reference goes to whoever comes by next; what lay there is this thread's. */
static void
hand_over(struct hand *hand)
{
	struct xr_block *mine = hand->held[next(hand) % hand->count], *theirs;

	block_hold(mine);
	theirs = __atomic_exchange_n(&g_shelf[next(hand) % SHELF], mine, __ATOMIC_ACQ_REL);
	if (theirs)
		block_drop(theirs);
	COUNT(g_handed);
}

static void
step(struct hand *hand)
{
	uint32_t n = next(hand) % 16;

	if (n < 7 && hand->count < HELD)
		take_one(hand);
	else if (n == 7 && hand->count < HELD)
		take_many(hand);
	else if (n < 10 && hand->count > 0)
		hand_over(hand);
	else if (hand->count > 0)
		drop_some(hand);
	if (n == 15) {
		block_turn_end();
		COUNT(g_turns);
	}
}

static void *
work(void *arg)
{
	unsigned index = (unsigned)(uintptr_t)arg;
	struct hand hand = {.random = 2463534242u + index * 7919, .is_lcore = index < LCORES};
	const unsigned max[BLOCK_TYPES] = {32, 4, 1};

	if (hand.is_lcore) {
		g_lcores[index].index = index;
		t_lcore = &g_lcores[index];
		ASSERT_FATAL(block_cache_init(index % 2, max) == 0);
	}
	while (clock_now_us() < g_end_us)
		for (int i = 0; i < 200; i++)
			step(&hand);
	while (hand.count > 0)
		drop_some(&hand);
	if (hand.is_lcore)
		block_cache_fini();
	return NULL;
}

static void
empty_shelf(void)
{
	for (unsigned i = 0; i < SHELF; i++) {
		if (g_shelf[i])
			block_drop(g_shelf[i]);
		g_shelf[i] = NULL;
	}
	block_turn_end();
}

static void
check_figures(void)
{
	struct xr_mem_info info;
	unsigned pools = 0;

	for (; xr_mem_info(pools, &info) == 0; pools++) {
		ASSERT_EQ(info.free, info.blocks);
		ASSERT_EQ(info.cached + info.recv_slots + info.in_use, 0);
		ASSERT_EQ(info.region_bytes, info.regions * FIXTURE_REGION_BYTES);
		CU_ASSERT(info.in_use_peak <= info.blocks && info.regions <= 4 && info.grown == info.regions - 1);
	}
	CU_ASSERT(pools >= 3);
}

static void
test_at_random(void)
{
	const char *seconds = getenv("XR_STRESS_S");
	pthread_t threads[LCORES + OTHERS];

	fixture_start_with(4, 16 * FIXTURE_REGION_BYTES, 2);
	xr_log_set_sink(log_nothing, NULL);
	ASSERT_FATAL(growth_start() == 0);
	pressure_set_wake(ring);
	for (unsigned i = 0; i < LCORES; i++)
		sem_init(&g_bells[i], 0, 0);
	g_end_us = clock_now_us() + (seconds ? strtoull(seconds, NULL, 10) : 2) * 1000000u;
	for (uintptr_t i = 0; i < LCORES + OTHERS; i++)
		ASSERT_FATAL(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (unsigned i = 0; i < LCORES + OTHERS; i++)
		pthread_join(threads[i], NULL);
	pressure_set_wake(NULL);
	growth_stop();
	empty_shelf();
	check_figures();
	printf("%lu turns, %lu handed over, %lu times short of blocks, %lu waits\n", g_turns, g_handed, g_short,
	       g_waits);
	ASSERT_EQ(g_wrong, 0);
	CU_ASSERT(g_handed > 0 && g_short > 0 && g_waits > 0);
	fixture_stop();
}

UNIT_SUITE("stress", {"at random, by lcores and others", test_at_random});
