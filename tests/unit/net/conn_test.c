/* SPDX-License-Identifier: Apache-2.0 */

/* What flows while a connection is open: delivery, pause and need, both directions of backpressure. */

#include "net/conn.h"
#include "net/turn.h"
#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define KIB 1024u
#define MIB (1024u * KIB)

/* ---- a sender of much, as an application would write it ---- */

struct sender {
	struct probe probe;
	uint64_t total, sent;
	unsigned refused; /* times that the queue was full */
	size_t most_queued;
};

static void
send_on(struct probe *probe, struct xr_conn *conn)
{
	struct sender *sender = probe->arg;

	while (sender->sent < sender->total) {
		size_t part = sender->total - sender->sent < 100000 ? sender->total - sender->sent : 100000;
		int ret = send_pattern(conn, sender->sent, part);

		if (ret) {
			NET_CHECK(ret == -EAGAIN);
			sender->refused++;
			return;
		}
		sender->sent += part;
		if (xr_conn_queued(conn) > sender->most_queued)
			sender->most_queued = xr_conn_queued(conn);
	}
	xr_conn_close(conn);
}

static void
sender_open(struct probe *probe, struct xr_conn *conn, int status)
{
	NET_CHECK(status == 0);
	send_on(probe, conn);
}

static void
sender_init(struct sender *sender, uint64_t total)
{
	*sender = (struct sender){.total = total};
	sender->probe = (struct probe){.on_open = sender_open, .on_writable = send_on, .arg = sender};
}

static void
take_checked(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)conn;
	probe->bytes += take_pattern(in, probe->bytes);
}

/* ---- the peer is held back, and nothing is lost ---- */

struct holder {
	struct probe probe;
	struct xr_timer timer;
	size_t most_waiting;
	unsigned looks;
};

static void
look(struct xr_timer *timer)
{
	struct holder *holder = caa_container_of(timer, struct holder, timer);
	struct xr_conn_info info = {.size = sizeof info};

	xr_conn_info(holder->probe.conn, &info);
	if (info.input_waiting > holder->most_waiting)
		holder->most_waiting = info.input_waiting;
	NET_CHECK(holder->probe.datas == 0);
	if (++holder->looks < 20)
		return;
	xr_timer_cancel(timer);
	xr_conn_resume(holder->probe.conn);
}

static void
pause_at_open(struct probe *probe, struct xr_conn *conn, int status)
{
	struct holder *holder = probe->arg;

	(void)status;
	probe->conn = conn;
	xr_conn_pause(conn);
	xr_timer_arm(&holder->timer, 10000, 10000);
}

static void
test_paused_input_is_bounded(void)
{
	struct holder holder = {.timer = XR_TIMER_INIT(look)};
	struct sender sender;

	holder.probe = (struct probe){
		.on_open = pause_at_open, .on_data = take_checked, .on_close = probe_stop_on_close, .arg = &holder};
	sender_init(&sender, 32 * MIB);
	net_up(1, "--conn_input_limit_kb", "256", "--conn_output_limit_kb", "512", NULL);
	probe_dial(&sender.probe, xr_listener_address(probe_listen(&holder.probe, NULL)), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(holder.probe.bytes, 32 * MIB);
	CU_ASSERT_TRUE(holder.most_waiting > 200 * KIB);
	CU_ASSERT_TRUE(holder.most_waiting <= 256 * KIB + 512 * KIB);
	CU_ASSERT_TRUE(net_counted(NET_INPUT_HELD) >= 1);
	CU_ASSERT_TRUE(sender.refused >= 1);
	ASSERT_EQ(sender.probe.writables, sender.refused);
	CU_ASSERT_TRUE(sender.most_queued < 512 * KIB + 100000);
	ASSERT_EQ(holder.probe.close_reason, 0);
	net_down();
}

/* on_writable comes at half the limit, once, and not without a refusal before. */
static void
check_half(struct probe *probe, struct xr_conn *conn)
{
	NET_CHECK(xr_conn_queued(conn) <= 256 * KIB);
	send_on(probe, conn);
}

static void
test_writable_at_half(void)
{
	struct probe server = {.on_data = take_checked, .on_close = probe_stop_on_close};
	struct sender sender;

	sender_init(&sender, 16 * MIB);
	sender.probe.on_writable = check_half;
	net_up(1, "--conn_output_limit_kb", "512", NULL);
	probe_dial(&sender.probe, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(server.bytes, 16 * MIB);
	ASSERT_EQ(sender.probe.writables, sender.refused);
	net_down();
}

static void
test_not_writable_without_refusal(void)
{
	struct probe server = {.on_data = take_checked, .on_close = probe_stop_on_close};
	struct sender sender;

	sender_init(&sender, 90000);
	net_up(1, NULL);
	probe_dial(&sender.probe, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(server.bytes, 90000);
	ASSERT_EQ(sender.probe.writables, 0);
	net_down();
}

/* ---- need: a message larger than the limit still comes together ---- */

static void
need_all(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	if (xr_iobuf_size(in) < 3 * MIB)
		xr_conn_need(conn, 3 * MIB);
	else
		take_checked(probe, conn, in);
}

static void
test_need_goes_beyond_the_limit(void)
{
	struct probe server = {.on_data = need_all, .on_close = probe_stop_on_close};
	struct sender sender;

	sender_init(&sender, 3 * MIB);
	net_up(1, "--conn_input_limit_kb", "64", NULL);
	probe_dial(&sender.probe, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(server.bytes, 3 * MIB);
	net_down();
}

/* Held back first, then told to need more: it reads on. */
static void
leave_all(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	if (xr_iobuf_size(in) < 3 * MIB)
		return;
	take_checked(probe, conn, in);
}

static void
need_late(void *arg)
{
	struct xr_msg *msg = arg;

	NET_AWAIT(net_counted(NET_INPUT_HELD) == 1);
	NET_CHECK(xr_post(0, msg) == 0);
}

static struct probe g_needy;

static void
set_need(struct xr_msg *msg, int status)
{
	(void)msg;
	if (status == 0)
		xr_conn_need(g_needy.conn, 3 * MIB);
}

static void
keep_conn(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)status;
	probe->conn = conn;
}

static void
test_need_lifts_a_hold(void)
{
	struct xr_msg msg = XR_MSG_INIT(set_need);
	struct sender sender;

	g_needy = (struct probe){.on_open = keep_conn, .on_data = leave_all, .on_close = probe_stop_on_close};
	sender_init(&sender, 3 * MIB);
	net_up(1, "--conn_input_limit_kb", "64", NULL);
	probe_dial(&sender.probe, xr_listener_address(probe_listen(&g_needy, NULL)), XR_RDMA_NO);
	net_run(need_late, &msg);
	ASSERT_EQ(g_needy.bytes, 3 * MIB);
	net_down();
}

/* ---- two that send a byte at a time share blocks, and still cost little ---- */

static void
take_from_64k(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct xr_conn_info info = {.size = sizeof info};

	xr_conn_info(conn, &info);
	NET_CHECK(iobuf_pinned_bytes(in) <= 5 * 64 * KIB);
	if (xr_iobuf_size(in) < 2000)
		xr_conn_need(conn, 2000);
	else
		probe->bytes += xr_iobuf_drop(in, SIZE_MAX);
}

static void
trickle(void *arg)
{
	const char *address = arg;
	int a = raw_connect(address), b = raw_connect(address);
	int on = 1;

	setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(b, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	for (int i = 0; i < 2000; i++) {
		uint64_t before = net_counted(NET_BYTES_IN);

		raw_send(a, "a", 1);
		raw_send(b, "b", 1);
		for (int spin = 0; spin < 200 && net_counted(NET_BYTES_IN) < before + 2; spin++)
			net_sleep_ms(0);
	}
	NET_AWAIT(net_counted(NET_BYTES_IN) == 4000);
	close(a);
	close(b);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

/* The same before the connection opens: a hello with as long a tail as is allowed, byte by byte. */
static void
trickle_hello(void *arg)
{
	const char *address = arg;
	int a = raw_connect(address), b = raw_connect(address);
	int on = 1;

	setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(b, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	raw_send(a, "RDMA\x10", 6);
	for (int i = 0; i < 200; i++) {
		uint64_t before = net_counted(NET_BYTES_IN);

		raw_send(a, "a", 1);
		raw_send(b, "b", 1);
		for (int spin = 0; spin < 200 && net_counted(NET_BYTES_IN) < before + 2; spin++)
			net_sleep_ms(0);
	}
	NET_AWAIT(net_counted(NET_INPUT_COMPACTED) >= 1);
	close(a);
	close(b);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_trickled_hello_is_compacted(void)
{
	struct probe server = {0};

	net_up(1, "--conn_input_limit_kb", "64", "--port", "default,mode=event", NULL);
	net_run_against(probe_listen(&server, NULL), trickle_hello);
	net_down();
}

static void
test_trickle_is_compacted(void)
{
	struct probe server = {.on_data = take_from_64k};

	net_up(1, "--conn_input_limit_kb", "64", "--port", "default,mode=event", NULL);
	net_run_against(probe_listen(&server, NULL), trickle);
	ASSERT_EQ(server.bytes, 4000);
	CU_ASSERT_TRUE(net_counted(NET_INPUT_COMPACTED) >= 1);
	net_down();
}

/* ---- what is left stands there again ---- */

static void
take_one_byte(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	probe->bytes += xr_iobuf_drop(in, 1);
	xr_conn_resume(conn);
}

/* All of it, also when the peer's end has come long before. */
static void
send_and_close(void *arg)
{
	uint8_t bytes[300] = {0};
	int fd = raw_connect(arg);

	raw_send(fd, bytes, sizeof bytes);
	close(fd);
}

static void
test_one_byte_a_turn(void)
{
	struct probe server = {.on_data = take_one_byte, .on_close = probe_stop_on_close};

	net_up(1, NULL);
	net_run_against(probe_listen(&server, NULL), send_and_close);
	ASSERT_EQ(server.bytes, 300);
	ASSERT_EQ(server.datas, 300);
	ASSERT_EQ(server.close_reason, 0);
	net_down();
}

UNIT_SUITE("conn", {"a paused connection holds its peer back", test_paused_input_is_bounded},
	   {"on_writable at half the limit", test_writable_at_half},
	   {"no on_writable without a refusal", test_not_writable_without_refusal},
	   {"need goes beyond the limit", test_need_goes_beyond_the_limit},
	   {"need lifts a hold", test_need_lifts_a_hold}, {"sparse input is compacted", test_trickle_is_compacted},
	   {"a trickled hello too", test_trickled_hello_is_compacted},
	   {"resume without a pause, a byte a turn", test_one_byte_a_turn});
