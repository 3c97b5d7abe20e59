/* SPDX-License-Identifier: Apache-2.0 */

/* post_send and post_recv: what may be posted, and what is remembered of it. */

#include "tests/fakeverbs/fake.h"
#include <arpa/inet.h>
#include <string.h>

static uint32_t
total(const struct ibv_sge *sge, int count)
{
	uint32_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += sge[i].length;
	return bytes;
}

static void
log_request(struct fv_queue *queue, const struct fake_request *request, const struct ibv_sge *sge, int count)
{
	struct fake_request full = *request;

	full.num_sge = count;
	memcpy(full.sge, sge, sizeof *sge * (size_t)(count < FAKE_SGES ? count : FAKE_SGES));
	fv_log(queue, &full);
}

/* ---- sends ---- */

static const char *
misuse_of_send(const struct fv_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
		return "the queue pair is neither in RTS nor in ERR";
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		return "an opcode other than SEND and SEND_WITH_IMM";
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge)
		return "more SGEs than max_send_sge";
	if ((wr->send_flags & IBV_SEND_INLINE) && total(wr->sg_list, wr->num_sge) > qp->init.cap.max_inline_data)
		return "inlined, and longer than max_inline_data";
	return NULL;
}

static int
send_refused(struct fv_qp *qp, const struct ibv_send_wr *wr)
{
	int error = fv_call(FV_send_wr);
	const char *misuse;

	if (error)
		return error;
	misuse = misuse_of_send(qp, wr);
	if (misuse) {
		fv_violation("a send on queue pair %u: %s", qp->ibv.qp_num, misuse);
		return EINVAL;
	}
	if (qp->sq.posted - qp->sq.freed == qp->sq.depth) {
		FV_COUNT(qp, send_refused, 1);
		return ENOMEM;
	}
	return 0;
}

static void
copy_inlined(struct fv_send *send)
{
	uint8_t *to = send->data;

	for (int i = 0; i < send->num_sge; i++) {
		if (send->sge[i].length)
			memcpy(to, (const void *)(uintptr_t)send->sge[i].addr, send->sge[i].length);
		to += send->sge[i].length;
	}
}

static enum ibv_wc_status
next_script(struct fv_qp *qp)
{
	if (qp->script_send_after == 0 || --qp->script_send_after > 0)
		return IBV_WC_SUCCESS;
	return qp->script_send;
}

static void
count_send(struct fv_qp *qp, const struct fv_send *send)
{
	FV_COUNT(qp, sends, 1);
	FV_COUNT(qp, signaled, (send->flags & IBV_SEND_SIGNALED) != 0);
	FV_COUNT(qp, solicited, (send->flags & IBV_SEND_SOLICITED) != 0);
	FV_COUNT(qp, inlined, (send->flags & IBV_SEND_INLINE) != 0);
	FV_COUNT(qp, zero_length, send->bytes == 0);
	FV_COUNT(qp, credits, send->opcode == IBV_WR_SEND_WITH_IMM ? ntohl(send->imm) : 0);
	FV_COUNT(qp, send_bytes, send->bytes);
}

static void
take_send(struct fv_qp *qp, const struct ibv_send_wr *wr)
{
	static uint64_t order;
	struct fv_send *send = fv_send_at(qp, qp->sq.posted++);

	send->wr_id = wr->wr_id;
	send->opcode = wr->opcode;
	send->flags = wr->send_flags | (qp->init.sq_sig_all ? IBV_SEND_SIGNALED : 0);
	send->imm = wr->imm_data;
	send->bytes = total(wr->sg_list, wr->num_sge);
	send->num_sge = wr->num_sge;
	send->scripted = next_script(qp);
	send->order = order++;
	send->rnr_seen = false;
	if (wr->num_sge)
		memcpy(send->sge, wr->sg_list, sizeof *wr->sg_list * (size_t)wr->num_sge);
	if (wr->send_flags & IBV_SEND_INLINE)
		copy_inlined(send);
	fv_payload_remember(qp, send);
	count_send(qp, send);
	log_request(&qp->sq,
		    &(struct fake_request){.wr_id = wr->wr_id,
					   .send_flags = wr->send_flags,
					   .imm = wr->opcode == IBV_WR_SEND_WITH_IMM ? ntohl(wr->imm_data) : 0,
					   .bytes = send->bytes},
		    send->sge, send->num_sge);
}

static int
post_send_locked(struct fv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int error;

	FV_LOCKED();
	error = fv_call(FV_post_send);
	FV_COUNT(qp, post_send, 1);
	for (; wr && !error; wr = wr->next) {
		error = send_refused(qp, wr);
		if (error)
			break;
		take_send(qp, wr);
	}
	if (error)
		*bad_wr = wr;
	if (qp->state == IBV_QPS_ERR)
		fv_qp_flush(qp);
	fv_wire_run();
	return error;
}

int
fv_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	fv_hook_post_send(ibv, wr);
	return post_send_locked(caa_container_of(ibv, struct fv_qp, ibv), wr, bad_wr);
}

/* ---- receives ---- */

static const char *
misuse_of_recv(const struct fv_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->state == IBV_QPS_RESET)
		return "the queue pair is in RESET";
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_recv_sge)
		return "more SGEs than max_recv_sge";
	return NULL;
}

static int
recv_refused(struct fv_qp *qp, const struct ibv_recv_wr *wr)
{
	int error = fv_call(FV_recv_wr);
	const char *misuse;

	if (error)
		return error;
	misuse = misuse_of_recv(qp, wr);
	if (misuse) {
		fv_violation("a receive on queue pair %u: %s", qp->ibv.qp_num, misuse);
		return EINVAL;
	}
	return qp->rq.posted - qp->rq.freed == qp->rq.depth ? ENOMEM : 0;
}

static void
take_recv(struct fv_qp *qp, const struct ibv_recv_wr *wr)
{
	struct fv_recv *recv = fv_recv_at(qp, qp->rq.posted++);

	recv->wr_id = wr->wr_id;
	recv->num_sge = wr->num_sge;
	if (wr->num_sge)
		memcpy(recv->sge, wr->sg_list, sizeof *wr->sg_list * (size_t)wr->num_sge);
	fv_payload_taint(qp, recv);
	FV_COUNT(qp, recvs, 1);
	log_request(&qp->rq, &(struct fake_request){.wr_id = wr->wr_id, .bytes = total(wr->sg_list, wr->num_sge)},
		    recv->sge, recv->num_sge);
}

static int
post_recv_locked(struct fv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error;

	FV_LOCKED();
	error = fv_call(FV_post_recv);
	FV_COUNT(qp, post_recv, 1);
	for (; wr && !error; wr = wr->next) {
		error = recv_refused(qp, wr);
		if (error)
			break;
		take_recv(qp, wr);
	}
	if (error)
		*bad_wr = wr;
	if (qp->state == IBV_QPS_ERR)
		fv_qp_flush(qp);
	fv_wire_run();
	return error;
}

int
fv_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	fv_hook_post_recv(ibv, wr);
	return post_recv_locked(caa_container_of(ibv, struct fv_qp, ibv), wr, bad_wr);
}

/* Shared receive queues can't be made. */
int
fv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	(void)srq;
	*bad_wr = wr;
	return EOPNOTSUPP;
}
