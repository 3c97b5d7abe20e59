/* SPDX-License-Identifier: Apache-2.0 */

/* A stop over RDMA: what is queued arrives, both sides end in order, the card is left empty. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include "tests/unit/vectors.h"
#include <errno.h>
#include <unistd.h>

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

/* ---- in the middle of a handshake ---- */

static int g_listener;

/* A server without RDMA, which stops the process as soon as it has seen the client's hello. */
static void
refuse_late(void *arg)
{
	int fd = raw_accept(g_listener);
	uint8_t bytes[HELLO_V2_BYTES];
	struct raw_in in;

	(void)arg;
	NET_CHECK(raw_read(fd, bytes, sizeof bytes));
	xr_stop();
	net_sleep_ms(50);
	hello_v2_encode_refusal(bytes);
	raw_send(fd, bytes, sizeof bytes);
	NET_CHECK(raw_read(fd, bytes, HELLO_ACK_BYTES));
	NET_CHECK(raw_read_frame(fd, &in));
	raw_send_frame(fd, &(struct raw_out){.id = in.meta.correlation_id});
	raw_in_clear(&in);
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

/* The call that waits for the handshake's end is in work. */
static void
test_client_in_a_handshake(void)
{
	struct xr_rpc_channel_opts opts = {.size = sizeof opts, .use_rdma = XR_RDMA_AUTO};
	struct outcome outcome = {0};
	struct xr_rpc_channel *channel;
	char address[64];

	rdma_up(LONG, NULL);
	g_listener = raw_listen(address);
	opts.address = address;
	ASSERT_FATAL(xr_rpc_channel_open(&opts, &channel) == 0);
	ASSERT_EQ(call_echo(channel, &outcome, "Echo", 5, 10, 0), 0);
	net_run(refuse_late, NULL);
	ASSERT_EQ(outcome.done, 1);
	ASSERT_EQ(outcome.error_code, 0);
	outcome_clear(&outcome);
	xr_rpc_channel_close(channel);
	close(g_listener);
	rdma_down();
}

/* A server has not promised anything yet: the client is free to go elsewhere. */
static void
greet_and_stop(void *address)
{
	uint8_t hello[HELLO_V2_BYTES];
	int fd = raw_connect(address);

	NET_CHECK(vector_load("hello-v2-client", hello, sizeof hello) == sizeof hello);
	raw_send(fd, hello, sizeof hello);
	NET_CHECK(raw_read(fd, hello, sizeof hello));
	xr_stop();
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_server_in_a_handshake(void)
{
	struct probe server = {0};

	rdma_up(LONG, NULL);
	net_run_against(probe_listen(&server, NULL), greet_and_stop);
	ASSERT_EQ(server.opened + server.closed, 0);
	ASSERT_EQ(net_counted(NET_HANDSHAKES), 1);
	rdma_down();
}

UNIT_SUITE("drain over RDMA", {"queued bytes arrive", test_queued_bytes_arrive}, {"idle connections", test_idle},
	   {"the deadline", test_deadline}, {"a client in its handshake", test_client_in_a_handshake},
	   {"a server in its handshake", test_server_in_a_handshake});
