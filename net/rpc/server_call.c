/* SPDX-License-Identifier: Apache-2.0 */

/* A call being served, from its handler to its answer. */

#include "net/rpc/frame.h"
#include "net/rpc/rpc.h"
#include "net/rpc/server.h"
#include "poll/stall.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/compiler.h>
#include <xrdma/error.h>

static void answer_arrived(struct xr_msg *msg, int status);

/* ---- its memory ---- */

static struct xr_rpc_call *
take_free(struct server_lcore *here)
{
	struct xr_rpc_call *call = here->free_calls;

	if (call) {
		here->free_calls = call->next_free;
		return call;
	}
	call = calloc(1, sizeof *call);
	if (call)
		call->msg = (struct xr_msg)XR_MSG_INIT(answer_arrived);
	return call;
}

struct xr_rpc_call *
server_call_new(struct server_conn *conn, const struct meta *meta)
{
	struct xr_rpc_call *call = take_free(conn->here);

	if (!call)
		return NULL;
	call->conn = conn;
	call->correlation_id = meta->correlation_id;
	call->log_id = meta->log_id;
	call->timeout_ms = meta->timeout_ms;
	call->outlives_handler = false;
	return call;
}

static void
drop_contents(struct xr_rpc_call *call)
{
	xr_iobuf_clear(&call->message);
	xr_iobuf_clear(&call->attachment);
}

/* Answered on its lcore: kept there for the next request. */
static inline __attribute__((always_inline)) void
recycle(struct xr_rpc_call *call)
{
	struct server_conn *conn = call->conn;
	struct server_lcore *here = conn->here;
	bool held = call->outlives_handler, connected = conn->conn != NULL;

	drop_contents(call);
	call->next_free = here->free_calls;
	here->free_calls = call;
	if (!held)
		return;
	/* While the connection lives this is not its last reference. */
	server_conn_put(conn);
	if (connected)
		server_conn_call_ended(conn);
}

/* The lcore has stopped and with it the connection: there is nowhere to send an answer to. Any thread. */
static void
discard(struct xr_rpc_call *call)
{
	struct server_conn *conn = call->conn;

	rpc_count(RPC_ANSWERS_DROPPED);
	drop_contents(call);
	free(call->failure_text);
	xr_iobuf_clear(&call->answer);
	free(call);
	server_conn_put(conn);
}

/* ---- the handler ---- */

void
server_call_run(struct xr_rpc_call *call, const struct method *method)
{
	struct server_lcore *here = call->conn->here;

	here->running = call;
	CALLBACK(method->handler, method->handler(call, method->arg));
	if (here->running != call)
		return;
	/* Another thread may have answered already; its message has to pass through this lcore, after this. */
	here->running = NULL;
	server_conn_hold(call->conn);
	call->outlives_handler = true;
}

struct xr_iobuf *
xr_rpc_call_message(struct xr_rpc_call *call)
{
	return &call->message;
}

struct xr_iobuf *
xr_rpc_call_attachment(struct xr_rpc_call *call)
{
	return &call->attachment;
}

int64_t
xr_rpc_call_log_id(const struct xr_rpc_call *call)
{
	return call->log_id;
}

int32_t
xr_rpc_call_timeout_ms(const struct xr_rpc_call *call)
{
	return call->timeout_ms;
}

/* ---- the answer ---- */

/* What to answer when there is memory: message and attachment may be the request's own. They are empty after that. */
__attribute__((cold)) static void
remember_answer(struct xr_rpc_call *call, struct xr_iobuf *message, struct xr_iobuf *attachment)
{
	struct xr_iobuf own[2] = {XR_IOBUF_INIT, XR_IOBUF_INIT};

	if (message)
		xr_iobuf_move(&own[0], message);
	if (attachment)
		xr_iobuf_move(&own[1], attachment);
	drop_contents(call);
	xr_iobuf_move(&call->message, &own[0]);
	xr_iobuf_move(&call->attachment, &own[1]);
	call->failure = 0;
}

static void
forget_failure(struct xr_rpc_call *call)
{
	free(call->failure_text);
	call->failure_text = NULL;
}

__attribute__((cold)) static void
remember_failure(struct xr_rpc_call *call, int error_code, const char *text)
{
	drop_contents(call);
	call->failure = error_code > 0 ? error_code : XR_RPC_EINTERNAL;
	call->failure_text = text ? strdup(text) : NULL;
}

static int
build_failure(const struct xr_rpc_call *call, int error_code, const char *text, struct xr_iobuf *frame)
{
	struct meta_out meta;

	if (error_code <= 0)
		error_code = XR_RPC_EINTERNAL;
	meta_out_response(&meta, error_code, text ? text : xr_rpc_strerror(error_code), call->correlation_id, 0);
	return frame_begin(frame, &meta, NULL, 0);
}

/* Message and attachment are not in the call any more when this succeeds, nor where they came from. */
static inline __attribute__((always_inline)) int
build_success(const struct xr_rpc_call *call, struct xr_iobuf *message, struct xr_iobuf *attachment,
	      struct xr_iobuf *frame)
{
	size_t attachment_size = attachment ? xr_iobuf_size(attachment) : 0;
	size_t message_size = message ? xr_iobuf_size(message) : 0;
	struct meta_out meta;
	int error;

	if (attachment_size > FRAME_MAX_PAYLOAD || message_size > FRAME_MAX_PAYLOAD - attachment_size)
		return build_failure(call, XR_RPC_EINTERNAL, "the response is 2 GiB or more", frame);
	meta_out_response(&meta, 0, NULL, call->correlation_id, (uint32_t)attachment_size);
	error = frame_begin(frame, &meta, message, (uint32_t)attachment_size);
	if (!error && attachment_size)
		error = xr_iobuf_move(frame, attachment);
	if (error)
		xr_iobuf_clear(frame);
	return error;
}

/* The call stays until there is memory for its answer, and its connection with it. */
__attribute__((cold)) static void
await_memory(struct xr_rpc_call *call)
{
	struct server_conn *conn = call->conn;

	if (!call->outlives_handler)
		server_conn_hold(conn);
	call->outlives_handler = true;
	if (conn->conn) {
		server_conn_await_memory(conn, call);
		return;
	}
	forget_failure(call);
	recycle(call);
}

int
server_call_build(struct xr_rpc_call *call, struct xr_iobuf *frame)
{
	int error = call->failure ? build_failure(call, call->failure, call->failure_text, frame)
				  : build_success(call, &call->message, &call->attachment, frame);

	if (error)
		return error;
	cds_list_del(&call->unbuilt);
	forget_failure(call);
	recycle(call);
	return 0;
}

void
server_call_drop(struct xr_rpc_call *call)
{
	rpc_count(RPC_ANSWERS_DROPPED);
	cds_list_del(&call->unbuilt);
	forget_failure(call);
	recycle(call);
}

/* On the connection's lcore. */
static void
send_answer(struct xr_rpc_call *call, struct xr_iobuf *frame, int error)
{
	struct server_conn *conn = call->conn;

	if (!error)
		error = server_conn_send(conn, frame);
	if (error == -XR_ERDMAMEM) {
		error = build_failure(call, XR_ERDMAMEM, xr_strerror(XR_ERDMAMEM), frame);
		if (!error)
			error = server_conn_send(conn, frame);
		else
			remember_failure(call, XR_ERDMAMEM, xr_strerror(XR_ERDMAMEM));
	}
	if (__builtin_expect(error == -ENOMEM, 0)) {
		await_memory(call);
		return;
	}
	if (error)
		server_conn_fail(conn, error);
	recycle(call);
}

static void
answer_arrived(struct xr_msg *msg, int status)
{
	struct xr_rpc_call *call = caa_container_of(msg, struct xr_rpc_call, msg);

	if (status)
		discard(call);
	else
		send_answer(call, &call->answer, call->answer_error);
}

static bool
on_its_lcore(const struct xr_rpc_call *call)
{
	return t_lcore == call->conn->here->lcore;
}

static void
answer_here(struct xr_rpc_call *call, struct xr_iobuf *frame, int error)
{
	struct server_lcore *here = call->conn->here;

	if (here->running == call)
		here->running = NULL;
	send_answer(call, frame, error);
}

static void
answer_from_elsewhere(struct xr_rpc_call *call, int error)
{
	call->answer_error = error;
	if (xr_post(call->conn->here->lcore->id, &call->msg) != 0)
		discard(call);
}

static void
drop_both(struct xr_iobuf *message, struct xr_iobuf *attachment)
{
	if (message)
		xr_iobuf_clear(message);
	if (attachment)
		xr_iobuf_clear(attachment);
}

void
xr_rpc_reply(struct xr_rpc_call *call, struct xr_iobuf *message, struct xr_iobuf *attachment)
{
	struct xr_iobuf frame = XR_IOBUF_INIT;
	bool here = on_its_lcore(call);
	int error = build_success(call, message, attachment, here ? &frame : &call->answer);

	if (__builtin_expect(error == -ENOMEM, 0))
		remember_answer(call, message, attachment);
	else
		drop_both(message, attachment);
	if (here)
		answer_here(call, &frame, error);
	else
		answer_from_elsewhere(call, error);
}

void
xr_rpc_fail(struct xr_rpc_call *call, int error_code, const char *text)
{
	struct xr_iobuf frame = XR_IOBUF_INIT;
	bool here = on_its_lcore(call);
	int error = build_failure(call, error_code, text, here ? &frame : &call->answer);

	if (error == -ENOMEM)
		remember_failure(call, error_code, text);
	rpc_count(RPC_REQUESTS_FAILED);
	if (here)
		answer_here(call, &frame, error);
	else
		answer_from_elsewhere(call, error);
}
