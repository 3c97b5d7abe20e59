/* SPDX-License-Identifier: Apache-2.0 */

/* Queue pairs: made, asked, unmade. Their numbers are unique in the process and never used twice until a reset. */

#include "tests/fakeverbs/fake.h"
#include <stdlib.h>

#define FIRST_QP_NUM 0x101u

static CDS_LIST_HEAD(g_qps);
static uint32_t g_next_qp_num = FIRST_QP_NUM;

struct cds_list_head *
fv_qps(void)
{
	return &g_qps;
}

struct fv_qp *
fv_qp(uint32_t qp_num)
{
	struct fv_qp *qp;

	cds_list_for_each_entry (qp, &g_qps, node) {
		if (qp->ibv.qp_num == qp_num)
			return qp;
	}
	return NULL;
}

/* ---- making ---- */

static bool
belongs_together(const struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	return init->send_cq && init->recv_cq && init->send_cq->context == pd->context &&
	       init->recv_cq->context == pd->context;
}

static int
cap_refused(const struct fake_device *spec, const struct ibv_qp_cap *cap)
{
	if (cap->max_send_wr > (uint32_t)spec->max_qp_wr || cap->max_recv_wr > (uint32_t)spec->max_qp_wr)
		return EINVAL;
	if (cap->max_send_sge > (uint32_t)spec->max_sge || cap->max_recv_sge > (uint32_t)spec->max_sge)
		return EINVAL;
	if (cap->max_inline_data > spec->max_inline)
		return EINVAL;
	if (spec->max_sq_sges && (uint64_t)cap->max_send_wr * cap->max_send_sge > spec->max_sq_sges)
		return ENOMEM;
	return 0;
}

static int
qp_refused(const struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	const struct fv_card *card = fv_card(pd->context);

	if (card->fatal)
		return EIO;
	if (init->qp_type != IBV_QPT_RC || init->srq)
		return EOPNOTSUPP;
	if (!belongs_together(pd, init)) {
		fv_violation("a queue pair is made without a completion queue, or with one of another context");
		return EINVAL;
	}
	if (card->qps >= (unsigned)card->spec.max_qp)
		return ENOMEM;
	return cap_refused(&card->spec, &init->cap);
}

static void
qp_free(struct fv_qp *qp)
{
	free(qp->sends);
	free(qp->recvs);
	free(qp->sges);
	free(qp->inlined);
	free(qp->sq.log);
	free(qp->rq.log);
	free(qp);
}

/* Every slot has its own room for SGEs and inlined payload. */
static void
lay_out(struct fv_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;

	for (unsigned i = 0; i < cap->max_send_wr; i++) {
		qp->sends[i].sge = &qp->sges[i * cap->max_send_sge];
		qp->sends[i].data = &qp->inlined[i * cap->max_inline_data];
	}
	for (unsigned i = 0; i < cap->max_recv_wr; i++)
		qp->recvs[i].sge = &qp->sges[cap->max_send_wr * cap->max_send_sge + i * cap->max_recv_sge];
}

static struct fv_qp *
qp_alloc(const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	struct fv_qp *qp = calloc(1, sizeof *qp);

	if (!qp)
		return NULL;
	qp->init = *init;
	qp->sq.depth = cap->max_send_wr;
	qp->rq.depth = cap->max_recv_wr;
	/* One more of each, since an empty queue is allowed and an allocation of nothing may be NULL. */
	qp->sends = calloc(cap->max_send_wr + 1, sizeof *qp->sends);
	qp->recvs = calloc(cap->max_recv_wr + 1, sizeof *qp->recvs);
	qp->sges = calloc(cap->max_send_wr * cap->max_send_sge + cap->max_recv_wr * cap->max_recv_sge + 1,
			  sizeof *qp->sges);
	qp->inlined = calloc(cap->max_send_wr * cap->max_inline_data + 1, 1);
	qp->sq.log = calloc(FAKE_LOG, sizeof *qp->sq.log);
	qp->rq.log = calloc(FAKE_LOG, sizeof *qp->rq.log);
	if (!qp->sends || !qp->recvs || !qp->sges || !qp->inlined || !qp->sq.log || !qp->rq.log) {
		qp_free(qp);
		return NULL;
	}
	lay_out(qp);
	return qp;
}

static void
qp_uses(const struct fv_qp *qp, int n)
{
	caa_container_of(qp->ibv.pd, struct fv_pd, ibv)->users += (unsigned)n;
	caa_container_of(qp->ibv.send_cq, struct fv_cq, ibv)->users += (unsigned)n;
	caa_container_of(qp->ibv.recv_cq, struct fv_cq, ibv)->users += (unsigned)n;
	fv_context(qp->ibv.context)->objects += (unsigned)n;
	qp->card->qps += (unsigned)n;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct fv_qp *qp;

	FV_LOCKED();
	errno = fv_call(FV_create_qp);
	if (!errno)
		errno = qp_refused(pd, init);
	qp = errno ? NULL : qp_alloc(init);
	if (!qp)
		return NULL;
	qp->card = fv_card(pd->context);
	qp->ibv.context = pd->context;
	qp->ibv.qp_context = init->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = init->send_cq;
	qp->ibv.recv_cq = init->recv_cq;
	qp->ibv.qp_num = g_next_qp_num++;
	qp->ibv.qp_type = init->qp_type;
	qp->ibv.state = qp->state = IBV_QPS_RESET;
	cds_list_add_tail(&qp->node, &g_qps);
	qp_uses(qp, 1);
	fv_born(FAKE_QPS);
	return &qp->ibv;
}

/* ---- asking ---- */

int
ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct fv_qp *qp = caa_container_of(ibv, struct fv_qp, ibv);
	int error;

	(void)mask; /* a hint; a card may give more */
	FV_LOCKED();
	error = fv_call(FV_query_qp);
	if (error)
		return error;
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	ibv->state = qp->state;
	return 0;
}

enum ibv_qp_state
fake_qp_state(uint32_t qp_num)
{
	const struct fv_qp *qp;

	FV_LOCKED();
	qp = fv_qp(qp_num);
	return qp ? qp->state : IBV_QPS_UNKNOWN;
}

unsigned
fake_qps(uint32_t *qp_nums, unsigned max)
{
	const struct fv_qp *qp;
	unsigned count = 0;

	FV_LOCKED();
	cds_list_for_each_entry (qp, &g_qps, node) {
		if (count < max)
			qp_nums[count] = qp->ibv.qp_num;
		count++;
	}
	return count;
}

/* ---- unmaking ---- */

static void
qp_delete(struct fv_qp *qp)
{
	cds_list_del(&qp->node);
	qp_free(qp);
}

int
ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct fv_qp *qp = caa_container_of(ibv, struct fv_qp, ibv);
	int error;

	FV_LOCKED();
	error = fv_call(FV_destroy_qp);
	if (error)
		return error;
	if (qp->async_unacked) {
		fv_violation("queue pair %u is destroyed with %u asynchronous events not acknowledged", ibv->qp_num,
			     qp->async_unacked);
		return EBUSY;
	}
	fv_async_forget(fv_context(ibv->context), ibv);
	fv_qp_drop_completions(qp);
	qp_uses(qp, -1);
	qp_delete(qp);
	fv_died(FAKE_QPS);
	return 0;
}

void
fv_qp_drop_completions(const struct fv_qp *qp)
{
	if (!qp->card->spec.drops_completions)
		return;
	fv_cq_drop(caa_container_of(qp->ibv.send_cq, struct fv_cq, ibv), qp->ibv.qp_num);
	fv_cq_drop(caa_container_of(qp->ibv.recv_cq, struct fv_cq, ibv), qp->ibv.qp_num);
}

void
fv_qps_reset(void)
{
	struct fv_qp *qp, *next;

	cds_list_for_each_entry_safe (qp, next, &g_qps, node)
		qp_delete(qp);
	g_next_qp_num = FIRST_QP_NUM;
}
