/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/fail_alloc.h"

#include "core/number_set.h"

/* Parses and writes back. */
static void
assert_written_as(const char *text, const char *expected)
{
	struct number_set set = {0};
	const char *why = NULL;
	char written[256];

	ASSERT_EQ(number_set_parse(text, &set, &why), 0);
	number_set_format(&set, written, sizeof written);
	ASSERT_STR(written, expected);
	number_set_free(&set);
}

static void
test_accepted(void)
{
	assert_written_as("0", "0");
	assert_written_as("0-3,8", "0-3,8");
	assert_written_as("8,0-3", "0-3,8");
	assert_written_as("5-5", "5");
	assert_written_as("1,2,3", "1-3");
	assert_written_as("007", "7");
	assert_written_as(" 1", "1");
	assert_written_as("1, 3 - 5\t,8 ", "1,3-5,8");
	assert_written_as("1023,1024,4096", "1023-1024,4096");
	assert_written_as("1000000", "1000000");
}

static void
assert_refused(const char *text, const char *reason)
{
	unsigned item = 42;
	struct number_set set = {.items = &item, .count = 1, .capacity = 1};
	const char *why = NULL;

	ASSERT_EQ(number_set_parse(text, &set, &why), -EINVAL);
	ASSERT_STR(why, reason);
	CU_ASSERT(set.items == &item && set.count == 1);
}

static void
test_refused(void)
{
	assert_refused("", "the list is empty");
	assert_refused("1-3-5", "1-3 goes on with another '-', a range is FIRST-LAST");
	assert_refused("3-1", "range 3-1 runs backwards");
	assert_refused("0-", "a number is missing at the end");
	assert_refused("0-,1", "',' stands where a number must be");
	assert_refused(",1", "',' stands where a number must be");
	assert_refused("0,,1", "',' stands where a number must be");
	assert_refused("0,1,", "a number is missing at the end");
	assert_refused("-1", "'-' stands where a number must be");
	assert_refused("+1", "'+' stands where a number must be");
	assert_refused(" ", "a number is missing at the end");
	assert_refused("1 2", "\"2\" follows where only ',' or the end may");
	assert_refused("1\n", "\"\n\" follows where only ',' or the end may");
	assert_refused("\n1", "byte 0x0a stands where a number must be");
	assert_refused("\xff", "byte 0xff stands where a number must be");
	assert_refused("x", "'x' stands where a number must be");
	assert_refused("1x", "\"x\" follows where only ',' or the end may");
	assert_refused("0x10", "\"x10\" follows where only ',' or the end may");
	assert_refused("0@1", "\"@1\" follows where only ',' or the end may");
	assert_refused("0-3,2", "2 occurs twice");
	assert_refused("7,7", "7 occurs twice");
	assert_refused("0-3,3-5", "3 occurs twice");
	assert_refused("1000001", "1000001... is too large, numbers end at 1000000");
	assert_refused("99999999999999999999999", "999999999999... is too large, numbers end at 1000000");
	assert_refused("0-4294967295", "4294967295... is too large, numbers end at 1000000");
}

/* However often the largest range is repeated, memory stays bounded. */
static void
test_bounded(void)
{
	assert_refused("0-1000000,0-1000000,0-1000000", "numbers occur twice");
}

static void
test_membership(void)
{
	struct number_set set = {0};
	const char *why;

	CU_ASSERT(!number_set_has(&set, 0));
	ASSERT_FATAL(number_set_parse("2-4,1000", &set, &why) == 0);
	CU_ASSERT(!number_set_has(&set, 1));
	CU_ASSERT(number_set_has(&set, 2));
	CU_ASSERT(number_set_has(&set, 4));
	CU_ASSERT(!number_set_has(&set, 5));
	CU_ASSERT(number_set_has(&set, 1000));
	number_set_free(&set);
	CU_ASSERT(set.items == NULL && set.count == 0);
}

static void
test_format_cut(void)
{
	struct number_set set = {0};
	const char *why;
	char text[20];

	number_set_format(&set, text, sizeof text);
	ASSERT_STR(text, "");
	ASSERT_FATAL(number_set_parse("1,3,5,7,9,11,13,15,17,19", &set, &why) == 0);
	number_set_format(&set, text, sizeof text);
	ASSERT_STR(text, "1,3,5,7,9,11,13,...");
	number_set_free(&set);
}

static void
test_out_of_memory(void)
{
	struct number_set set = {0};
	const char *why = NULL;
	int rc;

	if (!FAIL_ALLOC) {
		unit_skip("the sanitizer brings its own allocator");
		return;
	}
	for (long after = 0; after < 2; after++) {
		g_fail_alloc_after = after;
		rc = number_set_parse("0-10,20-40", &set, &why);
		g_fail_alloc_after = -1;
		ASSERT_EQ(rc, -ENOMEM);
		ASSERT_STR(why, "out of memory");
		CU_ASSERT(set.items == NULL);
	}
}

UNIT_SUITE("number_set", {"numbers and ranges are read, sorted and written", test_accepted},
	   {"each refusal has its reason and leaves the set alone", test_refused},
	   {"repeats cannot grow it without bound", test_bounded}, {"membership", test_membership},
	   {"a long set is cut when written", test_format_cut}, {"out of memory", test_out_of_memory});
