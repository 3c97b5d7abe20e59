/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>

#include "core/counter.h"
#include "core/option.h"
#include "core/processor.h"

static struct counter g_table[] = {{"sleeps", "times that a worker slept", 0}, {"wakes", "times that one woke", 0}};

#define sleeps (&g_table[0])
#define wakes  (&g_table[1])

/* Four lcores on one processor. */
static void
setup(void)
{
	char value[64];

	snprintf(value, sizeof value, "(0-2,9)@%d", sched_getcpu());
	ASSERT_FATAL(option_add_table("Lcores", g_lcore_options) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
	ASSERT_FATAL(xr_option_set("lcores", value, NULL) == 0);
	ASSERT_FATAL(lcore_init() == 0);
	ASSERT_FATAL(counter_add_table(g_table, 2) == 0);
	ASSERT_FATAL(counter_init() == 0);
}

static void
teardown(void)
{
	counter_fini();
	lcore_fini();
	option_fini();
}

static void
count_own(struct lcore *lcore)
{
	counter_attach(lcore);
	for (unsigned i = 0; i < 1000; i++)
		counter_add(sleeps, 1);
	counter_add(wakes, lcore->id);
}

static void
test_per_lcore(void)
{
	setup();
	ASSERT_EQ(lcore_launch(count_own), 0);
	counter_add(sleeps, 5); /* not attached: the shared cell */
	counter_attach(lcore_main());
	counter_add(sleeps, 7);
	lcore_join();
	ASSERT_EQ(counter_read(sleeps, lcore_find(0)), 7);
	ASSERT_EQ(counter_read(sleeps, lcore_find(1)), 1000);
	ASSERT_EQ(counter_read(sleeps, lcore_find(9)), 1000);
	ASSERT_EQ(counter_read(wakes, lcore_find(9)), 9);
	ASSERT_EQ(counter_read(sleeps, NULL), 3012);
	ASSERT_EQ(counter_read(wakes, NULL), 12);
	teardown();
	CU_ASSERT(t_counter_cells == NULL);
}

static void
test_cells_apart(void)
{
	const uint64_t *first, *second;

	setup();
	counter_attach(lcore_at(0));
	first = t_counter_cells;
	counter_attach(lcore_at(1));
	second = t_counter_cells;
	ASSERT_EQ((uintptr_t)first % 64, 0);
	ASSERT_EQ((uintptr_t)second % 64, 0);
	CU_ASSERT(first + COUNTER_MAX <= second || second + COUNTER_MAX <= first);
	teardown();
}

static void *
add_shared(void *arg)
{
	for (unsigned i = 0; i < 10000; i++)
		counter_add(wakes, 1);
	return arg;
}

static void
test_shared(void)
{
	pthread_t threads[3];

	setup();
	for (int i = 0; i < 3; i++)
		ASSERT_FATAL(pthread_create(&threads[i], NULL, add_shared, NULL) == 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(counter_read(wakes, NULL), 30000);
	teardown();
}

/* A reader beside the writers: values never go back. */
static void
test_read_while_written(void)
{
	uint64_t last = 0, backwards = 0;

	setup();
	ASSERT_EQ(lcore_launch(count_own), 0);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now = counter_read(sleeps, NULL);

		backwards += now < last;
		last = now;
	}
	lcore_join();
	ASSERT_EQ(backwards, 0);
	ASSERT_EQ(counter_read(sleeps, NULL), 3000);
	teardown();
}

static void
sum_named(const char *name, const char *help, uint64_t value, void *arg)
{
	uint64_t *sums = arg;

	CU_ASSERT(help != NULL && *help);
	if (strcmp(name, "sleeps") == 0)
		sums[0] += value;
	if (strcmp(name, "wakes") == 0)
		sums[1] += value;
	sums[2]++;
}

static void
test_foreach(void)
{
	uint64_t all[3] = {0}, one[3] = {0};

	setup();
	counter_attach(lcore_find(9));
	counter_add(sleeps, 3);
	counter_add_shared(wakes, 4);
	ASSERT_EQ(xr_counter_foreach(XR_LCORE_NONE, sum_named, all), 0);
	ASSERT_EQ(all[0], 3);
	ASSERT_EQ(all[1], 4);
	ASSERT_EQ(all[2], 2);
	ASSERT_EQ(xr_counter_foreach(9, sum_named, one), 0);
	ASSERT_EQ(one[0], 3);
	ASSERT_EQ(one[1], 0);
	ASSERT_EQ(xr_counter_foreach(5, sum_named, one), -EINVAL);
	ASSERT_EQ(one[2], 2);
	teardown();
}

static void
test_names_once(void)
{
	struct counter again[] = {{"new", "", 0}, {"wakes", "", 0}};
	struct counter twice[] = {{"same", "", 0}, {"same", "", 0}};
	struct counter fresh[] = {{"new", "", 0}, {"same", "", 0}};

	ASSERT_EQ(counter_add_table(g_table, 2), 0);
	ASSERT_EQ(counter_add_table(again, 2), -EEXIST);
	ASSERT_EQ(counter_add_table(twice, 2), -EEXIST);
	ASSERT_EQ(counter_add_table(fresh, 2), 0); /* the refused tables left nothing behind */
	ASSERT_EQ(fresh[0].slot, 2);
	ASSERT_EQ(fresh[1].slot, 3);
	counter_fini();
}

static void
test_too_many(void)
{
	static struct counter many[COUNTER_MAX + 1];
	static char names[COUNTER_MAX + 1][16];

	for (unsigned i = 0; i <= COUNTER_MAX; i++) {
		snprintf(names[i], sizeof names[i], "c%u", i);
		many[i] = (struct counter){names[i], "", 0};
	}
	ASSERT_EQ(counter_add_table(many, COUNTER_MAX + 1), -ENOSPC);
	ASSERT_EQ(counter_add_table(many, COUNTER_MAX), 0);
	ASSERT_EQ(counter_add_table(&many[COUNTER_MAX], 1), -ENOSPC);
	counter_fini();
	ASSERT_EQ(counter_add_table(&many[COUNTER_MAX], 1), 0);
	counter_fini();
}

static unsigned g_fetches;

static void
fetch(void)
{
	g_fetches++;
	counter_raise(sleeps, lcore_at(0), 10 * g_fetches);
}

static void
ignore(const char *name, const char *help, uint64_t value, void *arg)
{
	(void)name;
	(void)help;
	(void)value;
	(void)arg;
}

static void
test_fetched_by_the_reader(void)
{
	setup();
	g_fetches = 0;
	counter_on_read(fetch);
	ASSERT_EQ(xr_counter_foreach(XR_LCORE_NONE, ignore, NULL), 0);
	ASSERT_EQ(xr_counter_foreach(XR_LCORE_NONE - 1, ignore, NULL), -EINVAL);
	ASSERT_EQ(g_fetches, 1);
	ASSERT_EQ(counter_read(sleeps, lcore_at(0)), 10);
	counter_raise(sleeps, lcore_at(0), 9); /* an older figure comes late */
	ASSERT_EQ(counter_read(sleeps, NULL), 10);
	teardown();
	setup();
	ASSERT_EQ(xr_counter_foreach(XR_LCORE_NONE, ignore, NULL), 0);
	ASSERT_EQ(g_fetches, 1);
	teardown();
}

static void
test_from_zero_again(void)
{
	setup();
	counter_add_shared(sleeps, 1);
	counter_attach(lcore_at(0));
	counter_add(sleeps, 1);
	teardown();
	setup();
	ASSERT_EQ(counter_read(sleeps, NULL), 0);
	teardown();
}

UNIT_SUITE("counter", {"one writer per lcore, summed by a reader", test_per_lcore},
	   {"lcores do not share cache lines", test_cells_apart}, {"other threads share a cell", test_shared},
	   {"read while written", test_read_while_written}, {"listed by name", test_foreach},
	   {"a name is taken once", test_names_once}, {"no more than there is room for", test_too_many},
	   {"fetched by the reader", test_fetched_by_the_reader}, {"from zero after init again", test_from_zero_again});
