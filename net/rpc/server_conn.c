/* SPDX-License-Identifier: Apache-2.0 */

/* A server's connections: requests are cut out of the stream and handed on, answers leave, nothing is lost between. */

#include "net/conn.h"
#include "net/net.h"
#include "net/output.h"
#include "net/rpc/frame.h"
#include "net/rpc/rpc.h"
#include "net/rpc/server.h"
#include "net/rpc/stream.h"
#include "net/turn.h"
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
	if (conn_input_due(conn->conn))
		conn->heard_us = now_us;
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

static enum hunger_end feed(struct hunger *hunger);

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
	new->heard_us = xr_now_us();
	new->deadline = (struct xr_timer)XR_TIMER_INIT(deadline_passed);
	new->hunger = hunger_init(feed);
	CDS_INIT_LIST_HEAD(&new->unbuilt);
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
	hunger_leave(&conn->hunger, &t_net->scarcity);
	while (!cds_list_empty(&conn->unbuilt))
		server_call_drop(cds_list_first_entry(&conn->unbuilt, struct xr_rpc_call, unbuilt));
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

/* No further request is read: its answer would have to wait as well. */
static void
block(struct server_conn *conn)
{
	if (conn->blocked)
		return;
	conn->blocked = true;
	xr_conn_pause(conn->conn);
	if (conn->here->closing)
		limit_blocked(conn);
}

static void
await_memory(struct server_conn *conn)
{
	block(conn);
	hunger_join(&conn->hunger, &t_net->scarcity, HUNGER_ALLOCATE);
}

void
server_conn_await_memory(struct server_conn *conn, struct xr_rpc_call *call)
{
	cds_list_add_tail(&call->unbuilt, &conn->unbuilt);
	rpc_count(RPC_ANSWERS_HELD_BACK);
	await_memory(conn);
}

static void
hold_back(struct server_conn *conn, struct xr_iobuf *frame)
{
	if (xr_iobuf_move(&conn->backlog, frame) != 0) {
		xr_iobuf_clear(frame);
		server_conn_fail(conn, -ENOMEM);
		return;
	}
	rpc_count(RPC_ANSWERS_HELD_BACK);
	block(conn);
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
	if (error == -EAGAIN || error == -ENOMEM) {
		hold_back(conn, frame);
		if (error == -ENOMEM && conn->blocked)
			await_memory(conn);
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

/* What has waited goes on. 0: all of it; -EAGAIN, -ENOMEM: some waits still; or why the connection can't go on. */
static int
send_waiting(struct server_conn *conn)
{
	int error = xr_conn_send(conn->conn, &conn->backlog);

	while (!error && !cds_list_empty(&conn->unbuilt)) {
		error = server_call_build(cds_list_first_entry(&conn->unbuilt, struct xr_rpc_call, unbuilt),
					  &conn->backlog);
		if (!error)
			error = xr_conn_send(conn->conn, &conn->backlog);
	}
	return error;
}

static void
unblock(struct server_conn *conn)
{
	conn->blocked = false;
	hunger_leave(&conn->hunger, &t_net->scarcity);
	xr_timer_cancel(&conn->deadline);
	xr_conn_resume(conn->conn);
	server_conn_call_ended(conn);
}

static int
go_on(struct server_conn *conn)
{
	int error = send_waiting(conn);

	if (!error)
		unblock(conn);
	else if (error == -ENOMEM)
		await_memory(conn);
	else if (error != -EAGAIN)
		server_conn_fail(conn, error);
	return error;
}

static enum hunger_end
feed(struct hunger *hunger)
{
	return go_on(caa_container_of(hunger, struct server_conn, hunger)) == -ENOMEM ? HUNGER_NONE : HUNGER_OVER;
}

static void
on_writable(struct xr_conn *xr_conn)
{
	struct server_conn *conn = xr_conn_arg(xr_conn);

	if (conn && conn->blocked)
		go_on(conn);
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

/* A request that is not here yet is not read as long as there is no room for its answer. */
static void
wait_for_room(struct server_conn *conn)
{
	if (__builtin_expect(output_full(conn->conn), 0))
		block(conn);
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
		wait_for_room(conn);
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
