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

UNIT_SUITE("iobuf_look", {"looking at the bytes", test_looking});
