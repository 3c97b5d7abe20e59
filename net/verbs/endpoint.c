/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/endpoint.h"
#include "core/log.h"
#include "net/negotiate.h"
#include "net/verbs/device.h"
#include "net/verbs/ending.h"
#include "net/verbs/endpoint_private.h"
#include "net/verbs/figures.h"
#include <errno.h>
#include <xrdma/error.h>

/* ---- failure ---- */

/* A peer with which not one message has come through may be one that RDMA does not reach. */
void
endpoint_fail(struct endpoint *endpoint)
{
	struct xr_conn *conn = endpoint->conn;

	endpoint->state = ENDPOINT_ENDED;
	qp_fail(&endpoint->qp);
	if (conn->state == CONN_DRAINING)
		return; /* all has arrived that was sent, and the peer's end on TCP follows */
	fault_tell(endpoint);
	figure_count(RDMA_ERRORS, 1);
	if (conn->dialled && !endpoint->proven)
		negotiate_avoid_rdma(conn);
	conn->reset = true;
	conn_fail(conn, endpoint->fault.error);
}

/* As long as no receive is posted the peer has not been told of RDMA: bring_up fails then, and TCP goes on. */
void
endpoint_async_event(struct endpoint *endpoint, enum ibv_event_type type)
{
	if (endpoint->state == ENDPOINT_ENDED)
		return;
	fault_note(endpoint, -XR_ERDMA, ibv_event_type_str(type));
	if (endpoint->state != ENDPOINT_PREPARING || endpoint->recv.posted)
		endpoint_fail(endpoint);
}

/* ---- completions ---- */

static void
completed(struct endpoint *endpoint, const struct ibv_wc *wc)
{
	switch (wr_id_kind(wc->wr_id)) {
	case WR_SEND:
		if (send_completed(&endpoint->send, wr_id_value(wc->wr_id)))
			fault_note(endpoint, -XR_ERDMA, "a completion of more sends than were posted");
		break;
	case WR_ACK:
		endpoint->send.window.ack_slots++;
		break;
	case WR_RECV:
		recv_completed(endpoint, wc);
		break;
	}
}

/* Behind the first error only what is flushed follows. At the end of a connection that is as it should be. */
void
endpoint_complete(struct endpoint *endpoint, const struct ibv_wc *wc)
{
	if (wr_id_kind(wc->wr_id) == WR_RECV)
		endpoint->recv.posted--;
	if (endpoint->state == ENDPOINT_ENDED || (endpoint->fault.error && wc->status == IBV_WC_SUCCESS))
		return;
	if (wc->status == IBV_WC_SUCCESS) {
		endpoint->proven = true;
		completed(endpoint, wc);
	} else if (endpoint->state != ENDPOINT_ENDING) {
		fault_note_completion(endpoint, wc);
	}
}

void
endpoint_batch_end(struct endpoint *endpoint)
{
	if (endpoint->state == ENDPOINT_ENDED)
		return;
	recv_batch_end(endpoint);
	if (endpoint->fault.error)
		endpoint_fail(endpoint);
	else if (endpoint->state == ENDPOINT_ENDING)
		ending_progress(endpoint);
	else if (endpoint->state == ENDPOINT_OPEN && send_due(endpoint))
		conn_flush_later(endpoint->conn);
}

/* ---- the link ---- */

/* A peer that has ended takes nothing any more. After a failure nothing is touched: the card may be reading it still.
 */
static int
endpoint_flush(struct xr_conn *conn)
{
	struct endpoint *endpoint = conn->endpoint;

	if (endpoint->fault.error)
		return 0;
	if (endpoint->state != ENDPOINT_OPEN)
		xr_iobuf_clear(&conn->out);
	else if (send_flush(endpoint))
		endpoint_fail(endpoint);
	return 0;
}

static void
endpoint_review(struct xr_conn *conn)
{
	struct endpoint *endpoint = conn->endpoint;

	recv_review(endpoint);
	if (endpoint->state == ENDPOINT_OPEN && send_due(endpoint))
		conn_flush_later(conn);
}

static void
endpoint_shutdown(struct xr_conn *conn)
{
	g_tcp_link.shutdown(conn);
}

static void
endpoint_close(struct xr_conn *conn)
{
	endpoint_discard(conn);
	g_tcp_link.close(conn);
}

static int
endpoint_accept(struct xr_conn *conn, struct xr_iobuf *out)
{
	return send_accept(conn->endpoint, out);
}

static bool
endpoint_settled(const struct xr_conn *conn)
{
	const struct endpoint *endpoint = conn->endpoint;

	return endpoint->state != ENDPOINT_OPEN || window_quiet(&endpoint->send.window);
}

static void
endpoint_info(const struct xr_conn *conn, struct xr_conn_info *info)
{
	const struct endpoint *endpoint = conn->endpoint;
	const struct window *window;
	const struct credit *credit;

	if (!endpoint)
		return;
	window = &endpoint->send.window;
	credit = &endpoint->recv.credit;
	info->rdma = (struct xr_conn_rdma){
		.device = cq_device(endpoint->cq)->name,
		.ib_port = endpoint->local.ib_port,
		.gid_index = endpoint->local.index,
		.qp_num = endpoint->qp.qp->qp_num,
		.peer_qp_num = endpoint->peer_qp_num,
		.peer_block_bytes = endpoint->send.message_max,
		.remote_window = window->remote,
		.remote_capacity = window->remote_capacity,
		.own_window = window->own,
		.own_capacity = window->own_capacity,
		.ack_slots = window->ack_slots,
		.unsignaled = window->unsignaled,
		.unsolicited = window->unsolicited,
		.peer_capacity = credit->capacity,
		.unreported = credit->unreported,
		.held = credit_held(credit),
		.starved = credit->starved,
		.in_flight = xr_iobuf_size(&endpoint->send.in_flight),
	};
}

const struct link_ops g_rdma_link = {
	.transport = "rdma",
	.flush = endpoint_flush,
	.hold = endpoint_review,
	.shutdown = endpoint_shutdown,
	.close = endpoint_close,
	.accept = endpoint_accept,
	.taken = endpoint_review,
	.settled = endpoint_settled,
	.info = endpoint_info,
};
