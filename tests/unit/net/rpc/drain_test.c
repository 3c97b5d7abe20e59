/* SPDX-License-Identifier: Apache-2.0 */

/* What a stop waits for with RPC: the calls in work, on either side, and no others. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Longer than the watchdog: a drain that is not over by itself fails its test. */
#define LONG "--drain_ms", "3600000"

#define IN_WORK 3
#define BURST	100

static struct xr_rpc_server *g_server;

static int
connect_to_server(void)
{
	return raw_connect(xr_rpc_server_address(g_server, 0));
}

static void
ask(int fd, int64_t id, const char *method)
{
	struct raw_out out = {.service = "test.Echo", .method = method, .id = id, .message = "hi", .message_size = 2};

	raw_send_frame(fd, &out);
}

static void
expect_answer(int fd, int64_t id, int error_code)
{
	struct raw_in in;

	if (NET_CHECK(raw_read_frame(fd, &in)))
		NET_CHECK(in.meta.correlation_id == id && in.meta.error_code == error_code);
	raw_in_clear(&in);
}

/* ---- the server ---- */

/* Calls in work are answered, new ones are told to go elsewhere, and the end comes behind the last answer. */
static void
drain_server(void *arg)
{
	int fd = connect_to_server(), idle = connect_to_server();

	(void)arg;
	ask(idle, 1, "Echo");
	expect_answer(idle, 1, 0);
	for (int i = 0; i < IN_WORK; i++)
		ask(fd, i, "Hold");
	NET_AWAIT(held_count() == IN_WORK);
	xr_stop();
	NET_CHECK(raw_await_end(idle) == 0);
	ask(fd, 77, "Echo");
	expect_answer(fd, 77, XR_RPC_ELOGOFF);
	for (int i = 0; i < IN_WORK; i++) {
		xr_rpc_reply(held_take(), NULL, NULL);
		expect_answer(fd, i, 0);
	}
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
	close(idle);
}

static void
test_server_with_calls_in_work(void)
{
	net_up(2, LONG, NULL);
	g_server = echo_server();
	net_run(drain_server, NULL);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
	ASSERT_EQ(rpc_counted(RPC_REQUESTS), IN_WORK + 2);
	xr_rpc_server_close(g_server);
	net_down();
}

/* The first of many that came together stops the process: all had come before the stop. */
static void
stop_and_reply(struct xr_rpc_call *call, void *arg)
{
	bool *stopped = arg;

	if (!*stopped)
		xr_stop();
	*stopped = true;
	xr_rpc_reply(call, NULL, NULL);
}

static void
send_burst(void *arg)
{
	struct raw_out out = {.service = "test.Stop", .method = "Stop"};
	uint8_t burst[BURST * 128];
	size_t used = 0, size;
	int fd = connect_to_server();

	(void)arg;
	for (out.id = 0; out.id < BURST; out.id++) {
		uint8_t *frame = raw_frame(&out, &size);

		memcpy(burst + used, frame, size);
		used += size;
		free(frame);
	}
	raw_send(fd, burst, used);
	for (int i = 0; i < BURST; i++)
		expect_answer(fd, i, 0);
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_requests_from_before_the_stop(void)
{
	bool stopped = false;

	net_up(1, LONG, NULL);
	ASSERT_FATAL(xr_rpc_server_open(NULL, &g_server) == 0);
	ASSERT_EQ(xr_rpc_server_add(g_server, "test.Stop", "Stop", stop_and_reply, &stopped), 0);
	ASSERT_FATAL(xr_rpc_server_listen(g_server, NULL, "127.0.0.1:0") == 0);
	net_run(send_burst, NULL);
	xr_rpc_server_close(g_server);
	net_down();
}

/* One that nobody had accepted yet, either. */
static int g_early;

static void
expect_echo(void *arg)
{
	(void)arg;
	expect_answer(g_early, 1, 0);
	NET_CHECK(raw_await_end(g_early) == 0);
	close(g_early);
}

static void
test_request_in_the_backlog(void)
{
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		net_up(lcores, LONG, NULL);
		g_server = echo_server();
		g_early = connect_to_server();
		ask(g_early, 1, "Echo");
		xr_stop();
		net_run(expect_echo, NULL);
		xr_rpc_server_close(g_server);
		net_down();
	}
}

/* A handler that never answers is not waited for longer than agreed. */
static void
wait_in_vain(void *arg)
{
	int fd = connect_to_server();

	(void)arg;
	ask(fd, 1, "Hold");
	NET_AWAIT(held_count() == 1);
	xr_stop();
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_handler_that_never_answers(void)
{
	net_up(2, "--drain_ms", "200", NULL);
	g_server = echo_server();
	net_run(wait_in_vain, NULL);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 1);
	xr_rpc_reply(held_take(), NULL, NULL);
	xr_rpc_server_close(g_server);
	net_down();
}

/* The server's owner may close it while the drain is on. */
static void
close_server(void *arg)
{
	xr_rpc_server_close(arg);
}

static void
test_server_closed_meanwhile(void)
{
	net_up(2, LONG, NULL);
	g_server = echo_server();
	xr_on_drain(close_server, g_server);
	xr_stop();
	net_run(NULL, NULL);
	xr_on_drain(NULL, NULL);
	net_down();
}

/* ---- the client ---- */

static struct {
	struct xr_rpc_channel *channel;
	struct outcome in_work[IN_WORK], refused;
	int listener;
	char address[64];
	int new_call;
} g;

static void
client_up(void)
{
	memset(&g, 0, sizeof g);
	net_up(1, LONG, NULL);
	g.listener = raw_listen(g.address);
	g.channel = channel_to(g.address);
}

static void
client_down(void)
{
	for (int i = 0; i < IN_WORK; i++)
		outcome_clear(&g.in_work[i]);
	xr_rpc_channel_close(g.channel);
	close(g.listener);
	net_down();
}

static void
call_again(struct outcome *outcome)
{
	(void)outcome;
	g.new_call = call_echo(g.channel, &g.refused, "Echo", 1, 0, 0);
}

/* Answers in reverse, when the client has begun to stop. */
static void
answer_late(void *arg)
{
	int fd = raw_accept(g.listener);
	int64_t ids[IN_WORK];
	struct raw_in in;

	(void)arg;
	for (int i = 0; i < IN_WORK; i++) {
		NET_CHECK(raw_read_frame(fd, &in));
		ids[i] = in.meta.correlation_id;
		raw_in_clear(&in);
	}
	xr_stop();
	net_sleep_ms(50);
	for (int i = IN_WORK - 1; i >= 0; i--)
		raw_send_frame(fd, &(struct raw_out){.id = ids[i]});
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_client_with_calls_in_work(void)
{
	client_up();
	g.in_work[1].then = call_again;
	for (int i = 0; i < IN_WORK; i++)
		ASSERT_EQ(call_echo(g.channel, &g.in_work[i], "Echo", 5, 10, 0), 0);
	net_run(answer_late, NULL);
	for (int i = 0; i < IN_WORK; i++) {
		ASSERT_EQ(g.in_work[i].done, 1);
		ASSERT_EQ(g.in_work[i].error_code, 0);
	}
	ASSERT_EQ(g.new_call, -ESHUTDOWN);
	ASSERT_EQ(g.refused.done, 0);
	client_down();
}

/* A call's own deadline is the longest that its connection is waited for. */
static void
never_answer(void *arg)
{
	int fd = raw_accept(g.listener);

	(void)arg;
	net_sleep_ms(50);
	xr_stop();
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_call_that_times_out(void)
{
	client_up();
	ASSERT_EQ(call_echo(g.channel, &g.in_work[0], "Echo", 5, 10, 300), 0);
	net_run(never_answer, NULL);
	ASSERT_EQ(g.in_work[0].error_code, XR_RPC_ERPCTIMEDOUT);
	client_down();
}

/* A connection that only was used before ends at once, its channel open or not. */
static void
answer_and_stop(void *arg)
{
	int fd = raw_accept(g.listener);
	struct raw_in in;

	(void)arg;
	NET_CHECK(raw_read_frame(fd, &in));
	raw_send_frame(fd, &(struct raw_out){.id = in.meta.correlation_id});
	raw_in_clear(&in);
	NET_AWAIT(__atomic_load_n(&g.in_work[0].done, __ATOMIC_ACQUIRE) == 1);
	net_sleep_ms(20);
	xr_stop();
	NET_CHECK(raw_await_end(fd) == 0);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	close(fd);
}

static void
test_idle_channel(void)
{
	client_up();
	ASSERT_EQ(call_echo(g.channel, &g.in_work[0], "Echo", 5, 10, 0), 0);
	net_run(answer_and_stop, NULL);
	ASSERT_EQ(g.in_work[0].error_code, 0);
	client_down();
}

/* ---- both in one process ---- */

static void
stop_and_answer(void *arg)
{
	(void)arg;
	NET_AWAIT(held_count() == IN_WORK);
	xr_stop();
	net_sleep_ms(20);
	for (int i = 0; i < IN_WORK; i++)
		xr_rpc_reply(held_take(), NULL, NULL);
}

static void
test_both_sides(void)
{
	memset(&g, 0, sizeof g);
	net_up(2, LONG, NULL);
	g_server = echo_server();
	g.channel = channel_to(xr_rpc_server_address(g_server, 0));
	for (int i = 0; i < IN_WORK; i++)
		ASSERT_EQ(call_echo(g.channel, &g.in_work[i], "Hold", 5, 10, 0), 0);
	net_run(stop_and_answer, NULL);
	for (int i = 0; i < IN_WORK; i++) {
		ASSERT_EQ(g.in_work[i].done, 1);
		ASSERT_EQ(g.in_work[i].error_code, 0);
		outcome_clear(&g.in_work[i]);
	}
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
	xr_rpc_channel_close(g.channel);
	xr_rpc_server_close(g_server);
	net_down();
}

/* Who is told that its server stops goes to another one: here to the one that has taken over the address. */
static void
take_over(void *arg)
{
	int first = raw_accept(g.listener), second;
	struct raw_in in;

	(void)arg;
	NET_CHECK(raw_read_frame(first, &in));
	raw_send_frame(first, &(struct raw_out){.id = in.meta.correlation_id, .error_code = XR_RPC_ELOGOFF});
	raw_in_clear(&in);
	second = raw_accept(g.listener);
	NET_CHECK(raw_await_end(first) == 0);
	NET_CHECK(raw_read_frame(second, &in));
	raw_send_frame(second, &(struct raw_out){.id = in.meta.correlation_id});
	raw_in_clear(&in);
	NET_CHECK(raw_await_end(second) == 0);
	close(first);
	close(second);
}

static void
stop_at_last(struct outcome *outcome)
{
	(void)outcome;
	xr_stop();
}

static void
test_logged_off(void)
{
	client_up();
	g.in_work[0].then = call_again;
	g.refused.then = stop_at_last;
	ASSERT_EQ(call_echo(g.channel, &g.in_work[0], "Echo", 5, 10, 0), 0);
	net_run(take_over, NULL);
	ASSERT_EQ(g.in_work[0].error_code, XR_RPC_ELOGOFF);
	ASSERT_EQ(g.new_call, 0);
	ASSERT_EQ(g.refused.error_code, 0);
	outcome_clear(&g.refused);
	client_down();
}

/* ---- under load ---- */

#define LOADED	  3
#define CHAINS	  8
#define SIZE_STEP 3000
#define TIMES	  20

static struct {
	struct outcome chains[LOADED][CHAINS];
	unsigned taken, odd;
} g_load;

/* XR_RPC_EEOF is no answer, but what a client may get that a busy machine has kept from sending for 50 ms. */
static bool
may_end_with(int error_code)
{
	return error_code == 0 || error_code == XR_RPC_ELOGOFF || error_code == XR_RPC_EEOF;
}

/* Each answer is followed by the next call, until there are to be none any more. */
static void
call_next(struct outcome *chain)
{
	size_t size = (size_t)(chain - g_load.chains[xr_lcore_id()]) * SIZE_STEP;

	if (!may_end_with(chain->error_code)) {
		printf("a call has ended with %d: %s\n", chain->error_code, chain->error_text);
		__atomic_fetch_add(&g_load.odd, 1, __ATOMIC_RELAXED);
	}
	outcome_clear(chain);
	if (call_echo(g.channel, chain, "Echo", 10, size, 0) == 0)
		__atomic_fetch_add(&g_load.taken, 1, __ATOMIC_RELAXED);
}

static void
begin_chains(void *arg)
{
	struct outcome *chains = g_load.chains[xr_lcore_id()];

	(void)arg;
	for (int i = 0; i < CHAINS; i++) {
		chains[i].then = call_next;
		call_next(&chains[i]);
	}
}

static void
stop_under_load(void *arg)
{
	unsigned *times = arg;

	for (unsigned lcore = 0; lcore < LOADED; lcore++)
		on_lcore(lcore, begin_chains, NULL);
	net_sleep_ms(*times % 7 * 3);
	xr_stop();
}

/* Whatever a stop meets in the middle, every call ends once, none is cut off, and none that was refused is begun. */
static void
test_under_load(void)
{
	static const char *const ports[] = {"default,mode=event", "default,mode=adaptive"};

	for (unsigned times = 0; times < TIMES; times++) {
		unsigned done = 0;

		memset(&g, 0, sizeof g);
		memset(&g_load, 0, sizeof g_load);
		net_up(LOADED, LONG, "--port", ports[times % 2], NULL);
		g_server = echo_server();
		g.channel = channel_to(xr_rpc_server_address(g_server, 0));
		net_run(stop_under_load, &times);
		for (int i = 0; i < LOADED * CHAINS; i++) {
			done += g_load.chains[i / CHAINS][i % CHAINS].done;
			outcome_clear(&g_load.chains[i / CHAINS][i % CHAINS]);
		}
		ASSERT_EQ(done, g_load.taken);
		ASSERT_EQ(g_load.odd, 0);
		ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
		xr_rpc_channel_close(g.channel);
		xr_rpc_server_close(g_server);
		net_down();
	}
}

UNIT_SUITE("rpc drain", {"a server with calls in work", test_server_with_calls_in_work},
	   {"requests from before the stop", test_requests_from_before_the_stop},
	   {"a request in the backlog", test_request_in_the_backlog},
	   {"a handler that never answers", test_handler_that_never_answers},
	   {"a server closed meanwhile", test_server_closed_meanwhile},
	   {"a client with calls in work", test_client_with_calls_in_work},
	   {"a call that times out", test_call_that_times_out}, {"an idle channel", test_idle_channel},
	   {"a server that stops", test_logged_off}, {"both sides in one process", test_both_sides},
	   {"under load", test_under_load});
