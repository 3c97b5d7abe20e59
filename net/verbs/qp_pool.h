/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_QP_POOL_H
#define NET_VERBS_QP_POOL_H

/*
 * Prepared queue pairs: making one takes a device long, resetting one less. An lcore keeps up to
 * --rdma_prepared_qp_cnt of them for a device, in RESET and in the completion queues that they were made with; all of
 * one size, --rdma_prepared_qp_size. They cause no completions while they rest.
 */

#include "net/verbs/qp.h"
#include <urcu/list.h>

struct qp_pool {
	struct cds_list_head resting; /* the one that has rested longest first */
	unsigned count, limit;
	uint16_t size; /* of both queues, within what the device allows */
};

void qp_pool_init(struct qp_pool *pool, const struct device *device);

/* Makes as many as are to be kept ahead. Fewer when the device refuses, after one log line. */
void qp_pool_fill(struct cq *cq);

/* Before its completion queues. */
void qp_pool_fini(struct qp_pool *pool, const struct device *device);

/* As qp_create(), but for a prepared one where there is one and both sizes fit; of it no more is used than wanted. */
int qp_pool_get(struct cq *cq, const struct qp_want *want, uint32_t handle, struct qp *qp, const char **why);

/*
 * As qp_destroy(), but keeps it for the next connection where it is as large as prepared ones and there is room. sound:
 * nothing went wrong with it; otherwise an asynchronous event of it may still come, which must not hit the next one.
 */
int qp_pool_put(struct cq *cq, struct qp *qp, bool sound);

#endif
