/* SPDX-License-Identifier: Apache-2.0 */

/* The channel as its owner sees it: opened, called, closed. */

#include "net/rpc/channel.h"
#include "core/lcore.h"
#include "net/address.h"
#include "net/drain.h"
#include "net/rpc/frame.h"
#include "net/rpc/rpc.h"
#include "poll/stall.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu/compiler.h>

#define DEFAULT_TIMEOUT_MS 2000

static void close_here(struct xr_msg *msg, int status);
static void on_timeout(struct xr_timer *timer);

/* ---- its life ---- */

static void
channel_put(struct xr_rpc_channel *channel)
{
	if (__atomic_sub_fetch(&channel->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	free(channel->address);
	free(channel);
}

int
xr_rpc_channel_open(const struct xr_rpc_channel_opts *opts, struct xr_rpc_channel **out)
{
	struct xr_rpc_channel_opts own;
	unsigned count = lcore_count();
	struct xr_rpc_channel *channel;
	struct address address;

	if (!opts || !out || !count || opts_copy(&own, sizeof own, opts, opts->size) != 0)
		return -EINVAL;
	if (!own.address || address_parse(own.address, &address) != 0 || own.timeout_ms < 0 ||
	    own.connect_timeout_ms < 0)
		return -EINVAL;
	channel = calloc(1, sizeof *channel + count * sizeof channel->here[0]);
	if (!channel)
		return -ENOMEM;
	channel->address = strdup(own.address);
	if (!channel->address) {
		free(channel);
		return -ENOMEM;
	}
	channel->port = own.port ? own.port : xr_port_find(NULL);
	channel->max_body_size = own.max_body_size ? own.max_body_size : FRAME_MAX_BODY;
	channel->use_rdma = own.use_rdma;
	channel->timeout_ms = own.timeout_ms ? own.timeout_ms : DEFAULT_TIMEOUT_MS;
	channel->connect_timeout_ms = own.connect_timeout_ms;
	channel->refs = 1;
	channel->lcore_count = count;
	*out = channel;
	return 0;
}

static struct channel_lcore *
new_here(struct xr_rpc_channel *channel)
{
	struct channel_lcore *here = calloc(1, sizeof *here);

	if (!here)
		return NULL;
	here->channel = channel;
	CDS_INIT_LIST_HEAD(&here->conns);
	CDS_INIT_LIST_HEAD(&here->cancelled);
	call_table_init(&here->calls, here, on_timeout);
	arena_init(&here->arena);
	here->close = (struct xr_msg)XR_MSG_INIT(close_here);
	__atomic_fetch_add(&channel->refs, 1, __ATOMIC_RELAXED);
	return here;
}

/* What the channel has on the calling lcore; NULL: nothing yet, or no lcore. */
static struct channel_lcore *
channel_here(const struct xr_rpc_channel *channel)
{
	return t_lcore ? channel->here[t_lcore->index] : NULL;
}

static int
make_here(struct xr_rpc_channel *channel, struct channel_lcore **out)
{
	if (!t_lcore || !xr_port_has_lcore(channel->port, t_lcore->id))
		return -EINVAL;
	*out = new_here(channel);
	if (!*out)
		return -ENOMEM;
	__atomic_store_n(&channel->here[t_lcore->index], *out, __ATOMIC_RELEASE);
	return 0;
}

/* Runs on each lcore that has called; or, once that has stopped, on the thread that closes. */
static void
close_here(struct xr_msg *msg, int status)
{
	struct channel_lcore *here = caa_container_of(msg, struct channel_lcore, close);
	struct xr_rpc_channel *channel = here->channel;

	(void)status;
	channel_enter(here);
	while (!cds_list_empty(&here->conns))
		client_conn_close(cds_list_first_entry(&here->conns, struct client_conn, link));
	channel_leave(here);
	call_table_fini(&here->calls);
	arena_fini(&here->arena);
	free(here);
	channel_put(channel);
}

void
xr_rpc_channel_close(struct xr_rpc_channel *channel)
{
	__atomic_store_n(&channel->closed, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < channel->lcore_count; i++) {
		struct channel_lcore *here = __atomic_load_n(&channel->here[i], __ATOMIC_ACQUIRE);

		if (here && xr_post(lcore_at(i)->id, &here->close) != 0)
			close_here(&here->close, -ECANCELED);
	}
	channel_put(channel);
}

int
xr_rpc_channel_info(struct xr_rpc_channel *channel, struct xr_conn_info *info)
{
	const struct channel_lcore *here = channel_here(channel);

	if (!here || !here->current)
		return -ENOTCONN;
	xr_conn_info(here->current->conn, info);
	return 0;
}

/* ---- how calls end ---- */

void
channel_enter(struct channel_lcore *here)
{
	here->inside++;
}

static void
close_idle_conns(struct channel_lcore *here)
{
	struct client_conn *conn;

	cds_list_for_each_entry (conn, &here->conns, link)
		client_conn_close_idle(conn);
}

void
channel_leave(struct channel_lcore *here)
{
	while (here->inside == 1 && !cds_list_empty(&here->cancelled))
		channel_fail_call(cds_list_first_entry(&here->cancelled, struct call, link), -ECANCELED, NULL);
	here->inside--;
	if (__builtin_expect(here->logged_off || drain_begun(), 0) && !here->inside)
		close_idle_conns(here);
}

void
channel_end_call(struct call *call, const struct xr_rpc_response *response)
{
	struct channel_lcore *here = call->here;
	xr_rpc_done *done = call->done;
	void *arg = call->arg;

	cds_list_del(&call->link);
	xr_timer_cancel(&call->timer);
	call_retire(call);
	call_release(&here->calls, call);
	if (response->error_code)
		rpc_count(RPC_CALLS_FAILED);
	CALLBACK(done, done(response, arg));
}

void
channel_fail_call(struct call *call, int error_code, const char *text)
{
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	const struct xr_rpc_response response = {
		error_code,
		text && *text ? text : xr_rpc_strerror(error_code),
		&message,
		&attachment,
	};

	channel_end_call(call, &response);
	xr_iobuf_clear(&message);
	xr_iobuf_clear(&attachment);
}

static void
on_timeout(struct xr_timer *timer)
{
	struct call *call = caa_container_of(timer, struct call, timer);
	struct channel_lcore *here = call->here;
	char text[64];

	snprintf(text, sizeof text, "no answer within %d ms", call->timeout_ms);
	rpc_count(RPC_CALLS_TIMED_OUT);
	channel_enter(here);
	channel_fail_call(call, XR_RPC_ERPCTIMEDOUT, text);
	channel_leave(here);
}

void
xr_rpc_cancel(struct xr_rpc_channel *channel, xr_rpc_id id)
{
	struct channel_lcore *here = channel_here(channel);
	struct call *call = here ? call_find(&here->calls, id) : NULL;

	if (!call)
		return;
	channel_enter(here);
	xr_timer_cancel(&call->timer);
	call_retire(call);
	cds_list_move(&call->link, &here->cancelled);
	channel_leave(here);
}

/* ---- how calls begin ---- */

static size_t
size_of(const struct xr_iobuf *buf)
{
	return buf ? xr_iobuf_size(buf) : 0;
}

static int
check_request(const struct xr_rpc_request *request, xr_rpc_done *done)
{
	size_t attachment = size_of(request->attachment);

	if (request->size != sizeof *request || !done)
		return -EINVAL;
	if (!request->service || !*request->service || !request->method || !*request->method)
		return -EINVAL;
	if (attachment > FRAME_MAX_PAYLOAD || size_of(request->message) > FRAME_MAX_PAYLOAD - attachment)
		return -EINVAL;
	return 0;
}

/* Shares message and attachment, so that they are whole when the frame can't be sent. */
static int
build(const struct xr_rpc_request *request, uint64_t id, struct xr_iobuf *frame)
{
	uint32_t attachment_size = (uint32_t)size_of(request->attachment);
	struct meta_out meta;
	int error;

	meta_out_request(&meta, request->service, request->method, request->log_id, (int64_t)id, attachment_size);
	error = frame_begin(frame, &meta, request->message, attachment_size);
	if (!error && attachment_size)
		error = xr_iobuf_share(frame, request->attachment);
	return error;
}

/* On the current connection, or on a new one when there is none or it turns out to be ending. */
static int
send_frame(struct channel_lcore *here, struct xr_iobuf *frame)
{
	int error = here->current ? xr_conn_send(here->current->conn, frame) : -EPIPE;

	if (__builtin_expect(error != -EPIPE, 1))
		return error;
	here->current = NULL;
	error = client_conn_dial(here);
	return error ? error : xr_conn_send(here->current->conn, frame);
}

static void
await(struct channel_lcore *here, struct call *call, int timeout_ms, xr_rpc_done *done, void *arg)
{
	if (timeout_ms == 0)
		timeout_ms = here->channel->timeout_ms;
	call->done = done;
	call->arg = arg;
	call->conn = here->current;
	call->timeout_ms = timeout_ms;
	cds_list_add_tail(&call->link, &here->current->calls);
	if (timeout_ms > 0)
		xr_timer_arm(&call->timer, (uint64_t)timeout_ms * 1000u, 0);
}

static void
empty(struct xr_iobuf *buf)
{
	if (buf)
		xr_iobuf_clear(buf);
}

int
xr_rpc_call(struct xr_rpc_channel *channel, const struct xr_rpc_request *request, xr_rpc_done *done, void *arg,
	    xr_rpc_id *id)
{
	struct channel_lcore *here = channel_here(channel);
	struct xr_iobuf frame = XR_IOBUF_INIT;
	struct call *call = NULL;
	int error = check_request(request, done);

	if (!error && (drain_begun() || __atomic_load_n(&channel->closed, __ATOMIC_RELAXED)))
		error = -ESHUTDOWN;
	if (!error && !here)
		error = make_here(channel, &here);
	if (error)
		return error;

	call = call_take(&here->calls);
	if (!call)
		return -ENOMEM;
	error = build(request, call->id, &frame);
	if (!error)
		error = send_frame(here, &frame);
	if (error) {
		xr_iobuf_clear(&frame);
		call_release(&here->calls, call);
		return error;
	}
	empty(request->message);
	empty(request->attachment);
	await(here, call, request->timeout_ms, done, arg);
	rpc_count(RPC_CALLS);
	if (id)
		*id = call->id;
	return 0;
}
