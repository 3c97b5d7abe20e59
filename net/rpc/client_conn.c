/* SPDX-License-Identifier: Apache-2.0 */

/* A channel's connections: responses are cut out of the stream and given to the calls that wait for them. */

#include "net/drain.h"
#include "net/rpc/channel.h"
#include "net/rpc/frame.h"
#include "net/rpc/rpc.h"
#include "net/rpc/stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <xrdma/error.h>

static const struct xr_conn_ops g_client_conn_ops;

int
client_conn_dial(struct channel_lcore *here)
{
	const struct xr_rpc_channel *channel = here->channel;
	struct client_conn *conn = calloc(1, sizeof *conn);
	struct xr_dial_opts opts = {
		.size = sizeof opts,
		.ops = &g_client_conn_ops,
		.arg = conn,
		.use_rdma = channel->use_rdma,
		.connect_timeout_ms = channel->connect_timeout_ms,
	};
	int error;

	if (!conn)
		return -ENOMEM;
	error = xr_dial(channel->port, channel->address, &opts, &conn->conn);
	if (error) {
		free(conn);
		return error;
	}
	conn->here = here;
	CDS_INIT_LIST_HEAD(&conn->calls);
	cds_list_add(&conn->link, &here->conns);
	here->current = conn;
	return 0;
}

static void
forget(struct client_conn *conn)
{
	if (conn->here->current == conn)
		conn->here->current = NULL;
	cds_list_del(&conn->link);
	free(conn);
}

static void
fail_calls(struct client_conn *conn, int error_code, const char *text)
{
	while (!cds_list_empty(&conn->calls))
		channel_fail_call(cds_list_first_entry(&conn->calls, struct call, link), error_code, text);
}

void
client_conn_close(struct client_conn *conn)
{
	xr_conn_set_arg(conn->conn, NULL);
	xr_conn_close(conn->conn);
	fail_calls(conn, -ECANCELED, NULL);
	forget(conn);
}

/* ---- how it ends ---- */

/* The peer sent what no server sends: the connection ends, and on_close will tell its calls why. */
static void
give_up(struct client_conn *conn, int reason, const char *why)
{
	struct xr_rpc_channel *channel = conn->here->channel;

	log_limited(&channel->refusals, XR_LOG_WARNING, "rpc: closing the connection to %s: %s", channel->address, why);
	rpc_count(RPC_FRAMES_REFUSED);
	conn->why = why;
	conn->here->current = NULL;
	xr_conn_abort(conn->conn, reason);
}

/* The error of the calls that a connection leaves behind. */
static int
error_of(int reason)
{
	if (reason == -ECANCELED)
		return -ECANCELED;
	return reason == 0 ? XR_RPC_EEOF : XR_RPC_EFAILEDSOCKET;
}

/* Not to whom: whoever called knows, and says it with the errors that the peer has worded, too. */
static const char *
describe_end(const struct client_conn *conn, int reason, char *text, size_t size)
{
	if (conn->why)
		return conn->why;
	if (reason == 0)
		return "closed by the peer";
	if (conn->opened)
		return xr_strerror(reason);
	snprintf(text, size, "can't connect: %s", xr_strerror(reason));
	return text;
}

static void
on_close(struct xr_conn *xr_conn, int reason)
{
	struct client_conn *conn = xr_conn_arg(xr_conn);
	struct channel_lcore *here;
	char text[128];

	if (!conn)
		return;
	here = conn->here;
	if (here->current == conn)
		here->current = NULL;
	channel_enter(here);
	fail_calls(conn, error_of(reason), describe_end(conn, reason, text, sizeof text));
	forget(conn);
	channel_leave(here);
}

void
client_conn_close_idle(struct client_conn *conn)
{
	if (cds_list_empty(&conn->calls) && (conn->logged_off || drain_begun()))
		xr_conn_close(conn->conn);
}

static void
on_drain(struct xr_conn *xr_conn)
{
	struct client_conn *conn = xr_conn_arg(xr_conn);

	if (conn)
		client_conn_close_idle(conn);
}

static void
on_open(struct xr_conn *xr_conn, int status)
{
	struct client_conn *conn = xr_conn_arg(xr_conn);

	if (conn)
		conn->opened = status == 0;
}

/* ---- responses ---- */

static void
deliver(struct client_conn *conn, struct xr_iobuf *in, const struct frame *frame, const struct meta *meta,
	struct call *call)
{
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	const struct xr_rpc_response response = {0, "", &message, &attachment};

	if (frame_cut(in, frame, meta, &message, &attachment) == 0)
		channel_end_call(call, &response);
	else
		give_up(conn, -ENOMEM, "no memory to take a response apart");
	xr_iobuf_clear(&message);
	xr_iobuf_clear(&attachment);
}

/* A number below 0 is this library's own: a peer's is taken for what brpc makes of its own failures without one. */
static int
peer_error(const struct meta *meta)
{
	return meta->error_code < 0 ? XR_RPC_EINTERNAL : meta->error_code;
}

/* The server stops: calls in work get their answers still, the next one goes to a new connection. */
static void
log_off(struct client_conn *conn)
{
	struct channel_lcore *here = conn->here;

	conn->logged_off = here->logged_off = true;
	if (here->current == conn)
		here->current = NULL;
}

static void
fail_call(struct client_conn *conn, struct call *call, const struct meta *meta)
{
	if (meta->error_code == XR_RPC_ELOGOFF)
		log_off(conn);
	channel_fail_call(call, peer_error(meta), meta->error_text);
}

static void
respond(struct client_conn *conn, struct xr_iobuf *in, const struct frame *frame, const struct meta *meta)
{
	struct call *call = call_find(&conn->here->calls, (uint64_t)meta->correlation_id);

	if (call && call->conn == conn && meta->error_code == 0 && meta->compress_type == 0 &&
	    frame_attachment_fits(frame, meta)) {
		deliver(conn, in, frame, meta, call);
		return;
	}
	frame_drop(in, frame);
	if (!call || call->conn != conn)
		rpc_count(RPC_RESPONSES_DROPPED);
	else if (meta->error_code != 0)
		fail_call(conn, call, meta);
	else if (meta->compress_type != 0)
		channel_fail_call(call, XR_RPC_ERESPONSE, "the response is compressed, which was not asked for");
	else
		channel_fail_call(call, XR_RPC_ERESPONSE, "attachment_size does not fit into the frame");
}

/* Takes one response from the front of in. False: there is none any more, or the connection is ending. */
static bool
take_response(struct client_conn *conn, struct xr_iobuf *in)
{
	struct channel_lcore *here = conn->here;
	struct frame frame;
	struct meta meta;
	const char *why;

	switch (stream_peek(conn->conn, &conn->needs_more, in, here->channel->max_body_size, &frame, &why)) {
	case FRAME_BAD:
		give_up(conn, -EPROTO, why);
		return false;
	case FRAME_PARTIAL:
		return false;
	case FRAME_WHOLE:
		break;
	}
	if (frame_meta(in, &frame, &here->arena, &meta) == 0) {
		respond(conn, in, &frame, &meta);
	} else {
		/* As brpc: nobody can tell whose it was, so that call runs into its timeout. */
		frame_drop(in, &frame);
		rpc_count(RPC_RESPONSES_DROPPED);
	}
	return !conn->why;
}

static void
on_data(struct xr_conn *xr_conn, struct xr_iobuf *in)
{
	struct client_conn *conn = xr_conn_arg(xr_conn);
	struct channel_lcore *here;

	if (!conn)
		return;
	here = conn->here;
	channel_enter(here);
	while (xr_iobuf_size(in) > 0 && take_response(conn, in))
		;
	channel_leave(here);
}

static const struct xr_conn_ops g_client_conn_ops = {
	.size = sizeof(struct xr_conn_ops),
	.on_open = on_open,
	.on_data = on_data,
	.on_close = on_close,
	.on_drain = on_drain,
};
