/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

/* A timer and what the reference model knows about it: when it must fire next, SOURCE_NEVER while it is not armed. */
struct probe {
	struct xr_timer timer;
	uint64_t due_us;
	uint64_t fired;
	void (*then)(struct probe *probe);
};

static struct timer_heap g_heap;
static uint64_t g_now_us, g_last_due_us;
static unsigned g_out_of_order, g_early, g_unexpected;

static void
fired(struct xr_timer *timer)
{
	struct probe *probe = (struct probe *)timer;

	probe->fired++;
	if (probe->due_us == SOURCE_NEVER)
		g_unexpected++;
	if (probe->due_us > g_now_us)
		g_early++;
	if (probe->due_us < g_last_due_us)
		g_out_of_order++;
	g_last_due_us = probe->due_us;
	probe->due_us = SOURCE_NEVER;
	if (probe->then)
		probe->then(probe);
}

static void
start(uint64_t now_us)
{
	g_now_us = now_us;
	g_last_due_us = 0;
	g_out_of_order = g_early = g_unexpected = 0;
	timer_heap_init(&g_heap, now_us);
}

static void
arm(struct probe *probe, uint64_t due_us)
{
	probe->timer.fn = fired;
	probe->due_us = due_us;
	timer_heap_arm(&g_heap, &probe->timer, g_now_us, due_us, 0);
}

static void
cancel(struct probe *probe)
{
	probe->due_us = SOURCE_NEVER;
	xr_timer_cancel(&probe->timer);
}

/* Expires until nothing more is due, as the turns of a loop would. */
static int
expire_all(uint64_t now_us)
{
	int total = 0;

	g_now_us = now_us;
	for (int turn = 0; turn < 100000; turn++) {
		int count = timer_heap_expire(&g_heap, now_us);

		total += count;
		if (timer_heap_deadline(&g_heap) > now_us)
			return total;
	}
	CU_FAIL("the heap does not come to rest");
	return total;
}

static void
test_fires_when_due(void)
{
	struct probe probe = {0};

	start(1000);
	arm(&probe, 1500);
	CU_ASSERT(xr_timer_armed(&probe.timer));
	ASSERT_EQ(timer_heap_deadline(&g_heap), 1500);
	ASSERT_EQ(expire_all(1499), 0);
	ASSERT_EQ(expire_all(1500), 1);
	ASSERT_EQ(probe.fired, 1);
	CU_ASSERT(!xr_timer_armed(&probe.timer));
	CU_ASSERT(timer_heap_deadline(&g_heap) == SOURCE_NEVER);
}

static void
test_due_now_and_past(void)
{
	struct probe now = {0}, past = {0};

	start(1000);
	arm(&now, 1000);
	CU_ASSERT(timer_heap_deadline(&g_heap) <= 1000);
	ASSERT_EQ(expire_all(1000), 1);
	g_now_us = 5000;
	arm(&past, 4000);
	CU_ASSERT(timer_heap_deadline(&g_heap) <= 5000);
	ASSERT_EQ(expire_all(5000), 1);
	ASSERT_EQ(now.fired + past.fired, 2);
}

static void
test_far_future(void)
{
	struct probe far = {0}, farthest = {0};

	start(UINT64_C(1) << 40);
	arm(&far, UINT64_C(1) << 62);
	arm(&farthest, INT64_MAX);
	ASSERT_EQ(expire_all((UINT64_C(1) << 62) - 1), 0);
	ASSERT_EQ(expire_all(UINT64_C(1) << 62), 1);
	ASSERT_EQ(timer_heap_deadline(&g_heap), INT64_MAX);
	ASSERT_EQ(expire_all(INT64_MAX), 1);
}

static void
test_cancel(void)
{
	struct probe probes[3] = {0};

	start(0);
	for (unsigned i = 0; i < 3; i++)
		arm(&probes[i], 100 + i);
	cancel(&probes[1]);
	cancel(&probes[1]);
	CU_ASSERT(!xr_timer_armed(&probes[1].timer));
	ASSERT_EQ(expire_all(200), 2);
	ASSERT_EQ(probes[1].fired, 0);
	arm(&probes[0], 300);
	cancel(&probes[0]);
	CU_ASSERT(timer_heap_deadline(&g_heap) == SOURCE_NEVER);
}

static void
test_armed_anew(void)
{
	struct probe probe = {0};

	start(0);
	arm(&probe, 100);
	arm(&probe, 5000);
	ASSERT_EQ(expire_all(4999), 0);
	arm(&probe, 5001);
	ASSERT_EQ(expire_all(5001), 1);
	ASSERT_EQ(probe.fired, 1);
}

static void
test_in_order(void)
{
	static struct probe probes[1000];

	memset(probes, 0, sizeof probes);
	start(7);
	for (unsigned i = 0; i < 1000; i++)
		arm(&probes[i], 10 + (i * 7919u) % 100003u);
	ASSERT_EQ(expire_all(200000), 1000);
	ASSERT_EQ(g_out_of_order, 0);
}

/* ---- inside the callback ---- */

static struct probe g_other;

static void
rearm_at_once(struct probe *probe)
{
	arm(probe, g_now_us);
}

static void
test_rearm_at_once_is_bounded(void)
{
	struct probe probe = {.then = rearm_at_once};

	start(100);
	arm(&probe, 100);
	for (unsigned turn = 1; turn <= 5; turn++) {
		ASSERT_EQ(timer_heap_expire(&g_heap, g_now_us), 1);
		ASSERT_EQ(probe.fired, turn);
		CU_ASSERT(timer_heap_deadline(&g_heap) <= g_now_us);
	}
	cancel(&probe);
	CU_ASSERT(timer_heap_deadline(&g_heap) == SOURCE_NEVER);
}

static void
cancel_other(struct probe *probe)
{
	(void)probe;
	cancel(&g_other);
}

static void
test_cancel_due_other(void)
{
	struct probe probe = {.then = cancel_other};

	start(0);
	g_other = (struct probe){0};
	arm(&probe, 50);
	arm(&g_other, 50);
	ASSERT_EQ(expire_all(60), 1);
	ASSERT_EQ(g_other.fired, 0);
}

static void
free_probe(struct probe *probe)
{
	memset(probe, 0xa5, sizeof *probe);
	free(probe);
}

static void
test_free_in_callback(void)
{
	start(0);
	for (unsigned i = 0; i < 100; i++) {
		struct probe *probe = calloc(1, sizeof *probe);

		ASSERT_FATAL(probe != NULL);
		probe->then = free_probe;
		arm(probe, 100 + i % 3);
	}
	ASSERT_EQ(expire_all(1000), 100);
}

/* ---- periodic ---- */

static uint64_t g_ticks;

static void
tick(struct xr_timer *timer)
{
	(void)timer;
	g_ticks++;
}

static void
test_period_leaves_out_missed(void)
{
	struct xr_timer timer = XR_TIMER_INIT(tick);

	start(0);
	g_ticks = 0;
	timer_heap_arm(&g_heap, &timer, 0, 10, 10);
	expire_all(10);
	ASSERT_EQ(g_ticks, 1);
	expire_all(19);
	ASSERT_EQ(g_ticks, 1);
	expire_all(20);
	ASSERT_EQ(g_ticks, 2);
	expire_all(1005); /* 98 periods were missed: one tick, and the beat is kept */
	ASSERT_EQ(g_ticks, 3);
	ASSERT_EQ(timer_heap_deadline(&g_heap), 1010);
	expire_all(1010);
	ASSERT_EQ(g_ticks, 4);
	xr_timer_cancel(&timer);
	CU_ASSERT(timer_heap_deadline(&g_heap) == SOURCE_NEVER);
}

static void
cancel_self(struct xr_timer *timer)
{
	CU_ASSERT(xr_timer_armed(timer));
	xr_timer_cancel(timer);
	g_ticks++;
}

static void
test_period_cancelled_in_callback(void)
{
	struct xr_timer timer = XR_TIMER_INIT(cancel_self);

	start(0);
	g_ticks = 0;
	timer_heap_arm(&g_heap, &timer, 0, 0, 5);
	expire_all(100);
	ASSERT_EQ(g_ticks, 1);
}

static void
test_huge_period(void)
{
	struct xr_timer timer = XR_TIMER_INIT(tick);

	start(0);
	g_ticks = 0;
	timer_heap_arm(&g_heap, &timer, 0, 1, UINT64_MAX);
	expire_all(1);
	ASSERT_EQ(g_ticks, 1);
	ASSERT_EQ(timer_heap_deadline(&g_heap), INT64_MAX);
}

/* Never more than once a turn, however short. */
static void
test_period_of_one(void)
{
	struct xr_timer timer = XR_TIMER_INIT(tick);

	start(10);
	g_ticks = 0;
	timer_heap_arm(&g_heap, &timer, 10, 10, 1);
	for (uint64_t now_us = 10; now_us < 1010; now_us += 10)
		ASSERT_EQ(timer_heap_expire(&g_heap, now_us), 1);
	ASSERT_EQ(g_ticks, 100);
	xr_timer_cancel(&timer);
}

static void
test_period_zero_is_once(void)
{
	struct xr_timer timer = XR_TIMER_INIT(tick);

	start(10);
	g_ticks = 0;
	timer_heap_arm(&g_heap, &timer, 10, 0, 0);
	ASSERT_EQ(timer_heap_expire(&g_heap, 10), 1);
	CU_ASSERT(!xr_timer_armed(&timer));
	ASSERT_EQ(timer_heap_expire(&g_heap, 1000000), 0);
	ASSERT_EQ(g_ticks, 1);
}

/* ---- many ---- */

#define MANY 100000

static uint32_t g_random = 1;

static uint32_t
random_below(uint32_t end)
{
	g_random ^= g_random << 13;
	g_random ^= g_random >> 17;
	g_random ^= g_random << 5;
	return g_random % end;
}

/* How many probes the model says are due; those must have fired, and no others. */
static void
check_model(const struct probe *probes, uint64_t now_us)
{
	unsigned late = 0, wrongly_armed = 0;

	for (unsigned i = 0; i < MANY; i++) {
		late += probes[i].due_us <= now_us;
		wrongly_armed += xr_timer_armed(&probes[i].timer) != (probes[i].due_us != SOURCE_NEVER);
	}
	ASSERT_EQ(late, 0);
	ASSERT_EQ(wrongly_armed, 0);
}

static void
test_many_against_model(void)
{
	struct probe *probes = calloc(MANY, sizeof *probes);
	uint64_t total = 0;

	ASSERT_FATAL(probes != NULL);
	start(123456789);
	for (unsigned i = 0; i < MANY; i++)
		probes[i].due_us = SOURCE_NEVER;
	for (unsigned round = 0; round < 30; round++) {
		for (unsigned i = 0; i < MANY / 4; i++) {
			struct probe *probe = &probes[random_below(MANY)];

			if (random_below(3) == 0)
				cancel(probe);
			else
				arm(probe, g_now_us + random_below(1u << random_below(24)));
		}
		g_last_due_us = 0;
		total += (uint64_t)expire_all(g_now_us + random_below(1u << random_below(20)));
		check_model(probes, g_now_us);
	}
	total += (uint64_t)expire_all(g_now_us + (1u << 25));
	check_model(probes, g_now_us);
	CU_ASSERT(total > MANY);
	ASSERT_EQ(g_early + g_unexpected + g_out_of_order, 0);
	CU_ASSERT(timer_heap_deadline(&g_heap) == SOURCE_NEVER);
	free(probes);
}

/* One turn never does more than its share, however much is due. */
static void
test_a_turn_is_bounded(void)
{
	struct probe *probes = calloc(MANY, sizeof *probes);
	int turns = 0, count, total = 0;

	ASSERT_FATAL(probes != NULL);
	start(0);
	for (unsigned i = 0; i < MANY; i++)
		arm(&probes[i], 1000000 + i);
	g_now_us = 2000000;
	while (timer_heap_deadline(&g_heap) <= g_now_us && turns < MANY) {
		count = timer_heap_expire(&g_heap, g_now_us);
		CU_ASSERT(count <= 64);
		total += count;
		turns++;
	}
	ASSERT_EQ(total, MANY);
	ASSERT_EQ(g_out_of_order, 0);
	free(probes);
}

/* A deadline is a lower bound, so following it from sleep to sleep ends at the timer, after few steps. */
static void
test_deadline_leads_to_due(void)
{
	static struct probe probes[64];
	unsigned sleeps = 0;

	memset(probes, 0, sizeof probes);
	start(1);
	for (unsigned i = 0; i < 64; i++)
		arm(&probes[i], 3000001 + i);
	while (!probes[0].fired && sleeps < 100) {
		uint64_t deadline_us = timer_heap_deadline(&g_heap);

		CU_ASSERT(deadline_us > g_now_us);
		CU_ASSERT(deadline_us <= 3000001);
		g_now_us = deadline_us;
		timer_heap_expire(&g_heap, g_now_us);
		sleeps++;
	}
	ASSERT_EQ(probes[0].fired, 1);
	CU_ASSERT(sleeps <= 24);
}

/* ---- through the public calls ---- */

static uint64_t g_seen_us;

static void
see_time(struct xr_timer *timer)
{
	(void)timer;
	g_seen_us = xr_now_us();
	reactors_stop();
}

static void
test_public_calls(void)
{
	struct xr_timer timer = XR_TIMER_INIT(see_time), never = XR_TIMER_INIT(see_time);
	uint64_t armed_us;

	fixture_start(1);
	CU_ASSERT(!xr_timer_armed(&timer));
	xr_timer_cancel(&timer);
	xr_timer_arm(&never, UINT64_MAX, UINT64_MAX);
	armed_us = xr_now_us();
	xr_timer_arm(&timer, 2000, 0);
	CU_ASSERT(xr_timer_armed(&timer));
	reactor_run(reactor_current());
	CU_ASSERT(g_seen_us >= armed_us + 2000);
	CU_ASSERT(!xr_timer_armed(&never));
	fixture_end();
}

static void
stop_now(struct xr_timer *timer)
{
	(void)timer;
	reactors_stop();
}

/* A timer that outlives its reactor may be armed in the next one. */
static void
test_none_is_armed_after_the_run(void)
{
	static struct xr_timer left = XR_TIMER_INIT(stop_now);
	struct xr_timer stop = XR_TIMER_INIT(stop_now);

	for (int i = 0; i < 2; i++) {
		fixture_start(1);
		xr_timer_arm(&left, 3600000000u, 0);
		xr_timer_arm(&stop, 0, 1);
		reactor_run(reactor_current());
		CU_ASSERT(!xr_timer_armed(&left) && !xr_timer_armed(&stop));
		fixture_end();
	}
}

UNIT_SUITE("timer", {"fires when due", test_fires_when_due}, {"due now and in the past", test_due_now_and_past},
	   {"far future", test_far_future}, {"cancel", test_cancel}, {"armed anew", test_armed_anew},
	   {"in order", test_in_order}, {"re-arm at once is bounded", test_rearm_at_once_is_bounded},
	   {"cancel another that is due", test_cancel_due_other}, {"free in the callback", test_free_in_callback},
	   {"a period leaves out what was missed", test_period_leaves_out_missed},
	   {"a period cancelled in the callback", test_period_cancelled_in_callback},
	   {"a huge period", test_huge_period}, {"a period of one microsecond", test_period_of_one},
	   {"period 0 fires once", test_period_zero_is_once}, {"100000 against a model", test_many_against_model},
	   {"a turn is bounded", test_a_turn_is_bounded},
	   {"the deadline leads to the due time", test_deadline_leads_to_due}, {"public calls", test_public_calls},
	   {"none is armed after the run", test_none_is_armed_after_the_run});
