/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_HISTOGRAM_H
#define XR_PERF_HISTOGRAM_H

/*
 * Latencies in nanoseconds, in buckets that are linear within each power of two: any value is kept to a tenth of a
 * percent, recording is one add, and histograms of several lcores sum up exactly.
 */

#include <stdint.h>

#define HISTOGRAM_STEPS_LOG2 10 /* steps within a power of two */
#define HISTOGRAM_VALUE_LOG2 40 /* values up to 18 minutes; longer ones count as that */
#define HISTOGRAM_BUCKETS    ((HISTOGRAM_VALUE_LOG2 - HISTOGRAM_STEPS_LOG2 + 1) << HISTOGRAM_STEPS_LOG2)

struct histogram {
	uint64_t count, sum, max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_record(struct histogram *histogram, uint64_t value);
void histogram_merge(struct histogram *to, const struct histogram *from);

/* The value that this share of all values (0..1) does not exceed; 0 when there are none. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
