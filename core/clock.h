/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

/* The monotonic clock in microseconds. The loop reads it once a turn; everything else uses the turn's time. */

#include <stdint.h>
#include <time.h>

static inline uint64_t
clock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

#endif
