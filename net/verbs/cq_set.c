/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An lcore's completion queues on one device, all of them. Nearly always that is one pair, which grows. Where the
 * device does not let it grow any more, a further pair takes the next connections; it stays when they have gone.
 */

#include "core/log.h"
#include "core/why.h"
#include "net/verbs/cq_private.h"
#include "net/verbs/endpoint.h"
#include "poll/reactor.h"
#include <errno.h>
#include <stdio.h>

struct cq_set {
	struct cq *first;
	struct handles endpoints;
};

static __thread struct cq_set t_sets[MEM_DEVICES] __attribute__((tls_model("initial-exec")));

/* ---- the first pair ---- */

static struct cq *
first_of(struct device *device, const char **why)
{
	struct cq_set *set = &t_sets[device->number];

	if (set->first)
		return set->first;
	handles_init(&set->endpoints);
	set->first = cq_create(device, &set->endpoints, why);
	if (set->first)
		qp_pool_fill(set->first);
	return set->first;
}

static void
leave(struct cq_set *set)
{
	struct cq *cq, *next;

	for (cq = set->first; cq; cq = next) {
		next = cq->next;
		cq_destroy(cq);
	}
	set->first = NULL;
	handles_fini(&set->endpoints);
}

/* Whether one of them has failed, and how many endpoints all of them have. */
static bool
any_failed(const struct cq_set *set, unsigned *members)
{
	bool failed = false;

	*members = 0;
	for (const struct cq *cq = set->first; cq; cq = cq->next) {
		failed |= cq->failed;
		*members += cq->members;
	}
	return failed;
}

struct cq *
cq_get(struct device *device, const char **why)
{
	struct cq_set *set = &t_sets[device->number];
	unsigned members;

	if (!device_usable(device)) {
		*why = "the RDMA device has failed";
		return NULL;
	}
	if (any_failed(set, &members)) {
		if (members) {
			*why = "the completion queue has failed, and its connections have not ended yet";
			return NULL;
		}
		leave(set);
	}
	return first_of(device, why);
}

void
cqs_leave(void)
{
	for (unsigned i = 0; i < MEM_DEVICES; i++)
		if (t_sets[i].first)
			leave(&t_sets[i]);
}

/* ---- a place in one of them ---- */

static const char g_no_room[] = "the completion queues have no room for it";

struct place {
	struct endpoint *endpoint;
	unsigned send_depth, recv_depth;
	uint32_t *handle;
};

static int
admit(struct cq *cq, const struct place *place, const char **figures)
{
	return cq_admit(cq, place->endpoint, place->send_depth, place->recv_depth, place->handle, figures);
}

/* The first with room for it. -ENOSPC with the figures of the last: all are full. */
static int
join_one(struct cq_set *set, const struct place *place, struct cq **joined, const char **figures)
{
	int ret = -ENOSPC;

	for (struct cq *cq = set->first; cq && ret == -ENOSPC; cq = cq->next) {
		ret = admit(cq, place, figures);
		*joined = cq;
	}
	return ret;
}

static unsigned
append(struct cq_set *set, struct cq *cq)
{
	struct cq *last = set->first;
	unsigned count = 2;

	for (; last->next; last = last->next)
		count++;
	last->next = cq;
	return count;
}

/* Prepared queue pairs are the first one's: there would be too many if each had as many. */
static int
join_further(struct cq_set *set, struct device *device, const struct place *place, struct cq **joined,
	     const char **figures)
{
	char full[256];
	const char *why;
	unsigned count;

	if (place->send_depth > cq_entries_limit(device) || place->recv_depth > cq_entries_limit(device))
		return -ENOSPC;
	snprintf(full, sizeof full, "%s", *figures); /* out of why_text()'s way */
	*joined = cq_create(device, &set->endpoints, &why);
	if (!*joined) {
		*figures = why_text("%s; there can be no further one", full);
		return -ENOSPC;
	}
	(*joined)->prepared.limit = 0;
	count = append(set, *joined);
	cq_count(CQ_FURTHER, 1);
	log_info("RDMA device %s: lcore %u has %u pairs of completion queues now", device->name, t_lcore->id, count);
	return admit(*joined, place, figures);
}

struct cq *
cq_join(struct device *device, struct endpoint *endpoint, unsigned send_depth, unsigned recv_depth, uint32_t *handle,
	const char **why)
{
	static struct log_limit limit;
	struct place place = {.endpoint = endpoint, .send_depth = send_depth, .recv_depth = recv_depth};
	struct cq *cq = cq_get(device, why);
	const char *figures = "";
	int ret;

	if (!cq)
		return NULL;
	place.handle = handle;
	ret = join_one(&t_sets[device->number], &place, &cq, &figures);
	if (ret == -ENOSPC)
		ret = join_further(&t_sets[device->number], device, &place, &cq, &figures);
	if (ret == 0)
		return cq;
	log_limited(&limit, XR_LOG_WARNING, "an RDMA connection goes to TCP: %s", figures);
	*why = why_keep(figures, g_no_room);
	return NULL;
}

/* ---- asynchronous events ---- */

void
cq_event_of(struct device *device, uint32_t handle, enum ibv_event_type type)
{
	const struct handle_entry *entry = handles_find(&t_sets[device->number].endpoints, handle);

	if (entry)
		endpoint_async_event(entry->endpoint, type);
}

void
cq_event(struct device *device, enum ibv_event_type type)
{
	for (struct cq *cq = t_sets[device->number].first; cq; cq = cq->next)
		cq_failed(cq, type);
}
