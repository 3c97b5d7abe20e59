/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/memlock.h"
#include "tests/unit/core/log_capture.h"
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

static bool g_lifted;

static bool
is_lifted(void)
{
	return g_lifted;
}

/* Whatever the tests may: what counts is said here. */
static void
limit_to(rlim_t bytes)
{
	g_memlock_lifted = is_lifted;
	g_limit = bytes;
}

#define PLACES "(ulimit -l or /etc/security/limits.conf, systemd's LimitMEMLOCK=, a container's --ulimit memlock=)"

static void
test_hint(void)
{
	limit_to(64 * KIB);
	ASSERT_STR(memlock_hint(64 * KIB, -ENOMEM), "");
	ASSERT_STR(memlock_hint(64 * KIB + 1, -ENOMEM),
		   "; this process may lock 64 KiB of memory " PLACES " and needs 65 at least");
	CU_ASSERT_PTR_NOT_NULL(strstr(memlock_hint(128 * KIB, -EPERM), "may lock 64 KiB"));
	ASSERT_STR(memlock_hint(128 * KIB, -EIO), "");
}

static void
test_what_is_pinned_counts(void)
{
	limit_to(64 * KIB);
	memlock_add(60 * KIB);
	CU_ASSERT_PTR_NOT_NULL(strstr(memlock_hint(8 * KIB, -ENOMEM), "needs 68 at least"));
	memlock_sub(60 * KIB);
	ASSERT_STR(memlock_hint(8 * KIB, -ENOMEM), "");
}

static void
test_no_limit(void)
{
	limit_to(RLIM_INFINITY);
	ASSERT_STR(memlock_hint(SIZE_MAX / 2, -ENOMEM), "");
	g_limit = 0;
	g_limit_unknown = true;
	ASSERT_STR(memlock_hint(SIZE_MAX / 2, -ENOMEM), "");
	g_limit_unknown = false;
}

/* CAP_IPC_LOCK: the kernel does not look at the limit then. */
static void
test_lifted(void)
{
	limit_to(0);
	g_lifted = true;
	ASSERT_STR(memlock_hint(KIB, -ENOMEM), "");
	log_capture_start();
	memlock_check(1, KIB, KIB);
	ASSERT_EQ(log_capture_count(), 0);
	log_capture_stop();
	g_lifted = false;
	CU_ASSERT(*memlock_hint(KIB, -ENOMEM) != '\0');
}

static void
test_check_at_start(void)
{
	limit_to(64 * KIB * KIB);
	log_capture_start();
	memlock_check(1, 64 * KIB * KIB, 64 * KIB * KIB);
	memlock_check(0, 64 * KIB * KIB, 65 * KIB * KIB);
	ASSERT_EQ(log_capture_count(), 0);
	memlock_check(1, 64 * KIB * KIB, 65 * KIB * KIB);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_EQ(log_capture_level(0), XR_LOG_WARNING);
	ASSERT_STR(log_capture_last(),
		   "RDMA: this process may lock 65536 KiB of memory; the regions of 1 device need 64 MiB at first and "
		   "65 MiB when the pools have grown: raise it with ulimit -l or /etc/security/limits.conf, systemd's "
		   "LimitMEMLOCK=, a container's --ulimit memlock=");
	log_capture_stop();
}

/* The one line that an operator needs, with what both devices pin; and what is given back counts no more. */
static void
test_registration_refused(void)
{
	struct fake_device other = fake_device("fake1", "10.0.0.2");

	rdma_card(NULL);
	fake_device_add(&other);
	limit_to(1024 * KIB);
	fake_fail("reg_mr", 2, ENOMEM);
	net_up(1, NULL);
	CU_ASSERT_TRUE(
		net_logged("RDMA device fake1 is not used: registering 32 MiB of memory: Cannot allocate memory; "
			   "this process may lock 1024 KiB of memory " PLACES " and needs 65536 at least\n"));
	CU_ASSERT_TRUE(
		net_logged("RDMA: this process may lock 1024 KiB of memory; the regions of 2 devices need 64 MiB at "
			   "first and "));
	rdma_down();
	ASSERT_STR(memlock_hint(1024 * KIB, -ENOMEM), "");
}

UNIT_SUITE("memlock", {"the limit is named when it is in the way", test_hint},
	   {"what is pinned already counts", test_what_is_pinned_counts},
	   {"without a limit it is something else", test_no_limit}, {"CAP_IPC_LOCK lifts the limit", test_lifted},
	   {"a warning at the start", test_check_at_start},
	   {"a registration that is refused", test_registration_refused});
