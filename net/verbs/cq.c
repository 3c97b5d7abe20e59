/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/cq.h"
#include "core/log.h"
#include "core/why.h"
#include "net/verbs/async.h"
#include "net/verbs/cq_private.h"
#include "net/verbs/endpoint.h"
#include "net/verbs/memlock.h"
#include "poll/reactor.h"
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define ENTRIES_AT_FIRST 8192u
#define ENTRY_BYTES	 ((size_t)64) /* what drivers take for one, roughly */

struct counter g_cq_counters[CQ_COUNTERS] = {
	[CQ_POLLS] = {"cq_polls", "polls of completion queues", 0},
	[CQ_COMPLETIONS] = {"cq_completions", "completions taken from completion queues", 0},
	[CQ_EVENTS] = {"cq_events", "events that completion queues raised", 0},
	[CQ_STALE] = {"cq_stale", "completions of connections that were gone", 0},
	[CQ_GROWN] = {"cq_grown", "times that a completion queue was enlarged", 0},
	[CQ_FURTHER] = {"cq_further", "further pairs of completion queues, made since the others were full", 0},
};

int
cq_counters_add(void)
{
	return counter_add_table(g_cq_counters, CQ_COUNTERS);
}

/* ---- making and unmaking ---- */

unsigned
cq_entries_limit(const struct device *device)
{
	return (unsigned)device->attr.max_cqe;
}

static int
make_channel(struct cq *cq)
{
	int flags, ret;

	cq->channel = ibv_create_comp_channel(cq->device->context);
	if (!cq->channel)
		return verbs_error();
	flags = fcntl(cq->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cq->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	cq->events = (struct xr_fd)XR_FD_INIT(cq->channel->fd, EPOLLIN, cq_events_ready);
	ret = xr_fd_add(&cq->events);
	if (ret == 0)
		fd_set_quiet(&cq->events, true);
	return ret;
}

static int
make_side(struct cq *cq, struct queue_side *side, int solicited_only)
{
	unsigned limit = cq_entries_limit(cq->device), entries = ENTRIES_AT_FIRST < limit ? ENTRIES_AT_FIRST : limit;
	int vectors = cq->device->context->num_comp_vectors;

	side->solicited_only = solicited_only;
	side->cq = ibv_create_cq(cq->device->context, (int)entries, async_cq_context(cq->lcore_index), cq->channel,
				 vectors > 1 ? (int)cq->lcore_index % vectors : 0);
	if (!side->cq)
		return verbs_error();
	side->entries = (unsigned)side->cq->cqe; /* drivers round up */
	return 0;
}

static int
make_queues(struct cq *cq)
{
	int ret = make_channel(cq);

	if (ret == 0)
		ret = make_side(cq, &cq->recv, 1);
	return ret ? ret : make_side(cq, &cq->send, 0);
}

static void
destroy_side(struct cq *cq, struct queue_side *side)
{
	if (side->cq)
		device_undone(cq->device, "destroying a completion queue", ibv_destroy_cq(side->cq));
}

/* Queue pairs before their queues, and these before their channel; and no event may be unacknowledged, since destroying
 * a queue waits for that. */
static void
unmake(struct cq *cq)
{
	if (cq->channel) {
		cq_settle_events(cq);
		xr_fd_del(&cq->events);
	}
	qp_pool_fini(&cq->prepared, cq->device);
	destroy_side(cq, &cq->recv);
	destroy_side(cq, &cq->send);
	if (cq->channel)
		device_undone(cq->device, "destroying a completion channel", ibv_destroy_comp_channel(cq->channel));
	free(cq);
}

static struct cq *
cq_new(struct device *device, struct handles *endpoints)
{
	struct cq *cq = calloc(1, sizeof *cq);

	if (!cq)
		return NULL;
	cq->device = device;
	cq->lcore_index = t_lcore->index;
	cq->endpoints = endpoints;
	CDS_INIT_LIST_HEAD(&cq->touched);
	qp_pool_init(&cq->prepared, device);
	cq->source = (struct source){.name = "completion queues", .ops = &g_cq_source_ops, .stage = SOURCE_CQ};
	return cq;
}

struct cq *
cq_create(struct device *device, struct handles *endpoints, const char **why)
{
	static struct log_limit limit;
	struct cq *cq = cq_new(device, endpoints);
	int ret;

	if (!cq) {
		*why = "no memory";
		return NULL;
	}
	ret = make_queues(cq);
	if (ret == 0) {
		source_add(reactor_current(), &cq->source);
		return cq;
	}
	log_limited(&limit, XR_LOG_WARNING, "RDMA device %s gives lcore %u no completion queues: %s%s", device->name,
		    t_lcore->id, strerror(-ret), memlock_hint(2 * ENTRY_BYTES * ENTRIES_AT_FIRST, ret));
	*why = "the device gives no completion queue";
	unmake(cq);
	return NULL;
}

void
cq_destroy(struct cq *cq)
{
	assert(cq->members == 0); /* a queue pair goes before its completion queues */
	source_del(reactor_current(), &cq->source);
	unmake(cq);
}

/* ---- admission ---- */

static int
resize(struct cq *cq, struct queue_side *side, unsigned entries)
{
	int error = ibv_resize_cq(side->cq, (int)entries);

	if (error)
		return error > 0 ? -error : verbs_error();
	side->entries = (unsigned)side->cq->cqe;
	cq_count(CQ_GROWN, 1);
	log_info("RDMA device %s: a completion queue of lcore %u has %u entries now", cq->device->name, t_lcore->id,
		 side->entries);
	return 0;
}

/* Twice the room where that is to be had: then this happens rarely. */
static int
grow(struct cq *cq, struct queue_side *side, unsigned wanted)
{
	unsigned limit = cq_entries_limit(cq->device), doubled = side->entries < limit / 2 ? side->entries * 2 : limit;

	if (wanted < doubled && resize(cq, side, doubled) == 0)
		return 0;
	return resize(cq, side, wanted);
}

static int
make_room(struct cq *cq, struct queue_side *side, unsigned more, const char **why)
{
	unsigned in_use = side->used + side->leaving, limit = cq_entries_limit(cq->device);
	int ret;

	if (in_use + more <= side->entries)
		return 0;
	if (in_use + more > limit) {
		*why = why_text(
			"the completion queue of %s is full: %u entries are in use, %u more are needed, and the "
			"device allows %u",
			cq->device->name, in_use, more, limit);
		return -ENOSPC;
	}
	ret = grow(cq, side, in_use + more);
	if (ret == 0)
		return 0;
	*why = why_text("the completion queue of %s is full: %u of %u entries are in use, %u more are needed, and it "
			"can't grow: %s",
			cq->device->name, in_use, side->entries, more, strerror(-ret));
	return -ENOSPC;
}

int
cq_admit(struct cq *cq, struct endpoint *endpoint, unsigned send_depth, unsigned recv_depth, uint32_t *handle,
	 const char **why)
{
	int ret = make_room(cq, &cq->send, send_depth, why);

	if (ret == 0)
		ret = make_room(cq, &cq->recv, recv_depth, why);
	if (ret)
		return ret;
	if (handles_add(cq->endpoints, endpoint, handle)) {
		*why = "no memory";
		return -ENOMEM;
	}
	handles_find(cq->endpoints, *handle)->cq = cq;
	cq->members++;
	cq->send.used += send_depth;
	cq->recv.used += recv_depth;
	return 0;
}

static void
give_back_room(struct queue_side *side, unsigned depth)
{
	side->used -= depth;
	side->leaving += depth;
}

void
cq_dismiss(struct cq *cq, uint32_t handle, unsigned send_depth, unsigned recv_depth)
{
	handles_remove(cq->endpoints, handle);
	cq->members--;
	give_back_room(&cq->send, send_depth);
	give_back_room(&cq->recv, recv_depth);
}

/* ---- failures ---- */

static void
tell_everyone(struct cq *cq, enum ibv_event_type type)
{
	for (uint32_t i = 0; i < cq->endpoints->room; i++) {
		const struct handle_entry *entry = &cq->endpoints->entries[i];

		if (entry->endpoint && entry->cq == cq)
			endpoint_async_event(entry->endpoint, type);
	}
}

void
cq_failed(struct cq *cq, enum ibv_event_type type)
{
	cq->failed = true;
	tell_everyone(cq, type);
}

void
cq_fail(struct cq *cq, const char *what)
{
	if (cq->failed)
		return;
	log_error("RDMA device %s: a completion queue of lcore %u has failed: %s", cq->device->name, t_lcore->id, what);
	cq_failed(cq, IBV_EVENT_CQ_ERR);
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

struct qp_pool *
cq_qp_pool(struct cq *cq)
{
	return &cq->prepared;
}

unsigned
cq_lcore_index(const struct cq *cq)
{
	return cq->lcore_index;
}
