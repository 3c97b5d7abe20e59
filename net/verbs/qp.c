/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/qp.h"
#include "core/log.h"
#include "net/verbs/async.h"
#include "net/verbs/flags.h"
#include <errno.h>
#include <string.h>

/* What brpc's queue pairs are set to (its rdma_endpoint.cpp, BringUpQp); both ends must agree on MTU and PSN. */
#define PATH_MTU  IBV_MTU_1024
#define PSN	  0
#define HOP_LIMIT 16
#define TIMEOUT	  14 /* 4.096 us * 2^14, about 67 ms */
#define RETRY_CNT 7
#define RNR_RETRY 0 /* with credits a receiver is never not ready: if it is, flow control is broken */

/* ---- RESET ---- */

/* Room for a quarter more than is in the window, as the unsignaled requests stay in the queue until a signaled one. */
static uint16_t
depth_for(uint16_t sq_size, uint16_t limit)
{
	uint32_t depth = sq_size + sq_size / 4u;

	return (uint16_t)(depth < limit ? depth : limit);
}

uint16_t
qp_queue_limit(const struct device *device)
{
	int limit = device->attr.max_qp_wr;

	return (uint16_t)(limit < UINT16_MAX ? limit : UINT16_MAX);
}

static int
try_create(struct cq *cq, void *context, struct qp *qp, uint32_t inline_bytes)
{
	const struct device *device = qp->device;
	struct ibv_qp_init_attr attr = {
		.qp_context = context,
		.send_cq = cq_send(cq),
		.recv_cq = cq_recv(cq),
		.qp_type = IBV_QPT_RC,
		.cap =
			{
				.max_send_wr = depth_for(qp->sq_size, qp_queue_limit(device)),
				.max_recv_wr = qp->rq_size,
				.max_send_sge = device->max_sge,
				.max_recv_sge = 1,
				.max_inline_data = inline_bytes,
			},
	};
	uint16_t depth = (uint16_t)attr.cap.max_send_wr;

	qp->qp = ibv_create_qp(device->pd, &attr);
	if (!qp->qp)
		return verbs_error();
	/* The device may give more than asked for; that is not counted on. */
	qp->depth = depth;
	qp->max_sge = device->max_sge;
	qp->inline_bytes = inline_bytes;
	return 0;
}

/* Too much for this device, as opposed to a device that does not work: only then is it worth asking for less. */
static bool
asked_too_much(int error)
{
	return error == -EINVAL || error == -ENOMEM || error == -ENOSPC;
}

/* The deepest queue that the device agrees to; of one depth with inline data before without. */
static int
create_lower(struct cq *cq, void *context, struct qp *qp, uint32_t inline_bytes)
{
	int ret;

	for (;;) {
		ret = try_create(cq, context, qp, inline_bytes);
		if (asked_too_much(ret) && inline_bytes)
			ret = try_create(cq, context, qp, 0);
		if (!asked_too_much(ret) || qp->sq_size / 2 < RDMA_QUEUE_MIN)
			return ret;
		qp->sq_size /= 2;
	}
}

static uint16_t
at_most(uint16_t size, uint16_t limit)
{
	return size < limit ? size : limit;
}

int
qp_create(struct cq *cq, const struct qp_want *want, uint32_t handle, struct qp *qp, const char **why)
{
	static struct log_limit limit;
	const struct device *device = cq_device(cq);
	void *context = async_qp_context(cq_lcore_index(cq), handle);
	int ret;

	*qp = (struct qp){
		.device = device,
		.sq_size = at_most(want->sq_size, qp_queue_limit(device)),
		.rq_size = at_most(want->rq_size, qp_queue_limit(device)),
	};
	ret = create_lower(cq, context, qp, want->inline_bytes);
	if (ret) {
		log_limited(&limit, XR_LOG_WARNING,
			    "RDMA device %s gives no queue pair of %u sends and %u receives: %s", device->name,
			    qp->sq_size, qp->rq_size, strerror(-ret));
		*why = "the device gives no queue pair";
	}
	return ret;
}

/* Its queues may be deeper than that; but what endpoints and completion queues have room for is what was wanted. */
void
qp_adopt(struct cq *cq, const struct qp_want *want, uint32_t handle, struct ibv_qp *made, uint32_t inline_bytes,
	 struct qp *qp)
{
	const struct device *device = cq_device(cq);

	async_qp_context_set(made, async_qp_context(cq_lcore_index(cq), handle));
	*qp = (struct qp){
		.qp = made,
		.device = device,
		.sq_size = want->sq_size,
		.rq_size = want->rq_size,
		.depth = depth_for(want->sq_size, qp_queue_limit(device)),
		.max_sge = device->max_sge,
		.inline_bytes = inline_bytes,
		.prepared = true,
	};
}

/* ---- INIT, RTR, RTS ---- */

int
qp_init(struct qp *qp, uint8_t ib_port, const char **why)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = ib_port,
		.qp_access_flags = 0, /* nobody reads or writes our memory */
	};
	int error = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (error)
		*why = "the queue pair did not go to INIT";
	return -error;
}

static int
ready_to_receive(struct qp *qp, const struct gid_entry *local, const struct hello *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = PATH_MTU,
		.dest_qp_num = peer->qp_num,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 0,
		.min_rnr_timer = 0,
		.ah_attr =
			{
				.is_global = 1,
				.dlid = peer->lid,
				.port_num = local->ib_port,
				.grh = {.sgid_index = (uint8_t)local->index, .hop_limit = HOP_LIMIT},
			},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof peer->gid);
	return -ibv_modify_qp(qp->qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int
ready_to_send(struct qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = RETRY_CNT,
		.rnr_retry = RNR_RETRY,
		.sq_psn = PSN,
		.max_rd_atomic = 0,
	};

	return -ibv_modify_qp(qp->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
}

int
qp_connect(struct qp *qp, const struct gid_entry *local, const struct hello *peer, const char **why)
{
	int ret = ready_to_receive(qp, local, peer);

	if (ret) {
		*why = "the queue pair did not go to RTR; is the peer's GID in the same network?";
		return ret;
	}
	ret = ready_to_send(qp);
	if (ret)
		*why = "the queue pair did not go to RTS";
	return ret;
}

/* ---- its end ---- */

int
qp_fail(struct qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

int
qp_reset(struct qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	return -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

/* What a device that was pulled out refuses to destroy is gone with it. */
int
qp_destroy(struct qp *qp)
{
	int error = qp->qp ? ibv_destroy_qp(qp->qp) : 0;

	if (error == EIO && !device_usable(qp->device))
		error = 0;
	if (error == 0)
		qp->qp = NULL;
	return -error;
}
