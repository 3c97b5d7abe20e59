/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_CPU_H
#define XR_PERF_CPU_H

/* CPU time of this process over a span of time, in processors: 1.0 is one processor busy all the while. */

#include <stdint.h>

struct cpu_mark {
	uint64_t wall_ns, cpu_ns;
};

/* CLOCK_MONOTONIC in nanoseconds: what latencies are measured with. */
uint64_t cpu_wall_ns(void);

struct cpu_mark cpu_mark_now(void);
double cpu_usage_since(const struct cpu_mark *mark);

#endif
