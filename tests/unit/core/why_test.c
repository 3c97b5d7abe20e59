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

UNIT_SUITE("why", {"formats", test_formats}, {"extends an earlier reason", test_extends},
	   {"is cut, not overrun", test_cut}, {"each thread has its own", test_own_buffer});
