/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/cq.h"
#include "core/counter.h"
#include "core/log.h"
#include "net/verbs/async.h"
#include "net/verbs/endpoint.h"
#include "net/verbs/flags.h"
#include "net/verbs/handle.h"
#include "poll/reactor.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define ENTRIES_AT_FIRST 8192u
#define POLLS_A_TURN	 8   /* of one queue: the other sources get their turn */
#define POLL_ONCE_MAX	 256 /* --rdma_cqe_poll_once */
#define ACK_BATCH	 64u /* acknowledging takes a lock: not for each event */

/* One of the two queues. */
struct queue_side {
	struct ibv_cq *cq;
	unsigned entries; /* room */
	unsigned used;	  /* completions that admitted endpoints can cause */
	unsigned unacked; /* events read, not acknowledged */
	int solicited_only;
};

struct cq {
	struct source source;
	struct device *device;
	unsigned lcore_index;
	struct queue_side recv, send;
	struct handles endpoints;
	struct cds_list_head touched; /* struct handle_entry: had a completion in this poll */
	struct ibv_comp_channel *channel;
	struct xr_fd events;
};

static __thread struct cq *t_cqs[MEM_DEVICES] __attribute__((tls_model("initial-exec")));

enum cq_counter {
	CQ_POLLS,
	CQ_COMPLETIONS,
	CQ_EVENTS,
	CQ_STALE,
	CQ_COUNTERS,
};

static struct counter g_counters[CQ_COUNTERS] = {
	[CQ_POLLS] = {"cq_polls", "polls of completion queues", 0},
	[CQ_COMPLETIONS] = {"cq_completions", "completions taken from completion queues", 0},
	[CQ_EVENTS] = {"cq_events", "events that completion queues raised", 0},
	[CQ_STALE] = {"cq_stale", "completions of connections that were gone", 0},
};

int
cq_counters_add(void)
{
	return counter_add_table(g_counters, CQ_COUNTERS);
}

/* ---- completions ---- */

static void
dispatch(struct cq *cq, const struct ibv_wc *wc)
{
	struct handle_entry *entry = handles_find(&cq->endpoints, (uint32_t)(wc->wr_id >> 32));

	if (!entry) {
		counter_add(&g_counters[CQ_STALE], 1);
		return;
	}
	if (cds_list_empty(&entry->touched))
		cds_list_add_tail(&entry->touched, &cq->touched);
	endpoint_complete(entry->endpoint, wc);
}

/* Up to `polls` batches; how many completions. */
static int
poll_side(struct cq *cq, struct queue_side *side, int polls)
{
	struct ibv_wc wcs[POLL_ONCE_MAX];
	int once = (int)option_int(&g_rdma_cqe_poll_once), total = 0, n;

	do {
		n = ibv_poll_cq(side->cq, once, wcs);
		counter_add(&g_counters[CQ_POLLS], 1);
		for (int i = 0; i < n; i++)
			dispatch(cq, &wcs[i]);
		total += n > 0 ? n : 0;
	} while (n == once && --polls > 0);
	if (total)
		counter_add(&g_counters[CQ_COMPLETIONS], (uint64_t)total);
	return total;
}

/* Each endpoint does once what its completions have led to. */
static void
end_batch(struct cq *cq)
{
	while (!cds_list_empty(&cq->touched)) {
		struct handle_entry *entry = cds_list_first_entry(&cq->touched, struct handle_entry, touched);

		cds_list_del_init(&entry->touched);
		endpoint_batch_end(entry->endpoint);
	}
}

static int
cq_poll(struct source *source, struct reactor *reactor)
{
	struct cq *cq = caa_container_of(source, struct cq, source);
	int work;

	(void)reactor;
	work = poll_side(cq, &cq->recv, POLLS_A_TURN);
	work += poll_side(cq, &cq->send, POLLS_A_TURN);
	if (work)
		end_batch(cq);
	return work;
}

void
cq_drain(struct cq *cq)
{
	while (poll_side(cq, &cq->recv, POLLS_A_TURN) > 0)
		end_batch(cq);
}

/* ---- events ---- */

static void
acknowledge(struct queue_side *side, unsigned at_least)
{
	if (side->unacked == 0 || side->unacked < at_least)
		return;
	ibv_ack_cq_events(side->cq, side->unacked);
	side->unacked = 0;
}

/* Empties the channel. The polls that follow in the turn find what the events speak of. */
static void
drain_events(struct cq *cq)
{
	struct ibv_cq *raised;
	void *context;

	while (ibv_get_cq_event(cq->channel, &raised, &context) == 0) {
		struct queue_side *side = raised == cq->recv.cq ? &cq->recv : &cq->send;

		side->unacked++;
		acknowledge(side, ACK_BATCH);
		counter_add(&g_counters[CQ_EVENTS], 1);
	}
}

static void
events_ready(struct xr_fd *fd, uint32_t revents)
{
	(void)revents;
	drain_events(caa_container_of(fd, struct cq, events));
}

/* The peer marks as solicited what must wake us (doc/flow.md); of our own sends every completion that was asked for. */
static int
cq_arm(struct source *source, struct reactor *reactor)
{
	struct cq *cq = caa_container_of(source, struct cq, source);
	int error;

	(void)reactor;
	error = ibv_req_notify_cq(cq->recv.cq, cq->recv.solicited_only);
	if (error == 0)
		error = ibv_req_notify_cq(cq->send.cq, cq->send.solicited_only);
	return -error;
}

/* Arming can't be taken back; what it raised meanwhile is taken here, so that the next sleep does not end at once. */
static void
cq_disarm(struct source *source, struct reactor *reactor)
{
	(void)reactor;
	drain_events(caa_container_of(source, struct cq, source));
}

static const struct source_ops g_source_ops = {.poll = cq_poll, .arm = cq_arm, .disarm = cq_disarm};

/* ---- making the queues ---- */

static int
make_channel(struct cq *cq)
{
	int flags, ret;

	cq->channel = ibv_create_comp_channel(cq->device->context);
	if (!cq->channel)
		return -errno;
	flags = fcntl(cq->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cq->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	cq->events = (struct xr_fd)XR_FD_INIT(cq->channel->fd, EPOLLIN, events_ready);
	ret = xr_fd_add(&cq->events);
	if (ret == 0)
		fd_set_quiet(&cq->events, true);
	return ret;
}

static int
make_side(struct cq *cq, struct queue_side *side, int solicited_only)
{
	unsigned limit = (unsigned)cq->device->attr.max_cqe;
	int vectors = cq->device->context->num_comp_vectors;

	side->solicited_only = solicited_only;
	side->entries = ENTRIES_AT_FIRST < limit ? ENTRIES_AT_FIRST : limit;
	side->cq = ibv_create_cq(cq->device->context, (int)side->entries, async_cq_context(cq->lcore_index),
				 cq->channel, vectors > 1 ? (int)cq->lcore_index % vectors : 0);
	return side->cq ? 0 : -errno;
}

static void
destroy_side(struct cq *cq, struct queue_side *side)
{
	int error;

	if (!side->cq)
		return;
	acknowledge(side, 0); /* destroying waits for what is not acknowledged */
	error = ibv_destroy_cq(side->cq);
	if (error)
		log_error("RDMA device %s: destroying a completion queue: %s", cq->device->name, strerror(error));
}

static void
cq_destroy(struct cq *cq)
{
	if (cq->channel)
		drain_events(cq);
	if (cq->events.fn)
		xr_fd_del(&cq->events);
	destroy_side(cq, &cq->recv);
	destroy_side(cq, &cq->send);
	if (cq->channel)
		ibv_destroy_comp_channel(cq->channel);
	handles_fini(&cq->endpoints);
	free(cq);
}

static struct cq *
cq_create(struct device *device, const char **why)
{
	struct cq *cq = calloc(1, sizeof *cq);

	if (!cq) {
		*why = "no memory";
		return NULL;
	}
	cq->device = device;
	cq->lcore_index = t_lcore->index;
	CDS_INIT_LIST_HEAD(&cq->touched);
	handles_init(&cq->endpoints);
	cq->source = (struct source){.name = "completion queues", .ops = &g_source_ops, .stage = SOURCE_CQ};
	if (make_channel(cq) == 0 && make_side(cq, &cq->recv, 1) == 0 && make_side(cq, &cq->send, 0) == 0)
		return cq;
	*why = "the device gives no completion queue";
	cq_destroy(cq);
	return NULL;
}

struct cq *
cq_get(struct device *device, const char **why)
{
	struct cq **cq = &t_cqs[device->number];

	if (!*cq) {
		*cq = cq_create(device, why);
		if (*cq)
			source_add(reactor_current(), &(*cq)->source);
	}
	return *cq;
}

void
cqs_leave(void)
{
	for (unsigned i = 0; i < MEM_DEVICES; i++) {
		if (!t_cqs[i])
			continue;
		source_del(reactor_current(), &t_cqs[i]->source);
		cq_destroy(t_cqs[i]);
		t_cqs[i] = NULL;
	}
}

/* ---- admission ---- */

/* Makes room for so many entries; doubling keeps the times that this happens few. */
static int
make_entries(struct cq *cq, struct queue_side *side, unsigned wanted)
{
	unsigned limit = (unsigned)cq->device->attr.max_cqe, entries = side->entries;

	if (wanted <= entries)
		return 0;
	if (wanted > limit)
		return -ENOSPC;
	while (entries < wanted)
		entries = entries < limit / 2 ? entries * 2 : limit;
	if (ibv_resize_cq(side->cq, (int)entries))
		return -ENOSPC;
	side->entries = entries;
	return 0;
}

static const char *
full_text(const struct cq *cq, const struct queue_side *side, unsigned more)
{
	static __thread char text[160];

	snprintf(text, sizeof text, "the completion queue of %s is full: %u of %u entries are in use, %u more needed",
		 cq->device->name, side->used, side->entries, more);
	return text;
}

int
cq_admit(struct cq *cq, struct endpoint *endpoint, unsigned send_depth, unsigned recv_depth, uint32_t *handle,
	 const char **why)
{
	if (make_entries(cq, &cq->send, cq->send.used + send_depth)) {
		*why = full_text(cq, &cq->send, send_depth);
		return -ENOSPC;
	}
	if (make_entries(cq, &cq->recv, cq->recv.used + recv_depth)) {
		*why = full_text(cq, &cq->recv, recv_depth);
		return -ENOSPC;
	}
	if (handles_add(&cq->endpoints, endpoint, handle)) {
		*why = "no memory";
		return -ENOMEM;
	}
	cq->send.used += send_depth;
	cq->recv.used += recv_depth;
	return 0;
}

void
cq_dismiss(struct cq *cq, uint32_t handle, unsigned send_depth, unsigned recv_depth)
{
	handles_remove(&cq->endpoints, handle);
	cq->send.used -= send_depth;
	cq->recv.used -= recv_depth;
}

/* ---- asynchronous events ---- */

void
cq_event_of(struct device *device, uint32_t handle, enum ibv_event_type type)
{
	struct cq *cq = t_cqs[device->number];
	struct handle_entry *entry = cq ? handles_find(&cq->endpoints, handle) : NULL;

	if (entry)
		endpoint_async_event(entry->endpoint, type);
}

void
cq_event(struct device *device, enum ibv_event_type type)
{
	struct cq *cq = t_cqs[device->number];
	struct handle_entry *entry;

	for (uint32_t i = 0; cq && i < cq->endpoints.room; i++) {
		entry = &cq->endpoints.entries[i];
		if (entry->endpoint)
			endpoint_async_event(entry->endpoint, type);
	}
}

/* ---- what it is ---- */

struct ibv_cq *
cq_send(const struct cq *cq)
{
	return cq->send.cq;
}

struct ibv_cq *
cq_recv(const struct cq *cq)
{
	return cq->recv.cq;
}

struct device *
cq_device(const struct cq *cq)
{
	return cq->device;
}

unsigned
cq_lcore_index(const struct cq *cq)
{
	return cq->lcore_index;
}
