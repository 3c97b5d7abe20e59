/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <pthread.h>

#include "core/why.h"

static void
test_formats(void)
{
	ASSERT_STR(why_text("%u is not %s", 7u, "eight"), "7 is not eight");
}

static void
test_extends(void)
{
	const char *why = why_text("%u is too large", 9u);

	ASSERT_STR(why_text("%s; allowed are %u..%u", why, 1u, 8u), "9 is too large; allowed are 1..8");
}

static void
test_cut(void)
{
	char long_text[1000];

	memset(long_text, 'a', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = '\0';
	ASSERT_EQ(strlen(why_text("%s", long_text)), 191);
}

static void *
other_thread(void *arg)
{
	(void)arg;
	return (void *)(why_text("theirs") ? 1L : 0L);
}

static void
test_own_buffer(void)
{
	const char *mine = why_text("mine");
	pthread_t thread;

	ASSERT_FATAL(pthread_create(&thread, NULL, other_thread, NULL) == 0);
	pthread_join(thread, NULL);
	ASSERT_STR(mine, "mine");
}

static void
test_kept(void)
{
	const char *kept = why_keep(why_text("%u of %u", 1u, 2u), "many"), *last = NULL;
	char long_text[1000];

	why_text("something else");
	ASSERT_STR(kept, "1 of 2");
	CU_ASSERT_PTR_EQUAL(why_keep(why_text("%u of %u", 1u, 2u), "many"), kept);
	memset(long_text, 'a', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = '\0';
	ASSERT_EQ(strlen(why_keep(long_text, "many")), 191);
	CU_ASSERT_PTR_EQUAL(why_keep(long_text, "many"), why_keep(long_text, "many"));
	for (unsigned i = 0; i < 100; i++)
		last = why_keep(why_text("reason %u", i), "many");
	ASSERT_STR(last, "many");
	CU_ASSERT_PTR_EQUAL(why_keep("1 of 2", "many"), kept);
}

UNIT_SUITE("why", {"formats", test_formats}, {"extends an earlier reason", test_extends},
	   {"is cut, not overrun", test_cut}, {"each thread has its own", test_own_buffer},
	   {"kept for good", test_kept});
