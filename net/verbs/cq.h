/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_CQ_H
#define NET_VERBS_CQ_H

/*
 * An lcore's completion queues on one device: one for sends, one for receives, one completion channel for both, one
 * source in the loop. Made at the lcore's first connection on the device, with queue pairs prepared for
 * more of them (qp_pool.h). Nothing else polls a CQ.
 *
 * Completions find their endpoint by a number in wr_id, with a generation, so that what a dead queue pair left behind
 * is recognised and dropped.
 */

#include "net/verbs/device.h"
#include "poll/source.h"
#include <urcu/list.h>

struct endpoint;
struct cq;
struct qp_pool;

/* What a work request's wr_id says: | generation 16 | endpoint 16 | kind 8 | unused 8 | value 16 | */
enum wr_kind {
	WR_SEND, /* value: requests that the completion covers */
	WR_ACK,	 /* a pure ACK */
	WR_RECV, /* value: the slot */
};

static inline uint64_t
wr_id_make(uint32_t handle, enum wr_kind kind, uint16_t value)
{
	return (uint64_t)handle << 32 | (uint64_t)kind << 24 | value;
}

static inline enum wr_kind
wr_id_kind(uint64_t wr_id)
{
	return (enum wr_kind)(wr_id >> 24 & 0xff);
}

static inline uint16_t
wr_id_value(uint64_t wr_id)
{
	return (uint16_t)wr_id;
}

/*
 * The calling lcore's first queues on the device; made when there are none, and made anew when they have failed and
 * nobody uses them any more. Not from inside a poll. NULL with *why (static text): TCP then.
 */
struct cq *cq_get(struct device *device, const char **why);

/*
 * Finds the endpoint, with queues of these depths, a place in the calling lcore's queues on the device: cq_admit() into
 * the first that have room or can grow, or into further ones. Errors as with cq_get(); where no limit of the device's
 * admits it, the figures are in *why and in the log.
 */
struct cq *cq_join(struct device *device, struct endpoint *endpoint, unsigned send_depth, unsigned recv_depth,
		   uint32_t *handle, const char **why);

/*
 * Admits an endpoint with queues of these depths: room for all of its completions, and a handle for wr_id. The queues
 * grow if need be. -ENOSPC with *why giving the figures (valid until the thread's next why_text()); -ENOMEM. Room is
 * not for others before what its last user may have left in it was polled.
 */
int cq_admit(struct cq *cq, struct endpoint *endpoint, unsigned send_depth, unsigned recv_depth, uint32_t *handle,
	     const char **why);

/* Its queue pair is destroyed, or was never made: completions that are left of it are dropped from now on. */
void cq_dismiss(struct cq *cq, uint32_t handle, unsigned send_depth, unsigned recv_depth);

struct ibv_cq *cq_send(const struct cq *cq);
struct ibv_cq *cq_recv(const struct cq *cq);
struct device *cq_device(const struct cq *cq);
struct qp_pool *cq_qp_pool(struct cq *cq);
unsigned cq_lcore_index(const struct cq *cq);

/*
 * Polls what is in the receive queue now: what arrived before the peer's end. On its lcore, not from inside its poll.
 * Endpoints that fail meanwhile may be gone afterwards.
 */
void cq_drain(struct cq *cq);

/*
 * An asynchronous event of the device's concerns one endpoint, or every one, of the calling lcore. A device or a queue
 * that has failed gives no completions any more.
 */
void cq_event_of(struct device *device, uint32_t handle, enum ibv_event_type type);
void cq_event(struct device *device, enum ibv_event_type type);

/* On the worker's own thread when its loop has ended and its endpoints are gone: acknowledges, destroys. */
void cqs_leave(void);

/* What the queues count, for counter_add_table(). */
int cq_counters_add(void);

#endif
