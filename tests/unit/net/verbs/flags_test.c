/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/device.h"
#include "net/verbs/flags.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

static void
test_defaults(void)
{
	rdma_up(NULL);
	ASSERT_STR(g_rdma_device, "");
	ASSERT_EQ(g_rdma_port, 0);
	ASSERT_EQ(g_rdma_gid_index, -1);
	ASSERT_EQ(g_rdma_max_sge, 0);
	ASSERT_EQ(g_rdma_sq_size, 128);
	ASSERT_EQ(g_rdma_rq_size, 128);
	ASSERT_EQ(g_rdma_prepared_qp_size, 128);
	ASSERT_EQ(g_rdma_prepared_qp_cnt, 0);
	ASSERT_EQ(g_rdma_recv_zerocopy, 1);
	ASSERT_EQ(g_rdma_zerocopy_min_size, 512);
	ASSERT_EQ(g_rdma_cqe_poll_once, 32);
	ASSERT_EQ(g_rdma_trace_verbose, 0);
	ASSERT_EQ(g_conn_starved_ms, 10000);
	rdma_down();
}

/* brpc clamps what it is told instead of refusing it. */
static void
size_is(const char *value, uint16_t expected)
{
	ASSERT_EQ(xr_option_set("rdma_sq_size", value, NULL), 0);
	ASSERT_EQ(xr_option_set("rdma_rq_size", value, NULL), 0);
	ASSERT_EQ(flags_queue_size(&g_rdma_sq_size), expected);
	ASSERT_EQ(flags_queue_size(&g_rdma_rq_size), expected);
}

static void
test_queue_sizes(void)
{
	rdma_up(NULL);
	size_is("128", 128);
	size_is("16", 16);
	size_is("15", 16);
	size_is("0", 16);
	size_is("-1", 16);
	size_is("-2147483648", 16);
	size_is("4096", 4096);
	size_is("4097", 4096);
	size_is("65536", 4096);
	size_is("2147483647", 4096);
	rdma_down();
}

static void
test_live_ones(void)
{
	static const char *const live[] = {"rdma_sq_size",	"rdma_rq_size",	      "rdma_zerocopy_min_size",
					   "conn_starved_ms",	"rdma_cqe_poll_once", "rdma_recv_zerocopy",
					   "rdma_trace_verbose"};
	static const char *const fixed[] = {"rdma_port",   "rdma_gid_index",	    "rdma_max_sge",
					    "rdma_device", "rdma_prepared_qp_size", "rdma_prepared_qp_cnt"};

	rdma_up(NULL);
	for (unsigned i = 0; i < sizeof live / sizeof live[0]; i++)
		ASSERT_EQ(xr_option_set(live[i], "1", NULL), 0);
	for (unsigned i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		ASSERT_EQ(xr_option_set(fixed[i], "1", NULL), -EPERM);
	rdma_down();
}

static void
refused(const char *option, const char *value)
{
	char text[64], *argv[] = {"test", "--lcores", "0@0", text};

	snprintf(text, sizeof text, "%s=%s", option, value);
	rdma_card(NULL);
	ASSERT_EQ(net_init(4, argv), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(net_error_line(), option));
	xr_log_set_sink(NULL, NULL);
	ASSERT_EQ(fake_calls("open_device"), 0);
	fake_reset();
}

static void
test_refused(void)
{
	refused("--rdma_gid_index", "256");
	refused("--rdma_gid_index", "-2");
	refused("--rdma_port", "256");
	refused("--rdma_port", "-1");
	refused("--rdma_max_sge", "65");
	refused("--rdma_cqe_poll_once", "0");
	refused("--rdma_cqe_poll_once", "257");
	refused("--rdma_prepared_qp_cnt", "-1");
	refused("--rdma_prepared_qp_cnt", "65537");
	refused("--rdma_zerocopy_min_size", "-1");
	refused("--rdma_recv_zerocopy", "maybe");
	refused("--conn_starved_ms", "0");
}

static void
test_gflags_spellings(void)
{
	rdma_up("-rdma_sq_size=64", "--rdma-rq-size", "32", "--nordma_recv_zerocopy", "-rdma_trace_verbose", NULL);
	ASSERT_EQ(flags_queue_size(&g_rdma_sq_size), 64);
	ASSERT_EQ(flags_queue_size(&g_rdma_rq_size), 32);
	CU_ASSERT_FALSE(option_bool(&g_rdma_recv_zerocopy));
	CU_ASSERT_TRUE(option_bool(&g_rdma_trace_verbose));
	rdma_down();
}

UNIT_SUITE("rdma_flags", {"the defaults", test_defaults}, {"queue sizes are clamped", test_queue_sizes},
	   {"which may change while connections run", test_live_ones}, {"what is refused", test_refused},
	   {"gflags' spellings", test_gflags_spellings});
