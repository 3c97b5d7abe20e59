/* SPDX-License-Identifier: Apache-2.0 */

/* How connections end: closed from either side, half closed, reset, aborted, timed out, in every callback. */

#include "net/conn.h"
#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB (1024u * 1024u)

/* The run ends when both sides have. */
static unsigned g_closes_left;

static void
count_close(struct probe *probe, struct xr_conn *conn, int reason)
{
	(void)probe;
	(void)reason;
	NET_CHECK(!xr_conn_queued(conn));
	if (--g_closes_left == 0)
		xr_stop();
}

/* A listener and a dial on one lcore, run until both ends are closed. */
static void
run_pair(struct probe *server, struct probe *client)
{
	if (!server->on_close)
		server->on_close = count_close;
	if (!client->on_close)
		client->on_close = count_close;
	g_closes_left = 2;
	probe_dial(client, xr_listener_address(probe_listen(server, NULL)), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(server->closed, 1);
	ASSERT_EQ(client->closed, 1);
}

/* A listener, and a plain socket on a thread as its client. */
static void
run_raw(struct probe *server, void (*peer)(void *address))
{
	net_run_against(probe_listen(server, NULL), peer);
}

/* ---- close ---- */

static void
close_at_open(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	NET_CHECK(status == 0);
	xr_conn_close(conn);
	xr_conn_close(conn);
}

static void
test_client_closes_at_open(void)
{
	struct probe server = {0}, client = {.on_open = close_at_open};

	net_up(1, "--port", "default,rdma=off", NULL);
	run_pair(&server, &client);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_EQ(server.datas, 0);
	net_down();
}

/* The application never heard of it: no byte came that told what it is. */
static void
test_end_before_first_byte(void)
{
	struct probe server = {0}, client = {.on_open = close_at_open, .on_close = probe_stop_on_close};

	net_up(1, NULL);
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.opened, 0);
	ASSERT_EQ(server.closed, 0);
	ASSERT_EQ(net_counted(NET_CONNS_FAILED), 1);
	net_down();
}

/* An accepted connection opens at its first byte, unless its port has no RDMA. */
static void
test_server_closes_at_open(void)
{
	struct probe server = {.on_open = close_at_open}, client = {0};

	net_up(1, "--port", "default,rdma=off", NULL);
	run_pair(&server, &client);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.close_reason, 0);
	net_down();
}

static void
test_both_close_at_open(void)
{
	struct probe server = {.on_open = close_at_open}, client = {.on_open = close_at_open};

	net_up(1, "--port", "default,rdma=off", NULL);
	run_pair(&server, &client);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.close_reason, 0);
	net_down();
}

static void
answer_and_close(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct xr_iobuf late = XR_IOBUF_INIT;

	(void)probe;
	NET_CHECK(send_pattern(conn, 0, 3 * MIB) == 0);
	xr_conn_close(conn);
	NET_CHECK(xr_iobuf_size(in) == 0);
	NET_CHECK(xr_iobuf_append(&late, "x", 1) == 0);
	NET_CHECK(xr_conn_send(conn, &late) == -EPIPE);
	NET_CHECK(xr_iobuf_size(&late) == 1);
	xr_iobuf_clear(&late);
}

static void
say_hello(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	NET_CHECK(status == 0 && send_pattern(conn, 0, 100) == 0);
}

static void
take_checked(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)conn;
	probe->bytes += take_pattern(in, probe->bytes);
}

static void
test_queued_output_leaves_before_the_end(void)
{
	struct probe server = {.on_data = answer_and_close}, client = {.on_open = say_hello, .on_data = take_checked};

	net_up(1, NULL);
	run_pair(&server, &client);
	ASSERT_EQ(client.bytes, 3 * MIB);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_EQ(server.datas, 1);
	net_down();
}

/* What the peer sends to a connection that is closing is read and thrown away, so that the peer's end gets through. */
static void
close_and_forget(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)probe;
	(void)in;
	xr_conn_close(conn);
}

static void
send_much(void *address)
{
	int fd = raw_connect(address);
	char *bytes = calloc(1, 8 * MIB);

	raw_send(fd, bytes, 8 * MIB);
	shutdown(fd, SHUT_WR);
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
	free(bytes);
}

static void
test_input_of_a_closing_one_is_discarded(void)
{
	struct probe server = {.on_data = close_and_forget, .on_close = probe_stop_on_close};

	net_up(1, NULL);
	run_raw(&server, send_much);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_EQ(server.datas, 1);
	net_down();
}

/* ---- the peer's end ---- */

static void
half_close(void *address)
{
	int fd = raw_connect(address);
	uint8_t bytes[5000] = {1, 2, 3}, back[5000];

	raw_send(fd, bytes, sizeof bytes);
	shutdown(fd, SHUT_WR);
	NET_CHECK(raw_read(fd, back, sizeof back) && memcmp(bytes, back, sizeof back) == 0);
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_half_closed_peer_is_answered(void)
{
	struct probe server = {.on_data = probe_echo, .on_close = probe_stop_on_close};

	net_up(1, NULL);
	run_raw(&server, half_close);
	ASSERT_EQ(server.close_reason, 0);
	net_down();
}

struct sleeper {
	struct probe probe;
	struct xr_timer timer;
};

static void
wake(struct xr_timer *timer)
{
	struct sleeper *sleeper = caa_container_of(timer, struct sleeper, timer);

	NET_CHECK(sleeper->probe.datas == 0 && sleeper->probe.closed == 0);
	xr_conn_resume(sleeper->probe.conn);
}

static void
pause_at_open(struct probe *probe, struct xr_conn *conn, int status)
{
	struct sleeper *sleeper = probe->arg;

	(void)status;
	probe->conn = conn;
	xr_conn_pause(conn);
	xr_timer_arm(&sleeper->timer, 50000, 0);
}

static void
test_end_waits_for_resume(void)
{
	struct sleeper sleeper = {.timer = XR_TIMER_INIT(wake)};

	sleeper.probe = (struct probe){
		.on_open = pause_at_open, .on_data = probe_echo, .on_close = probe_stop_on_close, .arg = &sleeper};
	net_up(1, "--port", "default,mode=event", NULL);
	run_raw(&sleeper.probe, half_close);
	ASSERT_EQ(sleeper.probe.datas, 1);
	ASSERT_EQ(sleeper.probe.close_reason, 0);
	net_down();
}

static void
reset_after_data(void *address)
{
	int fd = raw_connect(address);

	raw_send(fd, "abc", 3);
	NET_AWAIT(net_counted(NET_BYTES_IN) == 3);
	raw_reset(fd);
}

static void
test_reset(void)
{
	struct probe server = {.on_close = probe_stop_on_close};

	net_up(1, NULL);
	run_raw(&server, reset_after_data);
	ASSERT_EQ(server.bytes, 3);
	ASSERT_EQ(server.close_reason, -ECONNRESET);
	net_down();
}

/* Reset while it is paused and does not even watch for input: known at once all the same. */
static void
never_resume(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	(void)status;
	xr_conn_pause(conn);
}

static void
fill_and_reset(void *address)
{
	char *bytes = calloc(1, MIB);
	int fd = raw_connect(address);

	raw_send(fd, bytes, MIB);
	NET_AWAIT(net_counted(NET_INPUT_HELD) == 1);
	raw_reset(fd);
	free(bytes);
}

static void
test_reset_while_held_back(void)
{
	struct probe server = {.on_open = never_resume, .on_close = probe_stop_on_close};

	net_up(1, "--conn_input_limit_kb", "64", "--port", "default,mode=event", NULL);
	run_raw(&server, fill_and_reset);
	ASSERT_EQ(server.datas, 0);
	ASSERT_EQ(server.close_reason, -ECONNRESET);
	net_down();
}

/* ---- deadlines ---- */

static void
never_close(void *address)
{
	int fd = raw_connect(address);

	raw_send(fd, "abc", 3);
	NET_AWAIT(net_counted(NET_CONNS_CLOSED) == 1);
	close(fd);
	xr_stop();
}

static void
test_close_has_a_deadline(void)
{
	struct probe server = {.on_data = close_and_forget};

	net_up(1, "--conn_close_ms", "50", "--port", "default,mode=event", NULL);
	run_raw(&server, never_close);
	ASSERT_EQ(server.closed, 1);
	ASSERT_EQ(server.close_reason, -ETIMEDOUT);
	net_down();
}

/* The peer does not read what is queued. */
static void
flood_and_close(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	int ret;

	(void)probe;
	xr_iobuf_clear(in);
	do
		ret = send_pattern(conn, 0, MIB);
	while (ret == 0);
	xr_conn_close(conn);
}

static void
test_flush_has_a_deadline(void)
{
	struct probe server = {.on_data = flood_and_close};

	net_up(1, "--conn_close_ms", "50", "--conn_output_limit_kb", "16384", NULL);
	run_raw(&server, never_close);
	ASSERT_EQ(server.closed, 1);
	ASSERT_EQ(server.close_reason, -ETIMEDOUT);
	net_down();
}

/* ---- abort ---- */

static void
abort_at_open(struct probe *probe, struct xr_conn *conn, int status)
{
	NET_CHECK(status == 0);
	xr_conn_abort(conn, -ENETDOWN);
	xr_conn_abort(conn, -EIO);
	xr_conn_close(conn);
	NET_CHECK(probe->closed == 0);
}

static void
abort_at_data(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	xr_conn_abort(conn, 0);
	xr_conn_resume(conn);
	NET_CHECK(xr_iobuf_size(in) > 0);
	NET_CHECK(probe->closed == 0);
}

static void
abort_when_writable(struct probe *probe, struct xr_conn *conn)
{
	xr_conn_abort(conn, -EIO);
	NET_CHECK(probe->closed == 0);
}

static void
abort_at_close(struct probe *probe, struct xr_conn *conn, int reason)
{
	struct xr_iobuf late = XR_IOBUF_INIT;
	struct xr_conn_info info = {.size = sizeof info};

	NET_CHECK(reason == probe->close_reason);
	xr_conn_abort(conn, -EIO);
	xr_conn_close(conn);
	xr_conn_pause(conn);
	xr_conn_resume(conn);
	xr_conn_need(conn, 10);
	xr_conn_info(conn, &info);
	NET_CHECK(info.output_queued == 0 && info.input_waiting == 0);
	NET_CHECK(xr_iobuf_append(&late, "x", 1) == 0);
	NET_CHECK(xr_conn_send(conn, &late) == -EPIPE);
	xr_iobuf_clear(&late);
	count_close(probe, conn, reason);
}

static void
test_abort_at_open(void)
{
	struct probe server = {0}, client = {.on_open = abort_at_open, .on_close = abort_at_close};

	net_up(1, "--port", "default,rdma=off", NULL);
	run_pair(&server, &client);
	ASSERT_EQ(client.close_reason, -ENETDOWN);
	ASSERT_EQ(server.close_reason, -ECONNRESET);
	net_down();
}

static void
test_abort_at_data(void)
{
	struct probe server = {.on_data = abort_at_data, .on_close = abort_at_close}, client = {.on_open = say_hello};

	net_up(1, NULL);
	run_pair(&server, &client);
	ASSERT_EQ(server.close_reason, -ECONNABORTED);
	ASSERT_EQ(client.close_reason, -ECONNRESET);
	net_down();
}

static void
flood(struct probe *probe, struct xr_conn *conn, int status)
{
	int ret;

	(void)probe;
	NET_CHECK(status == 0);
	do
		ret = send_pattern(conn, 0, MIB);
	while (ret == 0);
	NET_CHECK(ret == -EAGAIN);
}

static void
test_abort_when_writable(void)
{
	struct probe server = {0},
		     client = {.on_open = flood, .on_writable = abort_when_writable, .on_close = abort_at_close};

	net_up(1, NULL);
	run_pair(&server, &client);
	ASSERT_EQ(client.close_reason, -EIO);
	ASSERT_EQ(client.writables, 1);
	ASSERT_EQ(server.close_reason, -ECONNRESET);
	net_down();
}

/* One connection ends another one, which stands in the same list of the same turn. */
static void
abort_the_other(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct probe *other = probe->arg;

	(void)conn;
	xr_iobuf_clear(in);
	if (other->conn && !other->closed)
		xr_conn_abort(other->conn, -EIO);
}

static void
close_the_other(struct probe *probe, struct xr_conn *conn, int reason)
{
	struct probe *other = probe->arg;

	if (other->closed == 0)
		xr_conn_abort(other->conn, -EIO);
	probe->conn = NULL;
	count_close(probe, conn, reason);
}

static void
test_abort_of_another(void)
{
	struct probe server = {.on_data = probe_echo};
	struct probe a = {.on_open = say_hello, .on_data = abort_the_other, .on_close = close_the_other};
	struct probe b = a;
	const char *address;

	a.arg = &b;
	b.arg = &a;
	net_up(1, NULL);
	g_closes_left = 2;
	address = xr_listener_address(probe_listen(&server, NULL));
	probe_dial(&a, address, XR_RDMA_NO);
	probe_dial(&b, address, XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(a.closed, 1);
	ASSERT_EQ(b.closed, 1);
	net_down();
}

/* ---- before it is open ---- */

static void
test_close_before_open(void)
{
	struct probe server = {0}, client = {.on_close = probe_stop_on_close};

	net_up(1, NULL);
	xr_conn_close(probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO));
	ASSERT_EQ(client.closed, 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.opened, 1);
	ASSERT_EQ(client.open_status, -ECANCELED);
	ASSERT_EQ(client.close_reason, -ECANCELED);
	net_down();
}

static void
test_what_is_queued_before_open_leaves(void)
{
	struct probe server = {.on_data = take_checked}, client = {0};

	net_up(1, NULL);
	server.on_close = client.on_close = count_close;
	g_closes_left = 2;
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	ASSERT_EQ(send_pattern(client.conn, 0, MIB), 0);
	xr_conn_close(client.conn);
	ASSERT_EQ(send_pattern(client.conn, 0, 1), -EPIPE);
	net_run(NULL, NULL);
	ASSERT_EQ(server.bytes, MIB);
	ASSERT_EQ(client.open_status, 0);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.close_reason, 0);
	net_down();
}

static void
test_abort_before_open(void)
{
	struct probe server = {0}, client = {.on_close = probe_stop_on_close};

	net_up(1, NULL);
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	xr_conn_abort(client.conn, -EIO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.open_status, -EIO);
	ASSERT_EQ(client.close_reason, -EIO);
	net_down();
}

/* ---- callbacks that are not there ---- */

static void
test_no_callbacks(void)
{
	static const struct xr_conn_ops none = {.size = sizeof none};
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &none};
	struct xr_listener *listener;
	struct probe client = {.on_open = close_at_open};

	net_up(1, NULL);
	ASSERT_EQ(xr_listen(NULL, "127.0.0.1:0", &opts, &listener), 0);
	client.on_close = probe_stop_on_close;
	probe_dial(&client, xr_listener_address(listener), XR_RDMA_NO);
	ASSERT_EQ(send_pattern(client.conn, 0, MIB), 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.close_reason, 0);
	net_down();
}

/* ---- dialled from where another one ends ---- */

static char g_dead[64];

/* What is dialled here is refused at once: the loop goes on all the same. */
static void
dial_again(struct probe *probe, struct xr_conn *conn, int reason)
{
	(void)conn;
	NET_CHECK(reason == -ECONNREFUSED);
	if (PROBE_READ(probe->closed) < 20)
		probe_dial(probe, g_dead, XR_RDMA_NO);
}

static void
await_timer(struct xr_timer *timer)
{
	(void)timer;
	xr_stop();
}

static void
test_dial_at_close(void)
{
	struct probe client = {.on_close = dial_again};
	struct xr_timer timer = XR_TIMER_INIT(await_timer);

	net_up(1, "--port", "default,mode=event", NULL);
	close(raw_listen(g_dead));
	probe_dial(&client, g_dead, XR_RDMA_NO);
	xr_timer_arm(&timer, 100000, 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.closed, 21);
	net_down();
}

/* ---- many at once, and user memory ---- */

static unsigned g_freed;

static void
free_user(void *data, void *arg)
{
	(void)arg;
	free(data);
	g_freed++;
}

static void
send_user_memory(struct probe *probe, struct xr_conn *conn, int status)
{
	struct xr_iobuf out = XR_IOBUF_INIT;

	(void)probe;
	(void)status;
	for (int i = 0; i < 100; i++)
		NET_CHECK(xr_iobuf_append_user(&out, calloc(1, 1000), 1000, XR_MEM_KEY_NONE, free_user, NULL) == 0);
	NET_CHECK(xr_conn_send(conn, &out) == 0);
	if (probe->arg)
		xr_conn_abort(conn, -EIO);
	else
		xr_conn_close(conn);
}

static void
test_user_memory_is_given_back(void)
{
	struct probe server = {0}, client = {.on_open = send_user_memory};

	g_freed = 0;
	net_up(1, NULL);
	run_pair(&server, &client);
	ASSERT_EQ(server.bytes, 100000);
	ASSERT_EQ(g_freed, 100);
	net_down();
}

static void
test_user_memory_is_given_back_by_abort(void)
{
	struct probe server = {0}, client = {.on_open = send_user_memory, .arg = &server};

	g_freed = 0;
	net_up(1, "--port", "default,rdma=off", NULL);
	run_pair(&server, &client);
	ASSERT_EQ(server.bytes, 0);
	ASSERT_EQ(g_freed, 100);
	net_down();
}

static void
reset_many(void *address)
{
	int fds[50];

	for (int i = 0; i < 50; i++) {
		fds[i] = raw_connect(address);
		raw_send(fds[i], "abc", 3);
	}
	NET_AWAIT(net_counted(NET_BYTES_IN) == 150);
	for (int i = 0; i < 50; i++)
		raw_reset(fds[i]);
	NET_AWAIT(net_counted(NET_CONNS_CLOSED) == 50);
	xr_stop();
}

static void
test_many_resets(void)
{
	struct probe server = {.on_data = probe_echo};

	net_up(2, NULL);
	run_raw(&server, reset_many);
	ASSERT_EQ(server.closed, 50);
	net_down();
}

UNIT_SUITE("close", {"the client closes at open", test_client_closes_at_open},
	   {"the end before the first byte", test_end_before_first_byte},
	   {"the server closes at open", test_server_closes_at_open}, {"both close at open", test_both_close_at_open},
	   {"what is queued leaves before the end", test_queued_output_leaves_before_the_end},
	   {"a closing one discards its input", test_input_of_a_closing_one_is_discarded},
	   {"a half closed peer is answered", test_half_closed_peer_is_answered},
	   {"the end waits for resume", test_end_waits_for_resume}, {"a reset", test_reset},
	   {"a reset while held back", test_reset_while_held_back},
	   {"a close has a deadline", test_close_has_a_deadline}, {"a flush has a deadline", test_flush_has_a_deadline},
	   {"abort at open", test_abort_at_open}, {"abort at data", test_abort_at_data},
	   {"abort when writable", test_abort_when_writable}, {"abort of another one", test_abort_of_another},
	   {"close before open", test_close_before_open},
	   {"what is queued before open leaves", test_what_is_queued_before_open_leaves},
	   {"abort before open", test_abort_before_open}, {"no callbacks", test_no_callbacks},
	   {"user memory is given back", test_user_memory_is_given_back},
	   {"user memory is given back by abort", test_user_memory_is_given_back_by_abort},
	   {"a dial at the close", test_dial_at_close}, {"many resets", test_many_resets});
