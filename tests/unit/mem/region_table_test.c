/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/region_table.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <stdint.h>

#define BYTES 100u

/* Addresses are compared and not looked at. */
static const char *
at(uintptr_t address)
{
	return (const char *)address;
}

static void
test_empty(void)
{
	ASSERT_EQ(region_table_find(at(1)), -1);
	region_table_del(3);
	region_table_clear();
}

static void
test_edges(void)
{
	const uintptr_t starts[] = {5000, 1000, 3000, 1100};

	for (unsigned i = 0; i < 4; i++)
		ASSERT_EQ(region_table_add(at(starts[i]), BYTES, 10 + i), 0);
	for (unsigned i = 0; i < 4; i++) {
		ASSERT_EQ(region_table_find(at(starts[i])), 10 + (int)i);
		ASSERT_EQ(region_table_find(at(starts[i] + BYTES - 1)), 10 + (int)i);
	}
	ASSERT_EQ(region_table_find(at(999)), -1);
	ASSERT_EQ(region_table_find(at(1200)), -1);
	ASSERT_EQ(region_table_find(at(5100)), -1);
	region_table_clear();
	ASSERT_EQ(region_table_find(at(1000)), -1);
}

/* What was taken back makes way for what is added there later. */
static void
test_taken_back(void)
{
	ASSERT_EQ(region_table_add(at(1000), BYTES, 1), 0);
	ASSERT_EQ(region_table_add(at(2000), BYTES, 2), 0);
	region_table_del(1);
	ASSERT_EQ(region_table_find(at(1050)), -1);
	ASSERT_EQ(region_table_find(at(2050)), 2);
	ASSERT_EQ(region_table_add(at(950), BYTES, 1), 0);
	ASSERT_EQ(region_table_find(at(1049)), 1);
	ASSERT_EQ(region_table_find(at(1050)), -1);
	ASSERT_EQ(region_table_find(at(2050)), 2);
	region_table_clear();
}

static bool g_over;

static void *
keep_finding(void *arg)
{
	unsigned long wrong = 0;

	(void)arg;
	while (!__atomic_load_n(&g_over, __ATOMIC_ACQUIRE))
		wrong += region_table_find(at(1050)) != 7;
	return (void *)wrong;
}

/* Who looks up takes no lock, while the table is replaced again and again. */
static void
test_found_while_it_changes(void)
{
	pthread_t thread;
	void *wrong;

	g_over = false;
	ASSERT_EQ(region_table_add(at(1000), BYTES, 7), 0);
	ASSERT_FATAL(pthread_create(&thread, NULL, keep_finding, NULL) == 0);
	for (unsigned i = 0; i < 200; i++)
		ASSERT_EQ(region_table_add(at(i % 2 ? 100000 - i * BYTES : 200000 + i * BYTES), BYTES, 100 + i), 0);
	__atomic_store_n(&g_over, true, __ATOMIC_RELEASE);
	pthread_join(thread, &wrong);
	ASSERT_EQ((uintptr_t)wrong, 0);
	for (unsigned i = 0; i < 200; i++)
		ASSERT_EQ(region_table_find(at(i % 2 ? 100000 - i * BYTES : 200000 + i * BYTES)), 100 + (int)i);
	region_table_clear();
}

UNIT_SUITE("region_table", {"an empty one", test_empty}, {"edges", test_edges}, {"what is taken back", test_taken_back},
	   {"found while it changes", test_found_while_it_changes});
