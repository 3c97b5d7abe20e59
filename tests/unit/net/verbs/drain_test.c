/* SPDX-License-Identifier: Apache-2.0 */

/* A stop over RDMA: what is queued arrives, both sides end in order, the card is left empty. */

#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

/* Longer than the watchdog: a drain that is not over by itself fails its test. */
#define LONG "--drain_ms", "3600000"

#define MUCH (2u << 20)

/* The client says all that it has, and closes; the server ends when its client does. */
static void
close_behind(struct probe *probe, struct xr_conn *conn)
{
	(void)probe;
	NET_CHECK(send_pattern(conn, 0, MUCH) == 0);
	xr_conn_close(conn);
}

static void
await_end(struct probe *probe, struct xr_conn *conn)
{
	(void)probe;
	(void)conn;
}

static void
take(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)conn;
	probe->bytes += take_pattern(in, probe->bytes);
}

static void
do_nothing(struct rdma_pair *pair)
{
	(void)pair;
}

static void
test_queued_bytes_arrive(void)
{
	struct rdma_pair pair = {.client.on_drain = close_behind, .server = {.on_data = take, .on_drain = await_end}};

	rdma_up(LONG, NULL);
	rdma_pair_run(&pair, do_nothing);
	ASSERT_EQ(pair.server.bytes, MUCH);
	ASSERT_EQ(pair.server.close_reason, 0);
	ASSERT_EQ(pair.client.close_reason, 0);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
	rdma_down();
}

static void
test_idle(void)
{
	struct rdma_pair pair = {.server.on_data = take};

	rdma_up(LONG, "--port", "default,mode=event", NULL);
	rdma_pair_run(&pair, do_nothing);
	ASSERT_EQ(pair.server.close_reason, 0);
	ASSERT_EQ(pair.client.close_reason, 0);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
	rdma_down();
}

/* One that holds on to its connection is cut off. */
static void
test_deadline(void)
{
	struct rdma_pair pair = {.client.on_drain = await_end, .server.on_drain = await_end};

	rdma_up("--drain_ms", "200", NULL);
	rdma_pair_run(&pair, do_nothing);
	ASSERT_EQ(pair.server.close_reason, -ECANCELED);
	ASSERT_EQ(pair.client.close_reason, -ECANCELED);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 2);
	rdma_down();
}

UNIT_SUITE("drain over RDMA", {"queued bytes arrive", test_queued_bytes_arrive}, {"idle connections", test_idle},
	   {"the deadline", test_deadline});
