/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_RECV_H
#define NET_VERBS_RECV_H

/*
 * The receiving half: slots of the receive queue, each with a block that the card writes to. A message goes to conn->in
 * in that very block and the slot gets a fresh one; or it is copied and the slot keeps its block. doc/flow.md has the
 * rules; what is owed to the peer is counted in struct credit.
 */

#include "mem/block.h"
#include "net/scarcity.h"
#include "net/verbs/credit.h"
#include "net/verbs/spill.h"
#include <infiniband/verbs.h>
#include <xrdma/iobuf.h>

struct endpoint;

struct receiver {
	struct credit credit;
	struct xr_block **blocks; /* of each slot; NULL: it is starved */
	uint16_t *idle; /* slots that the card does not have: from the front to be posted, from the back starved */
	uint16_t slots;
	uint16_t posted;       /* the card has these */
	uint16_t ready;	       /* of idle, to be posted */
	uint16_t messages;     /* of those, how many carried payload */
	uint16_t starved;      /* of idle */
	uint8_t type;	       /* enum block_type */
	uint32_t copy_below;   /* bytes; as of the last recv_review() */
	size_t pin_limit;      /* bytes of blocks that the input may pin before short messages are copied */
	size_t arrived;	       /* bytes appended to conn->in in this batch */
	size_t counted;	       /* bytes of its slots, in the pool's ledger */
	struct xr_iobuf early; /* came before the handshake had ended */
	struct spill *spill;   /* memory for when the pool has none; NULL: none so far */
	struct hunger hunger;  /* while a slot is starved */
	uint64_t starved_us;   /* since when it has had no block, or since that was told */
};

/* Gets a block for each slot; blocks and idle are room for that many. -ENOMEM: it has none. */
int recv_init(struct receiver *recv, enum block_type type, uint16_t slots, struct xr_block **blocks, uint16_t *idle);

/* The card has no use for any of its memory any more. */
void recv_clear(struct receiver *recv);

/* Posts the slots that wait for it, as one chain or few, and counts their messages as unreported. A negative errno. */
int recv_post(struct endpoint *endpoint);

/* A receive has completed. A negative errno after fault_note(). */
int recv_completed(struct endpoint *endpoint, const struct ibv_wc *wc);

/* The poll is over: posts, tells the connection what has come. A negative errno after fault_note(). */
int recv_batch_end(struct endpoint *endpoint);

/* The handshake has ended: what came early is conn->in from now on. -ENOMEM. */
int recv_open(struct endpoint *endpoint);

/* The application has taken input, or conn->hold_input has changed: what may be reported is counted anew. */
void recv_review(struct endpoint *endpoint);

#endif
