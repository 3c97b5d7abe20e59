/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/iobuf.h"
#include "tests/unit/mem/fixture.h"

#define PAYLOAD 8160u

static char bytes[4 * PAYLOAD];

/* Two messages of one lcore share a block; a rest too short for the next is given up. */
static void
test_lcore_packs_messages(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT, c = XR_IOBUF_INIT;

	fixture_start(1);
	fixture_lcore_start(8);
	ASSERT_EQ(xr_iobuf_append(&a, bytes, 100), 0);
	ASSERT_EQ(xr_iobuf_append(&b, bytes, PAYLOAD - 200), 0);
	CU_ASSERT(pieces_first(&a)->block == pieces_first(&b)->block);
	CU_ASSERT(pieces_first(&a)->data + 100 == pieces_first(&b)->data);
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 1);
	ASSERT_EQ(xr_iobuf_append(&c, bytes, 101), 0); /* 100 are left */
	ASSERT_EQ(c.count_, 1);
	CU_ASSERT(pieces_first(&c)->block != pieces_first(&a)->block);
	ASSERT_EQ(xr_iobuf_append(&b, bytes, 100), 0);
	ASSERT_EQ(b.count_, 2);
	xr_iobuf_clear(&a);
	xr_iobuf_clear(&b);
	xr_iobuf_clear(&c);
	fixture_lcore_stop();
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	fixture_stop();
}

static void
test_last_piece_grows_in_place(void)
{
	for (int lcore = 0; lcore < 2; lcore++) {
		struct xr_iobuf buf = XR_IOBUF_INIT;

		fixture_start(1);
		if (lcore)
			fixture_lcore_start(8);
		for (size_t i = 0; i < PAYLOAD; i++)
			ASSERT_FATAL(xr_iobuf_append(&buf, &bytes[i], 1) == 0);
		ASSERT_EQ(buf.count_, 1);
		ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 1);
		ASSERT_EQ(xr_iobuf_append(&buf, bytes, 1), 0);
		ASSERT_EQ(buf.count_, 2);
		xr_iobuf_clear(&buf);
		fixture_lcore_stop();
		fixture_stop();
	}
}

/* A block that only the lcore still holds starts over: a warm echo needs one block for ever. */
static void
test_running_block_starts_over(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	struct xr_block *block;

	fixture_start(1);
	fixture_lcore_start(0);
	ASSERT_EQ(xr_iobuf_append(&buf, bytes, 5000), 0);
	block = pieces_first(&buf)->block;
	for (int i = 0; i < 100; i++) {
		xr_iobuf_clear(&buf);
		ASSERT_EQ(xr_iobuf_append(&buf, bytes, i % 2 ? PAYLOAD : 5000), 0);
		CU_ASSERT(buf.count_ == 1 && pieces_first(&buf)->block == block);
		CU_ASSERT(pieces_first(&buf)->data == block_payload(block));
	}
	xr_iobuf_clear(&buf);
	fixture_lcore_stop();
	fixture_stop();
}

/* Bytes that somebody else may see are never written again. */
static void
test_shared_bytes_stay(void)
{
	for (int lcore = 0; lcore < 2; lcore++) {
		struct xr_iobuf buf = XR_IOBUF_INIT, other = XR_IOBUF_INIT;
		char seen[6];

		fixture_start(1);
		if (lcore)
			fixture_lcore_start(8);
		ASSERT_EQ(xr_iobuf_append(&buf, "abc", 3), 0);
		ASSERT_EQ(xr_iobuf_share(&other, &buf), 0);
		ASSERT_EQ(xr_iobuf_append(&buf, "xyz", 3), 0);
		ASSERT_EQ(xr_iobuf_append(&other, "123", 3), 0);
		ASSERT_EQ(xr_iobuf_copy_out(&buf, 0, seen, 6), 6);
		CU_ASSERT(memcmp(seen, "abcxyz", 6) == 0);
		ASSERT_EQ(xr_iobuf_copy_out(&other, 0, seen, 6), 6);
		CU_ASSERT(memcmp(seen, "abc123", 6) == 0);
		xr_iobuf_clear(&buf);
		xr_iobuf_clear(&other);
		fixture_lcore_stop();
		fixture_stop();
	}
}

/* A cut leaves both halves in one block: neither may write behind the first one's end. */
static void
test_cut_bytes_stay(void)
{
	for (int lcore = 0; lcore < 2; lcore++) {
		struct xr_iobuf buf = XR_IOBUF_INIT, head = XR_IOBUF_INIT;
		char seen[5];

		fixture_start(1);
		if (lcore)
			fixture_lcore_start(8);
		ASSERT_EQ(xr_iobuf_append(&buf, "headtail", 8), 0);
		ASSERT_EQ(xr_iobuf_cut(&buf, 4, &head), 4);
		ASSERT_EQ(xr_iobuf_append(&head, "!", 1), 0);
		ASSERT_EQ(xr_iobuf_copy_out(&buf, 0, seen, 5), 4);
		CU_ASSERT(memcmp(seen, "tail", 4) == 0);
		ASSERT_EQ(xr_iobuf_copy_out(&head, 0, seen, 5), 5);
		CU_ASSERT(memcmp(seen, "head!", 5) == 0);
		xr_iobuf_clear(&buf);
		xr_iobuf_clear(&head);
		fixture_lcore_stop();
		fixture_stop();
	}
}

static void
test_user_memory_is_not_written(void)
{
	char mine[] = "mine, and a rest";
	struct xr_iobuf buf = XR_IOBUF_INIT;

	fixture_start(1);
	ASSERT_EQ(xr_iobuf_append_user(&buf, mine, 4, XR_MEM_KEY_NONE, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append(&buf, "XXXX", 4), 0);
	ASSERT_STR(mine, "mine, and a rest");
	ASSERT_EQ(buf.count_, 2);
	xr_iobuf_clear(&buf);
	fixture_stop();
}

static void
test_reserve_and_commit(void)
{
	for (int lcore = 0; lcore < 2; lcore++) {
		struct xr_iobuf buf = XR_IOBUF_INIT;
		char seen[8];
		size_t got;
		char *at;

		fixture_start(1);
		if (lcore)
			fixture_lcore_start(8);
		at = xr_iobuf_reserve(&buf, 100, &got);
		ASSERT_FATAL(at != NULL);
		ASSERT_EQ(got, 100);
		ASSERT_EQ(xr_iobuf_size(&buf), 0);
		memset(at, 'x', got);
		xr_iobuf_commit(&buf, 0);
		ASSERT_EQ(xr_iobuf_size(&buf), 0);
		ASSERT_EQ(buf.count_, 0);
		at = xr_iobuf_reserve(&buf, 4 * PAYLOAD, &got);
		ASSERT_FATAL(at != NULL);
		CU_ASSERT(got >= 1 && got <= PAYLOAD);
		memcpy(at, "four", 4);
		xr_iobuf_commit(&buf, 4);
		at = xr_iobuf_reserve(&buf, 4, &got);
		ASSERT_FATAL(at != NULL && got == 4);
		memcpy(at, "more", 4);
		xr_iobuf_commit(&buf, 4);
		ASSERT_EQ(xr_iobuf_size(&buf), 8);
		ASSERT_EQ(buf.count_, 1);
		ASSERT_EQ(xr_iobuf_copy_out(&buf, 0, seen, 8), 8);
		CU_ASSERT(memcmp(seen, "fourmore", 8) == 0);
		at = xr_iobuf_reserve(&buf, PAYLOAD, &got);
		ASSERT_FATAL(at != NULL);
		xr_iobuf_commit(&buf, got); /* all of it, and then nothing of a new block */
		at = xr_iobuf_reserve(&buf, 1, &got);
		ASSERT_FATAL(at != NULL);
		xr_iobuf_commit(&buf, 0);
		CU_ASSERT_PTR_NULL(xr_iobuf_reserve(&buf, 0, &got));
		ASSERT_EQ(errno, EINVAL);
		xr_iobuf_clear(&buf);
		fixture_lcore_stop();
		fixture_stop();
	}
}

UNIT_SUITE("tail", {"an lcore packs messages into one block", test_lcore_packs_messages},
	   {"the last piece grows in place", test_last_piece_grows_in_place},
	   {"the running block starts over", test_running_block_starts_over},
	   {"shared bytes stay as they are", test_shared_bytes_stay},
	   {"cut bytes stay as they are", test_cut_bytes_stay},
	   {"user memory is not written behind", test_user_memory_is_not_written},
	   {"reserve and commit", test_reserve_and_commit});
