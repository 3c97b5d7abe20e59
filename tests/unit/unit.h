/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

/*
 * A unit test program: a table of tests under one suite, run by CUnit. The program takes `-t WORD` (only tests whose
 * name contains it) and ends with the plain line "SUITE: N passed, N failed, N skipped".
 *
 *   UNIT_SUITE("option",
 *              {"a bool may be negated", test_bool_negated},
 *              {"ranges are inclusive", test_ranges});
 */

#include <CUnit/CUnit.h>

struct unit_test {
	const char *name;
	void (*fn)(void);
};

int unit_main(int argc, char **argv, const char *suite, const struct unit_test *tests, size_t count);

/* Ends the running test as skipped, with the reason printed. Return from the test right after it. */
void unit_skip(const char *why);

#define UNIT_SUITE(suite, ...)                                                                \
	int main(int argc, char **argv)                                                       \
	{                                                                                     \
		static const struct unit_test tests[] = {__VA_ARGS__};                        \
                                                                                              \
		return unit_main(argc, argv, (suite), tests, sizeof tests / sizeof tests[0]); \
	}                                                                                     \
	_Static_assert(1, "")

/* Like CU_ASSERT_EQUAL, and both values are printed when they differ. */
#define ASSERT_EQ(actual, expected)                                                                             \
	do {                                                                                                    \
		long long unit_a_ = (long long)(actual), unit_e_ = (long long)(expected);                       \
                                                                                                                \
		if (unit_a_ != unit_e_)                                                                         \
			printf("%s:%d: %s is %lld, expected %s = %lld\n", __FILE__, __LINE__, #actual, unit_a_, \
			       #expected, unit_e_);                                                             \
		CU_ASSERT(unit_a_ == unit_e_);                                                                  \
	} while (0)

#define ASSERT_STR(actual, expected)                                                                  \
	do {                                                                                          \
		const char *unit_a_ = (actual), *unit_e_ = (expected);                                \
		bool unit_same_ = unit_a_ && unit_e_ && strcmp(unit_a_, unit_e_) == 0;                \
                                                                                                      \
		if (!unit_same_)                                                                      \
			printf("%s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__, #actual, \
			       unit_a_ ? unit_a_ : "(null)", unit_e_ ? unit_e_ : "(null)");           \
		CU_ASSERT(unit_same_);                                                                \
	} while (0)

/* Ends the test at once when it fails: for what the rest of the test needs. */
#define ASSERT_FATAL(condition) CU_ASSERT_FATAL(condition)

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#endif
