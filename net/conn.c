/* SPDX-License-Identifier: Apache-2.0 */

#include "net/conn.h"
#include "core/log.h"
#include "net/negotiate.h"
#include "net/net.h"
#include "net/output.h"
#include "net/port.h"
#include "net/turn.h"
#include "poll/stall.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xrdma/error.h>

/* ---- birth ---- */

bool
conn_ops_valid(const struct xr_conn_ops *ops)
{
	return ops && ops->size >= sizeof *ops;
}

struct xr_conn *
conn_new(struct net_lcore *home, struct xr_port *port, const struct xr_conn_ops *ops, void *arg)
{
	struct xr_conn *conn = calloc(1, sizeof *conn);

	if (!conn)
		return NULL;
	conn->home = home;
	conn->port = port;
	conn->ops = ops;
	conn->arg = arg;
	conn->need = 1;
	conn->in_type = BLOCK_DEFAULT;
	conn->link = &g_tcp_link;
	CDS_INIT_LIST_HEAD(&conn->touched);
	CDS_INIT_LIST_HEAD(&conn->flushing);
	CDS_INIT_LIST_HEAD(&conn->all);
	tcp_init(&conn->tcp);
	__atomic_add_fetch(&home->live, 1, __ATOMIC_RELAXED);
	return conn;
}

void
conn_discard(struct xr_conn *conn)
{
	if (!cds_list_empty(&conn->all))
		net_count(NET_CONNS_LIVE, (uint64_t)-1);
	cds_list_del(&conn->all);
	__atomic_sub_fetch(&conn->home->live, 1, __ATOMIC_RELAXED);
	free(conn->no_rdma_text);
	free(conn);
}

static void deadline_passed(struct xr_timer *timer);

void
conn_attach(struct xr_conn *conn)
{
	conn->deadline = (struct xr_timer)XR_TIMER_INIT(deadline_passed);
	cds_list_add_tail(&conn->all, &conn->home->conns);
	net_count(NET_CONNS_LIVE, 1);
}

/* ---- the lists ---- */

void
conn_touch(struct xr_conn *conn)
{
	if (cds_list_empty(&conn->touched) && conn->state != CONN_ENDED)
		cds_list_add_tail(&conn->touched, &conn->home->touched);
}

void
conn_flush_later(struct xr_conn *conn)
{
	if (cds_list_empty(&conn->flushing) && conn->state != CONN_ENDED)
		cds_list_add_tail(&conn->flushing, &conn->home->flushing);
}

/* ---- its states ---- */

void
conn_set_deadline(struct xr_conn *conn, int64_t after_ms)
{
	xr_timer_arm(&conn->deadline, (uint64_t)after_ms * 1000, 0);
}

static void
deadline_passed(struct xr_timer *timer)
{
	struct xr_conn *conn = caa_container_of(timer, struct xr_conn, deadline);

	if (conn->state == CONN_NEGOTIATING && !conn->dialled && !conn->hs.started)
		conn_end(conn, -ECANCELED); /* the stop's */
	else if (conn->state == CONN_NEGOTIATING)
		negotiate_timeout(conn);
	else
		conn_end(conn, -ETIMEDOUT);
}

void
conn_connected(struct xr_conn *conn)
{
	if (conn->state != CONN_CONNECTING)
		return;
	conn->state = CONN_NEGOTIATING;
	xr_timer_cancel(&conn->deadline);
	negotiate_start(conn);
}

static void
log_opened(const struct xr_conn *conn)
{
	char local[ADDRESS_TEXT_BYTES], peer[ADDRESS_TEXT_BYTES];

	if (!log_enabled(XR_LOG_INFO))
		return;
	address_format(&conn->local, local);
	address_format(&conn->peer, peer);
	log_info("connection %s %s %s open over %s, port %s", local, conn->dialled ? "to" : "from", peer,
		 conn->link->transport, xr_port_name(conn->port));
}

void
conn_opened(struct xr_conn *conn)
{
	conn->state = CONN_OPEN;
	conn->open_due = true;
	xr_timer_cancel(&conn->deadline);
	log_opened(conn);
	conn_touch(conn);
	if (xr_iobuf_size(&conn->out))
		conn_flush_later(conn);
}

/* Nothing more comes in or is accepted; what is queued leaves first, unless the link has failed. */
static void
begin_close(struct xr_conn *conn)
{
	if (conn->reason) {
		conn_end(conn, conn->reason);
		return;
	}
	conn->state = CONN_CLOSING;
	conn->sending_over = true;
	conn->hold_input = false;
	xr_iobuf_clear(&conn->in);
	conn->in_pinned = 0;
	input_over(conn);
	conn_set_deadline(conn, option_int(&g_conn_close_ms));
	conn_flush_later(conn);
	conn->link->hold(conn);
}

void
conn_end(struct xr_conn *conn, int reason)
{
	if (conn->state == CONN_ENDED)
		return;
	conn->state = CONN_ENDED;
	conn->sending_over = true;
	conn->reason = reason;
	xr_timer_cancel(&conn->deadline);
	input_over(conn);
	cds_list_del_init(&conn->touched);
	cds_list_del(&conn->flushing);
	cds_list_add_tail(&conn->flushing, &conn->home->ended);
}

void
conn_end_unopened(const struct xr_conn_ops *ops, const void *arg)
{
	struct xr_conn *conn;

	cds_list_for_each_entry (conn, &t_net->conns, all)
		if (conn->state == CONN_NEGOTIATING && !conn->dialled && conn->ops == ops && conn->arg == arg)
			conn_end(conn, -ECANCELED);
}

void
conn_fail(struct xr_conn *conn, int error)
{
	if (conn->state == CONN_NEGOTIATING && negotiate_broken(conn))
		return;
	if (conn->state != CONN_OPEN || conn->paused) {
		conn_end(conn, error);
		return;
	}
	conn->reason = error;
	conn->sending_over = true;
	conn_touch(conn);
}

void
conn_eof(struct xr_conn *conn)
{
	conn->eof = true;
	if (conn->state == CONN_NEGOTIATING)
		negotiate_eof(conn);
	else if (conn->state == CONN_OPEN)
		conn_touch(conn);
	else if (conn->state == CONN_DRAINING)
		conn_end(conn, 0);
}

/* ---- input ---- */

void
conn_received(struct xr_conn *conn, size_t len)
{
	conn->bytes_in += len;
	net_count(NET_BYTES_IN, len);
	if (conn->state != CONN_NEGOTIATING) {
		conn_touch(conn);
		return;
	}
	negotiate_input(conn);
	/* The rest of a hello is short, and has a deadline: it is never held back. */
	if (conn->state == CONN_NEGOTIATING)
		input_compact(conn);
}

/* ---- the deliver step ---- */

static void
deliver_open(struct xr_conn *conn)
{
	conn->open_due = false;
	conn->opened = true;
	net_count(NET_CONNS_OPENED, 1);
	if (conn->ops->on_open)
		CALLBACK(conn->ops->on_open, conn->ops->on_open(conn, 0));
	if (conn->state == CONN_OPEN && conn->close_asked)
		begin_close(conn);
}

static void
deliver_data(struct xr_conn *conn)
{
	if (conn->paused || xr_iobuf_size(&conn->in) == 0)
		return;
	if (conn->ops->on_data)
		CALLBACK(conn->ops->on_data, conn->ops->on_data(conn, &conn->in));
	else
		xr_iobuf_clear(&conn->in);
}

void
conn_deliver(struct xr_conn *conn)
{
	bool opens = conn->open_due;

	if (opens)
		deliver_open(conn);
	if (conn->state == CONN_OPEN)
		deliver_data(conn);
	/* A latecomer to a drain: the others have been asked. */
	if (opens && conn->home->drain.phase == DRAIN_ASKED && !conn->dialled)
		conn_drain(conn);
	if (conn->state != CONN_OPEN)
		return;
	input_review(conn);
	if (conn->state != CONN_OPEN)
		return;
	if (conn->link->taken)
		conn->link->taken(conn);
	if (!cds_list_empty(&conn->touched))
		return; /* resumed: it wants what is left, before any end */
	if (conn->reason || (conn->eof && !conn->paused))
		begin_close(conn);
}

/* ---- the flush step ---- */

static void
tell_writable(struct xr_conn *conn)
{
	if (!conn->want_writable || !output_half_drained(conn))
		return;
	conn->want_writable = false;
	if (conn->ops->on_writable)
		CALLBACK(conn->ops->on_writable, conn->ops->on_writable(conn));
}

static bool
all_sent(const struct xr_conn *conn)
{
	return xr_iobuf_size(&conn->out) == 0 && (!conn->link->settled || conn->link->settled(conn));
}

static bool
quiet_at_stop(const struct xr_conn *conn)
{
	return conn->home->drain.phase != DRAIN_NONE && conn->bytes_in + conn->bytes_out == conn->drain_mark &&
	       tcp_all_arrived(conn);
}

static void
shut_down(struct xr_conn *conn)
{
	bool over = conn->eof || quiet_at_stop(conn);

	conn->link->shutdown(conn);
	if (over)
		conn_end(conn, 0);
	else
		conn->state = CONN_DRAINING;
}

void
conn_flush(struct xr_conn *conn)
{
	int ret;

	if (conn->state == CONN_CONNECTING || !negotiate_flush(conn) || conn->state == CONN_NEGOTIATING)
		return;
	ret = conn->link->flush(conn);
	if (ret)
		conn_fail(conn, ret);
	else if (conn->state == CONN_OPEN)
		tell_writable(conn);
	else if (conn->state == CONN_CLOSING && all_sent(conn))
		shut_down(conn);
}

/* ---- the stop ---- */

void
conn_mark(struct xr_conn *conn)
{
	conn->drain_mark = conn->bytes_in + conn->bytes_out;
}

bool
conn_input_due(struct xr_conn *conn)
{
	return !cds_list_empty(&conn->touched) || tcp_unread(conn);
}

/* One that has just come may have a request under way, which can be told that it is too late. */
#define FIRST_BYTES_US 50000

static void
end_unopened(struct xr_conn *conn)
{
	uint64_t until_us = conn->accepted_us + FIRST_BYTES_US, now_us = xr_now_us();

	if (conn->hs.started || now_us >= until_us)
		conn_end(conn, -ECANCELED);
	else
		xr_timer_arm(&conn->deadline, until_us - now_us, 0);
}

void
conn_drain(struct xr_conn *conn)
{
	/* What this turn has read, and on_open, come before. */
	if (!cds_list_empty(&conn->touched)) {
		cds_list_del_init(&conn->touched);
		conn_deliver(conn);
	}
	if (conn->state == CONN_DRAINING && quiet_at_stop(conn))
		conn_end(conn, 0);
	else if (conn->state <= CONN_OPEN && !conn->opened && !conn->dialled)
		end_unopened(conn);
	else if (conn->state <= CONN_OPEN && conn->ops->on_drain)
		CALLBACK(conn->ops->on_drain, conn->ops->on_drain(conn));
	else
		xr_conn_close(conn);
}

/* ---- the end ---- */

static void
log_ended(const struct xr_conn *conn)
{
	char peer[ADDRESS_TEXT_BYTES];

	if (!log_enabled(XR_LOG_INFO))
		return;
	address_format(&conn->peer, peer);
	log_info("connection %s %s ended: %s", conn->dialled ? "to" : "from", peer,
		 conn->reason ? xr_strerror(conn->reason) : "closed");
}

static void
say_goodbye(struct xr_conn *conn)
{
	if (!conn->opened && !conn->dialled)
		return;
	if (!conn->opened && conn->ops->on_open)
		CALLBACK(conn->ops->on_open, conn->ops->on_open(conn, conn->reason));
	if (conn->ops->on_close)
		CALLBACK(conn->ops->on_close, conn->ops->on_close(conn, conn->reason));
}

void
conn_finish(struct xr_conn *conn)
{
	cds_list_del_init(&conn->flushing);
	conn->link->close(conn);
	negotiate_discard(conn);
	xr_iobuf_clear(&conn->in);
	xr_iobuf_clear(&conn->out);
	net_count(conn->opened ? NET_CONNS_CLOSED : NET_CONNS_FAILED, 1);
	log_ended(conn);
	say_goodbye(conn);
	conn_discard(conn);
}

/* ---- the application's calls ---- */

/* A connection is touched on its lcore alone. */
static inline void
assert_owner(const struct xr_conn *conn)
{
#ifdef XR_DEBUG
	assert(conn->home == t_net);
#endif
	(void)conn;
}

void *
xr_conn_arg(const struct xr_conn *conn)
{
	assert_owner(conn);
	return conn->arg;
}

void
xr_conn_set_arg(struct xr_conn *conn, void *arg)
{
	assert_owner(conn);
	conn->arg = arg;
}

int
conn_fit(struct xr_conn *conn, struct xr_iobuf *out)
{
	return conn->link->accept ? conn->link->accept(conn, out) : 0;
}

int
xr_conn_send(struct xr_conn *conn, struct xr_iobuf *out)
{
	int ret;

	assert_owner(conn);
	if (conn->sending_over)
		return -EPIPE;
	if (xr_iobuf_size(out) == 0)
		return 0;
	if (xr_iobuf_size(&conn->out) && __builtin_expect(!output_is_short(conn), 0) && output_full(conn))
		return -EAGAIN;
	ret = conn_fit(conn, out);
	if (ret == 0)
		ret = xr_iobuf_move(&conn->out, out);
	if (ret)
		return ret;
	conn_flush_later(conn);
	return 0;
}

size_t
xr_conn_queued(const struct xr_conn *conn)
{
	assert_owner(conn);
	return xr_iobuf_size(&conn->out);
}

void
xr_conn_pause(struct xr_conn *conn)
{
	assert_owner(conn);
	conn->paused = true;
}

void
xr_conn_resume(struct xr_conn *conn)
{
	assert_owner(conn);
	conn->paused = false;
	if (conn->state == CONN_OPEN && (xr_iobuf_size(&conn->in) || conn->eof))
		conn_touch(conn);
}

void
xr_conn_need(struct xr_conn *conn, size_t bytes)
{
	assert_owner(conn);
	conn->need = bytes ? bytes : 1;
	if (conn->hold_input && conn->state == CONN_OPEN)
		input_review(conn);
}

void
xr_conn_close(struct xr_conn *conn)
{
	assert_owner(conn);
	if (conn->state == CONN_OPEN) {
		begin_close(conn);
	} else if (conn->state < CONN_OPEN && xr_iobuf_size(&conn->out)) {
		conn->close_asked = true;
		conn->sending_over = true;
	} else if (conn->state < CONN_OPEN) {
		conn_end(conn, -ECANCELED);
	}
}

void
xr_conn_abort(struct xr_conn *conn, int reason)
{
	assert_owner(conn);
	if (conn->state == CONN_ENDED)
		return;
	conn->reset = true;
	conn_end(conn, reason ? reason : -ECONNABORTED);
}

void
xr_conn_info(const struct xr_conn *conn, struct xr_conn_info *info)
{
	struct xr_conn_info full = {
		.size = info->size,
		.transport = conn->opened || conn->open_due ? conn->link->transport : "none",
		.state = handshake_state_name(conn->hs.state),
		.lcore = conn->home->lcore->id,
		.port = conn->port,
		.bytes_in = conn->bytes_in,
		.bytes_out = conn->bytes_out,
		.input_waiting = xr_iobuf_size(&conn->in),
		.output_queued = xr_iobuf_size(&conn->out),
	};

	assert_owner(conn);
	snprintf(full.fallback_reason, sizeof full.fallback_reason, "%s", negotiate_reason(conn));
	address_format(&conn->local, full.local);
	address_format(&conn->peer, full.peer);
	if (conn->link->info)
		conn->link->info(conn, &full);
	memcpy(info, &full, info->size < sizeof full ? info->size : sizeof full);
}
