/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/memlock.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <sys/resource.h>

#define KIB ((size_t)1 << 10)

int __real_getrlimit(__rlimit_resource_t resource, struct rlimit *limit);
int __wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *limit);

static rlim_t g_limit;
static bool g_limit_unknown;

int
__wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	if (resource != RLIMIT_MEMLOCK)
		return __real_getrlimit(resource, limit);
	*limit = (struct rlimit){g_limit, RLIM_INFINITY};
	return g_limit_unknown ? -1 : 0;
}

static void
test_hint(void)
{
	g_limit = 64 * KIB;
	ASSERT_STR(memlock_hint(64 * KIB, -ENOMEM), "");
	ASSERT_STR(
		memlock_hint(64 * KIB + 1, -ENOMEM),
		"; this process may lock 64 KiB of memory (ulimit -l, systemd's LimitMEMLOCK=) and needs 65 at least");
	CU_ASSERT_PTR_NOT_NULL(strstr(memlock_hint(128 * KIB, -EPERM), "may lock 64 KiB"));
	ASSERT_STR(memlock_hint(128 * KIB, -EIO), "");
}

static void
test_what_is_pinned_counts(void)
{
	g_limit = 64 * KIB;
	memlock_add(60 * KIB);
	CU_ASSERT_PTR_NOT_NULL(strstr(memlock_hint(8 * KIB, -ENOMEM), "needs 68 at least"));
	memlock_sub(60 * KIB);
	ASSERT_STR(memlock_hint(8 * KIB, -ENOMEM), "");
}

static void
test_no_limit(void)
{
	g_limit = RLIM_INFINITY;
	ASSERT_STR(memlock_hint(SIZE_MAX / 2, -ENOMEM), "");
	g_limit = 0;
	g_limit_unknown = true;
	ASSERT_STR(memlock_hint(SIZE_MAX / 2, -ENOMEM), "");
	g_limit_unknown = false;
}

/* The one line that an operator needs, with what both devices pin; and what is given back counts no more. */
static void
test_registration_refused(void)
{
	struct fake_device other = fake_device("fake1", "10.0.0.2");

	rdma_card(NULL);
	fake_device_add(&other);
	g_limit = 1024 * KIB;
	fake_fail("reg_mr", 2, ENOMEM);
	net_up(1, NULL);
	CU_ASSERT_TRUE(
		net_logged("RDMA device fake1 is not used: registering 32 MiB of memory: Cannot allocate memory; "
			   "this process may lock 1024 KiB of memory (ulimit -l, systemd's LimitMEMLOCK=) and "
			   "needs 65536 at least\n"));
	rdma_down();
	ASSERT_STR(memlock_hint(1024 * KIB, -ENOMEM), "");
}

UNIT_SUITE("memlock", {"the limit is named when it is in the way", test_hint},
	   {"what is pinned already counts", test_what_is_pinned_counts},
	   {"without a limit it is something else", test_no_limit},
	   {"a registration that is refused", test_registration_refused});
