/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_SOURCE_LIST_H
#define POLL_SOURCE_LIST_H

/*
 * The sources of one reactor in the order of a turn. One walk at a time; whatever a walk calls may delete any source,
 * also the one it is in: the walk's cursor is moved off a source that goes.
 */

#include "poll/source.h"

struct source_list {
	struct cds_list_head head;
	struct cds_list_head *cursor; /* where the walk goes next; the head when there is none */
	unsigned cq_count;	      /* sources of stage SOURCE_CQ */
};

void source_list_init(struct source_list *list);

enum source_choice {
	SOURCES_ALL,
	SOURCES_BEFORE_WAIT, /* not those whose last poll is the kernel's wait */
	SOURCES_CQ,	     /* completion queues only */
};

/* Polls each source of the choice once. The sum of the work. */
int source_list_poll(struct source_list *list, struct reactor *reactor, enum source_choice choice);

/* Arms in order up to the first refusal, whose error it returns, with *refused the source. 0: all are armed. */
int source_list_arm(struct source_list *list, struct reactor *reactor, struct source **refused);

/* Takes back what was armed, the last first. */
void source_list_disarm(struct source_list *list, struct reactor *reactor);

/* The earliest deadline. */
uint64_t source_list_deadline(struct source_list *list, struct reactor *reactor);

#endif
