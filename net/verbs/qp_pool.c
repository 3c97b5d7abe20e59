/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/qp_pool.h"
#include "core/log.h"
#include "net/verbs/async.h"
#include "net/verbs/flags.h"
#include <stdlib.h>
#include <string.h>

struct resting {
	struct cds_list_head node;
	struct ibv_qp *qp;
	uint32_t inline_bytes;
};

void
qp_pool_init(struct qp_pool *pool, const struct device *device)
{
	uint16_t size = flags_queue_size(&g_rdma_prepared_qp_size), allowed = qp_queue_limit(device);

	CDS_INIT_LIST_HEAD(&pool->resting);
	pool->count = 0;
	pool->limit = (unsigned)option_int(&g_rdma_prepared_qp_cnt);
	pool->size = size < allowed ? size : allowed;
}

/* ---- the list ---- */

/* The queue pair is in RESET, and the pool's now. */
static int
lay_down(struct cq *cq, struct qp *qp)
{
	struct resting *resting = malloc(sizeof *resting);
	struct qp_pool *pool = cq_qp_pool(cq);

	if (!resting)
		return -ENOMEM;
	async_qp_context_set(qp->qp, async_qp_context(cq_lcore_index(cq), ASYNC_NOBODY));
	resting->qp = qp->qp;
	resting->inline_bytes = qp->inline_bytes;
	cds_list_add_tail(&resting->node, &pool->resting);
	pool->count++;
	qp->qp = NULL;
	return 0;
}

/* Of a pool that has some. */
static struct resting
pick_up(struct qp_pool *pool)
{
	struct resting *first = cds_list_first_entry(&pool->resting, struct resting, node), resting = *first;

	cds_list_del(&first->node);
	pool->count--;
	free(first);
	return resting;
}

void
qp_pool_fini(struct qp_pool *pool, const struct device *device)
{
	struct resting *resting, *next;

	cds_list_for_each_entry_safe (resting, next, &pool->resting, node) {
		device_undone(device, "destroying a prepared queue pair", ibv_destroy_qp(resting->qp));
		free(resting);
	}
}

/* ---- made ahead ---- */

static bool
of_its_size(const struct qp_pool *pool, const struct qp *qp)
{
	return qp->sq_size == pool->size && qp->rq_size == pool->size;
}

static int
prepare(struct cq *cq)
{
	struct qp_pool *pool = cq_qp_pool(cq);
	struct qp_want want = {.sq_size = pool->size, .rq_size = pool->size, .inline_bytes = QP_INLINE_BYTES};
	const char *why;
	struct qp qp;
	int ret = qp_create(cq, &want, ASYNC_NOBODY, &qp, &why);

	if (ret)
		return ret;
	if (of_its_size(pool, &qp))
		ret = lay_down(cq, &qp);
	else
		ret = -ENOSPC;
	if (ret) {
		log_warning("RDMA device %s: no queue pairs of %u are prepared on lcore %u beyond %u: %s",
			    qp.device->name, pool->size, cq_lcore_index(cq), pool->count, strerror(-ret));
		device_undone(qp.device, "destroying a queue pair", -qp_destroy(&qp));
	}
	return ret;
}

void
qp_pool_fill(struct cq *cq)
{
	const struct qp_pool *pool = cq_qp_pool(cq);

	while (pool->count < pool->limit && prepare(cq) == 0)
		;
}

/* ---- given and taken back ---- */

int
qp_pool_get(struct cq *cq, const struct qp_want *want, uint32_t handle, struct qp *qp, const char **why)
{
	struct qp_pool *pool = cq_qp_pool(cq);
	struct resting resting;
	int ret;

	if (!pool->count || want->sq_size > pool->size || want->rq_size > pool->size) {
		ret = qp_create(cq, want, handle, qp, why);
		qp->prepared = ret == 0 && of_its_size(pool, qp);
		return ret;
	}
	resting = pick_up(pool);
	qp_adopt(cq, want, handle, resting.qp, resting.inline_bytes, qp);
	return 0;
}

static bool
has_room(struct cq *cq)
{
	const struct qp_pool *pool = cq_qp_pool(cq);

	return pool->count < pool->limit && device_usable(cq_device(cq));
}

int
qp_pool_put(struct cq *cq, struct qp *qp, bool sound)
{
	if (qp->qp && qp->prepared && sound && has_room(cq) && qp_reset(qp) == 0 && lay_down(cq, qp) == 0)
		return 0;
	return qp_destroy(qp);
}
