/* SPDX-License-Identifier: Apache-2.0 */

/* What goes wrong, and what is said of it: bad completions, device events, peers that break the rules. */

#include "tests/unit/net/verbs/foreign.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <xrdma/error.h>

/* ---- bad completions ---- */

struct bad_send {
	enum ibv_wc_status status;
	const char *text, *hint;
};

static const struct bad_send g_bad_sends[] = {
	{IBV_WC_RETRY_EXC_ERR, "transport retry counter exceeded", "UDP port 4791"},
	{IBV_WC_RNR_RETRY_EXC_ERR, "RNR retry counter exceeded", "broke flow control"},
	{IBV_WC_LOC_PROT_ERR, "local protection error", "not registered"},
	{IBV_WC_REM_INV_REQ_ERR, "remote invalid request error", "larger than its blocks"},
	{IBV_WC_REM_OP_ERR, "remote operation error", "the peer's queue pair"},
	{IBV_WC_LOC_QP_OP_ERR, "local QP operation error", "interface down"},
	{IBV_WC_GENERAL_ERR, "general error", "kernel's log"},
};

static void
script_bad_send(struct rdma_pair *pair)
{
	const struct bad_send *bad = pair->arg;

	fake_fail_send(rdma_qp(pair->client.conn), 3, bad->status);
	NET_CHECK(rdma_send(pair->client.conn, 0, 5 * BLOCK_PAYLOAD) == 0);
	NET_AWAIT(PROBE_READ(pair->client.closed) && PROBE_READ(pair->server.closed));
}

/* One line, although more completions in error follow the first. */
static void
test_bad_sends(void)
{
	for (size_t i = 0; i < sizeof g_bad_sends / sizeof g_bad_sends[0]; i++) {
		struct rdma_pair pair = {.arg = (void *)&g_bad_sends[i]};

		rdma_up(NULL);
		rdma_pair_run(&pair, script_bad_send);
		ASSERT_EQ(pair.client.close_reason, -XR_ERDMA);
		ASSERT_EQ(pair.server.close_reason, -ECONNRESET);
		ASSERT_EQ(rdma_counted(RDMA_ERRORS), 1);
		CU_ASSERT(strstr(net_error_line(), "RDMA connection with 127.0.0.1:") != NULL);
		CU_ASSERT(strstr(net_error_line(), "(device fake0, GID index 2, QP 0x") != NULL);
		CU_ASSERT(strstr(net_error_line(), g_bad_sends[i].text) != NULL);
		CU_ASSERT(strstr(net_error_line(), g_bad_sends[i].hint) != NULL);
		CU_ASSERT_FALSE(net_logged("flush"));
		rdma_down();
	}
}

/* The message that fails arrived behind others: those are delivered. */
static void
script_bad_recv(struct rdma_pair *pair)
{
	NET_CHECK(rdma_send(pair->client.conn, 0, 1000) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == 1000);
	fake_fail_recv(rdma_qp(pair->server.conn), IBV_WC_LOC_LEN_ERR);
	NET_CHECK(rdma_send(pair->client.conn, 1000, 1000) == 0);
	NET_AWAIT(PROBE_READ(pair->client.closed) && PROBE_READ(pair->server.closed));
}

static void
test_bad_recv(void)
{
	struct rdma_pair pair = {.arg = NULL};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_bad_recv);
	ASSERT_EQ(pair.server.close_reason, -XR_ERDMA);
	CU_ASSERT(net_logged("a receive ended with local length error"));
	CU_ASSERT(net_logged("the peer sent more than a block of ours holds"));
	rdma_down();
}

/* ---- asynchronous events ---- */

static void
script_qp_fatal(struct rdma_pair *pair)
{
	fake_fail_qp(rdma_qp(pair->client.conn));
	NET_AWAIT(PROBE_READ(pair->client.closed) && PROBE_READ(pair->server.closed));
}

static void
test_qp_fatal(void)
{
	struct rdma_pair pair = {.arg = NULL};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_qp_fatal);
	ASSERT_EQ(pair.client.close_reason, -XR_ERDMA);
	ASSERT_EQ(rdma_counted(RDMA_ERRORS), 1);
	rdma_down();
}

static void
script_access_error(struct rdma_pair *pair)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_QP_ACCESS_ERR};

	event.element.qp = pair->client.conn->endpoint->qp.qp;
	fake_raise(0, &event);
	NET_AWAIT(PROBE_READ(pair->client.closed) && PROBE_READ(pair->server.closed));
}

static void
test_access_error(void)
{
	struct rdma_pair pair = {.arg = NULL};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_access_error);
	ASSERT_EQ(pair.client.close_reason, -XR_ERDMA);
	CU_ASSERT(strstr(net_error_line(), ibv_event_type_str(IBV_EVENT_QP_ACCESS_ERR)) != NULL);
	rdma_down();
}

static void
script_device_fatal(struct rdma_pair *pair)
{
	fake_device_fatal(0);
	NET_AWAIT(PROBE_READ(pair->client.closed) && PROBE_READ(pair->server.closed));
}

static void
test_device_fatal(void)
{
	struct rdma_pair pair = {.arg = NULL};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_device_fatal);
	ASSERT_EQ(pair.client.close_reason, -XR_ERDMA);
	ASSERT_EQ(pair.server.close_reason, -XR_ERDMA);
	rdma_down();
}

/* ---- peers that break the rules ---- */

static void
expect_eproto(void (*peer)(void *address), const char *what)
{
	struct probe server = {.on_data = NULL};

	rdma_up(NULL);
	net_run(peer, (void *)xr_listener_address(probe_listen(&server, NULL)));
	ASSERT_EQ(server.close_reason, -EPROTO);
	CU_ASSERT(strstr(net_error_line(), what) != NULL);
	rdma_down();
}

/* Up to where the server knows it as open, so that it has an on_close to be told in. */
static void
join(struct foreign *peer, const char *address)
{
	foreign_connect(peer, address);
	NET_AWAIT(net_counted(NET_CONNS_OPENED) == 1);
}

static void
await_the_end(struct foreign *peer)
{
	NET_CHECK(raw_await_end(peer->fd) == -ECONNRESET);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	foreign_close(peer);
	xr_stop();
}

static void
credits_for_nothing(void *address)
{
	struct foreign peer;

	join(&peer, address);
	foreign_send(&peer, "hello", 5, 1);
	await_the_end(&peer);
}

static void
credits_without_end(void *address)
{
	struct foreign peer;

	join(&peer, address);
	foreign_send(&peer, NULL, 0, UINT32_MAX);
	await_the_end(&peer);
}

static void
without_immediate(void *address)
{
	struct foreign peer;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SOLICITED}, *bad;

	join(&peer, address);
	NET_CHECK(ibv_post_send(peer.qp, &wr, &bad) == 0);
	await_the_end(&peer);
}

static void
test_rule_breakers(void)
{
	expect_eproto(credits_for_nothing, "more credits than messages were sent");
	expect_eproto(credits_without_end, "more credits than messages were sent");
	expect_eproto(without_immediate, "a message without an immediate");
}

/* More messages than its window has: the connection is paused and holds, so no credit has left. */
static void
pause_at_open(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	(void)status;
	xr_conn_pause(conn);
}

static void
flood(void *address)
{
	struct foreign peer;
	char data[FOREIGN_BYTES] = "";

	join(&peer, address);
	for (int i = 0; i < 62; i++) {
		foreign_send(&peer, data, sizeof data, 0);
		NET_CHECK(foreign_await(&peer, IBV_WC_SEND).status == IBV_WC_SUCCESS);
	}
	await_the_end(&peer);
}

static void
test_flood(void)
{
	struct probe server = {.on_open = pause_at_open};

	rdma_up("--conn_input_limit_kb", "8", NULL);
	net_run(flood, (void *)xr_listener_address(probe_listen(&server, NULL)));
	ASSERT_EQ(server.close_reason, -EPROTO);
	CU_ASSERT(strstr(net_error_line(), "more messages than the peer has credits for") != NULL);
	rdma_down();
}

/* A peer that counts in ones, or not at all for long: slow, never stuck. */
static void
count_in_ones(void *address)
{
	struct foreign peer;
	size_t got = 0;

	join(&peer, address);
	foreign_send(&peer, "go", 2, 0);
	while (got < 2000000) {
		struct ibv_wc wc = foreign_await(&peer, IBV_WC_RECV);

		if (!NET_CHECK(wc.status == IBV_WC_SUCCESS))
			break;
		got += wc.byte_len;
		foreign_repost(&peer, &wc);
		if (wc.byte_len)
			foreign_send(&peer, NULL, 0, 1);
	}
	NET_CHECK(got == 2000000);
	foreign_close(&peer);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
send_much(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)probe;
	xr_iobuf_clear(in);
	NET_CHECK(send_pattern(conn, 0, 2000000) == 0);
}

static void
test_credits_in_ones(void)
{
	struct probe server = {.on_data = send_much};

	rdma_up(NULL);
	net_run(count_in_ones, (void *)xr_listener_address(probe_listen(&server, NULL)));
	ASSERT_EQ(server.close_reason, 0);
	rdma_down();
}

UNIT_SUITE("fault", {"a send that fails, by status", test_bad_sends}, {"a receive that fails", test_bad_recv},
	   {"the queue pair fails", test_qp_fatal}, {"an event of the queue pair's", test_access_error},
	   {"the device fails", test_device_fatal}, {"peers that break the rules", test_rule_breakers},
	   {"a peer beyond its window", test_flood}, {"credits in ones", test_credits_in_ones});
