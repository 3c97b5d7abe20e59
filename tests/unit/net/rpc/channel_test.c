/* SPDX-License-Identifier: Apache-2.0 */

/* A channel's life and its calls' ends, as its owner sees them; what its done functions may do. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <errno.h>
#include <unistd.h>

#define MANY 1000

static struct {
	struct xr_rpc_server *server;
	struct xr_rpc_channel *channel;
	struct outcome outcomes[MANY];
	int listener;
	char address[64];
} g;

static unsigned
done(int n)
{
	return __atomic_load_n(&g.outcomes[n].done, __ATOMIC_ACQUIRE);
}

static unsigned
done_count(void)
{
	unsigned count = 0;

	for (int i = 0; i < MANY; i++)
		count += done(i);
	return count;
}

static void
begin(unsigned lcores)
{
	memset(&g, 0, sizeof g);
	g.listener = -1;
	net_up(lcores, NULL);
}

/* Against the library's own server. */
static void
begin_served(unsigned lcores)
{
	begin(lcores);
	g.server = echo_server();
	g.channel = channel_to(xr_rpc_server_address(g.server, 0));
}

/* Against a listener that never reads. */
static void
begin_silent(unsigned lcores)
{
	begin(lcores);
	g.listener = raw_listen(g.address);
	g.channel = channel_to(g.address);
}

static void
finish(void)
{
	if (g.server)
		xr_rpc_server_close(g.server);
	for (int i = 0; i < MANY; i++)
		outcome_clear(&g.outcomes[i]);
	if (g.listener >= 0)
		close(g.listener);
	net_down();
}

static void
call(int n, const char *method)
{
	NET_CHECK(call_echo(g.channel, &g.outcomes[n], method, 5, 10, 0) == 0);
}

/* ---- what is refused ---- */

static void
test_open_refused(void)
{
	struct xr_rpc_channel_opts opts = {.size = sizeof opts, .address = "127.0.0.1:1"};
	struct xr_rpc_channel *channel;

	ASSERT_EQ(xr_rpc_channel_open(&opts, &channel), -EINVAL);
	begin(1);
	ASSERT_EQ(xr_rpc_channel_open(NULL, &channel), -EINVAL);
	ASSERT_EQ(xr_rpc_channel_open(&opts, NULL), -EINVAL);
	opts.address = "localhost";
	ASSERT_EQ(xr_rpc_channel_open(&opts, &channel), -EINVAL);
	opts.address = NULL;
	ASSERT_EQ(xr_rpc_channel_open(&opts, &channel), -EINVAL);
	opts.address = "127.0.0.1:1";
	opts.size = sizeof opts + 1;
	ASSERT_EQ(xr_rpc_channel_open(&opts, &channel), -EINVAL);
	opts.size = sizeof opts;
	opts.timeout_ms = -1;
	ASSERT_EQ(xr_rpc_channel_open(&opts, &channel), -EINVAL);
	opts.timeout_ms = 0;
	opts.connect_timeout_ms = -1;
	ASSERT_EQ(xr_rpc_channel_open(&opts, &channel), -EINVAL);
	opts.connect_timeout_ms = 0;
	ASSERT_FATAL(xr_rpc_channel_open(&opts, &channel) == 0);
	xr_rpc_channel_close(channel);
	net_down();
}

static void
never_done(const struct xr_rpc_response *response, void *arg)
{
	(void)response;
	(void)arg;
	NET_CHECK(!"done of a call that was refused");
}

static int
try_call(const struct xr_rpc_request *request)
{
	return xr_rpc_call(g.channel, request, never_done, NULL, NULL);
}

static void
call_off_the_lcores(void *arg)
{
	const struct xr_rpc_request good = {.size = sizeof good, .service = "s", .method = "m"};

	(void)arg;
	NET_CHECK(try_call(&good) == -EINVAL);
	xr_stop();
}

static void
test_call_refused(void)
{
	const struct xr_rpc_request good = {.size = sizeof good, .service = "s", .method = "m"};
	struct xr_rpc_request bad;
	struct xr_conn_info info = {.size = sizeof info};

	begin_silent(1);
	bad = good, bad.size = 8;
	ASSERT_EQ(try_call(&bad), -EINVAL);
	bad = good, bad.service = NULL;
	ASSERT_EQ(try_call(&bad), -EINVAL);
	bad = good, bad.service = "";
	ASSERT_EQ(try_call(&bad), -EINVAL);
	bad = good, bad.method = NULL;
	ASSERT_EQ(try_call(&bad), -EINVAL);
	bad = good, bad.method = "";
	ASSERT_EQ(try_call(&bad), -EINVAL);
	ASSERT_EQ(xr_rpc_call(g.channel, &good, NULL, NULL, NULL), -EINVAL);
	ASSERT_EQ(xr_rpc_channel_info(g.channel, &info), -ENOTCONN);
	net_run(call_off_the_lcores, NULL);
	xr_rpc_channel_close(g.channel);
	finish();
}

/* An iobuf of 2 GiB costs no memory when it names the same bytes over and over. */
static void
test_too_large(void)
{
	static char mib[1 << 20];
	struct xr_iobuf huge = XR_IOBUF_INIT, small = XR_IOBUF_INIT;
	struct xr_rpc_request request = {.size = sizeof request, .service = "s", .method = "m", .attachment = &huge};

	begin_silent(1);
	for (int i = 0; i < 2048; i++)
		ASSERT_FATAL(xr_iobuf_append_user(&huge, mib, sizeof mib, XR_MEM_KEY_NONE, NULL, NULL) == 0);
	ASSERT_EQ(try_call(&request), -EINVAL);
	ASSERT_EQ(xr_iobuf_size(&huge), (size_t)2 << 30);
	xr_iobuf_drop(&huge, 1);
	ASSERT_EQ(xr_iobuf_append(&small, "x", 1), 0);
	request.message = &small;
	ASSERT_EQ(try_call(&request), -EINVAL);
	xr_iobuf_clear(&huge);
	xr_iobuf_clear(&small);
	xr_rpc_channel_close(g.channel);
	finish();
}

static void
wait_a_little(void *arg)
{
	(void)arg;
	net_sleep_ms(20);
	xr_stop();
}

/* call_echo() checks that a refused call leaves message and attachment whole. */
static void
test_queue_full(void)
{
	int taken = 0, error = 0;

	begin_silent(1);
	while (taken < 100 && (error = call_echo(g.channel, &g.outcomes[taken], "Echo", 5, 1 << 20, -1)) == 0)
		taken++;
	ASSERT_EQ(error, -EAGAIN);
	ASSERT_EQ(taken, 4);
	ASSERT_EQ(call_echo(g.channel, &g.outcomes[taken], "Echo", 0, 0, 0), -EAGAIN);
	net_run(wait_a_little, NULL);
	for (int i = 0; i < taken; i++)
		ASSERT_EQ(g.outcomes[i].error_code, -ECANCELED);
	ASSERT_EQ(done_count(), taken);
	xr_rpc_channel_close(g.channel);
	finish();
}

/* ---- cancelling ---- */

static void
cancel_first(void *arg)
{
	(void)arg;
	xr_rpc_cancel(g.channel, g.outcomes[0].id);
	NET_CHECK(done(0) == 1 && g.outcomes[0].error_code == -ECANCELED);
	NET_CHECK(strcmp(g.outcomes[0].error_text, "Operation canceled") == 0);
	xr_rpc_cancel(g.channel, g.outcomes[0].id);
	xr_rpc_cancel(g.channel, 0);
	xr_rpc_cancel(g.channel, 12345);
	NET_CHECK(done(0) == 1 && done(1) == 0);
}

static void
cancel_and_answer(void *arg)
{
	struct xr_rpc_call *held = held_take();

	(void)arg;
	on_lcore(0, cancel_first, NULL);
	xr_rpc_reply(held, NULL, NULL);
	NET_AWAIT(rpc_counted(RPC_RESPONSES_DROPPED) == 1);
	held = held_take();
	xr_rpc_reply(held, NULL, NULL);
	NET_AWAIT(done(1) == 1);
	NET_CHECK(g.outcomes[1].error_code == 0);
	NET_CHECK(done(0) == 1);
	xr_stop();
}

static void
test_cancel(void)
{
	begin_served(1);
	call(0, "Hold");
	call(1, "Hold");
	net_run(cancel_and_answer, NULL);
	xr_rpc_channel_close(g.channel);
	finish();
}

static unsigned g_depth, g_deepest;

static void
cancel_next(struct outcome *outcome)
{
	int next = (int)(outcome - g.outcomes) + 1;

	if (++g_depth > g_deepest)
		g_deepest = g_depth;
	if (next < MANY)
		xr_rpc_cancel(g.channel, g.outcomes[next].id);
	g_depth--;
}

/* Each done cancels the next call: a thousand in a row, and never one within another. */
static void
test_cancel_within_done(void)
{
	begin_silent(1);
	g_depth = g_deepest = 0;
	for (int i = 0; i < MANY; i++) {
		g.outcomes[i].then = cancel_next;
		call(i, "Echo");
	}
	xr_rpc_cancel(g.channel, g.outcomes[0].id);
	ASSERT_EQ(done_count(), MANY);
	ASSERT_EQ(g_deepest, 1);
	net_run(wait_a_little, NULL);
	xr_rpc_channel_close(g.channel);
	finish();
}

static void
cancel_all_others(struct outcome *outcome)
{
	for (int i = 0; i < MANY; i++)
		if (&g.outcomes[i] != outcome)
			xr_rpc_cancel(g.channel, g.outcomes[i].id);
}

static void
await_all(void *arg)
{
	(void)arg;
	NET_AWAIT(done_count() == MANY);
	xr_stop();
}

static void
close_channel(void *arg)
{
	(void)arg;
	xr_rpc_channel_close(g.channel);
}

/* The first answer cancels all others, those included that are answered in the same read. */
static void
test_cancel_within_answer(void)
{
	unsigned failed = 0;

	begin_served(1);
	for (int i = 0; i < MANY; i++) {
		g.outcomes[i].then = cancel_all_others;
		call(i, "Echo");
	}
	net_run(await_all, NULL);
	for (int i = 0; i < MANY; i++) {
		ASSERT_EQ(g.outcomes[i].done, 1);
		failed += g.outcomes[i].error_code == -ECANCELED;
	}
	ASSERT_EQ(failed, MANY - 1);
	xr_rpc_channel_close(g.channel);
	finish();
}

/* ---- calls made by done ---- */

static void
call_next(struct outcome *outcome)
{
	int next = (int)(outcome - g.outcomes) + 1;

	check_echoed(outcome, 5, 10);
	if (next == MANY) {
		xr_stop();
		return;
	}
	g.outcomes[next].then = call_next;
	call(next, "Echo");
}

static void
test_call_within_done(void)
{
	begin_served(1);
	g.outcomes[0].then = call_next;
	call(0, "Echo");
	net_run(NULL, NULL);
	ASSERT_EQ(done_count(), MANY);
	xr_rpc_channel_close(g.channel);
	finish();
}

/* The failing calls of a connection make new ones, which dial anew and are not failed with the old. */
static void
call_again(struct outcome *outcome)
{
	int n = (int)(outcome - g.outcomes);

	NET_CHECK(outcome->error_code == XR_RPC_EEOF);
	call(n + 3, "Echo");
}

static void
close_then_serve(void *arg)
{
	int fd = raw_accept(g.listener);
	struct raw_in in;

	(void)arg;
	for (int i = 0; i < 3; i++) {
		NET_CHECK(raw_read_frame(fd, &in));
		raw_in_clear(&in);
	}
	close(fd);
	fd = raw_accept(g.listener);
	for (int i = 0; i < 3; i++) {
		NET_CHECK(raw_read_frame(fd, &in));
		raw_send_frame(fd, &(struct raw_out){.id = in.meta.correlation_id});
		raw_in_clear(&in);
	}
	NET_AWAIT(done_count() == 6);
	for (int i = 3; i < 6; i++)
		NET_CHECK(g.outcomes[i].error_code == 0);
	close(fd);
	xr_stop();
}

static void
test_call_within_failure(void)
{
	begin_silent(1);
	for (int i = 0; i < 3; i++) {
		g.outcomes[i].then = call_again;
		call(i, "Echo");
	}
	net_run(close_then_serve, NULL);
	xr_rpc_channel_close(g.channel);
	finish();
}

/* ---- closing ---- */

static void
test_close_unused(void)
{
	begin_silent(2);
	xr_rpc_channel_close(g.channel);
	finish();
}

static void
hold_and_close(void *arg)
{
	struct xr_rpc_call *held[3];

	(void)arg;
	for (int i = 0; i < 3; i++)
		held[i] = held_take();
	on_lcore(0, close_channel, NULL);
	NET_AWAIT(done_count() == 3);
	for (int i = 0; i < 3; i++) {
		NET_CHECK(g.outcomes[i].error_code == -ECANCELED);
		xr_rpc_reply(held[i], NULL, NULL);
	}
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_close_with_calls_in_work(void)
{
	begin_served(1);
	for (int i = 0; i < 3; i++)
		call(i, "Hold");
	net_run(hold_and_close, NULL);
	finish();
}

static void
close_within(struct outcome *outcome)
{
	(void)outcome;
	xr_rpc_channel_close(g.channel);
}

static void
call_closed(struct outcome *outcome)
{
	NET_CHECK(outcome->error_code == -ECANCELED);
	NET_CHECK(call_echo(g.channel, &g.outcomes[MANY - 1], "Echo", 1, 1, 0) == -ESHUTDOWN);
	xr_rpc_cancel(g.channel, g.outcomes[2].id);
}

/* The first answer closes the channel; the others end by that, try to call and cancel each other. */
static void
answer_one(void *arg)
{
	struct xr_rpc_call *first = held_take();

	(void)arg;
	xr_rpc_reply(first, NULL, NULL);
	NET_AWAIT(done_count() == 3);
	for (int i = 0; i < 2; i++)
		xr_rpc_reply(held_take(), NULL, NULL);
	xr_stop();
}

static void
test_close_within_done(void)
{
	begin_served(1);
	g.outcomes[0].then = close_within;
	g.outcomes[1].then = call_closed;
	g.outcomes[2].then = call_closed;
	for (int i = 0; i < 3; i++)
		call(i, "Hold");
	net_run(answer_one, NULL);
	ASSERT_EQ(done_count(), 3);
	finish();
}

static void
call_fifty(void *arg)
{
	int first = *(int *)arg;

	for (int i = 0; i < 50; i++)
		call(first + i, "Hold");
}

/* Called from two lcores; closed from one of them, or from a thread that is none. */
static void
close_on_two_lcores(void *arg)
{
	unsigned closer = *(unsigned *)arg;
	int first = 0, second = 50;

	on_lcore(0, call_fifty, &first);
	on_lcore(1, call_fifty, &second);
	NET_AWAIT(held_count() == 100);
	if (closer == XR_LCORE_NONE)
		close_channel(NULL);
	else
		on_lcore(closer, close_channel, NULL);
	NET_AWAIT(done_count() == 100);
	for (int i = 0; i < 100; i++) {
		NET_CHECK(g.outcomes[i].error_code == -ECANCELED);
		xr_rpc_reply(held_take(), NULL, NULL);
	}
	xr_stop();
}

static void
test_close_on_two_lcores(void)
{
	unsigned closers[] = {0, 1, XR_LCORE_NONE};

	for (int i = 0; i < 3; i++) {
		begin_served(2);
		net_run(close_on_two_lcores, &closers[i]);
		finish();
	}
}

/* ---- xr_stop() ---- */

static void
stop_when_held(void *arg)
{
	(void)arg;
	NET_AWAIT(held_count() == 3);
	xr_stop();
}

static void
test_stop_with_calls_in_work(void)
{
	begin_served(2);
	for (int i = 0; i < 3; i++)
		call(i, "Hold");
	net_run(stop_when_held, NULL);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(g.outcomes[i].done, 1);
		CU_ASSERT(g.outcomes[i].error_code == -ECANCELED || g.outcomes[i].error_code == XR_RPC_EEOF ||
			  g.outcomes[i].error_code == XR_RPC_EFAILEDSOCKET);
		xr_rpc_reply(held_take(), NULL, NULL);
	}
	xr_rpc_channel_close(g.channel);
	finish();
}

static void
test_close_within_done_at_stop(void)
{
	begin_silent(1);
	g.outcomes[0].then = close_within;
	g.outcomes[1].then = call_closed;
	call(0, "Echo");
	net_run(wait_a_little, NULL);
	ASSERT_EQ(g.outcomes[0].error_code, -ECANCELED);
	finish();
}

/* xr_fini() ends what xr_run() never began. */
static void
test_never_run(void)
{
	begin_silent(1);
	g.outcomes[1].then = call_closed;
	call(0, "Echo");
	call(1, "Echo");
	xr_rpc_channel_close(g.channel);
	xr_fini();
	xr_log_set_sink(NULL, NULL);
	ASSERT_EQ(done(0), 1);
	ASSERT_EQ(done(1), 1);
	ASSERT_EQ(g.outcomes[0].error_code, -ECANCELED);
	CU_ASSERT_FALSE(net_logged("still in use"));
	close(g.listener);
}

/* ---- info ---- */

static void
ask_info(struct outcome *outcome)
{
	struct xr_conn_info info = {.size = sizeof info};

	check_echoed(outcome, 5, 10);
	NET_CHECK(xr_rpc_channel_info(g.channel, &info) == 0);
	NET_CHECK(strcmp(info.transport, "tcp") == 0);
	NET_CHECK(strcmp(info.peer, xr_rpc_server_address(g.server, 0)) == 0);
	xr_stop();
}

static void
test_info(void)
{
	begin_served(1);
	g.outcomes[0].then = ask_info;
	call(0, "Echo");
	net_run(NULL, NULL);
	xr_rpc_channel_close(g.channel);
	finish();
}

UNIT_SUITE("rpc channel", {"what is refused", test_open_refused}, {"calls that are refused", test_call_refused},
	   {"2 GiB are too large", test_too_large}, {"a full queue refuses and takes nothing", test_queue_full},
	   {"a cancelled call ends once", test_cancel}, {"done may cancel, and never nests", test_cancel_within_done},
	   {"an answer may cancel all others", test_cancel_within_answer}, {"done may call", test_call_within_done},
	   {"a failing call may call", test_call_within_failure}, {"closing an unused channel", test_close_unused},
	   {"closing with calls in work", test_close_with_calls_in_work}, {"done may close", test_close_within_done},
	   {"closing with calls on two lcores", test_close_on_two_lcores},
	   {"stopping with calls in work", test_stop_with_calls_in_work},
	   {"done may close when all stops", test_close_within_done_at_stop}, {"a run that never came", test_never_run},
	   {"info", test_info});
