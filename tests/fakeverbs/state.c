/* SPDX-License-Identifier: Apache-2.0 */

/* modify_qp: which attributes a reliable connection must, and may, be given on each step, and what they may say. */

#include "tests/fakeverbs/fake.h"
#include <string.h>

struct step {
	enum ibv_qp_state from, to;
	int required, optional;
};

static const struct step g_steps[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	 IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER},
};

static const char *const g_state_names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

static const char *
state_name(enum ibv_qp_state state)
{
	return (unsigned)state <= IBV_QPS_ERR ? g_state_names[state] : "?";
}

/* RESET and ERR may be entered from everywhere, with nothing but the state. */
static bool
find_step(enum ibv_qp_state from, enum ibv_qp_state to, struct step *step)
{
	*step = (struct step){.from = from, .to = to};
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return true;
	for (size_t i = 0; i < sizeof g_steps / sizeof g_steps[0]; i++) {
		if (g_steps[i].from == from && g_steps[i].to == to) {
			*step = g_steps[i];
			return true;
		}
	}
	return false;
}

static bool
mask_agrees(const struct fv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct step step;
	int given = mask & ~IBV_QP_STATE;

	if (!find_step(qp->state, to, &step)) {
		fv_violation("queue pair %u can't go from %s to %s", qp->ibv.qp_num, state_name(qp->state),
			     state_name(to));
		return false;
	}
	if ((given & step.required) == step.required && !(given & ~(step.required | step.optional)))
		return true;
	fv_violation("queue pair %u from %s to %s: attributes missing 0x%x, not allowed 0x%x", qp->ibv.qp_num,
		     state_name(qp->state), state_name(to), (unsigned)(step.required & ~given),
		     (unsigned)(given & ~(step.required | step.optional)));
	return false;
}

/* ---- what the attributes may say ---- */

static const char *
fault_in_path(const struct fv_qp *qp, const struct ibv_qp_attr *attr)
{
	const struct fake_port *port = fv_port(qp->card, qp->attr.port_num);
	const struct ibv_ah_attr *ah = &attr->ah_attr;

	if (ah->port_num != qp->attr.port_num)
		return "the address is on another port than the queue pair";
	if (!ah->is_global && port->link_layer == IBV_LINK_LAYER_ETHERNET)
		return "an address without GRH on RoCE";
	if (!ah->is_global)
		return NULL;
	if (ah->grh.sgid_index >= FAKE_GIDS || fv_gid_is_empty(&port->gids[ah->grh.sgid_index].gid))
		return "no GID at sgid_index";
	return NULL;
}

static const char *
fault_in_rtr(const struct fv_qp *qp, const struct ibv_qp_attr *attr)
{
	if (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > fv_port(qp->card, qp->attr.port_num)->active_mtu)
		return "path_mtu is none, or above the port's";
	if (attr->dest_qp_num > 0xffffff || attr->rq_psn > 0xffffff)
		return "dest_qp_num and rq_psn have 24 bits";
	if (attr->min_rnr_timer > 31)
		return "min_rnr_timer has 5 bits";
	if (attr->max_dest_rd_atomic > 16)
		return "max_dest_rd_atomic is above the device's";
	return fault_in_path(qp, attr);
}

static const char *
fault_in_rts(const struct ibv_qp_attr *attr)
{
	if (attr->timeout > 31 || attr->retry_cnt > 7 || attr->rnr_retry > 7)
		return "timeout has 5 bits, retry_cnt and rnr_retry have 3";
	if (attr->sq_psn > 0xffffff)
		return "sq_psn has 24 bits";
	if (attr->max_rd_atomic > 16)
		return "max_rd_atomic is above the device's";
	return NULL;
}

static const char *
fault(const struct fv_qp *qp, enum ibv_qp_state to, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != qp->state)
		return "cur_qp_state is not the state";
	if ((mask & IBV_QP_PORT) && !fv_port(qp->card, attr->port_num))
		return "no such port";
	if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0)
		return "no such pkey_index";
	if (to == IBV_QPS_RTR)
		return fault_in_rtr(qp, attr);
	return qp->state == IBV_QPS_RTR && to == IBV_QPS_RTS ? fault_in_rts(attr) : NULL;
}

/* ---- the step ---- */

static void
take_over(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
#define TAKE(bit, field)  \
	if (mask & (bit)) \
	to->field = from->field
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_RQ_PSN, rq_psn);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_SQ_PSN, sq_psn);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
}

/* What was posted is forgotten, without completions. */
static void
reset(struct fv_qp *qp)
{
	fv_qp_drop_completions(qp);
	qp->life++;
	qp->sq.posted = qp->sq.delivered = qp->sq.completed = qp->sq.freed = 0;
	qp->rq.posted = qp->rq.completed = qp->rq.freed = 0;
	memset(&qp->attr, 0, sizeof qp->attr);
	qp->state = IBV_QPS_RESET;
}

static int
failure_of_step(enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RESET:
		return fv_call(FV_modify_qp_reset);
	case IBV_QPS_INIT:
		return fv_call(FV_modify_qp_init);
	case IBV_QPS_RTR:
		return fv_call(FV_modify_qp_rtr);
	case IBV_QPS_RTS:
		return fv_call(FV_modify_qp_rts);
	case IBV_QPS_ERR:
		return fv_call(FV_modify_qp_err);
	default:
		return 0;
	}
}

static int
refusal(const struct fv_qp *qp, enum ibv_qp_state to, const struct ibv_qp_attr *attr, int mask)
{
	const char *why;

	if (!mask_agrees(qp, to, mask))
		return EINVAL;
	why = fault(qp, to, attr, mask);
	if (!why)
		return qp->card->fatal && to != IBV_QPS_ERR && to != IBV_QPS_RESET ? EIO : 0;
	fv_violation("queue pair %u from %s to %s: %s", qp->ibv.qp_num, state_name(qp->state), state_name(to), why);
	return EINVAL;
}

int
ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct fv_qp *qp = caa_container_of(ibv, struct fv_qp, ibv);
	enum ibv_qp_state to;
	int any, step, error;

	FV_LOCKED();
	to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;
	any = fv_call(FV_modify_qp);
	step = failure_of_step(to);
	error = any ? any : step;
	if (!error)
		error = refusal(qp, to, attr, mask);
	if (error)
		return error;
	take_over(&qp->attr, attr, mask);
	if (to == IBV_QPS_RESET)
		reset(qp);
	else if (to == IBV_QPS_ERR)
		fv_qp_flush(qp);
	else
		qp->state = to;
	ibv->state = qp->state;
	fv_wire_run();
	return 0;
}
