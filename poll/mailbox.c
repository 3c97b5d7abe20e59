/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/mailbox.h"

#include "core/lcore.h"
#include "poll/reactor_private.h"
#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAILBOX_BATCH 64 /* messages run in one turn */

#define GATE_CLOSED (1u << 31) /* the bits below count the producers inside */

_Static_assert(sizeof(struct queue_node) == sizeof(((struct xr_msg *)0)->node_), "a message embeds a queue node");

static struct queue_node *
node_of(struct xr_msg *msg)
{
	return (struct queue_node *)&msg->node_;
}

static struct xr_msg *
msg_of(struct queue_node *node)
{
	return (struct xr_msg *)((char *)node - offsetof(struct xr_msg, node_));
}

static bool
gate_enter(struct mailbox *mailbox)
{
	if (!(__atomic_fetch_add(&mailbox->gate, 1, __ATOMIC_ACQ_REL) & GATE_CLOSED))
		return true;
	__atomic_fetch_sub(&mailbox->gate, 1, __ATOMIC_RELEASE);
	return false;
}

static void
gate_leave(struct mailbox *mailbox)
{
	__atomic_fetch_sub(&mailbox->gate, 1, __ATOMIC_RELEASE);
}

/*
 * After this nobody will come in, and everything that was let in is in the queue and has rung: a producer inside is a
 * few instructions, at most one write(), away from leaving, unless it lost its processor.
 */
static void
gate_close(struct mailbox *mailbox)
{
	__atomic_fetch_or(&mailbox->gate, GATE_CLOSED, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&mailbox->gate, __ATOMIC_ACQUIRE) != GATE_CLOSED)
		sched_yield();
}

void
mailbox_ring(struct mailbox *mailbox)
{
	const uint64_t one = 1;
	ssize_t written = write(mailbox->bell, &one, sizeof one);

	/* It fails only when 2^64 - 2 rings have piled up. */
	(void)written;
}

/* Of all producers that find the owner asleep one rings. */
static void
wake_sleeper(struct mailbox *mailbox)
{
	if (!__atomic_load_n(&mailbox->sleeping, __ATOMIC_RELAXED))
		return;
	if (!__atomic_exchange_n(&mailbox->sleeping, 0, __ATOMIC_RELAXED))
		return;
	mailbox_ring(mailbox);
	stat_add(STAT_POSTS_WOKE, 1);
}

int
mailbox_post(struct mailbox *mailbox, struct xr_msg *msg)
{
	int error = 0;

	if (!gate_enter(mailbox))
		return -ESHUTDOWN;
	/*
	 * An exchange, not a compare-and-exchange: also the poster that comes too late writes, and by the owner's
	 * exchange in run() its earlier stores are seen by the function that is still to run.
	 */
	if (__atomic_exchange_n(&msg->queued_, 1, __ATOMIC_ACQ_REL)) {
		error = -EALREADY;
	} else {
		queue_push(&mailbox->queue, node_of(msg));
		/* Push before looking at sleeping; the owner sets sleeping before looking at the queue (wait.c). */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		wake_sleeper(mailbox);
	}
	gate_leave(mailbox);
	return error;
}

void
mailbox_set_sleeping(struct mailbox *mailbox, bool sleeping)
{
	__atomic_store_n(&mailbox->sleeping, sleeping, __ATOMIC_RELAXED);
}

bool
mailbox_overslept(struct mailbox *mailbox)
{
	/* In this order: the producer of a message seen is inside still, or it has taken sleeping back. */
	return !queue_empty(&mailbox->queue) && __atomic_load_n(&mailbox->gate, __ATOMIC_ACQUIRE) == 0 &&
	       __atomic_load_n(&mailbox->sleeping, __ATOMIC_RELAXED);
}

static void
run(struct xr_msg *msg, int status)
{
	/* Before fn, which may post the message again or free it. */
	__atomic_exchange_n(&msg->queued_, 0, __ATOMIC_ACQ_REL);
	CALLBACK(msg->fn, msg->fn(msg, status));
}

static int
mailbox_poll(struct source *source, struct reactor *reactor)
{
	struct mailbox *mailbox = cds_list_entry(source, struct mailbox, source);
	enum queue_pop_result result = QUEUE_EMPTY;
	struct queue_node *node;
	int count = 0;

	(void)reactor;
	while (count < MAILBOX_BATCH && (result = queue_pop(&mailbox->queue, &node)) == QUEUE_GOT) {
		run(msg_of(node), 0);
		count++;
	}
	if (count)
		stat_add(STAT_MESSAGES, (uint64_t)count);
	/* A message that is only half pushed is work: its producer may have looked at sleeping already. */
	return result == QUEUE_BUSY ? count + 1 : count;
}

void
mailbox_close(struct mailbox *mailbox)
{
	enum queue_pop_result result;
	struct queue_node *node;

	gate_close(mailbox);
	while ((result = queue_pop(&mailbox->queue, &node)) != QUEUE_EMPTY) {
		if (result == QUEUE_GOT)
			run(msg_of(node), -ECANCELED);
	}
}

/* Nothing to arm: the sleeping flag is the mailbox's arm, and it comes before every source's. */
static const struct source_ops g_mailbox_ops = {.poll = mailbox_poll};

int
mailbox_init(struct mailbox *mailbox)
{
	mailbox->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (mailbox->bell < 0)
		return -errno;
	queue_init(&mailbox->queue);
	mailbox->gate = 0;
	mailbox->sleeping = 0;
	mailbox->source = (struct source){.name = "mailbox", .ops = &g_mailbox_ops, .stage = SOURCE_MAILBOX};
	return 0;
}

void
mailbox_fini(struct mailbox *mailbox)
{
	close(mailbox->bell);
}

XR_API int
xr_post(unsigned lcore, struct xr_msg *msg)
{
	const struct lcore *to = lcore_find(lcore);

	if (!to)
		return -EINVAL;
	return mailbox_post(&reactor_of(to)->mailbox, msg);
}
