/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mem/fixture.h"

#include "apps/xr-perf/payload.c"

static void
with_payload(size_t slice_size, void (*check)(const struct payload *payload))
{
	struct payload payload;

	fixture_start(4);
	fixture_lcore_start(16);
	ASSERT_EQ(payload_init(&payload, slice_size, 1), 0);
	check(&payload);
	payload_fini(&payload);
	fixture_lcore_stop();
	fixture_stop();
}

/* Slices are as long as asked for, the same each time, and differ from one another. */
static void
check_slices(const struct payload *payload)
{
	struct xr_iobuf slices[64] = {XR_IOBUF_INIT};

	for (unsigned i = 0; i < 64; i++) {
		ASSERT_EQ(payload_slice(payload, i, &slices[i]), 0);
		ASSERT_EQ(xr_iobuf_size(&slices[i]), payload->slice_size);
		for (unsigned other = 0; other < i; other++)
			CU_ASSERT(!xr_iobuf_equal(&slices[i], &slices[other]));
	}
	for (unsigned i = 0; i < 64; i++) {
		struct xr_iobuf again = XR_IOBUF_INIT;

		ASSERT_EQ(payload_slice(payload, i, &again), 0);
		CU_ASSERT(xr_iobuf_equal(&again, &slices[i]));
		xr_iobuf_clear(&again);
		xr_iobuf_clear(&slices[i]);
	}
}

static void
test_slices_of_a_few_bytes(void)
{
	with_payload(16, check_slices);
}

static void
test_slices_over_many_blocks(void)
{
	with_payload(100000, check_slices);
}

static void
check_empty(const struct payload *payload)
{
	struct xr_iobuf slice = XR_IOBUF_INIT;

	ASSERT_EQ(payload_slice(payload, 3, &slice), 0);
	ASSERT_EQ(xr_iobuf_size(&slice), 0);
}

static void
test_slices_of_nothing(void)
{
	with_payload(0, check_empty);
}

/* Many slices cost references, not memory. */
static void
check_memory(const struct payload *payload)
{
	struct xr_iobuf slices[64] = {XR_IOBUF_INIT};
	size_t before = fixture_in_use(BLOCK_DEFAULT);

	for (unsigned i = 0; i < 64; i++)
		ASSERT_EQ(payload_slice(payload, i, &slices[i]), 0);
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), before);
	for (unsigned i = 0; i < 64; i++)
		xr_iobuf_clear(&slices[i]);
}

static void
test_slices_share_their_blocks(void)
{
	with_payload(100000, check_memory);
}

static void
test_a_full_pool_is_an_error(void)
{
	struct payload payload;

	fixture_start(1);
	fixture_lcore_start(16);
	ASSERT_EQ(payload_init(&payload, FIXTURE_REGION_BYTES * 2, 1), -ENOMEM);
	fixture_lcore_stop();
	fixture_stop();
}

UNIT_SUITE("payload", {"slices of a few bytes", test_slices_of_a_few_bytes},
	   {"slices over many blocks", test_slices_over_many_blocks}, {"slices of nothing", test_slices_of_nothing},
	   {"slices share their blocks", test_slices_share_their_blocks},
	   {"a full pool is an error", test_a_full_pool_is_an_error});
