/* SPDX-License-Identifier: Apache-2.0 */

/* A server's connections: requests are cut out of the stream and handed on, answers leave, nothing is lost between. */

#include "net/conn.h"
#include "net/net.h"
#include "net/rpc/frame.h"
#include "net/rpc/rpc.h"
#include "net/rpc/server.h"
#include "net/rpc/stream.h"
#include <errno.h>
#include <stdlib.h>
#include <xrdma/error.h>

#define REQUESTS_A_TURN 256u /* of one connection: the others get theirs */

/* ---- what a server has on one lcore ---- */

static struct server_lcore *
server_here(struct xr_rpc_server *server)
{
	struct server_slot *slot = &server->slots[t_lcore->index];

	if (slot->here)
		return slot->here;
	slot->here = calloc(1, sizeof *slot->here);
	if (!slot->here)
		return NULL;
	slot->here->server = server;
	slot->here->lcore = t_lcore;
	CDS_INIT_LIST_HEAD(&slot->here->conns);
	arena_init(&slot->here->arena);
	return slot->here;
}

void
server_lcore_free(struct server_lcore *here)
{
	while (here->free_calls) {
		struct xr_rpc_call *call = here->free_calls;

		here->free_calls = call->next_free;
		free(call);
	}
	arena_fini(&here->arena);
	free(here);
}

/* ---- the end of a server's connections ---- */

/*
 * A peer that calls all the time does not know yet: what it has sent by now is answered with ELOGOFF, which it may try
 * elsewhere, while of calls that a close cuts off nobody knows whether they were served. So a connection ends when it
 * has been quiet for a moment, or at last when its peer does not take the hint.
 */
#define QUIET_US UINT64_C(50000)
#define HINT_US	 (10 * QUIET_US)

static uint64_t
quiet_until_us(const struct server_conn *conn)
{
	uint64_t quiet_us = conn->heard_us + QUIET_US, last_us = conn->here->closing_us + HINT_US;

	return quiet_us < last_us ? quiet_us : last_us;
}

/* The connection's own reference is the only one left when no call is out. */
static void
close_when_idle(struct server_conn *conn)
{
	uint64_t now_us = xr_now_us(), until_us;

	if (!conn->conn || conn->blocked || __atomic_load_n(&conn->refs, __ATOMIC_RELAXED) != 1)
		return;
	until_us = quiet_until_us(conn);
	if (now_us >= until_us)
		xr_conn_close(conn->conn);
	else
		xr_timer_arm(&conn->deadline, until_us - now_us, 0);
}

/* Answers that are held back leave before the end, as long as the peer reads them. */
static void
limit_blocked(struct server_conn *conn)
{
	xr_timer_arm(&conn->deadline, (uint64_t)option_int(&g_conn_close_ms) * 1000u, 0);
}

static void
deadline_passed(struct xr_timer *timer)
{
	struct server_conn *conn = caa_container_of(timer, struct server_conn, deadline);

	if (conn->blocked)
		server_conn_fail(conn, -ETIMEDOUT);
	else
		close_when_idle(conn);
}

static void
begin_closing(struct server_lcore *here)
{
	if (here->closing)
		return;
	here->closing = true;
	here->closing_us = xr_now_us();
}

static void
end_when_done(struct server_conn *conn)
{
	if (conn->blocked)
		limit_blocked(conn);
	else
		close_when_idle(conn);
}

void
server_lcore_close(struct server_lcore *here)
{
	struct server_conn *conn;

	begin_closing(here);
	cds_list_for_each_entry (conn, &here->conns, link)
		end_when_done(conn);
}

/* ---- a connection's life ---- */

static struct server_conn *
server_conn_new(struct xr_rpc_server *server, struct xr_conn *conn)
{
	struct server_lcore *here = server_here(server);
	struct server_conn *new = here ? calloc(1, sizeof *new) : NULL;

	if (!new)
		return NULL;
	new->here = here;
	new->conn = conn;
	new->refs = 1;
	new->deadline = (struct xr_timer)XR_TIMER_INIT(deadline_passed);
	cds_list_add(&new->link, &here->conns);
	return new;
}

void
server_conn_hold(struct server_conn *conn)
{
	__atomic_fetch_add(&conn->refs, 1, __ATOMIC_RELAXED);
}

void
server_conn_put(struct server_conn *conn)
{
	struct xr_rpc_server *server = conn->here->server;

	if (__atomic_sub_fetch(&conn->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	free(conn);
	server_put(server);
}

static void
on_open(struct xr_conn *xr_conn, int status)
{
	struct xr_rpc_server *server = status ? NULL : server_hold((uintptr_t)xr_conn_arg(xr_conn));
	struct server_conn *conn = server ? server_conn_new(server, xr_conn) : NULL;

	xr_conn_set_arg(xr_conn, conn);
	if (status || conn)
		return;
	if (server)
		server_put(server);
	xr_conn_abort(xr_conn, server ? -ENOMEM : -ESHUTDOWN);
}

static void
on_close(struct xr_conn *xr_conn, int reason)
{
	struct server_conn *conn = xr_conn_arg(xr_conn);

	(void)reason;
	if (!conn)
		return;
	conn->conn = NULL;
	xr_timer_cancel(&conn->deadline);
	cds_list_del(&conn->link);
	xr_iobuf_clear(&conn->backlog);
	server_conn_put(conn);
}

/* As when the server closes, connection by connection. */
static void
on_drain(struct xr_conn *xr_conn)
{
	struct server_conn *conn = xr_conn_arg(xr_conn);

	if (!conn)
		return;
	begin_closing(conn->here);
	end_when_done(conn);
}

void
server_conn_fail(struct server_conn *conn, int error)
{
	if (conn->conn)
		xr_conn_abort(conn->conn, error);
}

void
server_conn_call_ended(struct server_conn *conn)
{
	if (__builtin_expect(conn->here->closing, 0))
		close_when_idle(conn);
}

/* ---- answers ---- */

static void
hold_back(struct server_conn *conn, struct xr_iobuf *frame)
{
	if (xr_iobuf_move(&conn->backlog, frame) != 0) {
		xr_iobuf_clear(frame);
		server_conn_fail(conn, -ENOMEM);
		return;
	}
	rpc_count(RPC_ANSWERS_HELD_BACK);
	if (!conn->blocked) {
		conn->blocked = true;
		xr_conn_pause(conn->conn);
		if (conn->here->closing)
			limit_blocked(conn);
	}
}

int
server_conn_send(struct server_conn *conn, struct xr_iobuf *frame)
{
	int error = -EPIPE;

	if (conn->conn)
		error = conn->blocked ? -EAGAIN : xr_conn_send(conn->conn, frame);
	if (__builtin_expect(error == 0, 1))
		return 0;
	/* Many answers wait as one: what can't be sent must not get among them. */
	if (error == -EAGAIN && conn_fit(conn->conn, frame) == -XR_ERDMAMEM)
		error = -XR_ERDMAMEM;
	if (error == -EAGAIN) {
		hold_back(conn, frame);
		return 0;
	}
	xr_iobuf_clear(frame);
	if (error == -XR_ERDMAMEM)
		return error;
	if (error == -EPIPE)
		rpc_count(RPC_ANSWERS_DROPPED);
	else
		server_conn_fail(conn, error);
	return 0;
}

static void
on_writable(struct xr_conn *xr_conn)
{
	struct server_conn *conn = xr_conn_arg(xr_conn);
	int error;

	if (!conn || !conn->blocked)
		return;
	error = xr_conn_send(xr_conn, &conn->backlog);
	if (error == -EAGAIN)
		return;
	if (error) {
		server_conn_fail(conn, error);
		return;
	}
	conn->blocked = false;
	xr_timer_cancel(&conn->deadline);
	xr_conn_resume(xr_conn);
	server_conn_call_ended(conn);
}

/* ---- requests ---- */

static void
refuse(struct server_conn *conn, const char *why)
{
	struct log_limit *limit = &conn->here->server->refusals;
	struct xr_conn_info info = {.size = sizeof info};

	xr_conn_info(conn->conn, &info);
	log_limited(limit, XR_LOG_WARNING, "rpc: closing the connection from %s: not a request: %s", info.peer, why);
	rpc_count(RPC_FRAMES_REFUSED);
	xr_conn_abort(conn->conn, -EPROTO);
}

/* 0, or the error that the request is answered with. */
static int
check(const struct server_conn *conn, const struct frame *frame, const struct meta *meta, const struct method **method,
      const char **text)
{
	int error = 0;

	*text = NULL;
	if (conn->here->closing)
		return XR_RPC_ELOGOFF;
	if (!meta->has_request) {
		*text = "the meta holds no request";
		return XR_RPC_EREQUEST;
	}
	if (!frame_attachment_fits(frame, meta)) {
		*text = "attachment_size does not fit into the frame";
		return XR_RPC_EREQUEST;
	}
	if (meta->compress_type != 0) {
		*text = "compressed requests are not supported: compress_type must be 0 (none)";
		return XR_RPC_EREQUEST;
	}
	*method = service_find(&conn->here->server->services, meta->service, meta->method, &error);
	return error;
}

/* Serves the whole frame at the front of in. False: the connection is ending. */
static bool
serve(struct server_conn *conn, struct xr_iobuf *in, const struct frame *frame, const struct meta *meta)
{
	struct xr_rpc_call *call = server_call_new(conn, meta);
	const struct method *method;
	const char *text;
	int error;

	if (!call) {
		server_conn_fail(conn, -ENOMEM);
		return false;
	}
	rpc_count(RPC_REQUESTS);
	error = check(conn, frame, meta, &method, &text);
	if (error) {
		frame_drop(in, frame);
		xr_rpc_fail(call, error, text);
		return true;
	}
	if (frame_cut(in, frame, meta, &call->message, &call->attachment) != 0) {
		xr_rpc_fail(call, XR_RPC_EINTERNAL, NULL);
		server_conn_fail(conn, -ENOMEM);
		return false;
	}
	server_call_run(call, method);
	return true;
}

/* Takes one request from the front of in. False: there is none any more, or the connection is ending. */
static bool
take_request(struct server_conn *conn, struct xr_iobuf *in)
{
	struct server_lcore *here = conn->here;
	struct frame frame;
	struct meta meta;
	const char *why;

	switch (stream_peek(conn->conn, &conn->needs_more, in, here->server->max_body_size, &frame, &why)) {
	case FRAME_BAD:
		refuse(conn, why);
		return false;
	case FRAME_PARTIAL:
		return false;
	case FRAME_WHOLE:
		break;
	}
	if (frame_meta(in, &frame, &here->arena, &meta) != 0) {
		refuse(conn, "its RpcMeta does not decode");
		return false;
	}
	return serve(conn, in, &frame, &meta);
}

static void
on_data(struct xr_conn *xr_conn, struct xr_iobuf *in)
{
	struct server_conn *conn = xr_conn_arg(xr_conn);
	unsigned taken = 0;

	if (!conn)
		return;
	conn->heard_us = xr_now_us();
	while (!conn->blocked && xr_iobuf_size(in) > 0 && take_request(conn, in)) {
		if (++taken == REQUESTS_A_TURN) {
			xr_conn_resume(xr_conn);
			return;
		}
	}
}

const struct xr_conn_ops g_server_conn_ops = {
	.size = sizeof(struct xr_conn_ops),
	.on_open = on_open,
	.on_data = on_data,
	.on_writable = on_writable,
	.on_close = on_close,
	.on_drain = on_drain,
};
