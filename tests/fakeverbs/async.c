/* SPDX-License-Identifier: Apache-2.0 */

/* Asynchronous events: raised by the rules or by a test, got and acknowledged by the program. */

#include "tests/fakeverbs/fake.h"
#include <stdlib.h>

struct async_event {
	struct cds_list_head node;
	struct ibv_async_event event;
};

/* The count of events that were got and not acknowledged, which an object keeps for itself. */
static unsigned *
unacked_of(struct fv_context *context, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &caa_container_of(event->element.cq, struct fv_cq, ibv)->async_unacked;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &caa_container_of(event->element.qp, struct fv_qp, ibv)->async_unacked;
	default:
		return &context->unacked;
	}
}

void
fv_raise(struct fv_context *context, const struct ibv_async_event *event)
{
	struct async_event *copy = malloc(sizeof *copy);

	if (!copy)
		abort();
	copy->event = *event;
	fv_bell_ring(&context->bell, &copy->node);
}

void
fv_raise_all(struct fv_card *card, const struct ibv_async_event *event)
{
	struct fv_context *context;

	cds_list_for_each_entry (context, &card->contexts, node)
		fv_raise(context, event);
}

void
fake_raise(unsigned device, const struct ibv_async_event *event)
{
	struct fv_card *card;

	FV_LOCKED();
	card = fv_card_at(device);
	if (card)
		fv_raise_all(card, event);
}

int
ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
	struct fv_context *context = fv_context(ibv);
	struct cds_list_head *node;
	struct async_event *got;

	FV_LOCKED();
	errno = fv_call(FV_get_async_event);
	node = errno ? NULL : fv_bell_take(&context->bell);
	if (!node)
		return -1;
	got = caa_container_of(node, struct async_event, node);
	*event = got->event;
	free(got);
	(*unacked_of(context, event))++;
	return 0;
}

/* An event does not say from which context it came: any that waits for such an acknowledgement will do. */
static bool
ack_in_context(const struct ibv_async_event *event)
{
	struct fv_context *context;
	struct fv_card *card;

	cds_list_for_each_entry (card, fv_cards(), node) {
		cds_list_for_each_entry (context, &card->contexts, node) {
			unsigned *unacked = unacked_of(context, event);

			if (*unacked) {
				(*unacked)--;
				return true;
			}
		}
	}
	return false;
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	FV_LOCKED();
	fv_call(FV_ack_async_event);
	if (!ack_in_context(event))
		fv_violation("an asynchronous event (%s) is acknowledged that nobody has got",
			     ibv_event_type_str(event->event_type));
}

void
fv_async_forget(struct fv_context *context, const void *object)
{
	struct async_event *event, *next;

	cds_list_for_each_entry_safe (event, next, &context->bell.events, node) {
		if (unacked_of(context, &event->event) == &context->unacked || event->event.element.qp != object)
			continue;
		fv_bell_remove(&context->bell, &event->node);
		free(event);
	}
}

void
fv_async_reset(struct fv_context *context)
{
	struct async_event *event, *next;

	cds_list_for_each_entry_safe (event, next, &context->bell.events, node) {
		cds_list_del(&event->node);
		free(event);
	}
}
