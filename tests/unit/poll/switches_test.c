/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

struct wanted {
	const char *name;
	uint64_t value;
	unsigned seen;
};

static void
pick(const char *name, const char *help, uint64_t value, void *arg)
{
	struct wanted *wanted = arg;

	(void)help;
	if (strcmp(name, wanted->name) != 0)
		return;
	wanted->value = value;
	wanted->seen++;
}

static uint64_t
value_of(const char *name, unsigned lcore)
{
	struct wanted wanted = {.name = name};

	ASSERT_EQ(xr_counter_foreach(lcore, pick, &wanted), 0);
	ASSERT_EQ(wanted.seen, 1);
	return wanted.value;
}

#define VOLUNTARY   "worker_switches_voluntary"
#define INVOLUNTARY "worker_switches_involuntary"

#define SLEEPS 20

static unsigned g_left;

static void
sleep_again(struct xr_timer *timer)
{
	(void)timer;
	if (--g_left == 0)
		reactors_stop();
}

static void
run_some_sleeps(void)
{
	struct xr_timer timer = XR_TIMER_INIT(sleep_again);

	g_left = SLEEPS;
	xr_timer_arm(&timer, 1000, 1000);
	reactor_run(reactor_current());
}

static void
test_each_sleep_counts(void)
{
	fixture_start(1);
	/* What the thread did before is not the worker's. */
	usleep(1000);
	ASSERT_EQ(value_of(VOLUNTARY, 0), 0);
	run_some_sleeps();
	CU_ASSERT(stat_read(STAT_SLEEPS) > 0);
	/* Not each one: the time of a sleep may be over before the kernel has put the thread to it. */
	CU_ASSERT(value_of(VOLUNTARY, 0) >= stat_read(STAT_WAKES_TIMER) / 2);
	CU_ASSERT(value_of(VOLUNTARY, XR_LCORE_NONE) == value_of(VOLUNTARY, 0));
	fixture_end();
}

/* ---- while it runs ---- */

static void *
read_while_it_runs(void *arg)
{
	uint64_t *seen = arg;

	for (unsigned i = 0; i < 2000 && *seen < 3; i++) {
		usleep(1000);
		*seen = value_of(VOLUNTARY, 0);
	}
	reactors_stop();
	return NULL;
}

static void
keep_sleeping(struct xr_timer *timer)
{
	(void)timer;
}

static void
test_read_while_it_runs(void)
{
	struct xr_timer timer = XR_TIMER_INIT(keep_sleeping);
	uint64_t seen = 0;
	pthread_t reader;

	fixture_start(1);
	xr_timer_arm(&timer, 500, 500);
	ASSERT_FATAL(pthread_create(&reader, NULL, read_while_it_runs, &seen) == 0);
	reactor_run(reactor_current());
	pthread_join(reader, NULL);
	CU_ASSERT(seen >= 3);
	CU_ASSERT(value_of(VOLUNTARY, 0) >= seen);
	fixture_end();
}

static void
test_unknown_thread(void)
{
	fixture_start(1);
	/* A thread that is gone has nothing to tell. */
	reactor_current()->switches.lcore = lcore_main();
	reactor_current()->switches.thread = 0x7ffffff0;
	ASSERT_EQ(value_of(VOLUNTARY, 0), 0);
	ASSERT_EQ(value_of(INVOLUNTARY, 0), 0);
	reactor_current()->switches.thread = 0;
	fixture_end();
}

UNIT_SUITE("switches", {"each sleep counts", test_each_sleep_counts}, {"read while it runs", test_read_while_it_runs},
	   {"a thread that is gone", test_unknown_thread});
