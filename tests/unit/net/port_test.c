/* SPDX-License-Identifier: Apache-2.0 */

#include "mem/block.h"
#include "net/port.h"
#include "tests/unit/net/net_fixture.h"
#include <errno.h>

/* ---- one precise line for each mistake ---- */

static void
refused(const char *value, const char *because)
{
	char *argv[] = {"test", "--lcores", "(0-1)@0", "--port", (char *)value};

	ASSERT_EQ(net_init(5, argv), -EINVAL);
	if (!strstr(net_error_line(), "port") || !strstr(net_error_line(), because)) {
		printf("--port %s: \"%s\" lacks \"%s\"\n", value, net_error_line(), because);
		CU_FAIL("wrong line");
	}
	CU_ASSERT_PTR_NULL(xr_port_find(NULL));
	xr_log_set_sink(NULL, NULL);
}

static void
test_bad_names(void)
{
	refused("", "must be NAME,key=value");
	refused(",mode=poll", "must be NAME,key=value");
	refused("a b,mode=poll", "must be NAME,key=value");
	refused("mode=poll", "must be NAME,key=value");
	refused("default,1", "must be NAME,key=value");
	refused("a23456789012345678901234567890123", "must be NAME,key=value");
}

static void
test_bad_keys(void)
{
	refused("default,", "'': must be mode=, spin_us=, lcores=, rdma=, dev=, ibport=, gid=, block=, sq= or rq=");
	refused("default,,mode=poll", "'': must be mode=");
	refused("default,poll", "'poll': must be mode=");
	refused("default,speed=9", "'speed': must be mode=");
	refused("default,mode=poll,MODE=event", "'MODE': must be mode=");
}

static void
test_bad_values(void)
{
	refused("default,mode=", "mode=: must be poll, event or adaptive");
	refused("default,mode=sleep", "mode=sleep: must be poll, event or adaptive");
	refused("default,rdma=yes", "rdma=yes: must be auto, off or require");
	refused("default,spin_us=", "spin_us=: must be a number from 0 to 1000000");
	refused("default,spin_us=-1", "spin_us=-1: must be a number");
	refused("default,spin_us=+1", "spin_us=+1: must be a number");
	refused("default,spin_us=1000001", "spin_us=1000001: must be a number");
	refused("default,spin_us=99999999999999999999", "must be a number");
	refused("default,spin_us=5ms", "spin_us=5ms: must be a number");
	refused("default,spin_us=5,6", "spin_us=5,6: must be a number");
}

static void
test_bad_values_for_rdma(void)
{
	refused("default,dev=", "dev=: must be the name of an RDMA device, such as mlx5_0");
	refused("default,dev=a23456789012345678901234567890123456789012345678901234567890123x",
		"must be the name of an RDMA device");
	refused("default,ibport=", "ibport=: must be a number from 1 to 255");
	refused("default,ibport=0", "ibport=0: must be a number from 1 to 255");
	refused("default,ibport=256", "ibport=256: must be a number from 1 to 255");
	refused("default,ibport=-1", "ibport=-1: must be a number from 1 to 255");
	refused("default,gid=256", "gid=256: must be a number from 0 to 255");
	refused("default,gid=x", "gid=x: must be a number from 0 to 255");
	refused("default,gid=1x", "gid=1x: must be a number from 0 to 255");
	refused("default,gid= 1", "gid= 1: must be a number from 0 to 255");
	refused("default,block=8192", "block=8192: must be default, large or huge");
	refused("default,block=", "block=: must be default, large or huge");
	refused("default,sq=15", "sq=15: must be a number from 16 to 4096");
	refused("default,sq=4097", "sq=4097: must be a number from 16 to 4096");
	refused("default,sq=64,128", "sq=64,128: must be a number from 16 to 4096");
	refused("default,rq=0x10", "rq=0x10: must be a number from 16 to 4096");
	refused("default,rq=99999999999999999999", "must be a number from 16 to 4096");
}

static void
test_bad_lcores(void)
{
	refused("default,lcores=", "lcores=:");
	refused("default,lcores=x", "lcores=x:");
	refused("default,lcores=1-3-5", "lcores=1-3-5:");
	refused("default,lcores=1-0", "lcores=1-0:");
	refused("default,lcores=0,0", "lcores=0,0:");
	refused("default,lcores=0,7", "lcores=7 is none of this process's lcores");
}

/* ---- what good ones mean ---- */

static void
test_default(void)
{
	struct xr_port *port;

	net_up(2, NULL);
	port = xr_port_find(NULL);
	ASSERT_FATAL(port != NULL);
	CU_ASSERT_PTR_EQUAL(port, xr_port_find("default"));
	ASSERT_STR(xr_port_name(port), "default");
	ASSERT_EQ(xr_port_mode(port), XR_PORT_ADAPTIVE);
	ASSERT_EQ(port->spin_us, 50);
	ASSERT_EQ(port->rdma, PORT_RDMA_AUTO);
	CU_ASSERT_TRUE(xr_port_has_lcore(port, 0));
	CU_ASSERT_TRUE(xr_port_has_lcore(port, 1));
	CU_ASSERT_FALSE(xr_port_has_lcore(port, 2));
	CU_ASSERT_FALSE(xr_port_has_lcore(port, XR_LCORE_NONE));
	CU_ASSERT_PTR_NULL(xr_port_find("other"));
	CU_ASSERT_PTR_NULL(xr_port_find(""));
	net_down();
	CU_ASSERT_PTR_NULL(xr_port_find(NULL));
}

static void
test_every_key(void)
{
	struct xr_port *port;

	net_up(4, "--port", "a.b-c_1,mode=poll,spin_us=0,lcores=0,2-3,rdma=require", "--port", "plain", NULL);
	port = xr_port_find("a.b-c_1");
	ASSERT_FATAL(port != NULL);
	ASSERT_EQ(xr_port_mode(port), XR_PORT_POLL);
	ASSERT_EQ(port->spin_us, 0);
	ASSERT_EQ(port->rdma, PORT_RDMA_REQUIRE);
	ASSERT_EQ(port->lcore_count, 3);
	CU_ASSERT_TRUE(xr_port_has_lcore(port, 0));
	CU_ASSERT_FALSE(xr_port_has_lcore(port, 1));
	CU_ASSERT_TRUE(xr_port_has_lcore(port, 2));
	CU_ASSERT_TRUE(xr_port_has_lcore(port, 3));
	ASSERT_EQ(xr_port_find("plain")->lcore_count, 4);
	ASSERT_EQ(xr_port_mode(xr_port_find(NULL)), XR_PORT_ADAPTIVE);
	net_down();
}

static void
await_line(void *line)
{
	NET_AWAIT(net_logged(line));
	xr_stop();
}

/* A default port that is only there because there always is one drives no lcore that another port uses. */
static void
test_implied_default_goes_along(void)
{
	net_up(2, "--port", "a,mode=event,lcores=1", NULL);
	CU_ASSERT_TRUE(xr_port_has_lcore(xr_port_find(NULL), 1));
	net_run(await_line, "lcore 1 sleeps when idle (event)");
	net_down();

	net_up(1, "--port", "a,mode=event", "--port", "default", NULL);
	net_run(await_line, "lcore 0 sleeps when idle (adaptive");
	net_down();
}

/* The same name again changes what it names and leaves the rest. */
static void
test_changed_later(void)
{
	struct xr_port *port;

	net_up(2, "--port", "default,mode=event,lcores=1", "--port", "default,spin_us=7", "--port",
	       "default,lcores=0,rdma=off", NULL);
	port = xr_port_find(NULL);
	ASSERT_EQ(xr_port_mode(port), XR_PORT_EVENT);
	ASSERT_EQ(port->spin_us, 7);
	ASSERT_EQ(port->rdma, PORT_RDMA_OFF);
	CU_ASSERT_TRUE(xr_port_has_lcore(port, 0));
	CU_ASSERT_FALSE(xr_port_has_lcore(port, 1));
	net_down();
}

static void
test_last_lcores_of_one_port(void)
{
	net_up(2, "--port", "default,lcores=0,lcores=1", NULL);
	ASSERT_EQ(xr_port_find(NULL)->lcore_count, 1);
	CU_ASSERT_TRUE(xr_port_has_lcore(xr_port_find(NULL), 1));
	net_down();
}

static void
test_longest_name(void)
{
	net_up(1, "--port", "a234567890123456789012345678901,mode=poll", NULL);
	CU_ASSERT_PTR_NOT_NULL(xr_port_find("a234567890123456789012345678901"));
	net_down();
}

/* ---- what RDMA is to be like ---- */

static void
test_rdma_values(void)
{
	const struct port_verbs *verbs;

	net_up(1, "--port", "a,rdma=off,dev=mlx5_1,ibport=2,gid=255,block=huge,sq=16,rq=4096", "--port", "b,rdma=off",
	       "--port", "a,gid=0,block=large", "--port", "default,rdma=off", NULL);
	verbs = &xr_port_find("a")->verbs;
	ASSERT_STR(verbs->device, "mlx5_1");
	ASSERT_EQ(verbs->ib_port, 2);
	ASSERT_EQ(verbs->gid_index, 0);
	ASSERT_EQ(verbs->block_type, BLOCK_LARGE);
	ASSERT_EQ(verbs->sq_size, 16);
	ASSERT_EQ(verbs->rq_size, 4096);
	verbs = &xr_port_find("b")->verbs;
	ASSERT_STR(verbs->device, "");
	ASSERT_EQ(verbs->ib_port, 0);
	ASSERT_EQ(verbs->gid_index, -1);
	ASSERT_EQ(verbs->block_type, -1);
	ASSERT_EQ(verbs->sq_size + verbs->rq_size, 0);
	net_down();
}

static enum xr_port_mode
mode_with(const char *polling, const char *port)
{
	enum xr_port_mode mode;

	net_up(1, polling, "--port", port, NULL);
	mode = xr_port_mode(xr_port_find(NULL));
	net_down();
	return mode;
}

static void
test_use_polling(void)
{
	ASSERT_EQ(mode_with("--rdma_use_polling", "other,mode=event"), XR_PORT_POLL);
	ASSERT_EQ(mode_with("-rdma-use-polling=true", "default,spin_us=7"), XR_PORT_POLL);
	ASSERT_EQ(mode_with("--rdma_use_polling=false", "default,spin_us=7"), XR_PORT_ADAPTIVE);
	ASSERT_EQ(mode_with("--nordma_use_polling", "default,mode=poll"), XR_PORT_POLL);
	/* What the port itself says wins. */
	ASSERT_EQ(mode_with("--rdma_use_polling", "default,mode=event"), XR_PORT_EVENT);
	ASSERT_EQ(mode_with("--rdma_use_polling", "default,mode=adaptive"), XR_PORT_ADAPTIVE);
}

static void
test_mode_names(void)
{
	ASSERT_STR(xr_port_mode_name(XR_PORT_POLL), "poll");
	ASSERT_STR(xr_port_mode_name(XR_PORT_EVENT), "event");
	ASSERT_STR(xr_port_mode_name(XR_PORT_ADAPTIVE), "adaptive");
	ASSERT_STR(xr_port_mode_name((enum xr_port_mode)3), "unknown");
	ASSERT_STR(xr_port_mode_name((enum xr_port_mode) - 1), "unknown");
}

UNIT_SUITE("port", {"bad names", test_bad_names}, {"bad keys", test_bad_keys}, {"bad values", test_bad_values},
	   {"bad values for RDMA", test_bad_values_for_rdma}, {"bad lcores", test_bad_lcores},
	   {"values for RDMA", test_rdma_values}, {"--rdma_use_polling", test_use_polling},
	   {"the default port", test_default}, {"every key", test_every_key},
	   {"a default that nobody named", test_implied_default_goes_along},
	   {"changed by a later option", test_changed_later}, {"the last lcores count", test_last_lcores_of_one_port},
	   {"the longest name", test_longest_name}, {"names of modes", test_mode_names});
