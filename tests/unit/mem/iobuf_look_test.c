/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mem/iobuf_fixture.h"

static void
test_looking(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, other = XR_IOBUF_INIT;
	struct iovec iov[8];
	char seen[100];

	start(1);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, 8), 0);
	CU_ASSERT(xr_iobuf_equal(&buf, &other));
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 10, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 10, 20, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 30, 30, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, 8), 3);
	ASSERT_EQ(iov[2].iov_len, 30);
	CU_ASSERT(iov[2].iov_base == pattern + 30);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 10, iov, 1), 1);
	ASSERT_EQ(iov[0].iov_len, 20);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 29, iov, 8), 2);
	ASSERT_EQ(iov[0].iov_len, 1);
	CU_ASSERT(iov[0].iov_base == pattern + 29);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 60, iov, 8), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, SIZE_MAX, iov, 8), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, 0), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, -1), 0);
	ASSERT_EQ(xr_iobuf_copy_out(&buf, 55, seen, 100), 5);
	ASSERT_EQ(xr_iobuf_copy_out(&buf, 60, seen, 100), 0);
	ASSERT_EQ(xr_iobuf_copy_out(&buf, 5, seen, 0), 0);
	ASSERT_EQ(xr_iobuf_append(&other, pattern, 60), 0);
	CU_ASSERT(xr_iobuf_equal(&buf, &other));
	xr_iobuf_drop(&other, 1);
	CU_ASSERT(!xr_iobuf_equal(&buf, &other));
	ASSERT_EQ(xr_iobuf_append(&other, "?", 1), 0);
	CU_ASSERT(!xr_iobuf_equal(&buf, &other));
	xr_iobuf_clear(&buf);
	xr_iobuf_clear(&other);
	stop();
}

/* A piece for each byte of the text. */
static void
append_each(struct xr_iobuf *buf, char *text)
{
	for (; *text; text++)
		ASSERT_FATAL(xr_iobuf_append_user(buf, text, 1, XR_MEM_KEY_NONE, NULL, NULL) == 0);
}

static void
test_peek(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	char scratch[60];

	start(1);
	CU_ASSERT_PTR_NULL(xr_iobuf_peek(&buf, 0, 1, scratch));
	CU_ASSERT(xr_iobuf_peek(&buf, 0, 0, scratch) == scratch);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 10, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 10, 20, 0, NULL, NULL), 0);
	CU_ASSERT(xr_iobuf_peek(&buf, 0, 10, NULL) == pattern);
	CU_ASSERT(xr_iobuf_peek(&buf, 3, 7, NULL) == pattern + 3);
	CU_ASSERT(xr_iobuf_peek(&buf, 10, 20, scratch) == pattern + 10);
	CU_ASSERT(xr_iobuf_peek(&buf, 29, 1, scratch) == pattern + 29);
	CU_ASSERT_PTR_NULL(xr_iobuf_peek(&buf, 0, 11, NULL));
	memset(scratch, 0, sizeof scratch);
	CU_ASSERT(xr_iobuf_peek(&buf, 0, 11, scratch) == scratch);
	CU_ASSERT(memcmp(scratch, pattern, 11) == 0 && scratch[11] == 0);
	CU_ASSERT(xr_iobuf_peek(&buf, 5, 8, scratch) == scratch);
	CU_ASSERT(memcmp(scratch, pattern + 5, 8) == 0);
	CU_ASSERT(xr_iobuf_peek(&buf, 9, 21, scratch) == scratch);
	CU_ASSERT(memcmp(scratch, pattern + 9, 21) == 0);
	CU_ASSERT_PTR_NULL(xr_iobuf_peek(&buf, 0, 31, scratch));
	CU_ASSERT_PTR_NULL(xr_iobuf_peek(&buf, 30, 1, scratch));
	CU_ASSERT_PTR_NULL(xr_iobuf_peek(&buf, 31, 0, scratch));
	CU_ASSERT_PTR_NULL(xr_iobuf_peek(&buf, SIZE_MAX, 2, scratch));
	CU_ASSERT_PTR_NULL(xr_iobuf_peek(&buf, 2, SIZE_MAX, scratch));
	ASSERT_EQ(xr_iobuf_size(&buf), 30);
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_iterate(void)
{
	struct xr_iobuf_cursor cursor = {0}, other = {0};
	struct xr_iobuf buf = XR_IOBUF_INIT;
	struct iovec piece;

	start(1);
	CU_ASSERT(!xr_iobuf_next(&buf, &cursor, &piece));
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 10, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 10, 20, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 30, 30, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_drop(&buf, 15), 15);
	CU_ASSERT(xr_iobuf_next(&buf, &cursor, &piece) && piece.iov_base == pattern + 15 && piece.iov_len == 15);
	CU_ASSERT(xr_iobuf_next(&buf, &other, &piece) && piece.iov_base == pattern + 15 && piece.iov_len == 15);
	CU_ASSERT(xr_iobuf_next(&buf, &cursor, &piece) && piece.iov_base == pattern + 30 && piece.iov_len == 30);
	CU_ASSERT(!xr_iobuf_next(&buf, &cursor, &piece));
	CU_ASSERT(!xr_iobuf_next(&buf, &cursor, &piece));
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_find(void)
{
	static char text[] = "GET / HTTP\r\n\r\r\n\r\nbody\0\xff";
	struct xr_iobuf whole = XR_IOBUF_INIT, cut = XR_IOBUF_INIT;
	const struct xr_iobuf *bufs[] = {&whole, &cut};

	start(1);
	ASSERT_EQ(xr_iobuf_find(&whole, 0, "x", 1), -ENOENT);
	ASSERT_EQ(xr_iobuf_append(&whole, text, sizeof text - 1), 0);
	append_each(&cut, text);
	ASSERT_EQ(xr_iobuf_append(&cut, "\0\xff", 2), 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "G", 1), 0);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 1, "G", 1), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "\r\n", 2), 10);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 10, "\r\n", 2), 10);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 11, "\r\n", 2), 13);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "\r\n\r\n", 4), 13);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "\r\n\r\n", 5), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, text, sizeof text - 1), 0);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, text, sizeof text), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "\0", 1), 21);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 22, "\xff", 1), 22);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "\xff\xff", 2), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 23, "\xff", 1), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 24, "G", 1), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], SIZE_MAX, "G", 1), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "G", SIZE_MAX), -ENOENT);
		ASSERT_EQ(xr_iobuf_find(bufs[i], 0, "G", 0), -EINVAL);
	}
	xr_iobuf_clear(&whole);
	xr_iobuf_clear(&cut);
	stop();
}

static void
test_equal_bytes(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	char text[] = "equal";

	start(1);
	CU_ASSERT(xr_iobuf_equal_bytes(&buf, NULL, 0));
	CU_ASSERT(!xr_iobuf_equal_bytes(&buf, "e", 1));
	append_each(&buf, text);
	CU_ASSERT(xr_iobuf_equal_bytes(&buf, "equal", 5));
	CU_ASSERT(!xr_iobuf_equal_bytes(&buf, "equal", 4));
	CU_ASSERT(!xr_iobuf_equal_bytes(&buf, "equal", 6));
	CU_ASSERT(!xr_iobuf_equal_bytes(&buf, "Equal", 5));
	CU_ASSERT(!xr_iobuf_equal_bytes(&buf, "equaL", 5));
	CU_ASSERT(!xr_iobuf_equal_bytes(&buf, "", 0));
	xr_iobuf_clear(&buf);
	stop();
}

UNIT_SUITE("iobuf_look", {"looking at the bytes", test_looking}, {"peek", test_peek}, {"piece by piece", test_iterate},
	   {"find bytes", test_find}, {"equal to plain memory", test_equal_bytes});
