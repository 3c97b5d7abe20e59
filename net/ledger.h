/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_LEDGER_H
#define NET_LEDGER_H

/*
 * What all lcores of a NUMA node keep of a pool together, for net/share.h: who waits for a reservation, and the sums.
 * Its lock is taken when a message with a reservation begins and ends, and by no other message.
 *
 * Every call is made on a worker, about the pool of its node.
 */

#include "net/reservation.h"
#include <stdint.h>

struct net_lcore;

enum claim_state {
	CLAIM_NONE,
	CLAIM_WAITING,
	CLAIM_GRANTED,
};

/* A reservation and whose it is. The lcore's own, but for the state, which turns to granted on any. */
struct claim {
	struct reservation reservation;
	struct net_lcore *home;
	uint8_t state; /* enum claim_state */
	uint8_t type;  /* enum block_type */
	size_t need;   /* bytes of the whole message */
	size_t open;   /* bytes of blocks that have not come; when granted they are promised */
};

/* An lcore's part of the sums of each pool: written by it, and by who grants; read by all. */
struct ledger_sums {
	size_t promised[BLOCK_TYPES], partial[BLOCK_TYPES];
} __attribute__((aligned(64)));

int ledgers_init(void); /* -ENOMEM */
void ledgers_fini(void);

/* The pool as it is. */
void ledger_look(enum block_type type, struct share_pool *pool);

/*
 * Asks for the blocks of the rest of a message; true: granted at once. Else the home's scarcity_wake() follows when it
 * is. Whether it fits is judged by the whole message, which will be used as long as its rest: by the rests alone, late
 * ones of large messages take what is to be left to smaller ones.
 */
bool ledger_ask(struct claim *claim, size_t whole, size_t rest, bool urgent);

static inline enum claim_state
claim_state(const struct claim *claim)
{
	return (enum claim_state)__atomic_load_n(&claim->state, __ATOMIC_ACQUIRE);
}

static inline bool
ledger_granted(const struct claim *claim)
{
	return claim_state(claim) == CLAIM_GRANTED;
}

/* Of a granted claim so much has still to come. */
void ledger_progress(struct claim *claim, size_t open);

/* A claim that waits or was granted is over; others may be granted. */
void ledger_end(struct claim *claim);

/* Whether somebody waits for a reservation, of any pool; and of the calling lcore's. */
extern unsigned g_ledgers_waiting;

static inline bool
ledgers_waited_for(void)
{
	return __atomic_load_n(&g_ledgers_waiting, __ATOMIC_RELAXED) > 0;
}

bool ledger_waited_for(enum block_type type);

/* Memory may have come home: grants what can be. */
void ledger_review(enum block_type type);

/* Receive slots of the type have taken so many bytes, or have given them back. Any lcore of the node. */
void ledger_count_receives(enum block_type type, size_t more, size_t less);

#endif
