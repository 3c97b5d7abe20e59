/* SPDX-License-Identifier: Apache-2.0 */

/* Calls and answers whose attachments lie in memory of the application's: what can't be sent fails alone. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <xrdma/error.h>

#define BYTES ((size_t)200000)

static char g_memory[BYTES];
static xr_mem_key g_key;
static unsigned g_freed;

static void
count_free(void *data, void *arg)
{
	(void)data;
	(void)arg;
	__atomic_fetch_add(&g_freed, 1, __ATOMIC_RELEASE);
}

static struct xr_rpc_channel *g_channel;
static struct xr_rpc_server *g_server;

/* The library up, everything over RDMA, and the memory registered. */
static void
up(void (*script)(void *arg))
{
	/* One answer is more than the window and the limit: also answers that come turns apart wait for each other. */
	rdma_up("--port", "default,rdma=require,rq=16", "--conn_output_limit_kb", "64", NULL);
	g_freed = 0;
	memset(g_memory, 'x', sizeof g_memory);
	ASSERT_EQ(xr_mem_register(g_memory, sizeof g_memory, &g_key), 0);
	g_server = echo_server();
	g_channel = channel_to(xr_rpc_server_address(g_server, 0));
	net_run(script, NULL);
	xr_rpc_server_close(g_server);
	rdma_down();
}

static void
done(void)
{
	xr_rpc_channel_close(g_channel);
	xr_stop();
}

/* ---- calls ---- */

struct calling {
	struct outcome *outcome;
	const char *method;
	size_t pooled;	/* bytes of an attachment in the pool's memory */
	xr_mem_key key; /* else: of one in user memory */
	int ret;
};

static void
take_outcome(const struct xr_rpc_response *response, void *arg)
{
	struct outcome *outcome = arg;

	outcome->error_code = response->error_code;
	xr_iobuf_move(&outcome->attachment, response->attachment);
	__atomic_fetch_add(&outcome->done, 1, __ATOMIC_RELEASE);
}

static void
call_with_user_memory(struct calling *calling)
{
	struct xr_iobuf attachment = XR_IOBUF_INIT;
	const struct xr_rpc_request request = {
		.size = sizeof request,
		.service = "test.Echo",
		.method = calling->method,
		.attachment = &attachment,
	};

	NET_CHECK(xr_iobuf_append_user(&attachment, g_memory, BYTES, calling->key, count_free, NULL) == 0);
	calling->ret = xr_rpc_call(g_channel, &request, take_outcome, calling->outcome, NULL);
	NET_CHECK(xr_iobuf_size(&attachment) == (calling->ret ? BYTES : 0));
	xr_iobuf_clear(&attachment);
}

static void
do_call(void *arg)
{
	struct calling *calling = arg;

	if (calling->pooled)
		calling->ret = call_echo(g_channel, calling->outcome, calling->method, 10, calling->pooled, 5000);
	else
		call_with_user_memory(calling);
}

static int
call_pooled(struct outcome *outcome, const char *method, size_t bytes)
{
	struct calling calling = {.outcome = outcome, .method = method, .pooled = bytes};

	on_lcore(0, do_call, &calling);
	return calling.ret;
}

static int
call_user(struct outcome *outcome, xr_mem_key key)
{
	struct calling calling = {.outcome = outcome, .method = "Echo", .key = key};

	on_lcore(0, do_call, &calling);
	return calling.ret;
}

#define AWAIT_DONE(outcome) NET_AWAIT(PROBE_READ((outcome).done) == 1)

static void
script_calls(void *arg)
{
	struct outcome first = {0}, held = {0}, refused = {0}, user = {0};

	(void)arg;
	NET_CHECK(call_pooled(&first, "Echo", 100) == 0);
	AWAIT_DONE(first);
	NET_CHECK(call_pooled(&held, "Hold", 100) == 0);
	NET_CHECK(call_user(&refused, XR_MEM_KEY_NONE) == -XR_ERDMAMEM);
	NET_CHECK(PROBE_READ(g_freed) == 1);
	NET_CHECK(call_user(&user, g_key) == 0);
	AWAIT_DONE(user);
	NET_CHECK(user.error_code == 0 && xr_iobuf_size(&user.attachment) == BYTES);
	NET_AWAIT(PROBE_READ(g_freed) == 2);
	xr_rpc_reply(held_take(), NULL, NULL);
	AWAIT_DONE(held);
	NET_CHECK(held.error_code == 0);
	NET_CHECK(PROBE_READ(refused.done) == 0);
	NET_CHECK(xr_mem_deregister(g_key) == 0);
	outcome_clear(&first);
	outcome_clear(&held);
	outcome_clear(&user);
	done();
}

static void
test_calls(void)
{
	up(script_calls);
}

/* ---- answers ---- */

static void
reply_user(struct xr_rpc_call *call, xr_mem_key key)
{
	struct xr_iobuf attachment = XR_IOBUF_INIT;

	if (!call)
		return;
	NET_CHECK(xr_iobuf_append_user(&attachment, g_memory, BYTES, key, count_free, NULL) == 0);
	xr_rpc_reply(call, NULL, &attachment);
	NET_CHECK(xr_iobuf_size(&attachment) == 0);
}

/* Four calls whose answers leave one behind the other: the second one can't. */
static void
answer_four(bool stuck)
{
	struct outcome outcomes[4] = {{0}};

	for (unsigned i = 0; i < 4; i++)
		NET_CHECK(call_pooled(&outcomes[i], "Hold", 100) == 0);
	NET_AWAIT(held_count() == 4);
	if (stuck)
		fake_hold(FAKE_DELIVERY, 0);
	for (unsigned i = 0; i < 4; i++)
		reply_user(held_take(), i == 1 ? XR_MEM_KEY_NONE : g_key);
	if (stuck) {
		NET_AWAIT(rpc_counted(RPC_ANSWERS_HELD_BACK) > 0);
		rdma_settle();
		fake_let_go(FAKE_DELIVERY, 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		AWAIT_DONE(outcomes[i]);
		NET_CHECK(outcomes[i].error_code == (i == 1 ? XR_ERDMAMEM : 0));
		NET_CHECK(xr_iobuf_size(&outcomes[i].attachment) == (i == 1 ? 0 : BYTES));
		outcome_clear(&outcomes[i]);
	}
	NET_AWAIT(PROBE_READ(g_freed) == 4);
	NET_CHECK(xr_mem_deregister(g_key) == 0);
	NET_CHECK(net_counted(NET_CONNS_FAILED) == 0 && rdma_counted(RDMA_ERRORS) == 0);
	done();
}

static void
script_answers(void *arg)
{
	(void)arg;
	answer_four(false);
}

static void
script_answers_behind_a_full_queue(void *arg)
{
	(void)arg;
	answer_four(true);
}

static void
test_answers(void)
{
	up(script_answers);
}

static void
test_answers_behind_a_full_queue(void)
{
	up(script_answers_behind_a_full_queue);
}

UNIT_SUITE("rpc_memory", {"a call with memory that can't be sent fails alone", test_calls},
	   {"an answer with such memory fails alone", test_answers},
	   {"and behind a full queue, too", test_answers_behind_a_full_queue});
