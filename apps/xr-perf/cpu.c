/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu.h"

#include <time.h>

static uint64_t
read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t
cpu_wall_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

struct cpu_mark
cpu_mark_now(void)
{
	return (struct cpu_mark){.wall_ns = cpu_wall_ns(), .cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

double
cpu_usage_since(const struct cpu_mark *mark)
{
	struct cpu_mark now = cpu_mark_now();
	uint64_t wall_ns = now.wall_ns - mark->wall_ns;

	return wall_ns > 0 ? (double)(now.cpu_ns - mark->cpu_ns) / (double)wall_ns : 0;
}
