/* SPDX-License-Identifier: Apache-2.0 */

/* A server's life: opened, listening, closed with and without calls in work. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct xr_rpc_server *g_server;

static void
handler(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	xr_rpc_reply(call, NULL, NULL);
}

static void
test_refused(void)
{
	struct xr_rpc_server_opts opts = {.size = sizeof opts};
	struct xr_rpc_server *server;

	ASSERT_EQ(xr_rpc_server_open(NULL, &server), -EINVAL);
	net_up(1, NULL);
	ASSERT_EQ(xr_rpc_server_open(NULL, NULL), -EINVAL);
	opts.size = 0;
	ASSERT_EQ(xr_rpc_server_open(&opts, &server), -EINVAL);
	opts.size = sizeof opts + 8;
	ASSERT_EQ(xr_rpc_server_open(&opts, &server), -EINVAL);
	opts.size = sizeof opts.size;
	ASSERT_FATAL(xr_rpc_server_open(&opts, &server) == 0);

	ASSERT_EQ(xr_rpc_server_add(server, "a.S", "m", handler, NULL), 0);
	ASSERT_EQ(xr_rpc_server_add(server, "a.S", "m", handler, NULL), -EEXIST);
	ASSERT_EQ(xr_rpc_server_listen(server, NULL, "nonsense"), -EINVAL);
	CU_ASSERT(xr_rpc_server_address(server, 0) == NULL);
	ASSERT_EQ(xr_rpc_server_add(server, "a.S", "n", handler, NULL), 0);
	ASSERT_EQ(xr_rpc_server_listen(server, NULL, "127.0.0.1:0"), 0);
	ASSERT_EQ(xr_rpc_server_add(server, "a.S", "o", handler, NULL), -EBUSY);
	ASSERT_EQ(xr_rpc_server_listen(server, NULL, xr_rpc_server_address(server, 0)), -EADDRINUSE);
	ASSERT_EQ(xr_rpc_server_listen(server, NULL, "[::1]:0"), 0);
	CU_ASSERT(strncmp(xr_rpc_server_address(server, 0), "127.0.0.1:", 10) == 0);
	CU_ASSERT(strncmp(xr_rpc_server_address(server, 1), "[::1]:", 6) == 0);
	CU_ASSERT(xr_rpc_server_address(server, 2) == NULL);
	xr_rpc_server_close(server);
	net_down();
}

static void
test_never_run(void)
{
	net_up(2, NULL);
	xr_rpc_server_close(echo_server());
	net_down();
}

static void
test_never_listened(void)
{
	struct xr_rpc_server *server;

	net_up(1, NULL);
	ASSERT_FATAL(xr_rpc_server_open(NULL, &server) == 0);
	xr_rpc_server_close(server);
	net_down();
}

static void
close_server(void *arg)
{
	(void)arg;
	xr_rpc_server_close(g_server);
}

static void
reply_echo(void *arg)
{
	struct xr_rpc_call *call = arg;

	xr_rpc_reply(call, xr_rpc_call_message(call), xr_rpc_call_attachment(call));
}

static void
send_request(int fd, const char *method, int64_t id)
{
	const struct raw_out out = {
		.service = "test.Echo", .method = method, .id = id, .message = "m", .message_size = 1};

	raw_send_frame(fd, &out);
}

static void
expect_answer(int fd, int64_t id, int error_code)
{
	struct raw_in in;

	NET_CHECK(raw_read_frame(fd, &in) && in.meta.correlation_id == id && in.meta.error_code == error_code);
	raw_in_clear(&in);
}

/* Idle connections end at once; a busy one takes no new calls, has its answer and ends. */
static void
close_with_a_call_in_work(void *arg)
{
	int busy = raw_connect(xr_rpc_server_address(g_server, 0));
	int idle = raw_connect(xr_rpc_server_address(g_server, 0));
	struct xr_rpc_call *held;

	(void)arg;
	send_request(idle, "Echo", 1);
	expect_answer(idle, 1, 0);
	send_request(busy, "Hold", 2);
	held = held_take();
	on_lcore(0, close_server, NULL);
	NET_CHECK(raw_await_end(idle) == 0);
	send_request(busy, "Echo", 3);
	expect_answer(busy, 3, XR_RPC_ELOGOFF);
	xr_rpc_reply(held, xr_rpc_call_message(held), NULL);
	expect_answer(busy, 2, 0);
	NET_CHECK(raw_await_end(busy) == 0);
	close(busy);
	close(idle);
	xr_stop();
}

static void
test_close_with_a_call_in_work(void)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		net_up(lcores, NULL);
		g_server = echo_server();
		net_run(close_with_a_call_in_work, NULL);
		net_down();
	}
}

/* The connection may have opened, be on its way to its lcore, or still be in the kernel's queue. */
static void
connect_and_close(void *arg)
{
	int fd = raw_connect(xr_rpc_server_address(g_server, 0));

	(void)arg;
	on_lcore(0, close_server, NULL);
	(void)send(fd, "PRPC", 4, MSG_NOSIGNAL);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	xr_stop();
}

static void
test_close_right_after_accept(void)
{
	for (int i = 0; i < 20; i++) {
		net_up(2, NULL);
		g_server = echo_server();
		net_run(connect_and_close, NULL);
		net_down();
	}
}

/* Silent, and in the middle of a hello: the application knows of neither. */
static void
connect_and_be_silent(void *arg)
{
	int silent = raw_connect(xr_rpc_server_address(g_server, 0));
	int hesitant = raw_connect(xr_rpc_server_address(g_server, 0));

	(void)arg;
	raw_send(hesitant, "RDMA", 4);
	NET_AWAIT(net_counted(NET_HANDSHAKES) == 1 && net_counted(NET_CONNS_LIVE) == 2);
	on_lcore(0, close_server, NULL);
	NET_CHECK(raw_await_end(silent) == 0);
	NET_CHECK(raw_await_end(hesitant) != -EAGAIN);
	close(silent);
	close(hesitant);
	xr_stop();
}

static void
test_close_ends_silent_connections(void)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		net_up(lcores, "--rdma_handshake_timeout_ms=60000", NULL);
		g_server = echo_server();
		net_run(connect_and_be_silent, NULL);
		net_down();
	}
}

#define DEAF_ATTACHMENT (1u << 20)

/* Asks for more than the connection may queue and reads nothing. */
static void
ask_and_be_deaf(void *arg)
{
	static char attachment[DEAF_ATTACHMENT];
	const struct raw_out out = {.service = "test.Echo",
				    .method = "Echo",
				    .id = 5,
				    .attachment = attachment,
				    .attachment_size = sizeof attachment};
	int fd = raw_connect(xr_rpc_server_address(g_server, 0));
	size_t size, sent = 0;
	uint8_t *frame = raw_frame(&out, &size);

	(void)arg;
	while (net_counted(NET_OUTPUT_FULL) == 0) {
		ssize_t n = send(fd, frame + sent % size, size - sent % size, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			net_sleep_ms(1);
		else
			sent += (size_t)n;
	}
	free(frame);
	on_lcore(0, close_server, NULL);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	close(fd);
	xr_stop();
}

static void
test_close_cuts_off_the_deaf(void)
{
	net_up(1, "--conn_close_ms=50", "--conn_output_limit_kb=8", NULL);
	g_server = echo_server();
	net_run(ask_and_be_deaf, NULL);
	net_down();
}

/* The handler's call is the last one that the server takes, and is answered. */
static void
serve_close(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	xr_rpc_server_close(g_server);
	xr_rpc_reply(call, xr_rpc_call_message(call), NULL);
}

static void
ask_to_close(void *arg)
{
	const struct raw_out out = {.service = "test.Close", .method = "Close", .id = 4};
	int fd = raw_connect(xr_rpc_server_address(g_server, 0));

	(void)arg;
	raw_send_frame(fd, &out);
	expect_answer(fd, 4, 0);
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
	xr_stop();
}

static void
test_close_in_a_handler(void)
{
	net_up(1, NULL);
	ASSERT_FATAL(xr_rpc_server_open(NULL, &g_server) == 0);
	ASSERT_EQ(xr_rpc_server_add(g_server, "test.Close", "Close", serve_close, NULL), 0);
	ASSERT_FATAL(xr_rpc_server_listen(g_server, NULL, "127.0.0.1:0") == 0);
	net_run(ask_to_close, NULL);
	net_down();
}

/* The lcores have stopped when the answers come; the server goes with the last of them. */
static void
hold_three_and_stop(void *arg)
{
	int fd = raw_connect(xr_rpc_server_address(g_server, 0));

	(void)arg;
	for (int i = 0; i < 3; i++)
		send_request(fd, "Hold", i);
	NET_AWAIT(held_count() == 3);
	xr_stop();
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
}

static void
test_answers_after_the_run(void)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		struct xr_rpc_call *call;

		net_up(lcores, NULL);
		g_server = echo_server();
		net_run(hold_three_and_stop, NULL);
		reply_echo(held_take());
		xr_rpc_server_close(g_server);
		reply_echo(held_take());
		call = held_take();
		xr_rpc_fail(call, 1, "too late");
		net_down();
	}
}

static void
close_and_stop(void *arg)
{
	(void)arg;
	xr_rpc_server_close(g_server);
	xr_stop();
}

static void
hold_then_close_and_stop(void *arg)
{
	int fd = raw_connect(xr_rpc_server_address(g_server, 0));

	(void)arg;
	send_request(fd, "Hold", 1);
	NET_AWAIT(held_count() == 1);
	on_lcore(0, close_and_stop, NULL);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
}

static void
test_close_and_stop_at_once(void)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		net_up(lcores, NULL);
		g_server = echo_server();
		net_run(hold_then_close_and_stop, NULL);
		reply_echo(held_take());
		net_down();
	}
}

UNIT_SUITE("rpc server", {"what is refused", test_refused}, {"a server that never ran", test_never_run},
	   {"a server that never listened", test_never_listened},
	   {"closing waits for calls in work", test_close_with_a_call_in_work},
	   {"closing with a connection on its way", test_close_right_after_accept},
	   {"closing ends connections that sent nothing", test_close_ends_silent_connections},
	   {"closing cuts off who reads no answers", test_close_cuts_off_the_deaf},
	   {"a handler may close", test_close_in_a_handler},
	   {"answers after the run are dropped", test_answers_after_the_run},
	   {"closing and stopping at once", test_close_and_stop_at_once});
