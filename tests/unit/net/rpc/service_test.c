/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/service.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/unit.h"

static void
handler(struct xr_rpc_call *call, void *arg)
{
	(void)call;
	(void)arg;
}

/* Which one was found: its arg as a number, or the negative error. */
static long
find(const struct service_table *table, const char *service, const char *name)
{
	int error = 0;
	const struct method *method = service_find(table, service, name, &error);

	return method ? (long)(intptr_t)method->arg : -error;
}

static int
add(struct service_table *table, const char *service, const char *name, long number)
{
	return service_add(table, service, name, handler, (void *)(intptr_t)number);
}

static void
test_empty(void)
{
	struct service_table table = SERVICE_TABLE_INIT;

	ASSERT_EQ(find(&table, "a.B", "c"), -XR_RPC_ENOMETHOD);
	ASSERT_EQ(find(&table, "B", "c"), -XR_RPC_ENOSERVICE);
	ASSERT_EQ(find(&table, "", ""), -XR_RPC_ENOSERVICE);
	service_table_fini(&table);
}

static void
test_names(void)
{
	struct service_table table = SERVICE_TABLE_INIT;

	ASSERT_EQ(add(&table, "test.PerfTestService", "Test", 1), 0);
	ASSERT_EQ(add(&table, "test.PerfTestService", "Test2", 2), 0);
	ASSERT_EQ(add(&table, "Plain", "Test", 3), 0);
	ASSERT_EQ(find(&table, "test.PerfTestService", "Test"), 1);
	ASSERT_EQ(find(&table, "PerfTestService", "Test"), 1);
	ASSERT_EQ(find(&table, "PerfTestService", "Test2"), 2);
	ASSERT_EQ(find(&table, "Plain", "Test"), 3);
	ASSERT_EQ(find(&table, "Plain", "None"), -XR_RPC_ENOMETHOD);
	ASSERT_EQ(find(&table, "PerfTestService", "None"), -XR_RPC_ENOMETHOD);
	ASSERT_EQ(find(&table, "test.PerfTestService", "None"), -XR_RPC_ENOMETHOD);
	ASSERT_EQ(find(&table, "other.PerfTestService", "Test"), -XR_RPC_ENOMETHOD);
	ASSERT_EQ(find(&table, "Other", "Test"), -XR_RPC_ENOSERVICE);
	ASSERT_EQ(find(&table, "testPerfTestService", "Test"), -XR_RPC_ENOSERVICE);
	ASSERT_EQ(find(&table, "test.PerfTestServic", "eTest"), -XR_RPC_ENOMETHOD);
	service_table_fini(&table);
}

static void
test_same_short_name(void)
{
	struct service_table table = SERVICE_TABLE_INIT;

	ASSERT_EQ(add(&table, "a.S", "m", 1), 0);
	ASSERT_EQ(add(&table, "b.S", "m", 2), 0);
	ASSERT_EQ(add(&table, "b.S", "only", 3), 0);
	ASSERT_EQ(find(&table, "S", "m"), 1);
	ASSERT_EQ(find(&table, "S", "only"), -XR_RPC_ENOMETHOD);
	ASSERT_EQ(find(&table, "b.S", "m"), 2);
	ASSERT_EQ(add(&table, "S", "m", 4), 0);
	ASSERT_EQ(find(&table, "S", "m"), 4);
	ASSERT_EQ(find(&table, "a.S", "m"), 1);
	service_table_fini(&table);
}

static void
test_refused(void)
{
	struct service_table table = SERVICE_TABLE_INIT;

	ASSERT_EQ(add(&table, "a.S", "m", 1), 0);
	ASSERT_EQ(add(&table, "a.S", "m", 2), -EEXIST);
	ASSERT_EQ(add(&table, "", "m", 2), -EINVAL);
	ASSERT_EQ(add(&table, "a.S", "", 2), -EINVAL);
	ASSERT_EQ(add(&table, NULL, "m", 2), -EINVAL);
	ASSERT_EQ(add(&table, "a.S", NULL, 2), -EINVAL);
	ASSERT_EQ(service_add(&table, "a.S", "n", NULL, NULL), -EINVAL);
	ASSERT_EQ(find(&table, "a.S", "m"), 1);
	service_table_fini(&table);
}

static void
test_many(void)
{
	struct service_table table = SERVICE_TABLE_INIT;
	char service[64], name[64];

	for (int s = 0; s < 20; s++)
		for (int m = 0; m < 10; m++) {
			snprintf(service, sizeof service, "package.of.some.length.Service%d", s);
			snprintf(name, sizeof name, "Method%d", m);
			ASSERT_FATAL(add(&table, service, name, s * 100 + m) == 0);
		}
	for (int s = 0; s < 20; s++)
		for (int m = 0; m < 10; m++) {
			snprintf(service, sizeof service, "package.of.some.length.Service%d", s);
			snprintf(name, sizeof name, "Method%d", m);
			ASSERT_EQ(find(&table, service, name), s * 100 + m);
			ASSERT_EQ(find(&table, strrchr(service, '.') + 1, name), s * 100 + m);
		}
	service_table_fini(&table);
}

/* Whichever allocation fails, the table is as it was and goes on working. */
static void
test_no_memory(void)
{
	if (!FAIL_ALLOC) {
		unit_skip("the sanitizer's allocator does not fail");
		return;
	}
	for (long after = 0; after < 8; after++) {
		struct service_table table = SERVICE_TABLE_INIT;
		int error;

		ASSERT_EQ(add(&table, "a.S", "m", 1), 0);
		g_fail_alloc_after = after;
		error = add(&table, "b.T", "n", 2);
		g_fail_alloc_after = -1;
		CU_ASSERT(error == 0 || error == -ENOMEM);
		ASSERT_EQ(find(&table, "a.S", "m"), 1);
		if (error) {
			CU_ASSERT(find(&table, "b.T", "n") < 0);
			ASSERT_EQ(add(&table, "b.T", "n", 2), 0);
		}
		ASSERT_EQ(find(&table, "b.T", "n"), 2);
		service_table_fini(&table);
	}
}

UNIT_SUITE("rpc service", {"an empty table knows nothing", test_empty}, {"full and short names", test_names},
	   {"the first has the short name, a full name wins", test_same_short_name}, {"what is refused", test_refused},
	   {"many services and methods", test_many}, {"without memory nothing is added", test_no_memory});
