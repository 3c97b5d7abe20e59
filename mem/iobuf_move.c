/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/iobuf.h"
#include "mem/pieces.h"
#include <errno.h>
#include <string.h>

int
iobuf_append_block(struct xr_iobuf *buf, struct xr_block *block, char *data, size_t len)
{
	if (pieces_extends_last(buf, block, data)) {
		pieces_extend_last(buf, len);
		block_drop(block);
		return 0;
	}
	if (pieces_reserve(buf, 1) != 0)
		return -ENOMEM;
	pieces_push(buf, block, data, len);
	return 0;
}

/* To bytes that stay where they are; into room that pieces_reserve() made. */
static inline void
refer(struct xr_iobuf *to, struct xr_block *block, char *data, size_t len)
{
	if (pieces_extends_last(to, block, data)) {
		pieces_extend_last(to, len);
		return;
	}
	block_hold(block);
	pieces_push(to, block, data, len);
}

/* How many pieces the bytes lie in, the first of them from in_first on. */
static uint32_t
pieces_with(const struct xr_iobuf_piece *first, size_t in_first, size_t len)
{
	const struct xr_iobuf_piece *piece = first;

	for (size_t end = in_first + len; end > piece->len; piece++)
		end -= piece->len;
	return (uint32_t)(piece - first) + 1;
}

/* A part of from's first piece, which keeps the rest. */
static int
move_part(struct xr_iobuf *to, struct xr_iobuf *from, size_t len)
{
	const struct xr_iobuf_piece *piece = pieces_first(from);

	if (pieces_extends_last(to, piece->block, piece->data)) {
		pieces_extend_last(to, len);
	} else {
		if (pieces_reserve(to, 1) != 0)
			return -ENOMEM;
		block_hold(piece->block);
		pieces_push(to, piece->block, piece->data, len);
	}
	pieces_trim_front(from, len);
	return 0;
}

static int
move_piece(struct xr_iobuf *to, struct xr_iobuf *from)
{
	const struct xr_iobuf_piece *piece = pieces_first(from);
	int status = iobuf_append_block(to, piece->block, piece->data, piece->len);

	if (status != 0)
		return status;
	pieces_pop_front(from, piece->len);
	return 0;
}

/*
 * len bytes, at least one piece of them whole; all or none. Out of line: a message that is cut out of a piece should
 * not save this one's registers.
 */
__attribute__((noinline)) static size_t
move_pieces(struct xr_iobuf *to, struct xr_iobuf *from, size_t len)
{
	size_t left = len;

	if (pieces_reserve(to, pieces_with(pieces_first(from), 0, len)) != 0)
		return 0;
	while (left > 0) {
		const struct xr_iobuf_piece *piece = pieces_first(from);

		if (piece->len > left) {
			refer(to, piece->block, piece->data, left);
			pieces_trim_front(from, left);
			break;
		}
		left -= piece->len;
		move_piece(to, from);
	}
	pieces_release_if_empty(from);
	return len;
}

size_t
xr_iobuf_cut(struct xr_iobuf *from, size_t len, struct xr_iobuf *to)
{
	size_t before = from->size_;

	if (from == to)
		return 0;
	if (len >= before) {
		if (to->count_ == 0) {
			pieces_hand_over(to, from);
			return before;
		}
		len = before;
	}
	if (len == 0)
		return 0;
	if (len < pieces_first(from)->len)
		return move_part(to, from, len) == 0 ? len : 0;
	return move_pieces(to, from, len);
}

int
xr_iobuf_move(struct xr_iobuf *to, struct xr_iobuf *from)
{
	if (from == to)
		return 0;
	if (to->count_ == 0) {
		pieces_hand_over(to, from);
		return 0;
	}
	if (pieces_reserve(to, from->count_) != 0)
		return -ENOMEM;
	while (from->count_ > 0)
		move_piece(to, from);
	pieces_release_if_empty(from);
	return 0;
}

/* When from ends right where to begins, in the same block, the last of from becomes a part of the first of to. */
static void
join_front(struct xr_iobuf *to, struct xr_iobuf *from)
{
	const struct xr_iobuf_piece *last = pieces_end(from) - 1;
	struct xr_iobuf_piece *first = pieces_first(to);

	if (last->block != first->block || last->data + last->len != first->data)
		return;
	first->data = last->data;
	first->len += last->len;
	to->size_ += last->len;
	from->size_ -= last->len;
	from->count_--;
	block_drop(last->block);
}

int
xr_iobuf_move_front(struct xr_iobuf *to, struct xr_iobuf *from)
{
	if (from == to || from->count_ == 0)
		return 0;
	if (to->count_ == 0) {
		pieces_hand_over(to, from);
		return 0;
	}
	if (pieces_reserve_front(to, from->count_) != 0)
		return -ENOMEM;
	join_front(to, from);
	to->head_ -= from->count_;
	to->count_ += from->count_;
	to->size_ += from->size_;
	memcpy(pieces_first(to), pieces_first(from), from->count_ * sizeof(struct xr_iobuf_piece));
	from->count_ = 0;
	from->size_ = 0;
	pieces_release(from);
	return 0;
}

static int
share_with_itself(struct xr_iobuf *buf)
{
	struct xr_iobuf copy = XR_IOBUF_INIT;
	int status = xr_iobuf_share(&copy, buf);

	if (status == 0)
		status = xr_iobuf_move(buf, &copy);
	xr_iobuf_clear(&copy);
	return status;
}

int
xr_iobuf_share(struct xr_iobuf *to, const struct xr_iobuf *from)
{
	if (to == from)
		return share_with_itself(to);
	if (pieces_reserve(to, from->count_) != 0)
		return -ENOMEM;
	for (const struct xr_iobuf_piece *piece = pieces_first(from); piece < pieces_end(from); piece++)
		refer(to, piece->block, piece->data, piece->len);
	return 0;
}

static int
share_bytes(struct xr_iobuf *to, const struct xr_iobuf *from, size_t offset, size_t len)
{
	const struct xr_iobuf_piece *piece = pieces_seek(from, &offset);

	if (pieces_reserve(to, pieces_with(piece, offset, len)) != 0)
		return -ENOMEM;
	for (; len > 0; piece++, offset = 0) {
		size_t n = piece->len - offset < len ? piece->len - offset : len;

		refer(to, piece->block, piece->data + offset, n);
		len -= n;
	}
	return 0;
}

ssize_t
xr_iobuf_share_part(struct xr_iobuf *to, const struct xr_iobuf *from, size_t offset, size_t len)
{
	struct xr_iobuf part = XR_IOBUF_INIT;
	int status;

	if (offset >= from->size_ || len == 0)
		return 0;
	if (len > from->size_ - offset)
		len = from->size_ - offset;
	status = share_bytes(to == from ? &part : to, from, offset, len);
	if (status == 0 && to == from)
		status = xr_iobuf_move(to, &part);
	xr_iobuf_clear(&part);
	return status == 0 ? (ssize_t)len : status;
}
