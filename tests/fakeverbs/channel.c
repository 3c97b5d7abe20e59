/* SPDX-License-Identifier: Apache-2.0 */

/* Completion channels, and the events in them: got, then acknowledged, one for one. */

#include "tests/fakeverbs/fake.h"
#include <stdlib.h>

struct cq_event {
	struct cds_list_head node;
	struct fv_cq *cq;
};

static CDS_LIST_HEAD(g_channels);

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct fv_channel *channel;

	FV_LOCKED();
	errno = fv_call(FV_create_comp_channel);
	if (!errno && fv_card(context)->fatal)
		errno = EIO;
	channel = errno ? NULL : calloc(1, sizeof *channel);
	if (!channel)
		return NULL;
	errno = fv_bell_init(&channel->bell);
	if (errno) {
		free(channel);
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->bell.fd;
	cds_list_add_tail(&channel->node, &g_channels);
	fv_context(context)->objects++;
	fv_born(FAKE_CHANNELS);
	return &channel->ibv;
}

static void
channel_delete(struct fv_channel *channel)
{
	struct cq_event *event, *next;

	cds_list_for_each_entry_safe (event, next, &channel->bell.events, node) {
		cds_list_del(&event->node);
		free(event);
	}
	fv_bell_fini(&channel->bell);
	cds_list_del(&channel->node);
	free(channel);
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	int error;

	FV_LOCKED();
	error = fv_call(FV_destroy_comp_channel);
	if (error)
		return error;
	if (ibv->refcnt) {
		fv_violation("a completion channel is destroyed that %d completion queues use", ibv->refcnt);
		return EBUSY;
	}
	fv_context(ibv->context)->objects--;
	channel_delete(caa_container_of(ibv, struct fv_channel, ibv));
	fv_died(FAKE_CHANNELS);
	return 0;
}

static struct fv_bell *
bell_of(const struct fv_cq *cq)
{
	return &caa_container_of(cq->ibv.channel, struct fv_channel, ibv)->bell;
}

void
fv_channel_ring(struct fv_cq *cq)
{
	struct cq_event *event = malloc(sizeof *event);

	if (!event)
		abort();
	event->cq = cq;
	fv_bell_ring(bell_of(cq), &event->node);
	fv_card(cq->ibv.context)->counts.events++;
}

void
fv_channel_forget(struct fv_cq *cq)
{
	struct cq_event *event, *next;

	if (!cq->ibv.channel)
		return;
	cds_list_for_each_entry_safe (event, next, &bell_of(cq)->events, node) {
		if (event->cq != cq)
			continue;
		fv_bell_remove(bell_of(cq), &event->node);
		free(event);
	}
}

int
ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct fv_channel *channel = caa_container_of(ibv, struct fv_channel, ibv);
	struct cds_list_head *node;
	struct cq_event *event;

	FV_LOCKED();
	errno = fv_call(FV_get_cq_event);
	node = errno ? NULL : fv_bell_take(&channel->bell);
	if (!node)
		return -1;
	event = caa_container_of(node, struct cq_event, node);
	*cq = &event->cq->ibv;
	*cq_context = event->cq->ibv.cq_context;
	event->cq->unacked++;
	fv_card(ibv->context)->counts.events_got++;
	free(event);
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *ibv, unsigned count)
{
	struct fv_cq *cq = caa_container_of(ibv, struct fv_cq, ibv);

	FV_LOCKED();
	fv_call(FV_ack_cq_events);
	if (count > cq->unacked) {
		fv_violation("%u events of a completion queue are acknowledged, and %u were got", count, cq->unacked);
		count = cq->unacked;
	}
	cq->unacked -= count;
	fv_card(ibv->context)->counts.events_acked += count;
}

void
fv_channels_reset(void)
{
	struct fv_channel *channel, *next;

	cds_list_for_each_entry_safe (channel, next, &g_channels, node)
		channel_delete(channel);
}
