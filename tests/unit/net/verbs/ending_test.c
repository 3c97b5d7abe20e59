/* SPDX-License-Identifier: Apache-2.0 */

/* How connections over RDMA come to their end: closed, closed by the peer, aborted, from both sides at once. */

#include "tests/unit/net/verbs/foreign.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <unistd.h>
#include <xrdma/error.h>

static void
check_pattern(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	uint64_t before = probe->bytes;

	(void)conn;
	__atomic_store_n(&probe->bytes, before + take_pattern(in, before), __ATOMIC_RELEASE);
}

#define AWAIT_BOTH_CLOSED(pair) NET_AWAIT(PROBE_READ((pair)->client.closed) && PROBE_READ((pair)->server.closed))

static void
run_pair(struct rdma_pair *pair, void (*script)(struct rdma_pair *pair))
{
	pair->server.on_data = check_pattern;
	rdma_up(NULL);
	rdma_pair_run(pair, script);
	ASSERT_EQ(pair->client.closed, 1);
	ASSERT_EQ(pair->server.closed, 1);
}

/* ---- closing ---- */

struct last_words {
	struct xr_conn *conn;
	size_t len;
};

static void
send_and_close(void *arg)
{
	struct last_words *words = arg;

	if (words->len)
		NET_CHECK(send_pattern(words->conn, 0, words->len) == 0);
	xr_conn_close(words->conn);
}

/* Everything that was accepted arrives, then the end; nothing is left in flight to be lost. */
static void
script_close(struct rdma_pair *pair)
{
	struct last_words words = {pair->client.conn, *(const size_t *)pair->arg};

	rdma_do(send_and_close, &words);
	AWAIT_BOTH_CLOSED(pair);
}

static void
test_close(void)
{
	static const size_t sizes[] = {0, 1, 100, 8160, 100000, 4 << 20};

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct rdma_pair pair = {.arg = (void *)&sizes[i]};

		run_pair(&pair, script_close);
		ASSERT_EQ(pair.server.bytes, sizes[i]);
		ASSERT_EQ(pair.client.close_reason, 0);
		ASSERT_EQ(pair.server.close_reason, 0);
		rdma_down();
	}
}

/* An inlined message asked for no completion: the farewell does, and only with it the end is told. */
static void
script_farewell(struct rdma_pair *pair)
{
	struct xr_conn *client = pair->client.conn;
	uint32_t qp = rdma_qp(client);
	struct fake_request farewell = {.num_sge = 1};

	rdma_send(client, 0, 10);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == 10);
	fake_hold(FAKE_ACK, qp);
	rdma_close(client);
	NET_AWAIT(fake_requests(qp, FAKE_SQ) == 2);
	NET_CHECK(fake_request(qp, FAKE_SQ, 1, &farewell));
	NET_CHECK(farewell.bytes == 0 && farewell.send_flags == (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
	NET_CHECK(wr_id_kind(farewell.wr_id) == WR_SEND && wr_id_value(farewell.wr_id) == 2);
	rdma_settle();
	NET_CHECK(!PROBE_READ(pair->server.closed) && rdma_state(client) == CONN_CLOSING);
	fake_let_go(FAKE_ACK, qp);
	AWAIT_BOTH_CLOSED(pair);
}

static void
test_farewell(void)
{
	struct rdma_pair pair = {.arg = NULL};

	run_pair(&pair, script_farewell);
	ASSERT_EQ(pair.client.close_reason, 0);
	ASSERT_EQ(pair.server.close_reason, 0);
	rdma_down();
}

/* When the peer has reported everything no farewell is needed. */
static void
script_no_farewell(struct rdma_pair *pair)
{
	struct xr_conn *client = pair->client.conn;
	uint64_t sent;

	rdma_send(client, 0, 10);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == 10);
	rdma_send(pair->server.conn, 0, 1);
	NET_AWAIT(rdma_info(client).rdma.remote_window == 125);
	sent = fake_device_counts(0).sends;
	rdma_close(client);
	AWAIT_BOTH_CLOSED(pair);
	NET_CHECK(fake_device_counts(0).sends == sent);
}

static void
test_no_farewell(void)
{
	struct rdma_pair pair = {.arg = NULL};

	run_pair(&pair, script_no_farewell);
	ASSERT_EQ(pair.client.close_reason, 0);
	rdma_down();
}

/* Both have much to say and close at once: what comes is dropped and credited, so none waits for the other. */
static void
close_both(void *arg)
{
	struct rdma_pair *pair = arg;

	NET_CHECK(send_pattern(pair->client.conn, 0, 4 << 20) == 0);
	NET_CHECK(send_pattern(pair->server.conn, 0, 4 << 20) == 0);
	xr_conn_close(pair->client.conn);
	xr_conn_close(pair->server.conn);
}

static void
script_close_both(struct rdma_pair *pair)
{
	rdma_do(close_both, pair);
	AWAIT_BOTH_CLOSED(pair);
}

static void
test_close_both(void)
{
	struct rdma_pair pair = {.arg = NULL};

	run_pair(&pair, script_close_both);
	ASSERT_EQ(pair.client.close_reason, 0);
	ASSERT_EQ(pair.server.close_reason, 0);
	rdma_down();
}

/* A peer that takes nothing keeps the close from ending; its time is limited. */
static void
script_close_times_out(struct rdma_pair *pair)
{
	struct last_words words = {pair->client.conn, 3 << 20};

	rdma_pause(pair->server.conn);
	rdma_do(send_and_close, &words);
	NET_AWAIT(PROBE_READ(pair->client.closed));
}

static void
test_close_times_out(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--conn_close_ms", "50", NULL);
	rdma_pair_run(&pair, script_close_times_out);
	ASSERT_EQ(pair.client.close_reason, -ETIMEDOUT);
	rdma_down();
}

/* ---- the peer's end ---- */

/* Data that is still in the receive queue when the end is read comes first. */
static void
script_end_behind_data(struct rdma_pair *pair)
{
	struct xr_conn *client = pair->client.conn;

	rdma_pause(pair->server.conn);
	NET_CHECK(rdma_send(client, 0, 50000) == 0);
	rdma_close(client);
	NET_AWAIT(rdma_state(client) == CONN_DRAINING);
	rdma_settle();
	NET_CHECK(!PROBE_READ(pair->server.closed) && PROBE_READ(pair->server.bytes) == 0);
	rdma_resume(pair->server.conn);
	AWAIT_BOTH_CLOSED(pair);
}

static void
test_end_behind_data(void)
{
	struct rdma_pair pair = {.arg = NULL};

	run_pair(&pair, script_end_behind_data);
	ASSERT_EQ(pair.server.bytes, 50000);
	ASSERT_EQ(pair.server.close_reason, 0);
	rdma_down();
}

/* What the one whose peer has ended still sends is dropped: nobody wants it. */
static void
send_then_take(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	check_pattern(probe, conn, in);
	NET_CHECK(send_pattern(conn, 0, 1 << 20) == 0);
}

static void
test_answer_to_the_gone(void)
{
	static const size_t size = 1000;
	struct rdma_pair pair = {.server.on_data = send_then_take, .arg = (void *)&size};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_close);
	ASSERT_EQ(pair.server.bytes, size);
	ASSERT_EQ(pair.client.close_reason, 0);
	ASSERT_EQ(pair.server.close_reason, 0);
	rdma_down();
}

static void
do_abort(void *conn)
{
	xr_conn_abort(conn, -EBADMSG);
}

static void
script_abort(struct rdma_pair *pair)
{
	fake_hold(FAKE_ACK, 0);
	NET_CHECK(rdma_send(pair->client.conn, 0, 100000) == 0);
	rdma_do(do_abort, pair->client.conn);
	AWAIT_BOTH_CLOSED(pair);
	fake_let_go(FAKE_ACK, 0);
}

static void
test_abort(void)
{
	struct rdma_pair pair = {.arg = NULL};

	run_pair(&pair, script_abort);
	ASSERT_EQ(pair.client.close_reason, -EBADMSG);
	ASSERT_EQ(pair.server.close_reason, -ECONNRESET);
	rdma_down();
}

/* The library ends with messages under way. */
static void
script_stop(struct rdma_pair *pair)
{
	fake_hold(FAKE_ACK, 0);
	NET_CHECK(rdma_send(pair->client.conn, 0, 100000) == 0);
}

static void
test_stop(void)
{
	struct rdma_pair pair = {.arg = NULL};

	run_pair(&pair, script_stop);
	ASSERT_EQ(pair.client.close_reason, -ECANCELED);
	ASSERT_EQ(pair.server.close_reason, -ECANCELED);
	rdma_down();
}

/* ---- foreign ends ---- */

/* It sends and closes its socket at once, its queue pair a little later: all of it is delivered. */
static void
send_and_go(void *address)
{
	struct foreign peer;

	foreign_connect(&peer, address);
	for (int i = 0; i < 20; i++)
		foreign_send(&peer, "0123456789", 10, 0);
	close(peer.fd);
	peer.fd = -1;
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	foreign_close(&peer);
	xr_stop();
}

static void
count_bytes(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)conn;
	probe->bytes += xr_iobuf_drop(in, SIZE_MAX);
}

static void
test_foreign_end(void)
{
	struct probe server = {.on_data = count_bytes};

	rdma_up(NULL);
	net_run(send_and_go, (void *)xr_listener_address(probe_listen(&server, NULL)));
	ASSERT_EQ(server.bytes, 200);
	ASSERT_EQ(server.close_reason, 0);
	rdma_down();
}

/* Its queue pair is gone before the server's answer is: an error, unless its end on TCP is seen first. */
static void
go_without_a_word(void *address)
{
	struct foreign peer;

	foreign_connect(&peer, address);
	foreign_send(&peer, "0123456789", 10, 0);
	NET_CHECK(foreign_await(&peer, IBV_WC_RECV).status == IBV_WC_SUCCESS);
	NET_CHECK(ibv_destroy_qp(peer.qp) == 0);
	peer.qp = NULL;
	close(peer.fd);
	peer.fd = -1;
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	foreign_close(&peer);
	xr_stop();
}

static void
test_foreign_goes_without_a_word(void)
{
	struct probe server = {.on_data = probe_echo};

	rdma_up(NULL);
	net_run(go_without_a_word, (void *)xr_listener_address(probe_listen(&server, NULL)));
	ASSERT_EQ(server.close_reason, 0);
	rdma_down();
}

UNIT_SUITE("ending", {"a close lets everything arrive", test_close},
	   {"a farewell covers what nothing else does", test_farewell},
	   {"no farewell where the peer has reported all", test_no_farewell},
	   {"both close with much to say", test_close_both}, {"a close has its time", test_close_times_out},
	   {"the end comes behind the data", test_end_behind_data},
	   {"an answer to one that has gone", test_answer_to_the_gone},
	   {"an abort is a reset for the peer", test_abort}, {"the library stops in the middle", test_stop},
	   {"a foreign peer sends and closes", test_foreign_end},
	   {"a foreign peer goes without a word", test_foreign_goes_without_a_word});
