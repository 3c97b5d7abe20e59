/* SPDX-License-Identifier: Apache-2.0 */

/* Which of the application's functions is blamed when it keeps its worker too long: poll/stall.h from above. */

#include "poll/stall.h"
#include "poll/stat.h"
#include "tests/unit/net/rpc/rpc_fixture.h"
#include <unistd.h>

#define LIMIT_MS "300"
#define LONG_MS	 400

enum slow_one {
	SLOW_OPEN,
	SLOW_DATA,
	SLOW_CLOSE,
	SLOW_HANDLER,
	SLOW_NONE,
};

static enum slow_one g_slow;

static void
be(enum slow_one which)
{
	if (which == g_slow)
		net_sleep_ms(LONG_MS);
}

static void
on_open(struct xr_conn *conn, int status)
{
	(void)conn;
	(void)status;
	be(SLOW_OPEN);
}

static void
on_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)conn;
	xr_iobuf_clear(in);
	be(SLOW_DATA);
}

static void
on_close(struct xr_conn *conn, int reason)
{
	(void)conn;
	(void)reason;
	be(SLOW_CLOSE);
	xr_stop();
}

static void
handler(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	be(SLOW_HANDLER);
	xr_rpc_reply(call, xr_rpc_call_message(call), NULL);
}

static const void *
function_of(enum slow_one which)
{
	const void *const functions[] = {(const void *)on_open, (const void *)on_data, (const void *)on_close,
					 (const void *)handler};

	return functions[which];
}

/* The durations leave a busy machine room: what is only interrupted for long must not count. */
static void
check_blamed(enum slow_one which)
{
	char name[256], line[320];

	ASSERT_EQ(counter_read(&g_stats[STAT_STALLS], NULL), which == SLOW_NONE ? 0 : 1);
	if (which == SLOW_NONE) {
		CU_ASSERT_FALSE(net_logged("callback"));
		return;
	}
	stall_name(function_of(which), name, sizeof name);
	snprintf(line, sizeof line, "lcore 0: callback %s took ", name);
	CU_ASSERT_TRUE(net_logged(line));
}

/* ---- a connection's ---- */

static void
say_a_word(void *address)
{
	int fd = raw_connect(address);

	raw_send(fd, "word", 4);
	close(fd);
}

static void
run_connection(enum slow_one which, const char *limit_ms)
{
	static const struct xr_conn_ops ops = {
		.size = sizeof ops, .on_open = on_open, .on_data = on_data, .on_close = on_close};
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &ops};
	struct xr_listener *listener;

	g_slow = which;
	net_up(1, "--stall_ms", limit_ms, NULL);
	ASSERT_FATAL(xr_listen(NULL, "127.0.0.1:0", &opts, &listener) == 0);
	net_run_against(listener, say_a_word);
}

static void
test_connection(void)
{
	for (enum slow_one which = SLOW_OPEN; which <= SLOW_CLOSE; which++) {
		run_connection(which, LIMIT_MS);
		check_blamed(which);
		net_down();
	}
}

static void
test_off(void)
{
	run_connection(SLOW_DATA, "0");
	check_blamed(SLOW_NONE);
	net_down();
}

/* ---- a handler, and not the library's on_data around it ---- */

static struct xr_rpc_server *g_server;

static void
call_once(void *arg)
{
	int fd = raw_connect(xr_rpc_server_address(g_server, 0));
	struct raw_out out = {.service = "test.Slow", .method = "Slow", .id = 1};
	struct raw_in in;

	(void)arg;
	raw_send_frame(fd, &out);
	NET_CHECK(raw_read_frame(fd, &in) && in.meta.error_code == 0);
	raw_in_clear(&in);
	close(fd);
	xr_stop();
}

static void
test_handler(void)
{
	struct xr_rpc_server_opts opts = {.size = sizeof opts};

	g_slow = SLOW_HANDLER;
	net_up(1, "--stall_ms", LIMIT_MS, NULL);
	ASSERT_FATAL(xr_rpc_server_open(&opts, &g_server) == 0);
	ASSERT_FATAL(xr_rpc_server_add(g_server, "test.Slow", "Slow", handler, NULL) == 0);
	ASSERT_FATAL(xr_rpc_server_listen(g_server, NULL, "127.0.0.1:0") == 0);
	net_run(call_once, NULL);
	check_blamed(SLOW_HANDLER);
	xr_rpc_server_close(g_server);
	net_down();
}

UNIT_SUITE("stall of the application", {"a connection's callbacks", test_connection},
	   {"an RPC's handler", test_handler}, {"off", test_off});
