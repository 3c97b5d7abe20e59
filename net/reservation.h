/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RESERVATION_H
#define NET_RESERVATION_H

/*
 * The order in which messages that are not whole get reservations of a pool: first come, first served. No lock and no
 * lcore in here (net/ledger.h has them); what fits is net/share.h's to say.
 *
 * Answers to what this side has asked for are urgent: a server's requests may wait for its backends' answers, never
 * those for requests. So they go first, and have room of their own.
 *
 * As long as some have a reservation, the first in the queue is waited for, so that a large one is not passed by for
 * ever. When none has, what is missing is in the applications' hands or on its way to peers, and whoever fits goes.
 */

#include "net/share.h"
#include <urcu/list.h>

struct reservation {
	struct cds_list_head link;
	size_t bytes; /* blocks that were to come when it was asked for */
	bool urgent;
};

struct reservations {
	struct cds_list_head urgent, others; /* who waits, the first come first */
	unsigned waiting, granted;
};

void reservations_init(struct reservations *all);

void reservations_ask(struct reservations *all, struct reservation *new);

/* It has been granted and is over, or it does not wait any more. */
void reservations_end(struct reservations *all, struct reservation *old, bool granted);

/* Grants the next one; NULL: none can be. The caller counts what it has promised before it calls again. */
struct reservation *reservations_grant(struct reservations *all, const struct share_pool *pool);

#endif
