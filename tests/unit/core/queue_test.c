/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/queue.h"

#define PRODUCERS 4
#define ITEMS	  20000 /* of each */

struct item {
	struct queue_node node;
	unsigned producer;
	unsigned number;
};

static struct item *
item_of(struct queue_node *node)
{
	return caa_container_of(node, struct item, node);
}

static void
test_empty(void)
{
	struct queue queue;
	struct queue_node *node = NULL;

	queue_init(&queue);
	CU_ASSERT(queue_empty(&queue));
	ASSERT_EQ(queue_pop(&queue, &node), QUEUE_EMPTY);
	CU_ASSERT(node == NULL);
}

static void
test_order(void)
{
	struct queue queue;
	struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
	struct queue_node *node;

	queue_init(&queue);
	CU_ASSERT(queue_push(&queue, &items[0].node));
	CU_ASSERT(!queue_push(&queue, &items[1].node));
	CU_ASSERT(!queue_push(&queue, &items[2].node));
	CU_ASSERT(!queue_empty(&queue));
	for (unsigned i = 0; i < 3; i++) {
		ASSERT_EQ(queue_pop(&queue, &node), QUEUE_GOT);
		ASSERT_EQ(item_of(node)->number, i);
	}
	CU_ASSERT(queue_empty(&queue));
	ASSERT_EQ(queue_pop(&queue, &node), QUEUE_EMPTY);
}

static void
test_reused_node(void)
{
	struct queue queue;
	struct item item = {.number = 7};
	struct queue_node *node;

	queue_init(&queue);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT(queue_push(&queue, &item.node));
		ASSERT_EQ(queue_pop(&queue, &node), QUEUE_GOT);
		CU_ASSERT(item_of(node) == &item);
	}
}

static void
test_lines_apart(void)
{
	CU_ASSERT(offsetof(struct queue, head) - offsetof(struct queue, tail) >= 64);
	ASSERT_EQ(_Alignof(struct queue), 64);
}

struct producer {
	pthread_t thread;
	unsigned number;
	struct queue *queue;
};

static void *
produce(void *arg)
{
	struct producer *producer = arg;

	for (unsigned i = 0; i < ITEMS; i++) {
		struct item *item = malloc(sizeof *item);

		if (!item)
			abort();
		item->producer = producer->number;
		item->number = i;
		queue_push(producer->queue, &item->node);
	}
	return NULL;
}

/* Pops until every producer's items came, each producer's in its order; the nodes are freed at once. */
static unsigned
consume_all(struct queue *queue)
{
	unsigned next[PRODUCERS] = {0}, disordered = 0;

	for (unsigned got = 0; got < PRODUCERS * ITEMS;) {
		struct queue_node *node;
		struct item *item;

		if (queue_pop(queue, &node) != QUEUE_GOT) {
			sched_yield();
			continue;
		}
		got++;
		item = item_of(node);
		disordered += item->number != next[item->producer];
		next[item->producer] = item->number + 1;
		free(item);
	}
	return disordered;
}

static void
test_many_producers(void)
{
	static struct queue queue;
	struct producer producers[PRODUCERS];

	queue_init(&queue);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i].number = i;
		producers[i].queue = &queue;
		ASSERT_FATAL(pthread_create(&producers[i].thread, NULL, produce, &producers[i]) == 0);
	}
	ASSERT_EQ(consume_all(&queue), 0);
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	CU_ASSERT(queue_empty(&queue));
}

/* One item travels between two queues: what either side wrote before its push, the other sees. */
static struct queue g_ping, g_pong;

static struct item *
pop_waiting(struct queue *queue)
{
	struct queue_node *node;

	while (queue_pop(queue, &node) != QUEUE_GOT)
		sched_yield();
	return item_of(node);
}

static void *
answer(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		struct item *item = pop_waiting(&g_ping);

		item->number++;
		queue_push(&g_pong, &item->node);
	}
	return arg;
}

static void
test_ping_pong(void)
{
	struct item ball = {.number = 0}, *back = &ball;
	pthread_t thread;

	queue_init(&g_ping);
	queue_init(&g_pong);
	ASSERT_FATAL(pthread_create(&thread, NULL, answer, NULL) == 0);
	for (int i = 0; i < 1000; i++) {
		back->number++;
		queue_push(&g_ping, &back->node);
		back = pop_waiting(&g_pong);
	}
	pthread_join(thread, NULL);
	ASSERT_EQ(ball.number, 2000);
}

UNIT_SUITE("queue", {"an empty queue", test_empty},
	   {"first in, first out; a push tells whether it was empty", test_order},
	   {"a node may be pushed again after its pop", test_reused_node},
	   {"producers and consumer have lines of their own", test_lines_apart},
	   {"many producers lose nothing and keep their order", test_many_producers},
	   {"writes before a push are seen after the pop", test_ping_pong});
