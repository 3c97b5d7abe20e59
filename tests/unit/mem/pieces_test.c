/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/pieces.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/unit.h"

/* Pieces without blocks: what matters here is their number and order. */
static int
push(struct xr_iobuf *buf, size_t mark)
{
	int status = pieces_reserve(buf, 1);

	if (status == 0) {
		pieces_end(buf)->len = mark;
		buf->count_++;
	}
	return status;
}

static size_t
pop(struct xr_iobuf *buf)
{
	size_t mark = pieces_first(buf)->len;

	buf->head_++;
	buf->count_--;
	if (buf->count_ == 0)
		pieces_release(buf);
	return mark;
}

static void
test_two_need_no_array(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	g_fail_alloc_after = 0;
	for (size_t i = 0; i < 100; i++) {
		ASSERT_EQ(push(&buf, 2 * i), 0);
		ASSERT_EQ(push(&buf, 2 * i + 1), 0);
		CU_ASSERT_PTR_NULL(buf.pieces_);
		ASSERT_EQ(pop(&buf), 2 * i);
		ASSERT_EQ(pop(&buf), 2 * i + 1);
	}
	g_fail_alloc_after = -1;
}

static void
test_order_is_kept(void)
{
	enum {
		MANY = 5000
	};
	struct xr_iobuf buf = XR_IOBUF_INIT;

	for (size_t i = 0; i < MANY; i++)
		ASSERT_FATAL(push(&buf, i) == 0);
	for (size_t i = 0; i < MANY; i++)
		CU_ASSERT(pop(&buf) == i);
	CU_ASSERT_PTR_NULL(buf.pieces_);
	ASSERT_EQ(buf.head_, 0);
}

/* A queue of bounded length must not grow without bound, however much passes through it. */
static void
test_front_is_used_again(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	size_t in = 0, out = 0;

	while (in < 5)
		ASSERT_EQ(push(&buf, in++), 0);
	for (int i = 0; i < 100000; i++) {
		ASSERT_FATAL(push(&buf, in++) == 0);
		CU_ASSERT(pop(&buf) == out++);
	}
	CU_ASSERT(pieces_cap(&buf) <= 64);
	while (buf.count_ > 0)
		CU_ASSERT(pop(&buf) == out++);
	ASSERT_EQ(in, out);
}

static void
test_lcore_reuses_arrays(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	pieces_lcore_init();
	for (int round = 0; round < 3; round++) {
		g_fail_alloc_after = round == 0 ? -1 : 0; /* warm after the first time */
		for (size_t i = 0; i < 512; i++)
			ASSERT_FATAL(push(&buf, i) == 0);
		ASSERT_EQ(pieces_cap(&buf), 512);
		while (buf.count_ > 0)
			pop(&buf);
	}
	g_fail_alloc_after = -1;
	pieces_lcore_fini();
}

static void
test_no_memory_changes_nothing(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer has its own malloc()");
		return;
	}
	ASSERT_EQ(push(&buf, 1), 0);
	ASSERT_EQ(push(&buf, 2), 0);
	g_fail_alloc_after = 0;
	ASSERT_EQ(push(&buf, 3), -ENOMEM);
	ASSERT_EQ(buf.count_, 2);
	g_fail_alloc_after = -1;
	ASSERT_EQ(push(&buf, 3), 0);
	for (size_t i = 1; i <= 3; i++)
		ASSERT_EQ(pop(&buf), i);
}

static void
test_absurd_counts_are_refused(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	ASSERT_EQ(push(&buf, 1), 0);
	ASSERT_EQ(pieces_reserve(&buf, UINT32_MAX), -ENOMEM);
	ASSERT_EQ(pieces_reserve(&buf, UINT32_MAX / 4), -ENOMEM);
	ASSERT_EQ(pop(&buf), 1);
}

static int
push_front(struct xr_iobuf *buf, size_t mark)
{
	int status = pieces_reserve_front(buf, 1);

	if (status == 0) {
		buf->head_--;
		buf->count_++;
		pieces_first(buf)->len = mark;
	}
	return status;
}

static void
test_front_grows(void)
{
	enum {
		MANY = 5000
	};
	struct xr_iobuf buf = XR_IOBUF_INIT;

	for (size_t i = 0; i < MANY; i++) {
		ASSERT_FATAL(push_front(&buf, MANY - 1 - i) == 0);
		ASSERT_FATAL(push(&buf, MANY + i) == 0);
	}
	CU_ASSERT(pieces_cap(&buf) <= 8 * MANY);
	for (size_t i = 0; i < 2 * MANY; i++)
		CU_ASSERT(pop(&buf) == i);
	CU_ASSERT_PTR_NULL(buf.pieces_);
}

/* What is put back where something left needs nothing; nor do two pieces. */
static void
test_front_needs_no_array(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	g_fail_alloc_after = 0;
	for (size_t i = 0; i < 100; i++) {
		ASSERT_EQ(push(&buf, 2), 0);
		ASSERT_EQ(push_front(&buf, 1), 0);
		ASSERT_EQ(pop(&buf), 1);
		ASSERT_EQ(push_front(&buf, 0), 0);
		ASSERT_EQ(pop(&buf), 0);
		ASSERT_EQ(pop(&buf), 2);
	}
	g_fail_alloc_after = -1;
}

/* A stack at the front, and pieces leaving at the end: bounded, however much passes through. */
static void
test_end_is_used_again(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	for (size_t i = 0; i < 5; i++)
		ASSERT_EQ(push_front(&buf, i), 0);
	for (size_t i = 5; i < 100000; i++) {
		ASSERT_FATAL(push_front(&buf, i) == 0);
		CU_ASSERT(pieces_end(&buf)[-1].len == i - 5);
		buf.count_--;
	}
	CU_ASSERT(pieces_cap(&buf) <= 64);
	while (buf.count_ > 0)
		pop(&buf);
}

static void
test_no_memory_at_the_front_changes_nothing(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer has its own malloc()");
		return;
	}
	ASSERT_EQ(push(&buf, 2), 0);
	ASSERT_EQ(push(&buf, 3), 0);
	g_fail_alloc_after = 0;
	ASSERT_EQ(push_front(&buf, 1), -ENOMEM);
	g_fail_alloc_after = -1;
	ASSERT_EQ(pieces_reserve_front(&buf, UINT32_MAX), -ENOMEM);
	ASSERT_EQ(push_front(&buf, 1), 0);
	for (size_t i = 1; i <= 3; i++)
		ASSERT_EQ(pop(&buf), i);
}

UNIT_SUITE("pieces", {"two pieces need no array", test_two_need_no_array}, {"order is kept", test_order_is_kept},
	   {"room at the front is used again", test_front_is_used_again},
	   {"an lcore reuses arrays", test_lcore_reuses_arrays},
	   {"no memory changes nothing", test_no_memory_changes_nothing},
	   {"absurd counts are refused", test_absurd_counts_are_refused}, {"the front grows", test_front_grows},
	   {"pieces in front that need no array", test_front_needs_no_array},
	   {"room at the end is used again", test_end_is_used_again},
	   {"no memory at the front changes nothing", test_no_memory_at_the_front_changes_nothing});
