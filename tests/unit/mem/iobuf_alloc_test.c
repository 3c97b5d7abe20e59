/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fail_alloc.h"
#include "tests/unit/mem/iobuf_fixture.h"

/* Every call that needs memory, with the n-th allocation failing: it changes nothing, or it did what it should. */
static unsigned
run_short_of_memory(long fail_after)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;
	unsigned failures = 0;
	size_t size_a = 0, size_b = 0, got;

	g_frees = 0;
	g_fail_alloc_after = fail_after;
	for (int i = 0; i < 20; i++) {
		int status = xr_iobuf_append_user(&a, pattern, 3, 0, count_free, NULL);

		failures += status != 0;
		size_a += status == 0 ? 3 : 0;
		CU_ASSERT(xr_iobuf_size(&a) == size_a);
	}
	for (int i = 0; i < 20; i++) {
		int status = xr_iobuf_share(&b, &a);

		failures += status != 0;
		size_b += status == 0 ? size_a : 0;
		CU_ASSERT(xr_iobuf_size(&b) == size_b && xr_iobuf_size(&a) == size_a);
	}
	got = xr_iobuf_cut(&b, size_b / 2, &a);
	failures += got != size_b / 2;
	CU_ASSERT(xr_iobuf_size(&a) == size_a + got && xr_iobuf_size(&b) == size_b - got);
	size_a += got;
	size_b -= got;
	if (xr_iobuf_append(&b, pattern, 20000) == 0)
		size_b += 20000;
	else
		failures++;
	CU_ASSERT(xr_iobuf_size(&b) == size_b);
	if (xr_iobuf_move(&a, &b) == 0) {
		CU_ASSERT(xr_iobuf_size(&a) == size_a + size_b && xr_iobuf_size(&b) == 0);
	} else {
		CU_ASSERT(xr_iobuf_size(&a) == size_a && xr_iobuf_size(&b) == size_b);
		failures++;
	}
	g_fail_alloc_after = -1;
	CU_ASSERT(g_frees == 0 || size_a == 0);
	xr_iobuf_clear(&a);
	xr_iobuf_clear(&b);
	CU_ASSERT(g_frees <= 20);
	return failures;
}

static void
test_any_allocation_may_fail(void)
{
	unsigned n = 0, failed = 0, failures;

	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer has its own malloc()");
		return;
	}
	start(1);
	ASSERT_EQ(pool_grow(pool_of(0, BLOCK_DEFAULT)), 0);
	fixture_lcore_stop(); /* without the lcore's caches every list and descriptor is an allocation */
	do {
		failures = run_short_of_memory(n++);
		failed += failures > 0;
	} while (failures > 0 && n < 1000);
	ASSERT_EQ(failures, 0);
	CU_ASSERT(failed >= 20);
	fixture_stop();
}

UNIT_SUITE("iobuf_alloc", {"any allocation may fail", test_any_allocation_may_fail});
