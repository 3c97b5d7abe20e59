/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

#define VALUE_MAX ((UINT64_C(1) << HISTOGRAM_VALUE_LOG2) - 1)

/* By how much a value is shifted so that HISTOGRAM_STEPS_LOG2 + 1 bits of it are left. */
static unsigned
shift_of(uint64_t value)
{
	unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1);

	return bits > HISTOGRAM_STEPS_LOG2 + 1 ? bits - HISTOGRAM_STEPS_LOG2 - 1 : 0;
}

static unsigned
bucket_of(uint64_t value)
{
	unsigned shift = shift_of(value);

	return (shift << HISTOGRAM_STEPS_LOG2) + (unsigned)(value >> shift);
}

/* The largest value of a bucket. */
static uint64_t
bucket_top(unsigned bucket)
{
	unsigned shift = bucket >> HISTOGRAM_STEPS_LOG2;
	uint64_t step;

	/* The first two powers share shift 0: their buckets hold one value each. */
	shift = shift > 0 ? shift - 1 : 0;
	step = bucket - (shift << HISTOGRAM_STEPS_LOG2);
	return ((step + 1) << shift) - 1;
}

void
histogram_record(struct histogram *histogram, uint64_t value)
{
	histogram->count++;
	histogram->sum += value;
	if (value > histogram->max)
		histogram->max = value;
	histogram->buckets[bucket_of(value < VALUE_MAX ? value : VALUE_MAX)]++;
}

void
histogram_merge(struct histogram *to, const struct histogram *from)
{
	to->count += from->count;
	to->sum += from->sum;
	if (from->max > to->max)
		to->max = from->max;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
}

uint64_t
histogram_quantile(const struct histogram *histogram, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)histogram->count + 0.5), seen = 0;

	if (histogram->count == 0)
		return 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= wanted && seen > 0) {
			uint64_t top = bucket_top(i);

			return top < histogram->max ? top : histogram->max;
		}
	}
	return histogram->max;
}
