/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_QP_H
#define NET_VERBS_QP_H

/* A reliable connected queue pair through its states, with the attributes that brpc's peers use. */

#include "net/handshake/hello.h"
#include "net/verbs/cq.h"
#include "net/verbs/gid.h"
#include <infiniband/verbs.h>

#define QP_INLINE_BYTES 220u /* of a work request of four cache lines */

struct qp_want {
	uint16_t sq_size; /* advertised; lowered by qp_create() until the device agrees */
	uint16_t rq_size;
	uint32_t inline_bytes; /* asked for; what was got is in struct qp */
};

struct qp {
	struct ibv_qp *qp;
	const struct device *device;
	uint16_t sq_size, rq_size; /* to be advertised */
	uint16_t depth;		   /* of the send queue: sq_size * 5 / 4, capped by the device */
	uint32_t max_sge;
	uint32_t inline_bytes;
	bool prepared; /* as large as prepared ones (qp_pool.h), whatever it advertises */
};

/* Requests in one queue, at most. */
uint16_t qp_queue_limit(const struct device *device);

/*
 * RESET. handle is the endpoint's (cq_admit()). Where the device refuses what is asked for, inline_bytes and sq_size
 * are lowered until it agrees; both sizes are within what it allows. A negative errno with *why (static text).
 */
int qp_create(struct cq *cq, const struct qp_want *want, uint32_t handle, struct qp *qp, const char **why);

/* As if just created for want, which it is large enough for: made is in RESET and in the same completion queues. */
void qp_adopt(struct cq *cq, const struct qp_want *want, uint32_t handle, struct ibv_qp *made, uint32_t inline_bytes,
	      struct qp *qp);

/* RESET to INIT; receives may be posted after it. */
int qp_init(struct qp *qp, uint8_t ib_port, const char **why);

/* INIT to RTR to RTS towards the peer of that hello: MTU 1024, PSN 0, GRH, rnr_retry 0, as brpc does it. */
int qp_connect(struct qp *qp, const struct gid_entry *local, const struct hello *peer, const char **why);

/* To ERR: everything posted is flushed. */
int qp_fail(struct qp *qp);

/* To RESET, from any state: what was posted is dropped, and the device has no use for its memory any more. */
int qp_reset(struct qp *qp);

/* NULL is allowed. A negative errno: the device keeps it, and may still write to its receives' blocks. */
int qp_destroy(struct qp *qp);

#endif
