/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_SCARCITY_H
#define NET_SCARCITY_H

/*
 * An lcore in want of memory: the limits of this moment (net/share.h), and who waits for what.
 *
 *   hungry    found no block: sockets, receive slots, answers. Each is fed in its turn when blocks have come home
 *   claims    connections with a reservation, or waiting for one
 *   squeezed  connections that hold their peer back because of the pool, though their application has not paused
 *
 * What wakes an lcore is a message: the pool's, when blocks have come home (mem/pressure.h), or another lcore's, when
 * it has granted a reservation. A timer looks after them as well, ten times a second, for memory that came home without
 * anybody telling: from an lcore's cache, or from a thread of the application's.
 */

#include "net/ledger.h"
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>
#include <xrdma/reactor.h>

enum hunger_end {
	HUNGER_OVER,
	HUNGER_SOME, /* it has got something and wants more: others first */
	HUNGER_NONE, /* there is nothing */
};

/* Somebody who waits for blocks. In a list of its lcore, or in none. */
struct hunger {
	struct cds_list_head link;
	enum hunger_end (*feed)(struct hunger *hunger);
};

/* Blocks to receive into come out of the pool's reserve; an application's do not. */
enum hunger_kind {
	HUNGER_ALLOCATE = BLOCK_TYPES, /* a kind below is a type of blocks to receive into */
	HUNGER_KINDS,
};

struct share_limits {
	size_t of_free, of_partial; /* net/share.h */
};

struct scarcity {
	int64_t unseen; /* blocks' bytes that may be taken before the limits are looked at again */
	struct share_limits limits[BLOCK_TYPES];
	size_t of_free;	  /* the least of them: who has less needs no closer look */
	unsigned waiting; /* in the lists below */
	bool woken;	  /* by a message or the timer: look after all of them */
	bool worked;	  /* the last turn did something, and may have set memory free */
	struct cds_list_head hungry[HUNGER_KINDS];
	struct cds_list_head claims, squeezed;
	struct xr_msg wake;
	struct xr_timer long_stop;
};

void scarcity_init(struct scarcity *scarcity);

/* ---- the limits ---- */

/* Looks anew at how much there is. */
void scarcity_look(struct scarcity *scarcity);

/* As of some hundred KiB ago at most. */
static inline const struct share_limits *
scarcity_limits(struct scarcity *scarcity, enum block_type type)
{
	if (__builtin_expect(scarcity->unseen < 0, 0))
		scarcity_look(scarcity);
	return &scarcity->limits[type];
}

/* Blocks were taken to receive into. */
static inline void
scarcity_spend(struct scarcity *scarcity, size_t bytes)
{
	scarcity->unseen -= (int64_t)bytes;
}

/* ---- who waits ---- */

static inline struct hunger hunger_init(enum hunger_end (*feed)(struct hunger *hunger))
{
	return (struct hunger){.feed = feed};
}

static inline bool
hunger_waits(const struct hunger *hunger)
{
	return hunger->link.next != NULL;
}

/* It found none of that kind: at the end of the queue. In it already: it keeps its place. */
void hunger_join(struct hunger *hunger, struct scarcity *scarcity, unsigned kind);

void hunger_leave(struct hunger *hunger, struct scarcity *scarcity);

/* The connection's claim or squeeze begins or ends to be looked after. */
void scarcity_add(struct scarcity *scarcity, struct cds_list_head *entry, struct cds_list_head *list);
void scarcity_del(struct scarcity *scarcity, struct cds_list_head *entry);

/* Feeds them and looks through them; in the deliver step, when one waits. How many it could do something for. */
int scarcity_turn(struct scarcity *scarcity);

/* Whether scarcity_turn() has something to do. */
static inline bool
scarcity_due(const struct scarcity *scarcity)
{
	return __builtin_expect(scarcity->waiting > 0, 0) && (scarcity->woken || scarcity->worked);
}

/* On this lcore, or for a reservation on any. */
static inline bool
scarcity_somebody_waits(const struct scarcity *scarcity)
{
	return __builtin_expect(scarcity->waiting || ledgers_waited_for(), 0);
}

/* The turn has done something, and may have set memory free. */
void scarcity_worked(struct scarcity *scarcity);

/* Has the lcore look after who waits. Any thread. */
void scarcity_wake(unsigned lcore_index);

#endif
