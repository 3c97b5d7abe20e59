/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_PIECES_H
#define MEM_PIECES_H

/*
 * The list of an iobuf's pieces: two in the iobuf itself, more in an array of a few sizes that each lcore keeps for
 * reuse. Pieces leave at the front by moving head_, and what is before it is used again when the end is reached.
 *
 * An empty iobuf has no array.
 */

#include <xrdma/iobuf.h>

#define PIECES_SMALL 2u

static inline uint32_t
pieces_cap(const struct xr_iobuf *buf)
{
	return buf->pieces_ ? buf->cap_ : PIECES_SMALL;
}

/* The first piece; those behind it follow, and so do the free ones. */
static inline struct xr_iobuf_piece *
pieces_first(const struct xr_iobuf *buf)
{
	const struct xr_iobuf_piece *array = buf->pieces_ ? buf->pieces_ : buf->small_;

	return (struct xr_iobuf_piece *)array + buf->head_;
}

static inline struct xr_iobuf_piece *
pieces_end(const struct xr_iobuf *buf)
{
	return pieces_first(buf) + buf->count_;
}

int pieces_grow(struct xr_iobuf *buf, uint32_t extra);

/* Room for extra more behind the last one. -ENOMEM. */
static inline int
pieces_reserve(struct xr_iobuf *buf, uint32_t extra)
{
	return extra <= pieces_cap(buf) - buf->head_ - buf->count_ ? 0 : pieces_grow(buf, extra);
}

/* Gives the array of an iobuf without pieces back. */
void pieces_release(struct xr_iobuf *buf);

/* Each lcore keeps arrays for reuse; other threads don't. */
void pieces_lcore_init(void);
void pieces_lcore_fini(void);

#endif
