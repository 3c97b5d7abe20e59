/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "apps/xr-perf/histogram.c"

static struct histogram g_one, g_two;

static void
clear(void)
{
	g_one = g_two = (struct histogram){0};
}

static void
test_empty(void)
{
	clear();
	ASSERT_EQ(histogram_quantile(&g_one, 0), 0);
	ASSERT_EQ(histogram_quantile(&g_one, 0.5), 0);
	ASSERT_EQ(histogram_quantile(&g_one, 1), 0);
}

/* Bucket after bucket, without a gap and without an overlap. */
static void
test_buckets_meet(void)
{
	for (unsigned bucket = 0; bucket + 1 < HISTOGRAM_BUCKETS; bucket++) {
		uint64_t top = bucket_top(bucket);

		if (bucket_of(top) != bucket || bucket_of(top + 1) != bucket + 1) {
			ASSERT_EQ(bucket_of(top), bucket);
			ASSERT_EQ(bucket_of(top + 1), bucket + 1);
			return;
		}
	}
	ASSERT_EQ(bucket_top(HISTOGRAM_BUCKETS - 1), VALUE_MAX);
}

static void
test_a_value_is_kept_to_a_tenth_of_a_percent(void)
{
	for (uint64_t value = 1; value < VALUE_MAX; value += value / 3 + 1) {
		uint64_t kept;

		clear();
		histogram_record(&g_one, value);
		histogram_record(&g_one, VALUE_MAX);
		kept = histogram_quantile(&g_one, 0.5);
		CU_ASSERT(kept >= value && (double)(kept - value) <= (double)value / 1000);
	}
}

static void
test_small_values_are_exact(void)
{
	clear();
	for (uint64_t value = 0; value < 2000; value++)
		histogram_record(&g_one, value);
	ASSERT_EQ(histogram_quantile(&g_one, 0.5), 999);
	ASSERT_EQ(histogram_quantile(&g_one, 0.999), 1997);
	ASSERT_EQ(histogram_quantile(&g_one, 1), 1999);
	ASSERT_EQ(histogram_quantile(&g_one, 0), 0);
	ASSERT_EQ(g_one.max, 1999);
	ASSERT_EQ(g_one.sum, 1999 * 2000 / 2);
}

static void
test_no_quantile_exceeds_the_largest_value(void)
{
	clear();
	histogram_record(&g_one, 1000001);
	ASSERT_EQ(histogram_quantile(&g_one, 0.5), 1000001);
	ASSERT_EQ(histogram_quantile(&g_one, 1), 1000001);
}

static void
test_values_beyond_the_range_count_as_the_largest(void)
{
	clear();
	histogram_record(&g_one, UINT64_MAX);
	histogram_record(&g_one, VALUE_MAX + 1);
	ASSERT_EQ(g_one.count, 2);
	ASSERT_EQ(g_one.buckets[HISTOGRAM_BUCKETS - 1], 2);
	CU_ASSERT(g_one.max == UINT64_MAX);
}

static void
test_a_sum_equals_one_histogram_of_all(void)
{
	static struct histogram all;

	clear();
	all = g_one;
	for (uint64_t value = 1; value < 1000000; value += value / 7 + 1) {
		histogram_record(value % 2 ? &g_one : &g_two, value);
		histogram_record(&all, value);
	}
	histogram_merge(&g_one, &g_two);
	CU_ASSERT(memcmp(&g_one, &all, sizeof all) == 0);
}

UNIT_SUITE("histogram", {"an empty one gives 0", test_empty}, {"buckets meet", test_buckets_meet},
	   {"a value is kept to a tenth of a percent", test_a_value_is_kept_to_a_tenth_of_a_percent},
	   {"small values are exact", test_small_values_are_exact},
	   {"no quantile exceeds the largest value", test_no_quantile_exceeds_the_largest_value},
	   {"values beyond the range count as the largest", test_values_beyond_the_range_count_as_the_largest},
	   {"a sum equals one histogram of all", test_a_sum_equals_one_histogram_of_all});
