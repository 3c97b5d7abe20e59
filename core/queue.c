/* SPDX-License-Identifier: Apache-2.0 */
#include "core/queue.h"

#if defined(__SANITIZE_THREAD__)
#define QUEUE_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUEUE_UNDER_TSAN 1
#endif
#endif

/*
 * liburcu's functions are called, not inlined, so the sanitizer sees none of their accesses; all it must be told is
 * that a push happens before the pop of the same node.
 */
#ifdef QUEUE_UNDER_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define handed_over(node) __tsan_release(node)
#define taken_over(node)  __tsan_acquire(node)
#else
#define handed_over(node) ((void)(node))
#define taken_over(node)  ((void)(node))
#endif

void
queue_init(struct queue *queue)
{
	__cds_wfcq_init(&queue->head, &queue->tail);
}

bool
queue_push(struct queue *queue, struct queue_node *node)
{
	cds_wfcq_node_init(&node->node);
	handed_over(node);
	return !cds_wfcq_enqueue(&queue->head, &queue->tail, &node->node);
}

enum queue_pop_result
queue_pop(struct queue *queue, struct queue_node **node)
{
	struct cds_wfcq_node *got = __cds_wfcq_dequeue_nonblocking(&queue->head, &queue->tail);

	if (!got)
		return QUEUE_EMPTY;
	if (got == CDS_WFCQ_WOULDBLOCK)
		return QUEUE_BUSY;
	*node = caa_container_of(got, struct queue_node, node);
	taken_over(*node);
	return QUEUE_GOT;
}

bool
queue_empty(struct queue *queue)
{
	return cds_wfcq_empty(&queue->head, &queue->tail);
}
