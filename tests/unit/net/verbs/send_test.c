/* SPDX-License-Identifier: Apache-2.0 */

/* The sending half: what leaves and with which flags, what holds it back, what becomes of its memory. */

#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <xrdma/error.h>

static uint64_t
posted(const struct xr_conn *conn)
{
	return fake_requests(rdma_qp(conn), FAKE_SQ);
}

static struct fake_request
request(const struct xr_conn *conn, uint64_t index)
{
	struct fake_request found = {.num_sge = 0};

	NET_CHECK(fake_request(rdma_qp(conn), FAKE_SQ, index, &found));
	return found;
}

static struct xr_conn_rdma
state(struct xr_conn *conn)
{
	return rdma_info(conn).rdma;
}

#define AWAIT_BYTES(probe, count) NET_AWAIT(PROBE_READ((probe).bytes) == (count))

/* ---- memory ---- */

struct blocks {
	struct xr_conn *conn;
	struct iovec iov[8];
	int count;
};

/* Three blocks' worth in one send, and where they lie. */
static void
send_blocks(void *arg)
{
	struct blocks *blocks = arg;
	struct xr_iobuf out = XR_IOBUF_INIT;
	static uint8_t bytes[3 * BLOCK_PAYLOAD];

	NET_CHECK(xr_iobuf_append(&out, bytes, sizeof bytes) == 0);
	blocks->count = xr_iobuf_iovec(&out, 0, blocks->iov, 8);
	NET_CHECK(xr_conn_send(blocks->conn, &out) == 0);
}

static void
script_addresses(struct rdma_pair *pair)
{
	struct blocks blocks = {.conn = pair->client.conn};
	uint64_t at = 0;
	size_t offset = 0;
	int piece = 0;

	fake_hold(FAKE_ACK, rdma_qp(pair->client.conn));
	rdma_do(send_blocks, &blocks);
	AWAIT_BYTES(pair->server, 3 * BLOCK_PAYLOAD);
	NET_CHECK(rdma_info(pair->client.conn).rdma.in_flight == 3 * BLOCK_PAYLOAD);
	for (; piece < blocks.count && at < posted(pair->client.conn); at++) {
		struct fake_request sent = request(pair->client.conn, at);

		NET_CHECK(!(sent.send_flags & IBV_SEND_INLINE));
		NET_CHECK(sent.bytes <= BLOCK_PAYLOAD);
		for (int i = 0; i < sent.num_sge; i++) {
			NET_CHECK(sent.sge[i].addr == (uintptr_t)blocks.iov[piece].iov_base + offset);
			offset += sent.sge[i].length;
			if (offset == blocks.iov[piece].iov_len) {
				offset = 0;
				piece++;
			}
		}
	}
	NET_CHECK(piece == blocks.count && at == posted(pair->client.conn));
	fake_let_go(FAKE_ACK, rdma_qp(pair->client.conn));
	NET_AWAIT(state(pair->client.conn).in_flight == 0);
}

static void
test_zero_copy(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_addresses);
	rdma_down();
}

/* One send and then only time: no block is held, however it was cut. */
static void
script_idle(struct rdma_pair *pair)
{
	static const size_t sizes[] = {1, 220, 221, 300, BLOCK_PAYLOAD, 3 * BLOCK_PAYLOAD + 1, 1 << 20};
	uint64_t sent = 0;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		NET_CHECK(rdma_send(pair->client.conn, sent, sizes[i]) == 0);
		sent += sizes[i];
		AWAIT_BYTES(pair->server, sent);
		NET_AWAIT(state(pair->client.conn).in_flight == 0);
	}
}

static void
test_idle_holds_no_block(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_idle);
	rdma_down();
}

static void
script_inline(struct rdma_pair *pair)
{
	uint32_t limit = pair->client.conn->endpoint->qp.inline_bytes;
	uint64_t at = posted(pair->client.conn);

	NET_CHECK(limit > 0 && limit <= 220);
	rdma_send(pair->client.conn, 0, limit);
	AWAIT_BYTES(pair->server, limit);
	NET_CHECK(request(pair->client.conn, at).send_flags == (IBV_SEND_INLINE | IBV_SEND_SOLICITED));
	rdma_send(pair->client.conn, limit, limit + 1);
	AWAIT_BYTES(pair->server, 2 * limit + 1);
	NET_CHECK(request(pair->client.conn, at + 1).send_flags == (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
	NET_CHECK(wr_id_value(request(pair->client.conn, at + 1).wr_id) == 2);
}

static void
test_inline_limit(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_inline);
	rdma_down();
}

/* A card with few pieces a request, and many small pieces. */
static void
send_crumbs(void *conn)
{
	static uint8_t bytes[300];
	struct xr_iobuf out = XR_IOBUF_INIT, part = XR_IOBUF_INIT, apart = XR_IOBUF_INIT;

	for (int i = 0; i < 40; i++) {
		NET_CHECK(xr_iobuf_append(&part, bytes, 300) == 0);
		NET_CHECK(xr_iobuf_move(&out, &part) == 0);
		NET_CHECK(xr_iobuf_append(&apart, bytes, 8) == 0);
	}
	NET_CHECK(xr_conn_send(conn, &out) == 0);
	xr_iobuf_clear(&apart);
}

static void
script_crumbs(struct rdma_pair *pair)
{
	rdma_do(send_crumbs, pair->client.conn);
	AWAIT_BYTES(pair->server, 40 * 300);
	for (uint64_t at = 0; at < posted(pair->client.conn); at++)
		NET_CHECK(request(pair->client.conn, at).num_sge <= 3);
	NET_CHECK(posted(pair->client.conn) >= 40 / 3);
}

static void
test_max_sge(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up("--rdma_max_sge", "3", NULL);
	rdma_pair_run(&pair, script_crumbs);
	rdma_down();
}

/* ---- what holds it back ---- */

/* The send queue is full: what has been posted is not known to have left. */
static void
script_own_window(struct rdma_pair *pair)
{
	struct xr_conn *conn = pair->client.conn;
	uint32_t qp = rdma_qp(conn);
	unsigned capacity = state(conn).own_capacity;

	fake_hold(FAKE_ACK, qp);
	NET_CHECK(rdma_send(conn, 0, 400 * BLOCK_PAYLOAD) == 0);
	NET_AWAIT(state(conn).own_window == 0);
	rdma_settle();
	NET_CHECK(posted(conn) == capacity);
	NET_CHECK(fake_queued(qp, FAKE_SQ) == capacity);
	NET_CHECK(request(conn, capacity - 1).send_flags & IBV_SEND_SOLICITED);
	fake_let_go(FAKE_ACK, qp);
	AWAIT_BYTES(pair->server, 400 * BLOCK_PAYLOAD);
	NET_AWAIT(state(conn).in_flight == 0);
	NET_CHECK(rdma_counted(RDMA_SEND_WINDOW_CLOSED) >= 1);
}

static void
test_send_queue_full(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up("--rdma_sq_size", "16", "--rdma_rq_size", "128", NULL);
	rdma_pair_run(&pair, script_own_window);
	rdma_down();
}

/* The peer's receive queue is full: it has not heard of its messages. */
static void
script_remote_window(struct rdma_pair *pair)
{
	struct xr_conn *conn = pair->client.conn;
	uint32_t qp = rdma_qp(conn);

	fake_hold(FAKE_DELIVERY, qp);
	NET_CHECK(rdma_send(conn, 0, 300 * BLOCK_PAYLOAD) == 0);
	NET_AWAIT(state(conn).remote_window == 0);
	rdma_settle();
	NET_CHECK(posted(conn) == 13);
	NET_CHECK(request(conn, 12).send_flags & IBV_SEND_SOLICITED);
	NET_CHECK(fake_deliver(5) == 5);
	rdma_settle();
	NET_CHECK(posted(conn) == 13);
	NET_CHECK(fake_deliver(2) == 2); /* more than half: the peer reports by itself */
	NET_AWAIT(posted(conn) == 20);
	fake_let_go(FAKE_DELIVERY, qp);
	AWAIT_BYTES(pair->server, 300 * BLOCK_PAYLOAD);
}

static void
test_remote_window_closed(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up("--rdma_sq_size", "64", "--rdma_rq_size", "16", NULL);
	rdma_pair_run(&pair, script_remote_window);
	rdma_down();
}

/* ---- a card that refuses ---- */

/* The device takes two of a chain, has no memory for the third: what was posted counts, the rest is decided anew. */
static void
script_bad_wr(struct rdma_pair *pair)
{
	struct xr_conn *conn = pair->client.conn;

	fake_fail("send_wr", 3, ENOMEM);
	NET_CHECK(rdma_send(conn, 0, 5 * BLOCK_PAYLOAD) == 0);
	AWAIT_BYTES(pair->server, 5 * BLOCK_PAYLOAD);
	NET_CHECK(rdma_counted(RDMA_RETRIES_ENOMEM) == 1);
	NET_CHECK(fake_qp_counts(rdma_qp(conn)).post_send == 2);
	NET_CHECK(posted(conn) == 5 || posted(conn) == 6);
	NET_AWAIT(state(conn).in_flight == 0);

	for (unsigned nth = 1; nth <= 6; nth++) {
		fake_fail_times("send_wr", nth, 3, ENOMEM);
		NET_CHECK(rdma_send(conn, (uint64_t)nth * 5 * BLOCK_PAYLOAD, 5 * BLOCK_PAYLOAD) == 0);
		AWAIT_BYTES(pair->server, (nth + 1) * 5u * BLOCK_PAYLOAD);
		fake_fail_none();
	}
	NET_AWAIT(state(conn).in_flight == 0);
}

static void
check_pattern(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	uint64_t before = probe->bytes;

	(void)conn;
	__atomic_store_n(&probe->bytes, before + take_pattern(in, before), __ATOMIC_RELEASE);
}

static void
test_bad_wr_in_a_chain(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_bad_wr);
	rdma_down();
}

/* As drivers do that negate the errno. */
static void
script_negated(struct rdma_pair *pair)
{
	fake_fail("send_wr", 3, -ENOMEM);
	NET_CHECK(rdma_send(pair->client.conn, 0, 5 * BLOCK_PAYLOAD) == 0);
	AWAIT_BYTES(pair->server, 5 * BLOCK_PAYLOAD);
	NET_CHECK(rdma_counted(RDMA_RETRIES_ENOMEM) == 1);
	fake_fail("send_wr", 1, -EINVAL);
	NET_CHECK(rdma_send(pair->client.conn, 0, 100) == 0);
	NET_AWAIT(PROBE_READ(pair->client.closed) == 1);
}

static void
test_negated_errno(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_negated);
	ASSERT_EQ(pair.client.close_reason, -EINVAL);
	CU_ASSERT(net_logged("the device refuses a send"));
	rdma_down();
}

static void
script_no_memory_for_ever(struct rdma_pair *pair)
{
	fake_fail_times("send_wr", 1, FAKE_FOREVER, ENOMEM);
	NET_CHECK(rdma_send(pair->client.conn, 0, 100) == 0);
	NET_AWAIT(PROBE_READ(pair->client.closed) == 1);
	fake_fail_none();
}

static void
test_no_memory_for_too_long(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_no_memory_for_ever);
	ASSERT_EQ(pair.client.close_reason, -ENOMEM);
	CU_ASSERT(net_logged("the device has had no memory for a send for too long"));
	rdma_down();
}

static void
script_refused(struct rdma_pair *pair)
{
	fake_fail("send_wr", 2, EINVAL);
	NET_CHECK(rdma_send(pair->client.conn, 0, 3 * BLOCK_PAYLOAD) == 0);
	NET_AWAIT(PROBE_READ(pair->client.closed) == 1 && PROBE_READ(pair->server.closed) == 1);
}

static void
test_send_refused(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_refused);
	ASSERT_EQ(pair.client.close_reason, -EINVAL);
	ASSERT_EQ(pair.server.close_reason, -ECONNRESET);
	CU_ASSERT(net_logged("the device refuses a send"));
	ASSERT_EQ(rdma_counted(RDMA_ERRORS), 1);
	rdma_down();
}

UNIT_SUITE("send", {"the card sends from the application's blocks", test_zero_copy},
	   {"after one send nothing is held", test_idle_holds_no_block},
	   {"up to the inline limit the request carries the bytes", test_inline_limit},
	   {"no request has more pieces than allowed", test_max_sge},
	   {"a full send queue waits for completions", test_send_queue_full},
	   {"a closed remote window waits for credits", test_remote_window_closed},
	   {"bad_wr in the middle of a chain", test_bad_wr_in_a_chain},
	   {"a driver that negates the errno", test_negated_errno},
	   {"no memory in the device for too long", test_no_memory_for_too_long},
	   {"a refused send ends the connection", test_send_refused});
