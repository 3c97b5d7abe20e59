/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_MEMORY_H
#define TESTS_FUZZ_MEMORY_H

/* A pool of one region for each block type, for targets that hold bytes in iobufs. */

#include "mem/pool.h"
#include "mem/region.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_REGION_BYTES ((size_t)2 << 20)

/* At the first input of the process; true then. */
static inline bool
fuzz_start_memory(void)
{
	struct region_config region = {.slot_bytes = FUZZ_REGION_BYTES, .slots = BLOCK_TYPES};
	struct pool_config pool = {
		.nodes = 1,
		.initial_bytes = FUZZ_REGION_BYTES,
		.increase_bytes = FUZZ_REGION_BYTES,
		.max_regions = 1,
	};
	static bool started;

	if (started)
		return false;
	started = true;
	FUZZ_ASSERT(region_init(&region) == 0 && pool_init(&pool) == 0);
	return true;
}

#endif
