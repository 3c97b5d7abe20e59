/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls between lcores of one process while everything is closed around them: answers come from handlers and from
 * foreign threads, calls are made, cancelled and time out inside done, channels are closed by whoever likes to, then
 * the server, then the run ends. Each call that was taken must have its done once, and nothing may be left.
 */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <errno.h>
#include <stdlib.h>

#define LCORES	 2u
#define CHANNELS 3u
#define CALLS	 64u
#define ROUNDS	 20u

struct caller {
	struct xr_rpc_channel *channel; /* NULL: closed, as far as its lcore is concerned */
	struct xr_timer stir;
	unsigned seed, pending;
	xr_rpc_id last;
} __attribute__((aligned(64)));

/* A channel for each pair; who calls on one closes it, too. */
static struct caller g_callers[LCORES][CHANNELS];
static struct xr_rpc_server *g_server;
static unsigned g_taken, g_done, g_total;
static bool g_stopped;

static unsigned
chance(struct caller *caller, unsigned of)
{
	return (unsigned)rand_r(&caller->seed) % of;
}

static void act(struct caller *caller);

static void
done(const struct xr_rpc_response *response, void *arg)
{
	struct caller *caller = arg;

	NET_CHECK(response->error_text && response->message && response->attachment);
	NET_CHECK(caller->pending > 0);
	caller->pending--;
	__atomic_add_fetch(&g_done, 1, __ATOMIC_RELAXED);
	if (caller->channel)
		act(caller);
}

static void
call(struct caller *caller)
{
	static char bytes[100000];
	static const char *const methods[] = {"Echo", "Hold", "Echo", "Missing"};
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	const struct xr_rpc_request request = {
		.size = sizeof request,
		.service = "test.Echo",
		.method = methods[chance(caller, 4)],
		.message = &message,
		.attachment = &attachment,
		.timeout_ms = chance(caller, 3) ? (int)chance(caller, 20) + 1 : -1,
	};
	int ret;

	if (xr_iobuf_append(&attachment, bytes, chance(caller, 3) ? chance(caller, 50) : chance(caller, 100000)) == 0) {
		ret = xr_rpc_call(caller->channel, &request, done, caller, &caller->last);
		NET_CHECK(ret == 0 || ret == -EAGAIN || ret == -ESHUTDOWN);
		if (ret == 0) {
			caller->pending++;
			__atomic_add_fetch(&g_taken, 1, __ATOMIC_RELAXED);
		}
	}
	xr_iobuf_clear(&message);
	xr_iobuf_clear(&attachment);
}

static void
act(struct caller *caller)
{
	switch (chance(caller, 40)) {
	case 0:
		xr_rpc_channel_close(caller->channel);
		caller->channel = NULL;
		break;
	case 1:
	case 2:
	case 3:
		xr_rpc_cancel(caller->channel, caller->last);
		break;
	default:
		if (caller->pending < CALLS)
			call(caller);
		break;
	}
}

static void
stir(struct xr_timer *timer)
{
	struct caller *caller = caa_container_of(timer, struct caller, stir);

	for (unsigned i = 0; i < 4 && caller->channel; i++)
		act(caller);
	if (!caller->channel && caller->pending == 0 && !__atomic_load_n(&g_stopped, __ATOMIC_RELAXED))
		caller->channel = channel_to(xr_rpc_server_address(g_server, 0));
}

static void
begin(void *arg)
{
	struct caller *callers = arg;

	for (unsigned i = 0; i < CHANNELS; i++) {
		callers[i].stir = (struct xr_timer)XR_TIMER_INIT(stir);
		xr_timer_arm(&callers[i].stir, 0, 300);
	}
}

static void
close_server(void *arg)
{
	(void)arg;
	xr_rpc_server_close(g_server);
}

static void
answer_held(unsigned ms)
{
	for (unsigned i = 0; i < ms; i++) {
		while (held_count()) {
			struct xr_rpc_call *held = held_take();

			if (held && i % 2)
				xr_rpc_reply(held, xr_rpc_call_message(held), xr_rpc_call_attachment(held));
			else if (held)
				xr_rpc_fail(held, XR_RPC_ELIMIT, "enough");
		}
		net_sleep_ms(1);
	}
}

static void
foreign(void *arg)
{
	unsigned round = *(unsigned *)arg;

	for (unsigned i = 0; i < LCORES; i++)
		on_lcore(i, begin, g_callers[i]);
	answer_held(10 + round * 5 % 30);
	__atomic_store_n(&g_stopped, true, __ATOMIC_RELAXED);
	if (round % 2) {
		on_lcore(0, close_server, NULL);
		answer_held(round % 7);
	}
	xr_stop();
}

static void
torture(const char *port, unsigned round)
{
	memset(g_callers, 0, sizeof g_callers);
	g_taken = g_done = 0;
	g_stopped = false;
	net_up(LCORES, "--port", port, "--conn_close_ms=20", "--conn_output_limit_kb=128", NULL);
	g_server = echo_server();
	for (unsigned i = 0; i < LCORES * CHANNELS; i++) {
		g_callers[i / CHANNELS][i % CHANNELS].seed = round * 100 + i;
		g_callers[i / CHANNELS][i % CHANNELS].channel = channel_to(xr_rpc_server_address(g_server, 0));
	}
	net_run(foreign, &round);
	answer_held(1);
	for (unsigned i = 0; i < LCORES * CHANNELS; i++)
		if (g_callers[i / CHANNELS][i % CHANNELS].channel)
			xr_rpc_channel_close(g_callers[i / CHANNELS][i % CHANNELS].channel);
	if (round % 2 == 0)
		xr_rpc_server_close(g_server);
	ASSERT_EQ(g_taken, g_done);
	g_total += g_taken;
	net_down();
}

static void
test_event(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		torture("default,mode=event", round);
}

static void
test_adaptive(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		torture("default,mode=adaptive,spin_us=20", round);
	CU_ASSERT(g_total > 1000);
}

UNIT_SUITE("rpc torture", {"event", test_event}, {"adaptive", test_adaptive});
