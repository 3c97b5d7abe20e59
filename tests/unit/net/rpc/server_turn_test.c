/* SPDX-License-Identifier: Apache-2.0 */

/* How much one connection may have of a turn, however much it asks for at once. */

#include "net/turn.h"
#include "tests/unit/net/rpc/rpc_fixture.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS 3000
#define BOUND	 256u

static struct xr_rpc_server *g_server;
static uint64_t g_turn;
static unsigned g_in_turn, g_most, g_turns, g_served;

static void
serve(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	if (t_net->turn != g_turn) {
		g_turn = t_net->turn;
		g_in_turn = 0;
		g_turns++;
	}
	if (++g_in_turn > g_most)
		g_most = g_in_turn;
	g_served++;
	xr_rpc_reply(call, xr_rpc_call_message(call), NULL);
}

/* All at once, and right behind them the end: nothing of it may be lost. */
static void
ask_all(void *arg)
{
	int fd = raw_connect(xr_rpc_server_address(g_server, 0));
	uint8_t *all = malloc(REQUESTS * 128);
	size_t used = 0;

	(void)arg;
	for (int i = 0; i < REQUESTS; i++) {
		struct raw_out out = {.service = "test.Turn", .method = "Count", .id = i};
		size_t size;
		uint8_t *bytes = raw_frame(&out, &size);

		memcpy(all + used, bytes, size);
		used += size;
		free(bytes);
	}
	raw_send(fd, all, used);
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < REQUESTS; i++) {
		struct raw_in in;

		NET_CHECK(raw_read_frame(fd, &in) && in.meta.correlation_id == i && in.meta.error_code == 0);
		raw_in_clear(&in);
	}
	NET_CHECK(raw_await_end(fd) == 0);
	free(all);
	close(fd);
	xr_stop();
}

static void
in_mode(const char *port)
{
	struct xr_rpc_server_opts opts = {.size = sizeof opts};

	g_turn = g_in_turn = g_most = g_turns = g_served = 0;
	net_up(1, "--port", port, NULL);
	ASSERT_FATAL(xr_rpc_server_open(&opts, &g_server) == 0);
	ASSERT_FATAL(xr_rpc_server_add(g_server, "test.Turn", "Count", serve, NULL) == 0);
	ASSERT_FATAL(xr_rpc_server_listen(g_server, NULL, "127.0.0.1:0") == 0);
	net_run(ask_all, NULL);
	ASSERT_EQ(g_served, REQUESTS);
	CU_ASSERT(g_most <= BOUND);
	CU_ASSERT(g_turns >= REQUESTS / BOUND);
	xr_rpc_server_close(g_server);
	net_down();
}

static void
test_requests(void)
{
	in_mode("default,mode=event");
	in_mode("default,mode=adaptive");
	in_mode("default,mode=poll");
}

UNIT_SUITE("rpc server turn", {"requests of one connection", test_requests});
