/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>

#include "core/option_value.h"

static void
assert_int(int64_t min, int64_t max, const char *text, int64_t expected)
{
	struct xr_option row = {.type = XR_OPTION_INT, .min = min, .max = max};
	const char *why = "";
	int64_t value = 77;

	if (option_parse_number(&row, text, &value, &why))
		printf("\"%s\": %s\n", text, why);
	ASSERT_EQ(value, expected);
}

static void
test_ints(void)
{
	assert_int(0, 10, "0", 0);
	assert_int(0, 10, "10", 10);
	assert_int(0, 10, "+5", 5);
	assert_int(0, 10, "010", 10); /* not octal */
	assert_int(-5, 10, "-5", -5);
	assert_int(0, 255, "0xff", 255);
	assert_int(0, 255, "0XfF", 255);
	assert_int(-255, 0, "-0x10", -16);
	assert_int(INT64_MIN, INT64_MAX, "9223372036854775807", INT64_MAX);
	assert_int(INT64_MIN, INT64_MAX, "-9223372036854775808", INT64_MIN);
}

static void
assert_int_refused(const char *text, const char *reason)
{
	struct xr_option row = {.type = XR_OPTION_INT, .min = 16, .max = 4096};
	const char *why = NULL;
	int64_t value = 77;

	ASSERT_EQ(option_parse_number(&row, text, &value, &why), -EINVAL);
	ASSERT_STR(why, reason);
	ASSERT_EQ(value, 77);
}

static void
test_ints_refused(void)
{
	assert_int_refused("", "the value is empty; allowed are 16..4096");
	assert_int_refused("15", "out of range; allowed are 16..4096");
	assert_int_refused("4097", "out of range; allowed are 16..4096");
	assert_int_refused("-1", "out of range; allowed are 16..4096");
	assert_int_refused("9223372036854775808", "out of range; allowed are 16..4096");
	assert_int_refused("99999999999999999999999999", "out of range; allowed are 16..4096");
	assert_int_refused("-99999999999999999999999999", "out of range; allowed are 16..4096");
	assert_int_refused("99999999999999999999x", "not a whole number; allowed are 16..4096");
	assert_int_refused("abc", "not a whole number; allowed are 16..4096");
	assert_int_refused("64k", "not a whole number; allowed are 16..4096");
	assert_int_refused("64 ", "not a whole number; allowed are 16..4096");
	assert_int_refused(" 64", "not a whole number; allowed are 16..4096");
	assert_int_refused("6 4", "not a whole number; allowed are 16..4096");
	assert_int_refused("64.0", "not a whole number; allowed are 16..4096");
	assert_int_refused("0x", "not a whole number; allowed are 16..4096");
	assert_int_refused("0xg", "not a whole number; allowed are 16..4096");
	assert_int_refused("0x 40", "not a whole number; allowed are 16..4096");
	assert_int_refused("-", "not a whole number; allowed are 16..4096");
	assert_int_refused("+-64", "not a whole number; allowed are 16..4096");
	assert_int_refused("--64", "not a whole number; allowed are 16..4096");
}

static void
test_extreme_overflow(void)
{
	struct xr_option row = {.type = XR_OPTION_INT, .min = INT64_MIN, .max = INT64_MAX};
	const char *why = NULL;
	int64_t value;

	ASSERT_EQ(option_parse_number(&row, "9223372036854775808", &value, &why), -EINVAL);
	ASSERT_EQ(option_parse_number(&row, "-9223372036854775809", &value, &why), -EINVAL);
}

static void
test_bools(void)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1", "FALSE", "True"};
	struct xr_option row = {.type = XR_OPTION_BOOL};
	const char *why = NULL;
	int64_t value;

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		value = 77;
		ASSERT_EQ(option_parse_number(&row, words[i], &value, &why), 0);
		ASSERT_EQ(value, i % 2);
	}
	ASSERT_EQ(option_parse_number(&row, "", &value, &why), -EINVAL);
	ASSERT_EQ(option_parse_number(&row, "2", &value, &why), -EINVAL);
	ASSERT_EQ(option_parse_number(&row, "01", &value, &why), -EINVAL);
	ASSERT_EQ(option_parse_number(&row, "truee", &value, &why), -EINVAL);
	ASSERT_STR(why, "allowed are true or false");
}

/* What may follow a bool as a word of its own; a 0 there may be somebody else's argument. */
static void
test_bool_words(void)
{
	int64_t value = 77;

	CU_ASSERT(option_bool_word("on", &value));
	ASSERT_EQ(value, 1);
	CU_ASSERT(!option_bool_word("0", &value));
	CU_ASSERT(!option_bool_word("", &value));
	CU_ASSERT(!option_bool_word("server", &value));
}

static void
test_format(void)
{
	int64_t number = -12;
	const char *string = NULL;
	struct xr_option row = {.type = XR_OPTION_INT, .value = &number};
	char text[8];

	ASSERT_EQ(option_format_value(&row, text, sizeof text), 3);
	ASSERT_STR(text, "-12");
	number = 1;
	row.type = XR_OPTION_BOOL;
	ASSERT_EQ(option_format_value(&row, text, sizeof text), 4);
	ASSERT_STR(text, "true");
	row.type = XR_OPTION_STRING;
	row.value = &string;
	ASSERT_EQ(option_format_value(&row, text, sizeof text), 0);
	ASSERT_STR(text, "");
	string = "0123456789";
	ASSERT_EQ(option_format_value(&row, text, sizeof text), 10);
	ASSERT_STR(text, "0123456");
	row.type = XR_OPTION_CALL;
	ASSERT_EQ(option_format_value(&row, text, sizeof text), 0);
	ASSERT_STR(text, "");
}

UNIT_SUITE("option_value", {"whole numbers", test_ints},
	   {"what is no whole number, or out of range", test_ints_refused}, {"beyond 64 bits", test_extreme_overflow},
	   {"bools", test_bools}, {"words that may follow a bool", test_bool_words}, {"values as text", test_format});
