/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/source_list.h"

#include "poll/reactor_private.h"

void
source_list_init(struct source_list *list)
{
	CDS_INIT_LIST_HEAD(&list->head);
	list->cursor = &list->head;
	list->cq_count = 0;
}

/* The source at the cursor, which then stands behind it; NULL at the end. */
static struct source *
walk_next(struct source_list *list)
{
	struct cds_list_head *at = list->cursor;

	if (at == &list->head)
		return NULL;
	list->cursor = at->next;
	return cds_list_entry(at, struct source, link);
}

static bool
chosen(const struct source *source, enum source_choice choice)
{
	switch (choice) {
	case SOURCES_BEFORE_WAIT:
		return !source->ops->waits_in_kernel;
	case SOURCES_CQ:
		return source->stage == SOURCE_CQ;
	default:
		return true;
	}
}

int
source_list_poll(struct source_list *list, struct reactor *reactor, enum source_choice choice)
{
	struct source *source;
	int work = 0;

	list->cursor = list->head.next;
	while ((source = walk_next(list))) {
		if (!chosen(source, choice))
			continue;
		work += source->ops->poll(source, reactor);
		if (choice == SOURCES_BEFORE_WAIT)
			wait_step(reactor, WAIT_POLLED_ONE);
	}
	return work;
}

int
source_list_arm(struct source_list *list, struct reactor *reactor, struct source **refused)
{
	struct source *source;

	list->cursor = list->head.next;
	while ((source = walk_next(list))) {
		int error = source->ops->arm ? source->ops->arm(source, reactor) : 0;

		if (error) {
			*refused = source;
			return error;
		}
		source->armed = true;
		wait_step(reactor, WAIT_ARMED_ONE);
	}
	return 0;
}

static void
disarm(struct source *source, struct reactor *reactor)
{
	if (!source->armed)
		return;
	source->armed = false;
	if (source->ops->disarm)
		source->ops->disarm(source, reactor);
}

void
source_list_disarm(struct source_list *list, struct reactor *reactor)
{
	struct cds_list_head *at, *before;

	for (at = list->head.prev; at != &list->head; at = before) {
		before = at->prev;
		disarm(cds_list_entry(at, struct source, link), reactor);
	}
}

uint64_t
source_list_deadline(struct source_list *list, struct reactor *reactor)
{
	uint64_t earliest = SOURCE_NEVER;
	struct source *source;

	cds_list_for_each_entry (source, &list->head, link) {
		uint64_t deadline = source->ops->deadline ? source->ops->deadline(source, reactor) : SOURCE_NEVER;

		if (deadline < earliest)
			earliest = deadline;
	}
	return earliest;
}

void
source_add(struct reactor *reactor, struct source *source)
{
	struct source_list *list = &reactor->sources;
	struct cds_list_head *after = list->head.prev;

	while (after != &list->head && cds_list_entry(after, struct source, link)->stage > source->stage)
		after = after->prev;
	cds_list_add(&source->link, after);
	source->armed = false;
	if (source->stage == SOURCE_CQ)
		list->cq_count++;
	if (source->keeps_awake)
		reactor_hold_awake(reactor);
}

void
source_del(struct reactor *reactor, struct source *source)
{
	struct source_list *list = &reactor->sources;

	disarm(source, reactor);
	if (list->cursor == &source->link)
		list->cursor = source->link.next;
	cds_list_del(&source->link);
	if (source->stage == SOURCE_CQ)
		list->cq_count--;
	if (source->keeps_awake)
		reactor_let_sleep(reactor);
}
