/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mem/iobuf_fixture.h"
#include <pthread.h>

static void
test_cut_and_move(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_cut(&a, 10, &b), 0);
	ASSERT_EQ(xr_iobuf_append(&a, pattern, 30000), 0);
	ASSERT_EQ(xr_iobuf_cut(&a, 0, &b), 0);
	ASSERT_EQ(xr_iobuf_cut(&a, 12345, &b), 12345);
	CU_ASSERT(holds(&b, pattern, 12345));
	CU_ASSERT(holds(&a, pattern + 12345, 30000 - 12345));
	ASSERT_EQ(xr_iobuf_cut(&a, SIZE_MAX, &b), 30000 - 12345);
	CU_ASSERT(holds(&b, pattern, 30000));
	ASSERT_EQ(b.count_, 4); /* the halves of the piece that was cut are one again */
	ASSERT_EQ(xr_iobuf_size(&a), 0);
	ASSERT_EQ(xr_iobuf_move(&a, &b), 0);
	CU_ASSERT(holds(&a, pattern, 30000));
	ASSERT_EQ(xr_iobuf_size(&b), 0);
	ASSERT_EQ(xr_iobuf_append(&b, "x", 1), 0);
	ASSERT_EQ(xr_iobuf_move(&b, &a), 0);
	ASSERT_EQ(xr_iobuf_drop(&b, 1), 1);
	CU_ASSERT(holds(&b, pattern, 30000));
	xr_iobuf_clear(&b);
	stop();
}

static void
test_with_itself(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, parts = XR_IOBUF_INIT;
	char twice[20000];

	start(1);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 10000), 0);
	ASSERT_EQ(xr_iobuf_move(&buf, &buf), 0);
	ASSERT_EQ(xr_iobuf_cut(&buf, 5, &buf), 0);
	CU_ASSERT(holds(&buf, pattern, 10000));
	ASSERT_EQ(xr_iobuf_share(&buf, &buf), 0);
	memcpy(twice, pattern, 10000);
	memcpy(twice + 10000, pattern, 10000);
	CU_ASSERT(holds(&buf, twice, 20000));
	CU_ASSERT(xr_iobuf_equal(&buf, &buf));
	xr_iobuf_clear(&buf);
	/* "23" "01" of one block, where the end of the last piece meets the start of the first. */
	ASSERT_EQ(xr_iobuf_append(&parts, "0123", 4), 0);
	ASSERT_EQ(xr_iobuf_cut(&parts, 2, &buf), 2);
	ASSERT_EQ(xr_iobuf_move(&parts, &buf), 0);
	ASSERT_EQ(xr_iobuf_share(&parts, &parts), 0);
	CU_ASSERT(holds(&parts, "23012301", 8));
	xr_iobuf_clear(&parts);
	stop();
}

struct crossing {
	struct xr_iobuf buf;
	bool ok;
};

static void *
look_and_clear(void *arg)
{
	struct crossing *crossing = arg;

	fixture_lcore_start(4);
	crossing->ok = true;
	for (int i = 0; i < 1000; i++) {
		struct xr_iobuf copy = XR_IOBUF_INIT;
		char seen[16];

		crossing->ok &= xr_iobuf_share(&copy, &crossing->buf) == 0;
		crossing->ok &= xr_iobuf_copy_out(&copy, 9990, seen, 16) == 10;
		crossing->ok &= xr_iobuf_append(&copy, "tail", 4) == 0;
		xr_iobuf_clear(&copy);
	}
	xr_iobuf_clear(&crossing->buf);
	fixture_lcore_stop();
	return NULL;
}

/* The same blocks in iobufs of two threads, each holding, reading and dropping as it likes. */
static void
test_blocks_are_shared_between_threads(void)
{
	struct crossing crossing = {.buf = XR_IOBUF_INIT};
	struct xr_iobuf mine = XR_IOBUF_INIT;
	pthread_t thread;

	start(1);
	g_frees = 0;
	ASSERT_EQ(xr_iobuf_append(&mine, pattern, 9990), 0);
	ASSERT_EQ(xr_iobuf_append_user(&mine, pattern, 10, 0, count_free, NULL), 0);
	ASSERT_EQ(xr_iobuf_share(&crossing.buf, &mine), 0);
	ASSERT_FATAL(pthread_create(&thread, NULL, look_and_clear, &crossing) == 0);
	for (int i = 0; i < 1000; i++) {
		struct xr_iobuf copy = XR_IOBUF_INIT;

		CU_ASSERT(xr_iobuf_share(&copy, &mine) == 0);
		CU_ASSERT(xr_iobuf_append(&copy, "mine", 4) == 0);
		xr_iobuf_clear(&copy);
	}
	xr_iobuf_clear(&mine);
	pthread_join(thread, NULL);
	CU_ASSERT(crossing.ok);
	ASSERT_EQ(g_frees, 1);
	stop();
}

static void
test_move_front(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_move_front(&a, &b), 0);
	ASSERT_EQ(xr_iobuf_append(&a, pattern + 100, 20000), 0);
	ASSERT_EQ(xr_iobuf_move_front(&a, &a), 0);
	ASSERT_EQ(xr_iobuf_move_front(&a, &b), 0);
	CU_ASSERT(holds(&a, pattern + 100, 20000));
	ASSERT_EQ(xr_iobuf_append(&b, pattern, 100), 0);
	ASSERT_EQ(xr_iobuf_move_front(&a, &b), 0);
	CU_ASSERT(holds(&a, pattern, 20100));
	ASSERT_EQ(xr_iobuf_size(&b), 0);
	ASSERT_EQ(xr_iobuf_move_front(&b, &a), 0);
	CU_ASSERT(holds(&b, pattern, 20100));
	ASSERT_EQ(xr_iobuf_size(&a), 0);
	xr_iobuf_clear(&b);
	stop();
}

/* Who reads a header and puts it back has what was there before, in as many pieces. */
static void
test_put_back(void)
{
	struct xr_iobuf in = XR_IOBUF_INIT, header = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_append(&in, pattern, 1000), 0);
	ASSERT_EQ(xr_iobuf_cut(&in, 12, &header), 12);
	ASSERT_EQ(xr_iobuf_move_front(&in, &header), 0);
	CU_ASSERT(holds(&in, pattern, 1000));
	ASSERT_EQ(in.count_, 1);
	xr_iobuf_clear(&in);
	stop();
}

static void
test_many_pieces_to_the_front(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;

	start(1);
	g_frees = 0;
	for (size_t i = 0; i < 100; i++) {
		ASSERT_FATAL(xr_iobuf_append_user(&b, pattern + i, 1, 0, count_free, NULL) == 0);
		ASSERT_FATAL(xr_iobuf_append_user(&a, pattern + 100 + i, 1, 0, count_free, NULL) == 0);
	}
	ASSERT_EQ(xr_iobuf_move_front(&a, &b), 0);
	CU_ASSERT(holds(&a, pattern, 200));
	CU_ASSERT_PTR_NULL(b.pieces_);
	ASSERT_EQ(g_frees, 0);
	xr_iobuf_clear(&a);
	ASSERT_EQ(g_frees, 200);
	stop();
}

static void
test_share_part(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_share_part(&b, &a, 0, 10), 0);
	ASSERT_EQ(xr_iobuf_append(&a, pattern, 30000), 0);
	ASSERT_EQ(xr_iobuf_share_part(&b, &a, 0, 0), 0);
	ASSERT_EQ(xr_iobuf_share_part(&b, &a, 30000, 1), 0);
	ASSERT_EQ(xr_iobuf_share_part(&b, &a, SIZE_MAX, SIZE_MAX), 0);
	CU_ASSERT(xr_iobuf_size(&b) == 0 && !b.pieces_);
	for (size_t at = 0; at < 30000; at += 1000)
		ASSERT_EQ(xr_iobuf_share_part(&b, &a, at, 1000), 1000);
	CU_ASSERT(holds(&b, pattern, 30000));
	ASSERT_EQ(b.count_, a.count_); /* parts side by side are one again */
	xr_iobuf_clear(&b);
	ASSERT_EQ(xr_iobuf_share_part(&b, &a, PAYLOAD - 1, 2), 2);
	CU_ASSERT(holds(&b, pattern + PAYLOAD - 1, 2));
	ASSERT_EQ(b.count_, 2);
	ASSERT_EQ(xr_iobuf_share_part(&b, &a, 29990, SIZE_MAX), 10);
	ASSERT_EQ(xr_iobuf_drop(&b, 2), 2);
	CU_ASSERT(holds(&b, pattern + 29990, 10));
	CU_ASSERT(holds(&a, pattern, 30000));
	xr_iobuf_clear(&a);
	CU_ASSERT(holds(&b, pattern + 29990, 10));
	xr_iobuf_clear(&b);
	stop();
}

static void
test_share_part_with_itself(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, parts = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_append(&parts, "0123", 4), 0);
	ASSERT_EQ(xr_iobuf_cut(&parts, 2, &buf), 2);
	ASSERT_EQ(xr_iobuf_move(&parts, &buf), 0);
	ASSERT_EQ(xr_iobuf_share_part(&parts, &parts, 0, 3), 3);
	CU_ASSERT(holds(&parts, "2301230", 7));
	xr_iobuf_clear(&parts);
	stop();
}

UNIT_SUITE("iobuf_move", {"cut and move", test_cut_and_move}, {"an iobuf and itself", test_with_itself},
	   {"blocks are shared between threads", test_blocks_are_shared_between_threads},
	   {"move to the front", test_move_front}, {"what was cut can be put back", test_put_back},
	   {"many pieces to the front", test_many_pieces_to_the_front}, {"a part shared", test_share_part},
	   {"a part shared with itself", test_share_part_with_itself});
