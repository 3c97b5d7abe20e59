/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A send's way: delivered to its peer, acknowledged, completed. What may move moves at once, oldest first over all
 * queue pairs; a step that is held back waits for the test, a send that its peer can't take waits for the peer.
 */

#include "tests/fakeverbs/fake.h"
#include <string.h>

#define NOT_EVEN_STATUS 0xee /* fills what a completion in error does not say */

static bool g_held[2]; /* for all queue pairs, by enum fake_step */

/* ---- completions ---- */

static void
push(struct fv_qp *qp, enum fake_queue queue, uint64_t index, struct ibv_wc *wc, bool solicited)
{
	struct ibv_cq *cq = queue == FAKE_SQ ? qp->ibv.send_cq : qp->ibv.recv_cq;
	struct fv_cqe cqe = {
		.solicited = solicited, .queue = queue, .life = qp->life, .index = index, .has_slot = true};

	wc->qp_num = qp->ibv.qp_num;
	if (wc->status != IBV_WC_SUCCESS) {
		memset(&cqe.wc, NOT_EVEN_STATUS, sizeof cqe.wc);
		cqe.wc.wr_id = wc->wr_id;
		cqe.wc.status = wc->status;
		cqe.wc.vendor_err = wc->vendor_err;
		cqe.wc.qp_num = wc->qp_num;
	} else {
		cqe.wc = *wc;
	}
	fv_cq_push(caa_container_of(cq, struct fv_cq, ibv), &cqe);
}

/* The oldest send that is not completed ends. A successful one that is not signaled does so in silence. */
static void
complete_send(struct fv_qp *qp, enum ibv_wc_status status)
{
	uint64_t index = qp->sq.completed++;
	const struct fv_send *send = fv_send_at(qp, index);
	struct ibv_wc wc = {.wr_id = send->wr_id, .status = status, .opcode = IBV_WC_SEND, .byte_len = send->bytes};

	if (qp->sq.delivered < qp->sq.completed)
		qp->sq.delivered = qp->sq.completed;
	if (status != IBV_WC_SUCCESS || (send->flags & IBV_SEND_SIGNALED))
		push(qp, FAKE_SQ, index, &wc, false);
}

static void
complete_recv(struct fv_qp *qp, struct ibv_wc *wc, bool solicited)
{
	uint64_t index = qp->rq.completed++;

	wc->wr_id = fv_recv_at(qp, index)->wr_id;
	push(qp, FAKE_RQ, index, wc, solicited);
}

void
fv_qp_flush(struct fv_qp *qp)
{
	qp->state = IBV_QPS_ERR;
	while (qp->sq.completed < qp->sq.posted)
		complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	while (qp->rq.completed < qp->rq.posted)
		complete_recv(qp, &(struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR}, false);
}

/* What was delivered before the send that fails is known to have arrived. */
static void
fail_send(struct fv_qp *qp, enum ibv_wc_status status)
{
	while (qp->sq.completed < qp->sq.delivered)
		complete_send(qp, IBV_WC_SUCCESS);
	complete_send(qp, status);
	fv_qp_flush(qp);
}

static void
fail_recv(struct fv_qp *qp, enum ibv_wc_status status)
{
	complete_recv(qp, &(struct ibv_wc){.status = status}, false);
	fv_qp_flush(qp);
}

/* ---- finding the peer ---- */

static const struct fake_port *
port_of(const struct fv_qp *qp)
{
	return fv_port(qp->card, qp->attr.port_num);
}

static const struct fake_gid *
gid_of(const struct fv_qp *qp)
{
	return &port_of(qp)->gids[qp->attr.ah_attr.grh.sgid_index];
}

/* The address that `from` has of its peer is that of this queue pair. */
static bool
is_addressed(const struct fv_qp *from, const struct fv_qp *to)
{
	const struct ibv_ah_attr *ah = &from->attr.ah_attr;

	if (from->attr.dest_qp_num != to->ibv.qp_num)
		return false;
	if (!ah->is_global)
		return ah->dlid == port_of(to)->lid;
	return memcmp(&ah->grh.dgid, &gid_of(to)->gid, sizeof ah->grh.dgid) == 0 &&
	       gid_of(from)->type == gid_of(to)->type;
}

/* NULL: nobody who would answer. */
static struct fv_qp *
peer_of(const struct fv_qp *qp)
{
	struct fv_qp *peer = fv_qp(qp->attr.dest_qp_num);

	if (!peer || (peer->state != IBV_QPS_RTR && peer->state != IBV_QPS_RTS))
		return NULL;
	if (port_of(qp)->state != IBV_PORT_ACTIVE || port_of(peer)->state != IBV_PORT_ACTIVE)
		return NULL;
	return is_addressed(qp, peer) && is_addressed(peer, qp) ? peer : NULL;
}

/* Both ends of a connection must have been told the same. */
static bool
agrees(const struct fv_qp *qp, const struct fv_qp *peer)
{
	if (qp->attr.path_mtu == peer->attr.path_mtu && qp->attr.sq_psn == peer->attr.rq_psn)
		return true;
	fv_violation("queue pair %u sends with path_mtu %d and sq_psn %u to %u, which has %d and rq_psn %u",
		     qp->ibv.qp_num, qp->attr.path_mtu, qp->attr.sq_psn, peer->ibv.qp_num, peer->attr.path_mtu,
		     peer->attr.rq_psn);
	return false;
}

/* ---- delivery ---- */

static enum ibv_wc_status
status_at_peer(enum ibv_wc_status receive)
{
	return receive == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

static enum ibv_wc_status
arrive(struct fv_qp *peer, const struct fv_send *send, const uint8_t *data)
{
	const struct fv_recv *recv = fv_recv_at(peer, peer->rq.completed);
	enum ibv_wc_status status = peer->script_recv;

	peer->script_recv = IBV_WC_SUCCESS;
	if (status != IBV_WC_SUCCESS)
		return status;
	if (!fv_payload_tainted(peer, recv))
		fv_violation("the memory of a receive on queue pair %u was written to (wr_id 0x%llx)", peer->ibv.qp_num,
			     (unsigned long long)recv->wr_id);
	status = fv_payload_scatter(peer, recv, data, send->bytes);
	if (status == IBV_WC_LOC_PROT_ERR)
		fv_violation("a receive on queue pair %u names memory that is not registered for it (wr_id 0x%llx)",
			     peer->ibv.qp_num, (unsigned long long)recv->wr_id);
	return status;
}

static void
hand_over(struct fv_qp *qp, struct fv_qp *peer, const struct fv_send *send, const uint8_t *data)
{
	enum ibv_wc_status status = arrive(peer, send, data);
	struct ibv_wc wc = {
		.opcode = IBV_WC_RECV,
		.byte_len = send->bytes,
		.src_qp = qp->ibv.qp_num,
	};

	if (status != IBV_WC_SUCCESS) {
		fail_recv(peer, status);
		fail_send(qp, status_at_peer(status));
		return;
	}
	if (send->opcode == IBV_WR_SEND_WITH_IMM) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = send->imm;
	}
	FV_COUNT(peer, delivered, 1);
	complete_recv(peer, &wc, send->flags & IBV_SEND_SOLICITED);
	qp->sq.delivered++;
}

/* The peer has no receive posted. False: the send waits for one. */
static bool
not_ready(struct fv_qp *qp, struct fv_send *send)
{
	if (!send->rnr_seen)
		FV_COUNT(qp, rnr, 1);
	send->rnr_seen = true;
	if (qp->attr.rnr_retry > 0)
		return false;
	fail_send(qp, IBV_WC_RNR_RETRY_EXC_ERR);
	return true;
}

/* The queue pair's oldest send that is not delivered. False: it waits. */
static bool
deliver(struct fv_qp *qp)
{
	struct fv_send *send = fv_send_at(qp, qp->sq.delivered);
	const uint8_t *data;
	struct fv_qp *peer;

	if (send->scripted != IBV_WC_SUCCESS) {
		fail_send(qp, send->scripted);
		return true;
	}
	data = fv_payload_gather(qp, send);
	if (!data) {
		fv_violation("a send on queue pair %u names memory that is not registered with its protection domain",
			     qp->ibv.qp_num);
		fail_send(qp, IBV_WC_LOC_PROT_ERR);
		return true;
	}
	peer = peer_of(qp);
	if (!peer)
		return false;
	if (!agrees(qp, peer)) {
		fail_send(qp, IBV_WC_REM_INV_REQ_ERR);
		return true;
	}
	if (peer->rq.completed == peer->rq.posted)
		return not_ready(qp, send);
	hand_over(qp, peer, send, data);
	return true;
}

/* ---- what moves ---- */

static bool
is_held(const struct fv_qp *qp, enum fake_step step)
{
	return g_held[step] || qp->held[step];
}

/* The number of the queue pair's next send for this step; false: there is none. */
static bool
next_of(const struct fv_qp *qp, enum fake_step step, uint64_t *index)
{
	*index = step == FAKE_DELIVERY ? qp->sq.delivered : qp->sq.completed;
	return *index < (step == FAKE_DELIVERY ? qp->sq.posted : qp->sq.delivered);
}

/* The queue pair with the oldest send that may take the step; of one queue pair, or of all with 0. */
static struct fv_qp *
oldest(enum fake_step step, uint32_t qp_num, bool held_too)
{
	struct fv_qp *qp, *found = NULL;
	uint64_t index, order = UINT64_MAX;

	cds_list_for_each_entry (qp, fv_qps(), node) {
		if ((qp_num && qp->ibv.qp_num != qp_num) || (step == FAKE_DELIVERY && qp->stuck))
			continue;
		if ((!held_too && is_held(qp, step)) || !next_of(qp, step, &index))
			continue;
		if (fv_send_at(qp, index)->order < order) {
			order = fv_send_at(qp, index)->order;
			found = qp;
		}
	}
	return found;
}

static unsigned
run_step(enum fake_step step, uint32_t qp_num, bool held_too, unsigned max)
{
	struct fv_qp *qp;
	unsigned done = 0;

	cds_list_for_each_entry (qp, fv_qps(), node)
		qp->stuck = false;
	while (done < max && (qp = oldest(step, qp_num, held_too))) {
		if (step == FAKE_ACK)
			complete_send(qp, IBV_WC_SUCCESS);
		else
			qp->stuck = !deliver(qp);
		done += !qp->stuck;
	}
	return done;
}

void
fv_wire_run(void)
{
	run_step(FAKE_DELIVERY, 0, false, UINT32_MAX);
	run_step(FAKE_ACK, 0, false, UINT32_MAX);
}

/* ---- the test's hand ---- */

static void
set_held(enum fake_step step, uint32_t qp_num, bool held)
{
	struct fv_qp *qp = qp_num ? fv_qp(qp_num) : NULL;

	if (qp)
		qp->held[step] = held;
	else if (qp_num)
		fv_violation("the test names queue pair %u, which there is not", qp_num);
	else
		g_held[step] = held;
}

void
fake_hold(enum fake_step step, uint32_t qp_num)
{
	FV_LOCKED();
	set_held(step, qp_num, true);
}

void
fake_let_go(enum fake_step step, uint32_t qp_num)
{
	FV_LOCKED();
	set_held(step, qp_num, false);
	fv_wire_run();
}

unsigned
fake_do(enum fake_step step, uint32_t qp_num, unsigned n)
{
	unsigned done;

	FV_LOCKED();
	done = run_step(step, qp_num, true, n);
	fv_wire_run();
	return done;
}

unsigned
fake_deliver(unsigned n)
{
	return fake_do(FAKE_DELIVERY, 0, n);
}

unsigned
fake_expire(void)
{
	struct fv_qp *qp;
	unsigned expired = 0;
	uint64_t index;

	FV_LOCKED();
	cds_list_for_each_entry (qp, fv_qps(), node) {
		if (!next_of(qp, FAKE_DELIVERY, &index) || is_held(qp, FAKE_DELIVERY))
			continue;
		if (fv_send_at(qp, index)->rnr_seen && peer_of(qp)) {
			if (qp->attr.rnr_retry == 7)
				continue;
			fail_send(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		} else {
			fail_send(qp, IBV_WC_RETRY_EXC_ERR);
		}
		expired++;
	}
	return expired;
}

static struct fv_qp *
named(uint32_t qp_num)
{
	struct fv_qp *qp = fv_qp(qp_num);

	if (!qp)
		fv_violation("the test names queue pair %u, which there is not", qp_num);
	return qp;
}

void
fake_fail_send(uint32_t qp_num, unsigned nth, enum ibv_wc_status status)
{
	struct fv_qp *qp;

	FV_LOCKED();
	qp = named(qp_num);
	if (!qp)
		return;
	qp->script_send_after = nth;
	qp->script_send = status;
}

void
fake_fail_recv(uint32_t qp_num, enum ibv_wc_status status)
{
	struct fv_qp *qp;

	FV_LOCKED();
	qp = named(qp_num);
	if (qp)
		qp->script_recv = status;
}

void
fake_fail_qp(uint32_t qp_num)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_QP_FATAL};
	struct fv_qp *qp;

	FV_LOCKED();
	qp = named(qp_num);
	if (!qp)
		return;
	event.element.qp = &qp->ibv;
	fv_qp_flush(qp);
	fv_raise(fv_context(qp->ibv.context), &event);
}

/* ---- slots ---- */

static void
free_sends(struct fv_qp *qp, const struct fv_cqe *cqe)
{
	while (qp->sq.freed <= cqe->index) {
		const struct fv_send *send = fv_send_at(qp, qp->sq.freed++);

		if (cqe->wc.status == IBV_WC_SUCCESS && !fv_payload_unchanged(qp, send))
			fv_violation("the memory of a send on queue pair %u changed before its completion was polled "
				     "(wr_id 0x%llx)",
				     qp->ibv.qp_num, (unsigned long long)send->wr_id);
	}
}

void
fv_slot_free(const struct fv_cqe *cqe)
{
	struct fv_qp *qp = cqe->has_slot ? fv_qp(cqe->wc.qp_num) : NULL;

	if (!qp || qp->life != cqe->life)
		return;
	if (cqe->queue == FAKE_SQ)
		free_sends(qp, cqe);
	else if (qp->rq.freed <= cqe->index)
		qp->rq.freed = cqe->index + 1;
}

void
fv_wire_reset(void)
{
	g_held[FAKE_DELIVERY] = g_held[FAKE_ACK] = false;
}
