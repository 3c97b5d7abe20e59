/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_TAIL_H
#define MEM_TAIL_H

/*
 * Where appended bytes go. An lcore has one running block for all its iobufs, so that small messages share one, and
 * begins it anew when nobody but the lcore holds it any more. A thread without an lcore goes on behind the iobuf's own
 * last piece when that block is nobody else's, else it takes a fresh one.
 */

#include "mem/block.h"
#include "mem/pieces.h"

struct room {
	struct xr_block *block;
	char *data;
	size_t len;
	bool extends; /* it lies right behind the iobuf's last piece */
};

/* Room of at least one byte for an iobuf that has want bytes to append. -ENOMEM. */
int tail_open(const struct xr_iobuf *buf, size_t want, struct room *room);

/*
 * The first len bytes of the room are used: what lies behind them is the next room. Unless it extends the last piece,
 * the caller owns one reference to the block, for the new piece.
 */
void tail_take(const struct room *room, size_t len);

/* Likewise, as the iobuf's next bytes. Unless it extends the last piece, pieces_reserve() made room for one. */
static inline void
tail_append(struct xr_iobuf *buf, const struct room *room, size_t len)
{
	tail_take(room, len);
	if (room->extends)
		pieces_extend_last(buf, len);
	else
		pieces_push(buf, room->block, room->data, len);
}

/* Nothing of the room is used. */
void tail_cancel(const struct room *room);

void tail_lcore_init(void);
void tail_lcore_fini(void);

#endif
