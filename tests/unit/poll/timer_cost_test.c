/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

/* What many timers cost, counted in timers that are moved and looked at: no clock is asked. */

#define MANY	100000u
#define TURN_US 10

static struct timer_heap g_heap;
static struct xr_timer *g_timers;
static uint64_t g_now_us, g_fired;

static void
fired(struct xr_timer *timer)
{
	if (timer->due_us_ > g_now_us)
		CU_FAIL("too early");
	g_fired++;
}

static void
arm(unsigned number, uint64_t due_us)
{
	timer_heap_arm(&g_heap, &g_timers[number], g_now_us, due_us, 0);
}

/* All armed, due evenly over that time from `from_us` on. */
static void
start(uint64_t now_us, uint64_t from_us, uint64_t span_us)
{
	g_now_us = now_us;
	g_fired = 0;
	timer_heap_init(&g_heap, now_us);
	g_timers = calloc(MANY, sizeof *g_timers);
	ASSERT_FATAL(g_timers != NULL);
	for (unsigned i = 0; i < MANY; i++) {
		g_timers[i] = (struct xr_timer)XR_TIMER_INIT(fired);
		arm(i, from_us + span_us * i / MANY);
	}
	/* Arming moves nothing. */
	ASSERT_EQ(g_heap.moves + g_heap.looks, 0);
}

static void
end(void)
{
	free(g_timers);
}

static int
turn(void)
{
	g_now_us += TURN_US;
	return timer_heap_expire(&g_heap, g_now_us);
}

static unsigned
bits_of(uint64_t span_us)
{
	return 64u - (unsigned)__builtin_clzll(span_us);
}

/* None is due for a minute: no turn touches a timer, but for those in which a bucket has started. */
static void
test_idle_turns(void)
{
	const uint64_t begin_us = 1000000007;
	unsigned touched = 0;

	start(begin_us, begin_us + 60000000, 60000000);
	for (unsigned i = 0; i < 1000000; i++) {
		uint64_t before = g_heap.moves;

		ASSERT_FATAL(turn() == 0);
		touched += g_heap.moves != before;
	}
	/* A bucket of all of them is sorted out in MANY / 1024 turns. */
	CU_ASSERT(touched <= 2 * (MANY / 1024 + 1));
	CU_ASSERT(g_heap.moves <= 2 * MANY);
	end();
}

/* Until all have fired: each moves once for each bit of the time that they are spread over, at most. */
static void
test_all_fire(void)
{
	const uint64_t begin_us = 777, span_us = 10000000;
	uint64_t most = 0;

	start(begin_us, begin_us + 1, span_us);
	while (timer_heap_deadline(&g_heap) != SOURCE_NEVER) {
		uint64_t before = g_heap.moves;

		turn();
		most = g_heap.moves - before > most ? g_heap.moves - before : most;
	}
	ASSERT_EQ(g_fired, MANY);
	CU_ASSERT(most <= 1024);
	CU_ASSERT(g_heap.moves <= (uint64_t)MANY * bits_of(span_us));
	end();
}

/* Deadlines that are put off again and again, as those of connections are: they never come near. */
static void
test_put_off(void)
{
	const uint64_t timeout_us = 5000000;
	const unsigned arms = 1000000;

	start(123456, 123456 + timeout_us, 1);
	for (unsigned i = 0; i < arms; i++) {
		ASSERT_FATAL(turn() == 0);
		arm(i % MANY, g_now_us + timeout_us);
	}
	CU_ASSERT(g_heap.moves <= arms);
	end();
}

/* Before a sleep only a few are looked at. */
static void
test_sleeps(void)
{
	start(5, 40000000, 1000);
	for (unsigned sleep = 1; sleep <= 1000; sleep++) {
		ASSERT_EQ(turn(), 0);
		CU_ASSERT(timer_heap_deadline(&g_heap) > g_now_us);
		ASSERT_FATAL(g_heap.looks <= 17u * sleep);
	}
	end();
}

/* Cancelling and arming anew touch the one timer and its neighbours in a list. */
static void
test_cancel_and_arm(void)
{
	start(99, 1000000, 3600000000);
	for (unsigned round = 0; round < 5; round++)
		for (unsigned i = 0; i < MANY; i++)
			arm(i, 2000000 + i * 1000ull);
	for (unsigned i = 0; i < MANY; i++)
		xr_timer_cancel(&g_timers[i]);
	ASSERT_EQ(g_heap.moves + g_heap.looks, 0);
	CU_ASSERT(timer_heap_deadline(&g_heap) == SOURCE_NEVER);
	ASSERT_EQ(turn(), 0);
	end();
}

UNIT_SUITE("timer_cost", {"turns in which none is due", test_idle_turns}, {"until all have fired", test_all_fire},
	   {"deadlines that are put off", test_put_off}, {"sleeps", test_sleeps},
	   {"cancelling and arming anew", test_cancel_and_arm});
