/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_MAILBOX_H
#define POLL_MAILBOX_H

/*
 * Messages from any thread to one reactor, and the bell that wakes it. The gate counts the producers that are inside
 * mailbox_post() and holds the closed bit, so that closing knows when the last message has come in.
 */

#include "core/queue.h"
#include "poll/source.h"
#include <xrdma/reactor.h>

struct mailbox {
	struct source source;
	struct queue queue;
	/* The line that every producer writes anyway; the owner writes it only around a sleep. */
	uint32_t gate __attribute__((aligned(64)));
	uint32_t sleeping; /* the owner sleeps or is about to: the producer that takes this back rings */
	int bell;	   /* eventfd, in the owner's epoll set */
};

/* 0, or eventfd's -EMFILE, -ENFILE, -ENOMEM, -ENODEV. */
int mailbox_init(struct mailbox *mailbox);

/* Closed, emptied and with its owner joined. */
void mailbox_fini(struct mailbox *mailbox);

/* Any thread. 0, -EALREADY, -ESHUTDOWN. */
int mailbox_post(struct mailbox *mailbox, struct xr_msg *msg);

/* Rings whether or not the owner sleeps. Any thread, async-signal-safe. */
void mailbox_ring(struct mailbox *mailbox);

/* The owner's announcement; with true the caller puts a full fence behind it. */
void mailbox_set_sleeping(struct mailbox *mailbox, bool sleeping);

/* Whether a message is here that nobody has rung for or is about to ring for. Owner, while it is set to sleep. */
bool mailbox_overslept(struct mailbox *mailbox);

/* Lets no further message in, waits for the producers that are inside, and runs what is left with -ECANCELED. */
void mailbox_close(struct mailbox *mailbox);

#endif
