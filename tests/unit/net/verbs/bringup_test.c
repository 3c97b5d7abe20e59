/* SPDX-License-Identifier: Apache-2.0 */

/* The handshake's resources: what it takes, how each step may fail in either role, and what may come too early. */

#include "mem/pool.h"
#include "net/rdma_provider.h"
#include "tests/unit/net/verbs/foreign.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <xrdma/error.h>

/* ---- falling back ---- */

struct fallback {
	struct xr_conn_info client, server;
};

static void
note_client(struct probe *probe, struct xr_conn *conn, int status)
{
	struct fallback *fallback = probe->arg;

	NET_CHECK(status == 0);
	fallback->client.size = sizeof fallback->client;
	xr_conn_info(conn, &fallback->client);
	send_pattern(conn, 0, 20000);
}

static void
note_server(struct probe *probe, struct xr_conn *conn, int status)
{
	struct fallback *fallback = probe->arg;

	NET_CHECK(status == 0);
	fallback->server.size = sizeof fallback->server;
	xr_conn_info(conn, &fallback->server);
}

static void
close_when_all(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	probe->bytes += take_pattern(in, probe->bytes);
	if (probe->bytes == 20000)
		xr_conn_close(conn);
}

static const char *
listen_on(const char *port, struct probe *server)
{
	struct xr_listen_opts opts = {
		.size = sizeof opts, .ops = &g_probe_ops, .arg = server, .peer_speaks_first = true};
	struct xr_listener *listener = NULL;

	ASSERT_FATAL(xr_listen(xr_port_find(port), "127.0.0.1:0", &opts, &listener) == 0);
	return xr_listener_address(listener);
}

/* An echo over whatever they agree on, with a server on that port; the library is up. */
static struct fallback
run_fallback_on(const char *port)
{
	struct fallback fallback = {.client.size = 0};
	struct probe server = {.on_open = note_server, .on_data = probe_echo, .arg = &fallback};
	struct probe client = {
		.on_open = note_client, .on_data = close_when_all, .on_close = probe_stop_on_close, .arg = &fallback};

	probe_dial(&client, listen_on(port, &server), XR_RDMA_AUTO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.bytes, 20000);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.close_reason, 0);
	return fallback;
}

static struct fallback
run_fallback(void)
{
	return run_fallback_on(NULL);
}

/* Either role fails at a step; both go on with TCP, on the same connection, and say why. */
static void
expect_fallback(const char *reason)
{
	struct fallback fallback = run_fallback();

	ASSERT_STR(fallback.client.transport, "tcp");
	ASSERT_STR(fallback.server.transport, "tcp");
	CU_ASSERT(strstr(fallback.client.fallback_reason, reason) || strstr(fallback.server.fallback_reason, reason));
	ASSERT_EQ(net_counted(NET_CONNS_OPENED), 2);
	ASSERT_EQ(rdma_counted(RDMA_CONNECTIONS), 0);
	rdma_down();
}

static const struct {
	const char *verb;
	unsigned client, server; /* the calls that are theirs; the client's are first */
	const char *reason;
} g_steps[] = {
	{"create_comp_channel", 1, 0, "the device gives no completion queue"},
	{"create_cq", 1, 0, "the device gives no completion queue"},
	{"create_cq", 2, 0, "the device gives no completion queue"},
	{"create_qp", 1, 2, "the device gives no queue pair"},
	{"modify_qp_init", 1, 2, "the queue pair did not go to INIT"},
	{"post_recv", 2, 1, "the device refuses the receives"},
	{"modify_qp_rtr", 2, 1, "the queue pair did not go to RTR"},
	{"modify_qp_rts", 2, 1, "the queue pair did not go to RTS"},
};

static void
fail_each_step(bool client)
{
	for (size_t i = 0; i < sizeof g_steps / sizeof g_steps[0]; i++) {
		unsigned nth = client ? g_steps[i].client : g_steps[i].server;

		if (!nth)
			continue;
		rdma_up(NULL);
		fake_fail(g_steps[i].verb, nth, EPERM);
		expect_fallback(g_steps[i].reason);
	}
}

static void
test_server_port_without_rdma(void)
{
	struct fallback fallback;

	rdma_up("--port", "none,rdma=off", NULL);
	fallback = run_fallback_on("none");
	ASSERT_STR(fallback.client.transport, "tcp");
	ASSERT_STR(fallback.client.fallback_reason, "refused by the peer");
	ASSERT_STR(fallback.server.fallback_reason, "the port has rdma=off");
	ASSERT_EQ(net_counted(NET_CONNS_OPENED), 2);
	ASSERT_EQ(net_counted(NET_CONNS_CLOSED), 2);
	rdma_down();
}

static void
test_client_fails(void)
{
	fail_each_step(true);
}

static void
test_server_fails(void)
{
	fail_each_step(false);
}

static void
test_no_device(void)
{
	fake_reset();
	net_up(1, NULL);
	ASSERT_STR(rdma_provider()->reason, "no RDMA device on this machine");
	expect_fallback("no RDMA device on this machine");
}

/* The card has an address that no connection has. */
static void
test_no_gid(void)
{
	struct fake_device card = fake_device("fake0", "10.1.2.3");

	card.ports[0].gids[1].ifindex = card.ports[0].gids[2].ifindex = 0;
	card.ports[0].state = IBV_PORT_DOWN;
	rdma_up_with(&card, NULL);
	expect_fallback("");
}

/* So many receive blocks are not there for two. */
static void
test_no_blocks(void)
{
	rdma_up("--pool_max_mb", "64", "--rdma_memory_pool_increase_size_mb", "32", "--port",
		"default,block=large,rq=300", NULL);
	expect_fallback("the pool has no blocks for it to receive into: 19200 KiB needed (300 large blocks), 16384 KiB "
			"available for that (--pool_max_mb, --rdma_memory_pool_max_regions)");
}

/* They are there, and too little would be left for what is to be sent. */
static void
test_blocks_are_left_to_others(void)
{
	rdma_up("--pool_max_mb", "64", "--rdma_memory_pool_initial_size_mb", "32",
		"--rdma_memory_pool_increase_size_mb", "32", "--rdma_memory_pool_max_regions", "1", "--port",
		"default,block=large,rq=200", NULL);
	expect_fallback("the pool has no blocks for it to receive into");
}

static void
test_no_room_in_cq(void)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");

	card.max_cqe = 200;
	card.max_cq = 2;
	rdma_up_with(&card, NULL);
	expect_fallback("160 more are needed, and the device allows 200; there can be no further one");
}

static void
test_port_asks_for_unusable_device(void)
{
	struct fake_device other = fake_device("fake1", "127.0.0.1");

	rdma_card(NULL);
	fake_device_add(&other);
	fake_fail("open_device", 1, EIO);
	net_up(1, "--port", "default,dev=fake0", "--port", "other", NULL);
	expect_fallback("the device that the port asks for can't be used");
}

/* ---- what the port and the flags say ---- */

static void
test_sizes(void)
{
	struct fallback got;

	rdma_up("--port", "default,sq=32,rq=64,dev=fake0,ibport=1,gid=2", NULL);
	got = run_fallback();
	ASSERT_STR(got.client.transport, "rdma");
	ASSERT_STR(got.client.rdma.device, "fake0");
	ASSERT_EQ(got.client.rdma.gid_index, 2);
	ASSERT_EQ(got.client.rdma.remote_capacity, 29);
	ASSERT_EQ(got.client.rdma.own_capacity, 32 + 8 - 3);
	ASSERT_EQ(got.client.rdma.peer_capacity, 29);
	ASSERT_EQ(got.client.rdma.peer_qp_num, got.server.rdma.qp_num);
	ASSERT_EQ(got.server.rdma.peer_qp_num, got.client.rdma.qp_num);
	ASSERT_EQ(got.client.rdma.peer_block_bytes, 8160);
	rdma_down();

	rdma_up("--rdma_sq_size", "1", "--rdma_rq_size", "100000", "--rdma_memory_pool_initial_size_mb", "128", NULL);
	got = run_fallback();
	ASSERT_EQ(got.client.rdma.remote_capacity, 13);
	ASSERT_EQ(got.client.rdma.peer_capacity, 13);
	rdma_down();
}

static void
test_block_types(void)
{
	static const struct {
		const char *port;
		uint32_t block;
		unsigned window;
	} types[] = {{"default,block=default", 8160, 125},
		     {"default,block=large", 65504, 125},
		     {"default,block=huge", 2097120, 13},
		     {"default,block=huge,rq=20", 2097120, 17}};
	struct fallback got;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		rdma_up("--port", types[i].port, NULL);
		got = run_fallback();
		ASSERT_STR(got.client.transport, "rdma");
		ASSERT_EQ(got.client.rdma.peer_block_bytes, types[i].block);
		ASSERT_EQ(got.client.rdma.remote_capacity, types[i].window);
		rdma_down();
	}
}

static uint64_t
regions(void)
{
	return counter_read(&g_pool_counters[POOL_REGIONS], NULL);
}

/* Each port's first region is there before the first connection, and only where there is RDMA. */
static void
test_regions_before_connections(void)
{
	rdma_up("--port", "default", "--port", "big,block=large", "--port", "off,block=huge,rdma=off", NULL);
	ASSERT_EQ(regions(), 2);
	rdma_down();
	fake_reset();
	net_up(1, "--port", "default", "--port", "big,block=large", NULL);
	ASSERT_EQ(regions(), 1);
	net_down();
}

static void
test_trace(void)
{
	rdma_up("--rdma_trace_verbose", NULL);
	run_fallback();
	CU_ASSERT(net_logged("in C_ALLOC_QPCQ: own hello: versions 2.1, block 8160, sq 128, rq 128"));
	CU_ASSERT(net_logged("in S_BRINGUP_QP: peer's hello: versions 2.1"));
	CU_ASSERT(net_logged("in ESTABLISHED: open: device fake0 port 1 GID index 2"));
	rdma_down();
	rdma_up(NULL);
	run_fallback();
	CU_ASSERT_FALSE(net_logged("own hello"));
	rdma_down();
}

/* ---- too early, too much ---- */

static void
run_server(struct probe *server, void (*peer)(void *address))
{
	rdma_up(NULL);
	net_run(peer, (void *)xr_listener_address(probe_listen(server, NULL)));
}

/* The queue pair is up before the ACK has come: data may overtake it, and waits. */
static void
early_data(void *address)
{
	struct foreign peer;
	struct ibv_wc wc;

	foreign_open(&peer);
	foreign_dial(&peer, address);
	foreign_bring_up(&peer);
	foreign_send(&peer, "early ", 6, 0);
	foreign_send(&peer, "bird", 4, 0);
	NET_CHECK(foreign_await(&peer, IBV_WC_SEND).status == IBV_WC_SUCCESS);
	NET_AWAIT(rdma_counted(RDMA_EARLY) == 2);
	NET_CHECK(net_counted(NET_CONNS_OPENED) == 0);
	raw_send(peer.fd, "\0\0\0", 3);
	net_sleep_ms(10);
	NET_CHECK(net_counted(NET_CONNS_OPENED) == 0 && net_counted(NET_BYTES_IN) == HELLO_V2_BYTES + 3);
	raw_send(peer.fd, "\1", 1);
	wc = foreign_await(&peer, IBV_WC_RECV);
	NET_CHECK(wc.byte_len == 10 && memcmp(foreign_payload(&peer, &wc), "early bird", 10) == 0);
	foreign_close(&peer);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_early_data(void)
{
	struct probe server = {.on_data = probe_echo};

	run_server(&server, early_data);
	ASSERT_EQ(server.datas, 1);
	ASSERT_EQ(server.close_reason, 0);
	rdma_down();
}

/* And it is dropped when RDMA is called off. */
static void
early_data_then_fallback(void *address)
{
	struct foreign peer;
	char answer[5];

	foreign_open(&peer);
	foreign_dial(&peer, address);
	foreign_bring_up(&peer);
	foreign_send(&peer, "early", 5, 0);
	NET_AWAIT(rdma_counted(RDMA_EARLY) == 1);
	foreign_send_ack(&peer, false);
	raw_send(peer.fd, "plain", 5);
	NET_CHECK(raw_read(peer.fd, answer, 5) && memcmp(answer, "plain", 5) == 0);
	foreign_close(&peer);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_early_data_then_fallback(void)
{
	struct probe server = {.on_data = probe_echo};

	run_server(&server, early_data_then_fallback);
	ASSERT_EQ(server.close_reason, 0);
	rdma_down();
}

/* A request behind ACK 1 in the same segment: TCP has nothing to say any more. */
static void
ack_and_request(void *address)
{
	struct foreign peer;

	foreign_open(&peer);
	foreign_dial(&peer, address);
	foreign_bring_up(&peer);
	raw_send(peer.fd, "\0\0\0\1PRPC", 8);
	NET_CHECK(raw_await_end(peer.fd) != -EAGAIN);
	foreign_close(&peer);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_ack_and_request(void)
{
	struct probe server = {.on_data = probe_echo};

	run_server(&server, ack_and_request);
	ASSERT_EQ(server.opened, 0);
	CU_ASSERT(net_logged("bytes on TCP behind the handshake"));
	rdma_down();
}

static void
byte_later(void *address)
{
	struct foreign peer;

	foreign_connect(&peer, address);
	foreign_send(&peer, "hello", 5, 0);
	NET_CHECK(foreign_await(&peer, IBV_WC_RECV).status == IBV_WC_SUCCESS);
	raw_send(peer.fd, "x", 1);
	NET_CHECK(raw_await_end(peer.fd) != -EAGAIN);
	foreign_close(&peer);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_byte_later(void)
{
	struct probe server = {.on_data = probe_echo};

	run_server(&server, byte_later);
	ASSERT_EQ(server.close_reason, -EPROTO);
	CU_ASSERT(net_logged("bytes on TCP, which RDMA had replaced"));
	rdma_down();
}

/* ---- a server that is foreign ---- */

struct stage {
	char address[64];
	int listener;
	struct xr_conn *client; /* for those that look at it */
	int error;
};

static void
serve_once(void *arg)
{
	struct stage *stage = arg;
	struct foreign peer;
	struct ibv_wc wc;

	foreign_open(&peer);
	foreign_accept(&peer, stage->listener);
	NET_CHECK(foreign_read_ack(&peer));
	wc = foreign_await(&peer, IBV_WC_RECV);
	NET_CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 6);
	NET_CHECK(memcmp(foreign_payload(&peer, &wc), "queued", 6) == 0);
	foreign_repost(&peer, &wc);
	foreign_send(&peer, "answer", 6, 1);
	NET_CHECK(raw_await_end(peer.fd) == 0);
	foreign_close(&peer);
}

static void
close_on_data(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	char text[7] = "";

	(void)probe;
	NET_CHECK(xr_iobuf_copy_out(in, 0, text, 6) == 6 && strcmp(text, "answer") == 0);
	xr_iobuf_clear(in);
	xr_conn_close(conn);
}

/* What was queued before it opened leaves over RDMA, and not before the ACK. */
static void
test_foreign_server(void)
{
	struct probe client = {.on_data = close_on_data, .on_close = probe_stop_on_close};
	struct xr_iobuf out = XR_IOBUF_INIT;
	struct stage stage = {.listener = -1};
	struct xr_conn *conn;

	rdma_up(NULL);
	stage.listener = raw_listen(stage.address);
	conn = probe_dial(&client, stage.address, XR_RDMA_REQUIRE);
	ASSERT_EQ(xr_iobuf_append(&out, "queued", 6), 0);
	ASSERT_EQ(xr_conn_send(conn, &out), 0);
	net_run(serve_once, &stage);
	close(stage.listener);
	ASSERT_EQ(client.close_reason, 0);
	rdma_down();
}

/* A hello that asks for a queue pair that there is not is only found out when nothing arrives. */
static void
vanish(void *arg)
{
	struct stage *stage = arg;
	struct foreign peer;

	foreign_open(&peer);
	foreign_meet(&peer, stage->listener);
	NET_CHECK(ibv_destroy_qp(peer.qp) == 0);
	peer.qp = NULL;
	foreign_answer(&peer);
	NET_CHECK(foreign_read_ack(&peer));
	NET_AWAIT(rdma_counted(RDMA_SENDS) == 1);
	NET_CHECK(fake_expire() == 1);
	NET_CHECK(raw_await_end(peer.fd) == -ECONNRESET);
	foreign_close(&peer);
}

/* As long as a hello may be, so that what is behind it is read apart from it. */
static void
long_hello_and_byte(void *arg)
{
	struct stage *stage = arg;
	struct foreign peer;
	uint8_t bytes[HELLO_V2_MAX + 1] = {0};

	foreign_open(&peer);
	foreign_meet(&peer, stage->listener);
	foreign_bring_up(&peer);
	hello_v2_encode(&peer.own, bytes);
	bytes[4] = HELLO_V2_MAX >> 8;
	bytes[5] = HELLO_V2_MAX & 0xff;
	raw_send(peer.fd, bytes, sizeof bytes);
	raw_await_end(peer.fd);
	foreign_close(&peer);
}

static void
test_byte_behind_hello(void)
{
	struct probe client = {.on_close = probe_stop_on_close};
	struct stage stage = {.listener = -1};

	rdma_up(NULL);
	stage.listener = raw_listen(stage.address);
	probe_dial(&client, stage.address, XR_RDMA_REQUIRE);
	net_run(long_hello_and_byte, &stage);
	ASSERT_EQ(client.datas, 0);
	ASSERT_EQ(client.close_reason, -EPROTO);
	CU_ASSERT(net_logged("bytes on TCP behind the handshake"));
	close(stage.listener);
	rdma_down();
}

static void
note_error(void *arg)
{
	struct stage *stage = arg;

	stage->error = stage->client->endpoint->fault.error;
}

static bool
client_knows(struct stage *stage)
{
	rdma_do(note_error, stage);
	return stage->error != 0;
}

/* A card that fails while the answer to the hello is awaited: the connection goes on over TCP. */
static void
fail_before_answer(void *arg)
{
	struct stage *stage = arg;
	struct foreign peer;

	foreign_open(&peer);
	foreign_meet(&peer, stage->listener);
	foreign_bring_up(&peer);
	fake_fail_qp(peer.peer.qp_num);
	NET_AWAIT(client_knows(stage));
	foreign_answer(&peer);
	NET_CHECK(!foreign_read_ack(&peer));
	NET_AWAIT(net_counted(NET_FALLBACKS) == 1);
	raw_send(peer.fd, "plain", 5);
	NET_CHECK(raw_await_end(peer.fd) == 0);
	foreign_close(&peer);
}

static void
close_on_plain(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)probe;
	xr_iobuf_clear(in);
	xr_conn_close(conn);
}

static void
test_card_fails_before_answer(void)
{
	struct probe client = {.on_data = close_on_plain, .on_close = probe_stop_on_close};
	struct stage stage = {.listener = -1};

	rdma_up(NULL);
	stage.listener = raw_listen(stage.address);
	stage.client = probe_dial(&client, stage.address, XR_RDMA_AUTO);
	net_run(fail_before_answer, &stage);
	ASSERT_EQ(client.close_reason, 0);
	CU_ASSERT(net_logged("falls back to TCP: the device failed during the handshake"));
	close(stage.listener);
	rdma_down();
}

/* The next dial to such a peer does without RDMA for a while. */
static void
test_unreachable_peer_is_remembered(void)
{
	struct probe client = {.on_close = probe_stop_on_close};
	struct stage stage = {.listener = -1};
	struct xr_conn *conn;
	struct xr_iobuf out = XR_IOBUF_INIT;

	rdma_up(NULL);
	stage.listener = raw_listen(stage.address);
	conn = probe_dial(&client, stage.address, XR_RDMA_AUTO);
	ASSERT_EQ(xr_iobuf_append(&out, "lost", 4), 0);
	ASSERT_EQ(xr_conn_send(conn, &out), 0);
	net_run(vanish, &stage);
	ASSERT_EQ(client.close_reason, -XR_ERDMA);
	CU_ASSERT(net_logged("transport retry counter exceeded"));
	CU_ASSERT(net_logged("the peer is gone"));
	ASSERT_EQ(rdma_counted(RDMA_ERRORS), 1);
	close(stage.listener);
	rdma_down();
}

UNIT_SUITE("bringup", {"each step may fail for a client", test_client_fails},
	   {"each step may fail for a server", test_server_fails},
	   {"a server's port without RDMA", test_server_port_without_rdma}, {"no device", test_no_device},
	   {"no GID for the address", test_no_gid}, {"no blocks to receive into", test_no_blocks},
	   {"blocks are left to others", test_blocks_are_left_to_others},
	   {"no room in the completion queue", test_no_room_in_cq},
	   {"a port's device that can't be used", test_port_asks_for_unusable_device},
	   {"queue sizes of port and flags", test_sizes}, {"the three block types", test_block_types},
	   {"regions before connections", test_regions_before_connections}, {"the handshake traced", test_trace},
	   {"data before the ACK waits for it", test_early_data},
	   {"data before an ACK that calls RDMA off", test_early_data_then_fallback},
	   {"an ACK and a request in one segment", test_ack_and_request}, {"a byte on TCP later", test_byte_later},
	   {"a server of foreign make", test_foreign_server},
	   {"a byte behind the longest hello", test_byte_behind_hello},
	   {"a card that fails before the answer", test_card_fails_before_answer},
	   {"a peer that no message reaches", test_unreachable_peer_is_remembered});
