/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "tests/unit/core/log_capture.h"

#include "core/lcore.h"
#include "core/option.h"
#include "core/processor.h"

static struct number_set g_cpus; /* what this process may use */

static void
setup(void)
{
	struct processor_mask mask;

	if (!g_cpus.count) {
		ASSERT_FATAL(processor_mask_of_thread(&mask) == 0);
		ASSERT_FATAL(processor_mask_numbers(&mask, &g_cpus) == 0);
		processor_mask_free(&mask);
	}
	ASSERT_FATAL(option_add_table("Lcores", g_lcore_options) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
	log_capture_start();
}

static void
teardown(void)
{
	log_capture_stop();
	option_fini();
}

/* Options as a format with processor numbers of this machine. */
static void XR_PRINTF(2, 3) set_option(const char *name, const char *format, ...)
{
	char value[128];
	const char *why = "";
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof value, format, args);
	va_end(args);
	if (xr_option_set(name, value, &why))
		printf("%s=%s: %s\n", name, value, why);
}

static void
assert_refused(const char *reason)
{
	ASSERT_EQ(lcore_init(), -EINVAL);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_STR(log_capture_last(), reason);
	ASSERT_EQ(lcore_count(), 0);
	CU_ASSERT(t_lcore == NULL);
}

/* The processors that the calling thread may run on, written as ranges. */
static void
format_own_mask(char *text, size_t size)
{
	struct processor_mask mask;
	struct number_set numbers;

	ASSERT_FATAL(processor_mask_of_thread(&mask) == 0);
	ASSERT_FATAL(processor_mask_numbers(&mask, &numbers) == 0);
	number_set_format(&numbers, text, size);
	number_set_free(&numbers);
	processor_mask_free(&mask);
}

static void
test_default(void)
{
	char all[256], now[256], first[32];

	setup();
	number_set_format(&g_cpus, all, sizeof all);
	snprintf(first, sizeof first, "%u", g_cpus.items[0]);
	ASSERT_FATAL(lcore_init() == 0);
	ASSERT_EQ(lcore_count(), g_cpus.count);
	for (unsigned i = 0; i < lcore_count(); i++) {
		ASSERT_EQ(lcore_at(i)->id, g_cpus.items[i]);
		ASSERT_EQ(lcore_at(i)->index, i);
		ASSERT_EQ(lcore_at(i)->numa_node, processor_numa_node(g_cpus.items[i]));
	}
	CU_ASSERT(lcore_main() == lcore_at(0));
	CU_ASSERT(t_lcore == lcore_at(0));
	format_own_mask(now, sizeof now);
	ASSERT_STR(now, first);
	lcore_fini();
	format_own_mask(now, sizeof now);
	ASSERT_STR(now, all);
	CU_ASSERT(t_lcore == NULL);
	ASSERT_EQ(log_capture_count(), 0);
	teardown();
}

static void
test_public_calls(void)
{
	unsigned cpu, lcore, seen = 0;

	setup();
	cpu = g_cpus.items[0];
	ASSERT_EQ(xr_lcore_id(), XR_LCORE_NONE);
	ASSERT_EQ(xr_lcore_main(), XR_LCORE_NONE);
	ASSERT_EQ(xr_lcore_next(XR_LCORE_NONE), XR_LCORE_NONE);
	CU_ASSERT(lcore_find(0) == NULL);
	set_option("lcores", "7@%u,(2000,3)@%u", cpu, cpu);
	set_option("main_lcore", "7");
	ASSERT_FATAL(lcore_init() == 0);
	ASSERT_EQ(xr_lcore_count(), 3);
	ASSERT_EQ(xr_lcore_main(), 7);
	ASSERT_EQ(xr_lcore_id(), 7);
	ASSERT_EQ(xr_lcore_next(XR_LCORE_NONE), 3);
	ASSERT_EQ(xr_lcore_next(3), 7);
	ASSERT_EQ(xr_lcore_next(4), 7);
	ASSERT_EQ(xr_lcore_next(7), 2000);
	ASSERT_EQ(xr_lcore_next(2000), XR_LCORE_NONE);
	XR_LCORE_FOREACH (lcore)
		seen += lcore;
	ASSERT_EQ(seen, 3 + 7 + 2000);
	ASSERT_EQ(xr_lcore_numa_node(2000), processor_numa_node(cpu));
	ASSERT_EQ(xr_lcore_numa_node(4), -EINVAL);
	ASSERT_EQ(xr_lcore_numa_node(XR_LCORE_NONE), -EINVAL);
	ASSERT_EQ(lcore_find(2000)->index, 2);
	CU_ASSERT(lcore_find(8) == NULL);
	lcore_fini();
	teardown();
}

static void
test_no_such_processor(void)
{
	char all[256], reason[512];

	setup();
	number_set_format(&g_cpus, all, sizeof all);
	set_option("l", "%u,999999", g_cpus.items[0]);
	snprintf(reason, sizeof reason, "option -l: processor 999999 of lcore 999999 does not exist; allowed are %s",
		 all);
	assert_refused(reason);
	teardown();

	setup();
	set_option("lcores", "1@%u,5@(%u,999999)", g_cpus.items[0], g_cpus.items[0]);
	snprintf(reason, sizeof reason, "option --lcores: processor 999999 of lcore 5 does not exist; allowed are %s",
		 all);
	assert_refused(reason);
	teardown();
}

static void
test_processor_not_allowed(void)
{
	struct processor_mask old, one;
	char reason[256];

	setup();
	if (g_cpus.count < 2) {
		unit_skip("this process may use one processor only");
		teardown();
		return;
	}
	ASSERT_FATAL(processor_mask_of_thread(&old) == 0);
	ASSERT_FATAL(processor_mask_from(&g_cpus.items[1], 1, &one) == 0);
	ASSERT_FATAL(sched_setaffinity(0, one.size, one.cpus) == 0);
	set_option("l", "%u,%u", g_cpus.items[0], g_cpus.items[1]);
	snprintf(reason, sizeof reason,
		 "option -l: processor %u of lcore %u is not among those that this process may use; allowed are %u",
		 g_cpus.items[0], g_cpus.items[0], g_cpus.items[1]);
	assert_refused(reason);
	ASSERT_FATAL(sched_setaffinity(0, old.size, old.cpus) == 0);
	processor_mask_free(&one);
	processor_mask_free(&old);
	teardown();
}

static void
test_main_not_in_list(void)
{
	char reason[256];

	setup();
	set_option("lcores", "(3-5,8)@%u", g_cpus.items[0]);
	set_option("main_lcore", "6");
	snprintf(reason, sizeof reason, "option --main-lcore: there is no lcore 6; allowed are 3-5,8");
	assert_refused(reason);
	teardown();
}

static void
test_two_lists(void)
{
	setup();
	set_option("l", "%u", g_cpus.items[0]);
	set_option("lcores", "1@%u", g_cpus.items[0]);
	assert_refused("options -l and --lcores exclude each other: give one of them");
	teardown();
}

/* A list that does not parse is refused where it is set. */
static void
test_bad_lists(void)
{
	const char *why = NULL;

	setup();
	ASSERT_EQ(xr_option_set("l", "1-3-5", &why), -EINVAL);
	ASSERT_STR(why, "1-3 goes on with another '-', a range is FIRST-LAST; allowed is a list such as 0-3,8");
	ASSERT_EQ(xr_option_set("lcores", "(0", &why), -EINVAL);
	ASSERT_STR(why, "a ')' is missing; allowed is a list such as 0@2,(1-3)@(4-7),8");
	ASSERT_EQ(xr_option_set("main-lcore", "-2", &why), -EINVAL);
	ASSERT_STR(why, "out of range; allowed are -1..1000000");
	teardown();
}

/* What a worker saw of itself. */
struct seen {
	char name[16];
	char mask[128];
	bool own, blocked, faults_open;
};

static struct seen g_seen[8]; /* by lcore index */

static void
look_around(struct lcore *lcore)
{
	struct seen *seen = &g_seen[lcore->index];
	sigset_t mask;

	pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
	format_own_mask(seen->mask, sizeof seen->mask);
	seen->own = t_lcore == lcore && xr_lcore_id() == lcore->id;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	seen->blocked = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1);
	seen->faults_open = !sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGBUS);
}

static void
assert_seen(unsigned index, const char *name, const char *mask)
{
	ASSERT_STR(g_seen[index].name, name);
	ASSERT_STR(g_seen[index].mask, mask);
	CU_ASSERT(g_seen[index].own);
	CU_ASSERT(g_seen[index].blocked);
	CU_ASSERT(g_seen[index].faults_open);
}

static void
test_launch(void)
{
	char all[128], first[32], last[32];
	sigset_t mask;

	setup();
	memset(g_seen, 0, sizeof g_seen);
	number_set_format(&g_cpus, all, sizeof all);
	snprintf(first, sizeof first, "%u", g_cpus.items[0]);
	snprintf(last, sizeof last, "%u", g_cpus.items[g_cpus.count - 1]);
	set_option("lcores", "1@%s,2@(%s),1000000@%s", first, all, last);
	ASSERT_FATAL(lcore_init() == 0);
	ASSERT_EQ(lcore_launch(look_around), 0);
	lcore_join();
	ASSERT_STR(g_seen[0].name, ""); /* the main lcore is the caller's own thread */
	assert_seen(1, "lcore-2", all);
	assert_seen(2, "lcore-1000000", last);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	CU_ASSERT(!sigismember(&mask, SIGINT));
	lcore_join(); /* nothing left to join */
	lcore_fini();
	teardown();
}

/* ---- threads that are no lcore ---- */

static void *
look_from_aside(void *arg)
{
	char *text = arg;
	struct processor_mask mask;
	struct number_set numbers;

	/* Its name is given from outside. */
	for (unsigned i = 0; i < 1000; i++) {
		char name[16];

		pthread_getname_np(pthread_self(), name, sizeof name);
		if (strcmp(name, "helper") == 0)
			break;
		usleep(1000);
	}
	pthread_getname_np(pthread_self(), text, 16);
	ASSERT_EQ(processor_mask_of_thread(&mask), 0);
	ASSERT_EQ(processor_mask_numbers(&mask, &numbers), 0);
	number_set_format(&numbers, text + strlen(text), 100);
	number_set_free(&numbers);
	processor_mask_free(&mask);
	CU_ASSERT(xr_lcore_id() == XR_LCORE_NONE);
	return NULL;
}

static void
check_helper(const char *lcores, const char *expected)
{
	char text[128] = "";
	pthread_t thread;

	setup();
	set_option("lcores", "%s", lcores);
	ASSERT_FATAL(lcore_init() == 0);
	ASSERT_FATAL(lcore_start_helper("helper", look_from_aside, text, &thread) == 0);
	pthread_join(thread, NULL);
	ASSERT_STR(text, expected);
	lcore_fini();
	teardown();
}

static void
test_helper(void)
{
	char all[128], rest[128], lcores[160], expected[160];
	struct number_set left;

	setup();
	number_set_format(&g_cpus, all, sizeof all);
	left = (struct number_set){.items = g_cpus.items + 1, .count = g_cpus.count - 1};
	number_set_format(&left, rest, sizeof rest);
	snprintf(lcores, sizeof lcores, "7@%u", g_cpus.items[0]);
	teardown();
	snprintf(expected, sizeof expected, "helper%s", left.count ? rest : all);
	check_helper(lcores, expected);
	snprintf(lcores, sizeof lcores, "7@(%s)", all);
	snprintf(expected, sizeof expected, "helper%s", all);
	check_helper(lcores, expected);
}

static unsigned g_runs;

static void
count_run(struct lcore *lcore)
{
	(void)lcore;
	__atomic_fetch_add(&g_runs, 1, __ATOMIC_RELAXED);
}

static void
test_again(void)
{
	for (unsigned round = 1; round <= 3; round++) {
		setup();
		set_option("lcores", "(0-3)@%u", g_cpus.items[0]);
		ASSERT_FATAL(lcore_init() == 0);
		ASSERT_EQ(lcore_launch(count_run), 0);
		lcore_join();
		ASSERT_EQ(g_runs, 3 * round);
		lcore_fini();
		ASSERT_EQ(lcore_count(), 0);
		teardown();
	}
}

UNIT_SUITE("lcore", {"without options: every allowed processor", test_default}, {"the public calls", test_public_calls},
	   {"a processor that does not exist", test_no_such_processor},
	   {"a processor outside the affinity", test_processor_not_allowed},
	   {"a main lcore that is not in the list", test_main_not_in_list},
	   {"-l and --lcores together", test_two_lists}, {"lists that do not parse", test_bad_lists},
	   {"workers are pinned, named and free of signals", test_launch},
	   {"a helper keeps off the lcores", test_helper}, {"init and fini again", test_again});
