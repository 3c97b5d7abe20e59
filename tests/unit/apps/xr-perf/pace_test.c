/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "apps/xr-perf/pace.c"

/* ---- the timer and the clock, by hand ---- */

static struct {
	uint64_t now_us;
	uint64_t after_us, period_us;
	bool armed;
	unsigned ready;
} g;

uint64_t __wrap_xr_now_us(void);
void __wrap_xr_timer_arm(struct xr_timer *timer, uint64_t after_us, uint64_t period_us);
void __wrap_xr_timer_cancel(struct xr_timer *timer);

uint64_t
__wrap_xr_now_us(void)
{
	return g.now_us;
}

void
__wrap_xr_timer_arm(struct xr_timer *timer, uint64_t after_us, uint64_t period_us)
{
	(void)timer;
	g.after_us = after_us;
	g.period_us = period_us;
	g.armed = true;
}

void
__wrap_xr_timer_cancel(struct xr_timer *timer)
{
	(void)timer;
	g.armed = false;
}

static void
count_ready(struct pace *pace)
{
	(void)pace;
	g.ready++;
}

static void
fire(struct pace *pace)
{
	g.now_us += g.after_us;
	g.armed = g.period_us != 0;
	pace->timer.fn(&pace->timer);
}

static struct pace
begin(struct pace_options options)
{
	struct pace pace;

	memset(&g, 0, sizeof g);
	pace_init(&pace, &options, count_ready);
	pace_begin(&pace);
	return pace;
}

/* ---- tests ---- */

static void
test_without_a_limit(void)
{
	struct pace pace = begin((struct pace_options){0});

	CU_ASSERT(!g.armed);
	for (int i = 0; i < 1000; i++)
		CU_ASSERT(pace_take(&pace));
	pace_call_ended(&pace);
	CU_ASSERT(!g.armed);
}

static unsigned
take_all(struct pace *pace)
{
	unsigned count = 0;

	while (pace_take(pace))
		count++;
	return count;
}

static void
test_rate(void)
{
	struct pace pace = begin((struct pace_options){.calls_per_us = 0.0105});

	CU_ASSERT(!pace_take(&pace));
	ASSERT_EQ(g.period_us, REFILL_US);
	fire(&pace);
	ASSERT_EQ(g.ready, 1);
	ASSERT_EQ(take_all(&pace), 10);
	fire(&pace);
	ASSERT_EQ(take_all(&pace), 11); /* a half was left */
	pace_give_back(&pace);
	ASSERT_EQ(take_all(&pace), 1);
	/* What was not used for a long time is lost. */
	g.now_us += 60000000;
	fire(&pace);
	ASSERT_EQ(take_all(&pace), 1051);
	pace_end(&pace);
	CU_ASSERT(!g.armed);
}

/* Every length of burst and of silence occurs, and none beyond; a silence begins when the last answer is in. */
static void
test_bursts(void)
{
	bool lengths[6] = {false}, silences[4] = {false};
	struct pace pace = begin((struct pace_options){.burst_calls = 5, .silence_us = 3, .seed = 7});

	ASSERT_EQ(g.after_us, 0);
	for (unsigned burst = 1; burst <= 500; burst++) {
		unsigned calls;

		CU_ASSERT(g.armed && g.period_us == 0);
		CU_ASSERT(!pace_take(&pace));
		fire(&pace);
		ASSERT_EQ(g.ready, burst);
		calls = take_all(&pace);
		ASSERT_FATAL(calls >= 1 && calls <= 5);
		lengths[calls] = true;
		for (unsigned i = 0; i < calls; i++) {
			CU_ASSERT(!g.armed);
			pace_call_ended(&pace);
		}
		ASSERT_FATAL(g.after_us <= 3);
		silences[g.after_us] = true;
	}
	for (unsigned i = 1; i <= 5; i++)
		CU_ASSERT(lengths[i]);
	for (unsigned i = 0; i <= 3; i++)
		CU_ASSERT(silences[i]);
	pace_end(&pace);
	CU_ASSERT(!g.armed);
}

static void
test_seeds(void)
{
	struct pace one = begin((struct pace_options){.burst_calls = 1000000, .seed = 1});
	struct pace same = begin((struct pace_options){.burst_calls = 1000000, .seed = 1});
	struct pace other = begin((struct pace_options){.burst_calls = 1000000, .seed = 2});

	fire(&one);
	fire(&same);
	fire(&other);
	ASSERT_EQ(one.burst_left, same.burst_left);
	CU_ASSERT(one.burst_left != other.burst_left);
}

/* Calls that are in flight at the end begin no silence. */
static void
test_end_in_a_burst(void)
{
	struct pace pace = begin((struct pace_options){.burst_calls = 1});

	fire(&pace);
	CU_ASSERT(pace_take(&pace));
	pace_end(&pace);
	pace_call_ended(&pace);
	CU_ASSERT(!g.armed);
}

UNIT_SUITE("pace", {"without a limit every call may begin", test_without_a_limit},
	   {"at a rate tokens come in steps", test_rate}, {"bursts and silences are of random length", test_bursts},
	   {"a seed makes them what they are", test_seeds}, {"the end comes in a burst", test_end_in_a_burst});
