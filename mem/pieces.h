/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_PIECES_H
#define MEM_PIECES_H

/*
 * The list of an iobuf's pieces: two in the iobuf itself, more in an array of a few sizes that each lcore keeps for
 * reuse. Pieces leave at the front by moving head_, and what is before it is used again when the end is reached, or
 * when pieces are put in front.
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

/* The piece that *offset lies in; *offset becomes the offset in the piece. The end when there is none. */
static inline const struct xr_iobuf_piece *
pieces_seek(const struct xr_iobuf *buf, size_t *offset)
{
	const struct xr_iobuf_piece *piece = pieces_first(buf);

	for (; piece < pieces_end(buf) && *offset >= piece->len; piece++)
		*offset -= piece->len;
	return piece;
}

int pieces_grow(struct xr_iobuf *buf, uint32_t extra);

/* Room for extra more behind the last one. -ENOMEM. */
static inline int
pieces_reserve(struct xr_iobuf *buf, uint32_t extra)
{
	return extra <= pieces_cap(buf) - buf->head_ - buf->count_ ? 0 : pieces_grow(buf, extra);
}

int pieces_grow_front(struct xr_iobuf *buf, uint32_t extra);

/* Room for extra more in front of the first one. -ENOMEM. */
static inline int
pieces_reserve_front(struct xr_iobuf *buf, uint32_t extra)
{
	return extra <= buf->head_ ? 0 : pieces_grow_front(buf, extra);
}

/* Gives the array of an iobuf without pieces back. */
void pieces_release(struct xr_iobuf *buf);

static inline void
pieces_release_if_empty(struct xr_iobuf *buf)
{
	if (buf->count_ == 0)
		pieces_release(buf);
}

/* A piece that lies right behind the last one in the same block needs no entry and no reference of its own. */
static inline bool
pieces_extends_last(const struct xr_iobuf *buf, const struct xr_block *block, const char *data)
{
	const struct xr_iobuf_piece *last;

	if (buf->count_ == 0)
		return false;
	last = pieces_end(buf) - 1;
	return last->block == block && last->data + last->len == data;
}

static inline void
pieces_extend_last(struct xr_iobuf *buf, size_t len)
{
	pieces_end(buf)[-1].len += len;
	buf->size_ += len;
}

/* Into room that pieces_reserve() made; takes over a reference. */
static inline void
pieces_push(struct xr_iobuf *buf, struct xr_block *block, char *data, size_t len)
{
	struct xr_iobuf_piece *piece = pieces_end(buf);

	piece->block = block;
	piece->data = data;
	piece->len = len;
	buf->count_++;
	buf->size_ += len;
}

/* The first piece, of len bytes, leaves, and its reference with it. */
static inline void
pieces_pop_front(struct xr_iobuf *buf, size_t len)
{
	buf->size_ -= len;
	buf->head_++;
	buf->count_--;
}

static inline void
pieces_trim_front(struct xr_iobuf *buf, size_t len)
{
	struct xr_iobuf_piece *first = pieces_first(buf);

	first->data += len;
	first->len -= len;
	buf->size_ -= len;
}

/* The whole of from becomes the whole of to, which has no piece. */
static inline void
pieces_hand_over(struct xr_iobuf *to, struct xr_iobuf *from)
{
	*to = *from;
	*from = (struct xr_iobuf)XR_IOBUF_INIT;
}

/* Each lcore keeps arrays for reuse; other threads don't. */
void pieces_lcore_init(void);
void pieces_lcore_fini(void);

#endif
