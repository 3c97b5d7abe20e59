/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MEM_IOBUF_FIXTURE_H
#define TESTS_MEM_IOBUF_FIXTURE_H

/* What the tests of iobufs share: bytes to put into them, the memory floor around an lcore, and a look inside. */

#include "mem/iobuf.h"
#include "tests/unit/mem/fixture.h"

#define PAYLOAD 8160u /* of a block of the default type */

static char pattern[64 * 1024];

/* The calling thread is an lcore. */
static inline void
start(unsigned max_regions)
{
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (char)(i * 31 + (i >> 8));
	fixture_start(max_regions);
	fixture_lcore_start(16);
}

/* Everything must be back. */
static inline void
stop(void)
{
	fixture_lcore_stop();
	for (unsigned type = 0; type < BLOCK_TYPES; type++)
		ASSERT_EQ(fixture_in_use(type), 0);
	fixture_stop();
}

static inline bool
holds(const struct xr_iobuf *buf, const void *bytes, size_t len)
{
	static char seen[1 << 20];

	return xr_iobuf_size(buf) == len && xr_iobuf_copy_out(buf, 0, seen, sizeof seen) == len &&
	       memcmp(seen, bytes, len) == 0;
}

/* An xr_free_fn, and how often it was called. */
static unsigned g_frees;

static inline void
count_free(void *data, void *arg)
{
	(void)data;
	(void)arg;
	g_frees++;
}

#endif
