/* SPDX-License-Identifier: Apache-2.0 */

/* Both sides in one process: sizes, depth, modes, lcores. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <stdlib.h>

#define DEPTH	    1000
#define PATIENCE_MS 20000

struct side {
	struct xr_rpc_channel *channel;
	size_t message_size, attachment_size;
	unsigned calls, left; /* to be made in all; still to be made */
	bool done;
	struct outcome *outcomes; /* as many as calls are in work at once */
};

static struct xr_rpc_server *g_server;

static void
again(struct outcome *outcome)
{
	struct side *side = outcome->arg;

	check_echoed(outcome, side->message_size, side->attachment_size);
	outcome_clear(outcome);
	outcome->done = 0;
	if (side->left == 0) {
		if (--side->calls == 0)
			__atomic_store_n(&side->done, true, __ATOMIC_RELEASE);
		return;
	}
	side->left--;
	side->calls--;
	NET_CHECK(call_echo(side->channel, outcome, "Echo", side->message_size, side->attachment_size, 20000) == 0);
}

static void
start(void *arg)
{
	struct side *side = arg;
	unsigned depth = side->calls - side->left;

	side->outcomes = calloc(depth, sizeof *side->outcomes);
	for (unsigned i = 0; i < depth; i++) {
		side->outcomes[i].then = again;
		side->outcomes[i].arg = side;
		NET_CHECK(call_echo(side->channel, &side->outcomes[i], "Echo", side->message_size,
				    side->attachment_size, 20000) == 0);
	}
}

static struct xr_rpc_channel *
connect_channel(void)
{
	return channel_to(xr_rpc_server_address(g_server, 0));
}

/* That many calls of that size on one lcore, depth of them at once. */
static struct side
side_of(struct xr_rpc_channel *channel, unsigned calls, unsigned depth, size_t message_size, size_t attachment_size)
{
	return (struct side){
		.channel = channel,
		.calls = calls,
		.left = calls - depth,
		.message_size = message_size,
		.attachment_size = attachment_size,
	};
}

/* ---- one lcore ---- */

static struct side *g_sides;
static unsigned g_side_count;

static bool
all_done(void)
{
	for (unsigned i = 0; i < g_side_count; i++)
		if (!__atomic_load_n(&g_sides[i].done, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static void
await_sides(void *arg)
{
	unsigned waited_ms = 0;

	(void)arg;
	while (!all_done() && waited_ms++ < PATIENCE_MS)
		net_sleep_ms(1);
	NET_CHECK(all_done());
	xr_stop();
}

static void
run_sides(struct side *sides, unsigned count)
{
	g_sides = sides;
	g_side_count = count;
	net_run(await_sides, NULL);
	for (unsigned i = 0; i < count; i++) {
		CU_ASSERT(sides[i].done);
		free(sides[i].outcomes);
	}
}

static const size_t sizes[] = {0, 1, 64, 256, 257, 511, 512, 8160, 8161, 65536, 4 << 20};

#define SIZES (sizeof sizes / sizeof sizes[0])

/* Each size on a connection of its own, all at once. */
static void
echo_all_sizes(const char *port)
{
	struct side sides[2 * SIZES];

	net_up(1, "--port", port, NULL);
	g_server = echo_server();
	for (size_t i = 0; i < SIZES; i++) {
		unsigned calls = sizes[i] > 100000 ? 3 : 20;

		sides[2 * i] = side_of(connect_channel(), calls, 1, 5, sizes[i]);
		sides[2 * i + 1] = side_of(connect_channel(), calls, 1, sizes[i], 3);
	}
	for (size_t i = 0; i < 2 * SIZES; i++)
		start(&sides[i]);
	run_sides(sides, 2 * SIZES);
	for (size_t i = 0; i < 2 * SIZES; i++)
		xr_rpc_channel_close(sides[i].channel);
	xr_rpc_server_close(g_server);
	net_down();
}

static void
test_sizes_polling(void)
{
	echo_all_sizes("default,mode=poll");
}

static void
test_sizes_by_events(void)
{
	echo_all_sizes("default,mode=event");
}

static void
test_sizes_adaptive(void)
{
	echo_all_sizes("default,mode=adaptive,spin_us=20");
}

static void
test_deep(void)
{
	struct side side;

	net_up(1, NULL);
	g_server = echo_server();
	side = side_of(connect_channel(), 20 * DEPTH, DEPTH, 16, 32);
	start(&side);
	run_sides(&side, 1);
	ASSERT_EQ(rpc_counted(RPC_CALLS), 20 * DEPTH);
	ASSERT_EQ(rpc_counted(RPC_REQUESTS), 20 * DEPTH);
	ASSERT_EQ(rpc_counted(RPC_CALLS_FAILED), 0);
	xr_rpc_channel_close(side.channel);
	xr_rpc_server_close(g_server);
	net_down();
}

#define CONNECTIONS 64

static void
test_many_connections(void)
{
	static struct side sides[CONNECTIONS];

	net_up(1, NULL);
	g_server = echo_server();
	for (int i = 0; i < CONNECTIONS; i++) {
		sides[i] = side_of(connect_channel(), 100, 4, (size_t)i, 100 * (size_t)i);
		start(&sides[i]);
	}
	run_sides(sides, CONNECTIONS);
	ASSERT_EQ(net_counted(NET_CONNS_OPENED), 2 * CONNECTIONS);
	for (int i = 0; i < CONNECTIONS; i++)
		xr_rpc_channel_close(sides[i].channel);
	xr_rpc_server_close(g_server);
	net_down();
}

/* ---- two lcores ---- */

static void
start_on_both(void *arg)
{
	for (unsigned i = 0; i < 2; i++)
		on_lcore(i, start, &g_sides[i]);
	await_sides(arg);
}

/* One channel, called from both lcores; the server's connections are on both as well. */
static void
test_two_lcores(void)
{
	static const size_t two_sizes[] = {32, 70000};
	static const unsigned calls[] = {2000, 200};

	for (int i = 0; i < 2; i++) {
		struct side sides[2];

		net_up(2, NULL);
		g_server = echo_server();
		sides[0] = side_of(connect_channel(), calls[i], 50, 10, two_sizes[i]);
		sides[1] = sides[0];
		g_sides = sides;
		g_side_count = 2;
		net_run(start_on_both, NULL);
		for (int n = 0; n < 2; n++) {
			CU_ASSERT(sides[n].done);
			free(sides[n].outcomes);
		}
		xr_rpc_channel_close(sides[0].channel);
		xr_rpc_server_close(g_server);
		net_down();
	}
}

/* ---- the server ends ---- */

static void
close_server(void *arg)
{
	xr_rpc_server_close(arg);
}

/* The client's calls end with the server's: served, refused by number, or cut off; each of them once. */
static void
end_server(void *arg)
{
	struct outcome *outcomes = arg;

	NET_AWAIT(held_count() == 10);
	on_lcore(0, close_server, g_server);
	for (int i = 0; i < 10; i++) {
		struct xr_rpc_call *call = held_take();

		xr_rpc_reply(call, xr_rpc_call_message(call), xr_rpc_call_attachment(call));
	}
	for (int i = 0; i < 10; i++) {
		NET_AWAIT(__atomic_load_n(&outcomes[i].done, __ATOMIC_ACQUIRE) == 1);
		check_echoed(&outcomes[i], 5, 100000);
		outcome_clear(&outcomes[i]);
	}
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_server_ends(void)
{
	struct outcome outcomes[10] = {{0}};
	struct xr_rpc_channel *channel;

	net_up(2, NULL);
	g_server = echo_server();
	channel = connect_channel();
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(call_echo(channel, &outcomes[i], "Hold", 5, 100000, 0), 0);
	net_run(end_server, outcomes);
	xr_rpc_channel_close(channel);
	net_down();
}

UNIT_SUITE("rpc", {"every size, polling", test_sizes_polling}, {"every size, by events", test_sizes_by_events},
	   {"every size, adaptive", test_sizes_adaptive}, {"a thousand calls at once", test_deep},
	   {"64 connections on one lcore", test_many_connections}, {"one channel on two lcores", test_two_lcores},
	   {"a server that closes answers what it has", test_server_ends});
