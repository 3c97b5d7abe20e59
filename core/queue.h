/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

/*
 * Many producers, one consumer, intrusive nodes, no locks: liburcu's wfcqueue behind the few calls that the library
 * needs. It is the one place that knows about wfcqueue and about the thread sanitizer, for which Debian's liburcu
 * carries no annotations.
 *
 * push: any thread, wait-free. pop: the consumer alone, never blocks.
 */

#include <stdbool.h>
#include <urcu/wfcqueue.h>

struct queue_node {
	struct cds_wfcq_node node;
};

struct queue {
	struct cds_wfcq_tail tail __attribute__((aligned(64)));	  /* producers write here */
	struct __cds_wfcq_head head __attribute__((aligned(64))); /* the consumer's line */
};

void queue_init(struct queue *queue);

/* True when the queue was empty before. What was written before the push is seen after the pop. */
bool queue_push(struct queue *queue, struct queue_node *node);

enum queue_pop_result {
	QUEUE_GOT,
	QUEUE_EMPTY,
	QUEUE_BUSY, /* a producer is between its two steps: there is work, try again */
};

enum queue_pop_result queue_pop(struct queue *queue, struct queue_node **node);

/* True when a pop would find nothing; false also while a producer is between its two steps. Consumer only. */
bool queue_empty(struct queue *queue);

#endif
