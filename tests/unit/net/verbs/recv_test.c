/* SPDX-License-Identifier: Apache-2.0 */

/* The receiving half: whose memory messages end in, what is reported to the peer and when, and life without blocks. */

#include "mem/block.h"
#include "tests/unit/net/verbs/foreign.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <sys/mman.h>
#include <xrdma/error.h>
#include <xrdma/mem.h>

#define OWN_BYTES ((size_t)16 << 20)

#define AWAIT_BYTES(probe, count) NET_AWAIT(PROBE_READ((probe).bytes) == (count))

static struct xr_conn_rdma
state(struct xr_conn *conn)
{
	return rdma_info(conn).rdma;
}

static uint64_t
receives_posted(const struct xr_conn *conn)
{
	return fake_requests(rdma_qp(conn), FAKE_RQ);
}

static struct fake_request
receive(const struct xr_conn *conn, uint64_t index)
{
	struct fake_request found = {.num_sge = 0};

	NET_CHECK(fake_request(rdma_qp(conn), FAKE_RQ, index, &found));
	return found;
}

static void
check_pattern(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	uint64_t before = probe->bytes;

	(void)conn;
	__atomic_store_n(&probe->bytes, before + take_pattern(in, before), __ATOMIC_RELEASE);
}

/* ---- whose memory ---- */

static size_t
slots_counted(void)
{
	struct xr_mem_info info = {.recv_slots = 0};

	NET_CHECK(xr_mem_info(0, &info) == 0 && info.type == XR_BLOCK_DEFAULT);
	return info.recv_slots;
}

static void
script_own_memory(struct rdma_pair *pair)
{
	const char *own = pair->arg;

	NET_CHECK(slots_counted() == 2 * 32);
	rdma_send(pair->client.conn, 0, 100 * BLOCK_PAYLOAD);
	AWAIT_BYTES(pair->server, 100 * BLOCK_PAYLOAD);
	NET_CHECK(slots_counted() == 2 * 32);
	for (uint64_t i = 0; i < 32; i++) {
		const char *addr =
			(const char *)receive(pair->server.conn, i).sge[0].addr; /* NOLINT: the card's address */

		NET_CHECK(addr > own && addr < own + OWN_BYTES);
	}
}

/* The library starts without any; what is added then carries everything, and its receive slots are counted. */
static void
test_own_memory(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};
	char *own = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_FATAL(own != MAP_FAILED);
	pair.arg = own;
	rdma_up("--rdma_memory_pool_user_specified_memory", "--rdma_rq_size", "32", NULL);
	CU_ASSERT_FALSE(net_logged("left on node"));
	ASSERT_EQ(xr_mem_pool_add(own, OWN_BYTES, XR_BLOCK_DEFAULT, 0), 0);
	rdma_pair_run(&pair, script_own_memory);
	ASSERT_EQ(slots_counted(), 0);
	rdma_down();
	munmap(own, OWN_BYTES);
}

struct seen {
	uintptr_t addresses[16];
	unsigned count;
};

static void
see_addresses(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct seen *seen = probe->arg;
	struct iovec iov[16];
	int n = xr_iobuf_iovec(in, 0, iov, 16);

	for (int i = 0; i < n; i++)
		seen->addresses[seen->count++] = (uintptr_t)iov[i].iov_base;
	check_pattern(probe, conn, in);
}

static void
script_zero_copy(struct rdma_pair *pair)
{
	const struct seen *seen = pair->server.arg;
	struct xr_conn *conn = pair->server.conn;
	uint64_t at = receives_posted(conn) - 16; /* the first that the card fills */
	static const size_t sizes[] = {512, BLOCK_PAYLOAD, 5000};
	uint64_t sent = 0;

	for (int i = 0; i < 3; i++) {
		rdma_send(pair->client.conn, sent, sizes[i]);
		sent += sizes[i];
		AWAIT_BYTES(pair->server, sent);
		NET_CHECK(seen->count == (unsigned)i + 1);
		NET_CHECK(seen->addresses[i] == receive(conn, at + (uint64_t)i).sge[0].addr);
		NET_CHECK(receive(conn, at + (uint64_t)i).sge[0].length == BLOCK_PAYLOAD);
		/* The slot goes on with another block: what was handed over is the application's. */
		NET_CHECK(receive(conn, receives_posted(conn) - 1).sge[0].addr != seen->addresses[i]);
	}
	NET_CHECK(rdma_counted(RDMA_ZERO_COPY) == 3 && rdma_counted(RDMA_COPIED) == 0);

	rdma_send(pair->client.conn, sent, 511);
	AWAIT_BYTES(pair->server, sent + 511);
	NET_CHECK(rdma_counted(RDMA_ZERO_COPY) == 3 && rdma_counted(RDMA_COPIED) == 1);
	NET_CHECK(seen->addresses[3] != receive(conn, at + 3).sge[0].addr);
	NET_CHECK(receive(conn, receives_posted(conn) - 1).sge[0].addr == receive(conn, at + 3).sge[0].addr);
}

static void
test_zero_copy(void)
{
	struct seen seen = {.count = 0};
	struct rdma_pair pair = {.server = {.on_data = see_addresses, .arg = &seen}};

	rdma_up("--rdma_rq_size", "16", NULL);
	rdma_pair_run(&pair, script_zero_copy);
	rdma_down();
}

static void
script_copies(struct rdma_pair *pair)
{
	rdma_send(pair->client.conn, 0, 3 * BLOCK_PAYLOAD);
	AWAIT_BYTES(pair->server, 3 * BLOCK_PAYLOAD);
	NET_CHECK(rdma_counted(RDMA_ZERO_COPY) == 0);
	NET_CHECK(rdma_counted(RDMA_COPIED) == rdma_counted(RDMA_RECEIVES));
}

static void
test_zero_copy_off(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--nordma_recv_zerocopy", NULL);
	rdma_pair_run(&pair, script_copies);
	rdma_down();
}

static void
script_min_size(struct rdma_pair *pair)
{
	rdma_send(pair->client.conn, 0, 3999);
	AWAIT_BYTES(pair->server, 3999);
	NET_CHECK(rdma_counted(RDMA_COPIED) == 1);
	rdma_send(pair->client.conn, 3999, 4000);
	AWAIT_BYTES(pair->server, 7999);
	NET_CHECK(rdma_counted(RDMA_ZERO_COPY) == 1);
}

static void
test_zero_copy_min_size(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--rdma_zerocopy_min_size", "4000", NULL);
	rdma_pair_run(&pair, script_min_size);
	rdma_down();
}

/* Once the input pins half of its limit, messages that fill less than a quarter of a block are copied. */
static void
script_amplification(struct rdma_pair *pair)
{
	uint64_t sent = 0;

	rdma_pause(pair->server.conn);
	for (int i = 0; i < 7; i++, sent += 2000) {
		rdma_send(pair->client.conn, sent, 2000);
		NET_AWAIT(rdma_counted(RDMA_RECEIVES) == (uint64_t)i + 1);
	}
	/* The limit is 64 KiB, so the fifth block is beyond its half. */
	NET_CHECK(rdma_counted(RDMA_ZERO_COPY) == 5);
	NET_CHECK(rdma_counted(RDMA_COPIED) == 2);
	rdma_resume(pair->server.conn);
	AWAIT_BYTES(pair->server, sent);
}

static void
test_amplification(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--conn_input_limit_kb", "64", NULL);
	rdma_pair_run(&pair, script_amplification);
	rdma_down();
}

/* ---- reports ---- */

/* The peer's window is 125: at the 63rd unreported message, being more than half, a report leaves by itself. */
static void
script_pure_ack(struct rdma_pair *pair)
{
	struct xr_conn *server = pair->server.conn;

	for (unsigned i = 0; i < 62; i++) {
		rdma_send(pair->client.conn, i, 1);
		AWAIT_BYTES(pair->server, i + 1u);
	}
	NET_CHECK(fake_requests(rdma_qp(server), FAKE_SQ) == 0);
	NET_CHECK(state(server).unreported == 62);
	NET_CHECK(state(pair->client.conn).remote_window == 125 - 62);
	rdma_send(pair->client.conn, 62, 1);
	NET_AWAIT(fake_requests(rdma_qp(server), FAKE_SQ) == 1);
	NET_CHECK(fake_qp_counts(rdma_qp(server)).zero_length == 1);
	NET_CHECK(fake_qp_counts(rdma_qp(server)).credits == 63);
	NET_AWAIT(state(pair->client.conn).remote_window == 125);
	NET_AWAIT(state(server).ack_slots == 3);
	NET_CHECK(rdma_counted(RDMA_PURE_ACKS) == 1);
}

static void
test_pure_ack_at_half(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_pure_ack);
	rdma_down();
}

/* A response carries the report of what came before. */
static void
script_piggyback(struct rdma_pair *pair)
{
	struct fake_request response = {.imm = 0};

	for (unsigned i = 0; i < 10; i++)
		rdma_send(pair->client.conn, i, 1);
	AWAIT_BYTES(pair->server, 10);
	NET_CHECK(rdma_send(pair->server.conn, 0, 100) == 0);
	AWAIT_BYTES(pair->client, 100);
	NET_CHECK(fake_request(rdma_qp(pair->server.conn), FAKE_SQ, 0, &response));
	NET_CHECK(response.imm > 0 && response.imm == fake_qp_counts(rdma_qp(pair->client.conn)).sends);
	NET_CHECK(state(pair->client.conn).remote_window == 125);
	NET_CHECK(rdma_counted(RDMA_PURE_ACKS) == 0);
}

static void
test_piggyback(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_piggyback);
	rdma_down();
}

/* ACK slots are three: with their completions held back a fourth report waits, and leaves when a slot returns. */
static void
script_ack_slots(struct rdma_pair *pair)
{
	struct xr_conn *server = pair->server.conn;

	fake_hold(FAKE_ACK, rdma_qp(server));
	for (unsigned ack = 1; ack <= 3; ack++) {
		NET_CHECK(rdma_send(pair->client.conn, 0, 7 * BLOCK_PAYLOAD) == 0);
		NET_AWAIT(fake_qp_counts(rdma_qp(server)).zero_length == ack);
	}
	NET_AWAIT(state(pair->client.conn).remote_window == 13);
	NET_CHECK(rdma_send(pair->client.conn, 0, 20 * BLOCK_PAYLOAD) == 0);
	NET_AWAIT(state(pair->client.conn).remote_window == 0);
	rdma_settle();
	NET_CHECK(state(server).ack_slots == 0 && state(server).unreported == 13);
	NET_CHECK(fake_qp_counts(rdma_qp(server)).zero_length == 3);
	fake_let_go(FAKE_ACK, rdma_qp(server));
	AWAIT_BYTES(pair->server, 41 * BLOCK_PAYLOAD);
}

static void
test_ack_slots(void)
{
	struct rdma_pair pair = {.server.opened = 0};

	rdma_up("--rdma_rq_size", "16", NULL);
	rdma_pair_run(&pair, script_ack_slots);
	rdma_down();
}

/* ---- holding the peer back ---- */

/* Nobody takes: the peer stops at its window, and memory is bounded. Taking all lets everything through. */
static void
script_hold(struct rdma_pair *pair)
{
	struct xr_conn *server = pair->server.conn;
	size_t total = 600 * BLOCK_PAYLOAD;

	rdma_pause(server);
	NET_CHECK(rdma_send(pair->client.conn, 0, total) == 0);
	NET_AWAIT(state(server).held == 125);
	rdma_settle();
	NET_CHECK(state(pair->client.conn).remote_window == 0 && state(server).unreported == 125);
	NET_CHECK(rdma_info(server).input_waiting < total);
	NET_CHECK(rdma_info(server).input_waiting <= (128 + 125) * BLOCK_PAYLOAD);
	rdma_resume(server);
	AWAIT_BYTES(pair->server, total);
	NET_AWAIT(state(server).held == 0);
	NET_CHECK(net_counted(NET_INPUT_HELD) >= 1);
}

static void
test_hold(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--conn_output_limit_kb", "16384", NULL);
	rdma_pair_run(&pair, script_hold);
	rdma_down();
}

/* Both sides full and both holding: it moves as soon as one of them takes. */
static void
script_both_hold(struct rdma_pair *pair)
{
	struct xr_conn *client = pair->client.conn, *server = pair->server.conn;
	size_t total = 600 * BLOCK_PAYLOAD;

	rdma_pause(server);
	rdma_pause(client);
	NET_CHECK(rdma_send(client, 0, total) == 0);
	NET_CHECK(rdma_send(server, 0, total) == 0);
	NET_AWAIT(state(client).held == 125 && state(server).held == 125);
	rdma_settle();
	NET_CHECK(state(client).remote_window == 0 && state(server).remote_window == 0);
	rdma_resume(server);
	AWAIT_BYTES(pair->server, total);
	NET_CHECK(PROBE_READ(pair->client.bytes) == 0);
	rdma_resume(client);
	AWAIT_BYTES(pair->client, total);
}

static void
test_both_hold(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern, .client.on_data = check_pattern};

	rdma_up("--conn_output_limit_kb", "16384", NULL);
	rdma_pair_run(&pair, script_both_hold);
	rdma_down();
}

/* A frame larger than the limit: its reader has said that it needs it whole. */
static void
take_when_whole(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	size_t frame = 3 << 20;

	xr_conn_need(conn, frame);
	if (xr_iobuf_size(in) >= frame)
		check_pattern(probe, conn, in);
}

static void
script_need(struct rdma_pair *pair)
{
	NET_CHECK(rdma_send(pair->client.conn, 0, 3 << 20) == 0);
	AWAIT_BYTES(pair->server, 3 << 20);
}

static void
test_need(void)
{
	struct rdma_pair pair = {.server.on_data = take_when_whole};

	rdma_up("--conn_output_limit_kb", "16384", NULL);
	rdma_pair_run(&pair, script_need);
	rdma_down();
}

/* A reader that takes a little at a time: what is fully taken is reported while the rest is held. */
static void
take_a_little(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct xr_iobuf part = XR_IOBUF_INIT;
	uint64_t before = probe->bytes;

	xr_iobuf_cut(in, 3000, &part);
	__atomic_store_n(&probe->bytes, before + take_pattern(&part, before), __ATOMIC_RELEASE);
	if (xr_iobuf_size(in))
		xr_conn_resume(conn);
}

static void
script_little(struct rdma_pair *pair)
{
	NET_CHECK(rdma_send(pair->client.conn, 0, 600 * BLOCK_PAYLOAD) == 0);
	AWAIT_BYTES(pair->server, 600 * BLOCK_PAYLOAD);
}

static void
test_takes_a_little(void)
{
	struct rdma_pair pair = {.server.on_data = take_a_little};

	rdma_up("--conn_output_limit_kb", "16384", NULL);
	rdma_pair_run(&pair, script_little);
	rdma_down();
}

/* ---- without blocks ---- */

static struct {
	struct xr_block *blocks[16384];
	unsigned count;
} g_hoard;

static void
take_all_blocks(void *arg)
{
	struct xr_block *block;

	(void)arg;
	while (g_hoard.count < 16384 &&
	       ((block = block_alloc(BLOCK_DEFAULT)) || (block = block_alloc_recv(BLOCK_DEFAULT))))
		g_hoard.blocks[g_hoard.count++] = block;
}

static void
give_blocks_back(void *arg)
{
	(void)arg;
	while (g_hoard.count)
		block_drop(g_hoard.blocks[--g_hoard.count]);
}

/* The messages stay whole although the pool is empty: copied to ordinary memory up to the limit, then starved. */
static void
script_no_blocks(struct rdma_pair *pair)
{
	fake_hold(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	fake_hold(FAKE_ACK, rdma_qp(pair->client.conn));
	rdma_pause(pair->server.conn);
	NET_CHECK(rdma_send(pair->client.conn, 0, 60 * BLOCK_PAYLOAD) == 0);
	rdma_do(take_all_blocks, NULL);
	fake_let_go(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	NET_AWAIT(state(pair->server.conn).starved > 0);
	NET_CHECK(rdma_counted(RDMA_COPIED_SHORT_OF_BLOCKS) > 0);
	NET_CHECK(rdma_counted(RDMA_STARVED) > 0);
	rdma_do(give_blocks_back, NULL);
	fake_let_go(FAKE_ACK, rdma_qp(pair->client.conn));
	NET_AWAIT(state(pair->server.conn).starved == 0);
	rdma_resume(pair->server.conn);
	AWAIT_BYTES(pair->server, 60 * BLOCK_PAYLOAD);
	NET_CHECK(rdma_send(pair->client.conn, 60 * BLOCK_PAYLOAD, 600 * BLOCK_PAYLOAD) == 0);
	AWAIT_BYTES(pair->server, 660 * BLOCK_PAYLOAD);
}

static void
test_short_of_blocks(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--pool_max_mb", "32", "--conn_input_limit_kb", "128", "--conn_output_limit_kb", "16384", NULL);
	rdma_pair_run(&pair, script_no_blocks);
	rdma_down();
}

static void
give_one_back(void *arg)
{
	(void)arg;
	block_drop(g_hoard.blocks[--g_hoard.count]);
}

/* The only one that waits, which gets its blocks one by one, keeps its place in the queue. */
static void
script_fed_bit_by_bit(struct rdma_pair *pair)
{
	struct xr_conn *server = pair->server.conn;
	unsigned starved;

	fake_hold(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	fake_hold(FAKE_ACK, rdma_qp(pair->client.conn));
	rdma_pause(server);
	NET_CHECK(rdma_send(pair->client.conn, 0, 60 * BLOCK_PAYLOAD) == 0);
	rdma_do(take_all_blocks, NULL);
	fake_let_go(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	NET_AWAIT(state(server).starved > 3);
	rdma_settle();
	starved = state(server).starved;
	for (unsigned i = 1; i <= 3; i++) {
		rdma_do(give_one_back, NULL);
		NET_AWAIT(state(server).starved == starved - i);
	}
	rdma_do(give_blocks_back, NULL);
	fake_let_go(FAKE_ACK, rdma_qp(pair->client.conn));
	NET_AWAIT(state(server).starved == 0);
	rdma_resume(server);
	AWAIT_BYTES(pair->server, 60 * BLOCK_PAYLOAD);
}

static void
test_fed_bit_by_bit(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--pool_max_mb", "32", "--conn_input_limit_kb", "128", "--conn_output_limit_kb", "16384", NULL);
	rdma_pair_run(&pair, script_fed_bit_by_bit);
	rdma_down();
}

/* Others have the blocks, and for long: the connection waits, says so, and goes on when they have come home. */
static void
script_starved_for_long(struct rdma_pair *pair)
{
	fake_hold(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	fake_hold(FAKE_ACK, rdma_qp(pair->client.conn));
	rdma_pause(pair->server.conn);
	NET_CHECK(rdma_send(pair->client.conn, 0, 60 * BLOCK_PAYLOAD) == 0);
	rdma_do(take_all_blocks, NULL);
	fake_let_go(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	NET_AWAIT(net_logged("no free block to receive into for conn_starved_ms, and still waits"));
	NET_CHECK(!PROBE_READ(pair->server.closed) && state(pair->server.conn).starved > 0);
	rdma_do(give_blocks_back, NULL);
	fake_let_go(FAKE_ACK, rdma_qp(pair->client.conn));
	rdma_resume(pair->server.conn);
	AWAIT_BYTES(pair->server, 60 * BLOCK_PAYLOAD);
	NET_AWAIT(state(pair->server.conn).starved == 0);
}

static void
test_starved_for_long(void)
{
	struct rdma_pair pair = {.server.on_data = check_pattern};

	rdma_up("--pool_max_mb", "32", "--conn_input_limit_kb", "128", "--conn_starved_ms", "50", NULL);
	rdma_pair_run(&pair, script_starved_for_long);
	rdma_down();
}

/* What comes before the ACK may starve as well, and is served whether the ACK has come or not. */
static void
early_without_blocks(void *address)
{
	static const char data[BLOCK_PAYLOAD];
	struct foreign peer;

	foreign_open(&peer);
	foreign_dial(&peer, address);
	foreign_bring_up(&peer);
	rdma_do(take_all_blocks, NULL);
	for (int i = 0; i < 31; i++)
		foreign_send(&peer, data, sizeof data, 0);
	NET_AWAIT(rdma_counted(RDMA_STARVED) > 0);
	net_sleep_ms(20);
	foreign_send_ack(&peer, true);
	NET_AWAIT(net_counted(NET_CONNS_OPENED) == 1);
	net_sleep_ms(20);
	rdma_do(give_blocks_back, NULL);
	NET_CHECK(foreign_await(&peer, IBV_WC_RECV).status == IBV_WC_SUCCESS);
	NET_CHECK(rdma_counted(RDMA_PURE_ACKS) == 1);
	foreign_close(&peer);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

/* 31 messages are more than half of the peer's window: once they have their blocks a report is due. */
static void
test_early_starves(void)
{
	struct probe server = {.opened = 0};

	rdma_up("--pool_max_mb", "32", "--conn_input_limit_kb", "64", NULL);
	net_run(early_without_blocks, (void *)xr_listener_address(probe_listen(&server, NULL)));
	ASSERT_EQ(server.bytes, 31 * BLOCK_PAYLOAD);
	ASSERT_EQ(server.close_reason, 0);
	rdma_down();
}

/* A message that the pool can't hold ends its connection, before it has taken much. */
static void
take_nothing(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)probe;
	NET_CHECK(xr_iobuf_size(in) < (size_t)4 << 20);
	xr_conn_need(conn, (size_t)1 << 30);
}

static void
script_too_large(struct rdma_pair *pair)
{
	NET_CHECK(rdma_send(pair->client.conn, 0, 1000 * BLOCK_PAYLOAD) == 0);
	NET_AWAIT(PROBE_READ(pair->server.closed) && PROBE_READ(pair->client.closed));
}

static void
test_too_large(void)
{
	struct rdma_pair pair = {.server.on_data = take_nothing};

	rdma_up("--pool_max_mb", "32", "--conn_output_limit_kb", "16384", NULL);
	rdma_pair_run(&pair, script_too_large);
	ASSERT_EQ(pair.server.close_reason, -EMSGSIZE);
	ASSERT_EQ(net_counted(NET_MESSAGES_TOO_LARGE), 1);
	CU_ASSERT(net_logged("its message of 1073741824 bytes needs"));
	rdma_down();
}

/* What was copied to ordinary memory can be sent on like anything else. */
static void
script_forward(struct rdma_pair *pair)
{
	fake_hold(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	fake_hold(FAKE_ACK, rdma_qp(pair->client.conn));
	rdma_pause(pair->server.conn);
	NET_CHECK(rdma_send(pair->client.conn, 0, 10 * BLOCK_PAYLOAD) == 0);
	rdma_do(take_all_blocks, NULL);
	fake_let_go(FAKE_DELIVERY, rdma_qp(pair->client.conn));
	NET_AWAIT(rdma_counted(RDMA_COPIED_SHORT_OF_BLOCKS) == 10);
	rdma_do(give_blocks_back, NULL);
	rdma_resume(pair->server.conn);
	fake_let_go(FAKE_ACK, rdma_qp(pair->client.conn));
	AWAIT_BYTES(pair->client, 10 * BLOCK_PAYLOAD);
}

static void
test_forward(void)
{
	struct rdma_pair pair = {.server.on_data = probe_echo, .client.on_data = check_pattern};

	rdma_up("--pool_max_mb", "32", "--conn_input_limit_kb", "128", NULL);
	rdma_pair_run(&pair, script_forward);
	rdma_down();
}

UNIT_SUITE("recv", {"memory of the application's own", test_own_memory},
	   {"the application gets the block that the card wrote to", test_zero_copy},
	   {"zero copy can be switched off", test_zero_copy_off},
	   {"the smallest message for zero copy is a flag", test_zero_copy_min_size},
	   {"sparse blocks are copied once they pin half the limit", test_amplification},
	   {"a report leaves by itself beyond half the window", test_pure_ack_at_half},
	   {"data carries reports", test_piggyback}, {"a fourth pure ACK waits for a slot", test_ack_slots},
	   {"who does not take holds the peer back", test_hold}, {"both sides full and both holding", test_both_hold},
	   {"nobody is held back below what is needed", test_need},
	   {"what is taken is reported while the rest is held", test_takes_a_little},
	   {"without blocks nothing is lost", test_short_of_blocks},
	   {"blocks that come one by one", test_fed_bit_by_bit}, {"without blocks for long", test_starved_for_long},
	   {"without blocks before the handshake has ended", test_early_starves},
	   {"a message that the pool can't hold", test_too_large},
	   {"what was copied for want of blocks can be sent on", test_forward});
