/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mem/fixture.h"

#include "apps/xr-perf/own_memory.c"
#include "apps/xr-perf/payload.c"

static void
with_payload_in(enum payload_memory memory, size_t slice_size, void (*check)(struct payload *payload))
{
	struct payload payload;

	fixture_start(4);
	user_ranges_init();
	fixture_lcore_start(16);
	ASSERT_EQ(payload_init(&payload, memory, slice_size, 1), 0);
	check(&payload);
	ASSERT_EQ(payload_fini(&payload), 0);
	fixture_lcore_stop();
	user_ranges_fini();
	fixture_stop();
}

static void
with_payload(size_t slice_size, void (*check)(struct payload *payload))
{
	with_payload_in(PAYLOAD_POOL, slice_size, check);
}

/* Slices are as long as asked for, the same each time, and differ from one another. */
static void
check_slices(struct payload *payload)
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
check_empty(struct payload *payload)
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
check_memory(struct payload *payload)
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
	ASSERT_EQ(payload_init(&payload, PAYLOAD_POOL, FIXTURE_REGION_BYTES * 2, 1), -ENOMEM);
	fixture_lcore_stop();
	fixture_stop();
}

/* ---- memory of the program's own ---- */

/* It lies in the middle of what is registered, takes nothing of the pool, and every slice comes back once. */
static void
check_own(struct payload *payload)
{
	struct own_memory *own = &payload->own;
	xr_mem_key key = XR_MEM_KEY_NONE;

	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	CU_ASSERT(own->bytes > own->map && own->bytes + 100000 < own->map + own->map_bytes);
	ASSERT_EQ(xr_mem_find(own->bytes, 100000, &key), own->key == XR_MEM_KEY_NONE ? -ENOENT : 0);
	ASSERT_EQ(key, own->key);
	check_slices(payload);
	ASSERT_EQ(own->lent, 128);
	ASSERT_EQ(own->returned, 128);
}

static void
check_registered(struct payload *payload)
{
	CU_ASSERT(payload->own.key != XR_MEM_KEY_NONE);
	check_own(payload);
}

static void
test_registered_memory(void)
{
	with_payload_in(PAYLOAD_REGISTERED, 100000, check_registered);
}

static void
check_plain(struct payload *payload)
{
	ASSERT_EQ(payload->own.key, XR_MEM_KEY_NONE);
	check_own(payload);
}

static void
test_plain_memory(void)
{
	with_payload_in(PAYLOAD_PLAIN, 100000, check_plain);
}

static void
check_held_back(struct payload *payload)
{
	struct xr_iobuf slice = XR_IOBUF_INIT;

	ASSERT_EQ(payload_slice(payload, 3, &slice), 0);
	ASSERT_EQ(payload_fini(payload), -EBUSY);
	xr_iobuf_clear(&slice);
}

static void
test_memory_held_back(void)
{
	with_payload_in(PAYLOAD_REGISTERED, 100, check_held_back);
	with_payload_in(PAYLOAD_PLAIN, 100, check_held_back);
}

UNIT_SUITE("payload", {"slices of a few bytes", test_slices_of_a_few_bytes},
	   {"slices over many blocks", test_slices_over_many_blocks}, {"slices of nothing", test_slices_of_nothing},
	   {"slices share their blocks", test_slices_share_their_blocks},
	   {"a full pool is an error", test_a_full_pool_is_an_error},
	   {"registered memory of the program's own", test_registered_memory},
	   {"memory that is not registered", test_plain_memory}, {"memory that is held back", test_memory_held_back});
