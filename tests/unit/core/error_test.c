/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <xrdma/error.h>

static void
test_errno(void)
{
	ASSERT_STR(xr_strerror(EINVAL), "Invalid argument");
	ASSERT_STR(xr_strerror(-EINVAL), "Invalid argument");
	ASSERT_STR(xr_strerror(0), "Success");
}

static void
test_own_numbers(void)
{
	ASSERT_STR(xr_strerror(-XR_ERDMA), "RDMA connection failed");
	ASSERT_STR(xr_strerror(XR_ERDMAMEM), "memory not registered for RDMA");
	ASSERT_EQ(XR_ERDMA, 3001);
	ASSERT_EQ(XR_ERDMAMEM, 3002);
}

static void
test_unknown(void)
{
	static const int unknown[] = {3000, 3003, -99999, INT_MAX, INT_MIN, -INT_MAX};

	for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
		ASSERT_STR(xr_strerror(unknown[i]), "unknown error");
}

UNIT_SUITE("error", {"errno's numbers, of either sign", test_errno}, {"the library's own numbers", test_own_numbers},
	   {"an unknown number has a text too", test_unknown});
