/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_CQ_PRIVATE_H
#define NET_VERBS_CQ_PRIVATE_H

/*
 * The completion queues as their files see them: cq.c makes a pair and gives room in it, cq_set.c has all of an lcore
 * and a device, cq_source.c polls one.
 */

#include "core/counter.h"
#include "net/verbs/cq.h"
#include "net/verbs/handle.h"
#include "net/verbs/qp_pool.h"
#include <xrdma/reactor.h>

/* One of the two queues. */
struct queue_side {
	struct ibv_cq *cq;
	unsigned entries; /* room */
	unsigned used;	  /* completions that admitted endpoints can cause */
	unsigned leaving; /* that dismissed ones may have left behind: until the queue was seen empty */
	unsigned unacked; /* events read, not acknowledged */
	int solicited_only;
};

struct cq {
	struct source source;
	struct device *device;
	unsigned lcore_index;
	unsigned members; /* endpoints admitted */
	bool failed;	  /* gives no completions any more */
	struct queue_side recv, send;
	struct handles *endpoints; /* of all that the lcore has on the device */
	struct qp_pool prepared;
	struct cds_list_head touched; /* struct handle_entry: had a completion in this poll */
	struct ibv_comp_channel *channel;
	struct xr_fd events;
	struct cq *next; /* the further ones */
};

enum cq_counter {
	CQ_POLLS,
	CQ_COMPLETIONS,
	CQ_EVENTS,
	CQ_STALE,
	CQ_GROWN,
	CQ_FURTHER,
	CQ_COUNTERS,
};

extern struct counter g_cq_counters[CQ_COUNTERS];

static inline void
cq_count(enum cq_counter counter, uint64_t n)
{
	counter_add(&g_cq_counters[counter], n);
}

/* A pair of queues whose endpoints get their handles there, in the calling lcore's loop. NULL with *why. */
struct cq *cq_create(struct device *device, struct handles *endpoints, const char **why);

/* No endpoint is in it any more. */
void cq_destroy(struct cq *cq);

/* How many entries the device allows a queue. */
unsigned cq_entries_limit(const struct device *device);

/* It gives no completions any more: its endpoints are told. */
void cq_failed(struct cq *cq, enum ibv_event_type type);

/* Whoever waits for a completion would wait for ever: tells every endpoint. what: for the log. */
void cq_fail(struct cq *cq, const char *what);

/* ---- cq_source.c ---- */

extern const struct source_ops g_cq_source_ops;

/* Of the channel. */
void cq_events_ready(struct xr_fd *fd, uint32_t revents);

/* Reads what events there are, and acknowledges every one. */
void cq_settle_events(struct cq *cq);

#endif
