/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/iobuf.h"
#include "mem/pieces.h"
#include "mem/tail.h"
#include "mem/user_block.h"
#include <errno.h>
#include <string.h>

/* Adding pieces at the end. */

/* A piece that lies right behind the last one in the same block needs no entry and no reference of its own. */
static bool
extends_last(const struct xr_iobuf *buf, const struct xr_block *block, const char *data)
{
	const struct xr_iobuf_piece *last;

	if (buf->count_ == 0)
		return false;
	last = pieces_end(buf) - 1;
	return last->block == block && last->data + last->len == data;
}

static void
extend_last(struct xr_iobuf *buf, size_t len)
{
	pieces_end(buf)[-1].len += len;
	buf->size_ += len;
}

/* Into room that pieces_reserve() made; takes over a reference. */
static void
push(struct xr_iobuf *buf, struct xr_block *block, char *data, size_t len)
{
	struct xr_iobuf_piece *piece = pieces_end(buf);

	piece->block = block;
	piece->data = data;
	piece->len = len;
	buf->count_++;
	buf->size_ += len;
}

int
iobuf_append_block(struct xr_iobuf *buf, struct xr_block *block, char *data, size_t len)
{
	if (extends_last(buf, block, data)) {
		extend_last(buf, len);
		block_drop(block);
		return 0;
	}
	if (pieces_reserve(buf, 1) != 0)
		return -ENOMEM;
	push(buf, block, data, len);
	return 0;
}

/* Taking pieces away. */

static void
release_if_empty(struct xr_iobuf *buf)
{
	if (buf->count_ == 0)
		pieces_release(buf);
}

static void
pop_front(struct xr_iobuf *buf)
{
	buf->head_++;
	buf->count_--;
}

static void
trim_front(struct xr_iobuf *buf, size_t len)
{
	struct xr_iobuf_piece *first = pieces_first(buf);

	first->data += len;
	first->len -= len;
	buf->size_ -= len;
}

/* Back to size bytes, as before an append that failed half way. */
static void
truncate_to(struct xr_iobuf *buf, size_t size)
{
	while (buf->size_ > size) {
		struct xr_iobuf_piece *last = pieces_end(buf) - 1;
		size_t surplus = buf->size_ - size;

		if (last->len > surplus) {
			last->len -= surplus;
			buf->size_ = size;
			break;
		}
		buf->size_ -= last->len;
		buf->count_--;
		block_drop(last->block);
	}
	release_if_empty(buf);
}

/* Appending bytes. */

static int
append_some(struct xr_iobuf *buf, const char *data, size_t len, size_t *done)
{
	struct room room;

	if (tail_open(buf, len, &room) != 0)
		return -ENOMEM;
	if (!room.extends && pieces_reserve(buf, 1) != 0) {
		tail_cancel(&room);
		return -ENOMEM;
	}
	*done = room.len < len ? room.len : len;
	memcpy(room.data, data, *done);
	tail_take(&room, *done);
	if (room.extends)
		extend_last(buf, *done);
	else
		push(buf, room.block, room.data, *done);
	return 0;
}

int
xr_iobuf_append(struct xr_iobuf *buf, const void *data, size_t len)
{
	size_t before = buf->size_;
	size_t done;

	for (const char *at = data; len > 0; at += done, len -= done) {
		if (append_some(buf, at, len, &done) != 0) {
			truncate_to(buf, before);
			return -ENOMEM;
		}
	}
	return 0;
}

int
xr_iobuf_append_user(struct xr_iobuf *buf, void *data, size_t len, xr_mem_key key, xr_free_fn *free_fn, void *arg)
{
	struct user_block *user;

	if (len == 0 || !data)
		return -EINVAL;
	if (pieces_reserve(buf, 1) != 0)
		return -ENOMEM;
	user = user_block_create(data, len, key, free_fn, arg);
	if (!user) {
		int error = errno;

		release_if_empty(buf);
		return -error;
	}
	push(buf, &user->block, data, len);
	return 0;
}

/* The room waits behind the last piece, in an entry that does not count yet. */
void *
xr_iobuf_reserve(struct xr_iobuf *buf, size_t want, size_t *got)
{
	struct room room;

	if (want == 0) {
		errno = EINVAL;
		return NULL;
	}
	if (pieces_reserve(buf, 1) != 0 || tail_open(buf, want, &room) != 0) {
		release_if_empty(buf);
		errno = ENOMEM;
		return NULL;
	}
	*got = room.len < want ? room.len : want;
	*pieces_end(buf) = (struct xr_iobuf_piece){.block = room.block, .data = room.data, .len = room.len};
	return room.data;
}

void
xr_iobuf_commit(struct xr_iobuf *buf, size_t len)
{
	const struct xr_iobuf_piece *waiting = pieces_end(buf);
	struct room room = {
		.block = waiting->block,
		.data = waiting->data,
		.len = waiting->len,
		.extends = extends_last(buf, waiting->block, waiting->data),
	};

	if (len == 0) {
		tail_cancel(&room);
		release_if_empty(buf);
		return;
	}
	tail_take(&room, len);
	if (room.extends)
		extend_last(buf, len);
	else
		push(buf, room.block, room.data, len);
}

/* From one iobuf to another. */

/* The whole of from becomes the whole of to, which has no piece. */
static void
hand_over(struct xr_iobuf *to, struct xr_iobuf *from)
{
	*to = *from;
	*from = (struct xr_iobuf)XR_IOBUF_INIT;
}

/* A part of from's first piece, which keeps the rest. */
static int
move_part(struct xr_iobuf *to, struct xr_iobuf *from, size_t len)
{
	const struct xr_iobuf_piece *piece = pieces_first(from);

	if (extends_last(to, piece->block, piece->data)) {
		extend_last(to, len);
	} else {
		if (pieces_reserve(to, 1) != 0)
			return -ENOMEM;
		block_hold(piece->block);
		push(to, piece->block, piece->data, len);
	}
	trim_front(from, len);
	return 0;
}

static int
move_piece(struct xr_iobuf *to, struct xr_iobuf *from)
{
	const struct xr_iobuf_piece *piece = pieces_first(from);
	int status = iobuf_append_block(to, piece->block, piece->data, piece->len);

	if (status != 0)
		return status;
	from->size_ -= piece->len;
	pop_front(from);
	return 0;
}

size_t
xr_iobuf_cut(struct xr_iobuf *from, size_t len, struct xr_iobuf *to)
{
	size_t before = from->size_, left;

	if (from == to)
		return 0;
	if (len >= before && to->count_ == 0) {
		hand_over(to, from);
		return before;
	}
	left = len < before ? len : before;
	while (left > 0) {
		size_t piece = pieces_first(from)->len;

		if (piece > left) {
			move_part(to, from, left);
			break;
		}
		if (move_piece(to, from) != 0)
			break;
		left -= piece;
	}
	release_if_empty(from);
	return before - from->size_;
}

int
xr_iobuf_move(struct xr_iobuf *to, struct xr_iobuf *from)
{
	if (from == to)
		return 0;
	if (to->count_ == 0) {
		hand_over(to, from);
		return 0;
	}
	if (pieces_reserve(to, from->count_) != 0)
		return -ENOMEM;
	while (from->count_ > 0)
		move_piece(to, from);
	release_if_empty(from);
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
	for (const struct xr_iobuf_piece *piece = pieces_first(from); piece < pieces_end(from); piece++) {
		if (extends_last(to, piece->block, piece->data)) {
			extend_last(to, piece->len);
			continue;
		}
		block_hold(piece->block);
		push(to, piece->block, piece->data, piece->len);
	}
	return 0;
}

size_t
xr_iobuf_drop(struct xr_iobuf *buf, size_t len)
{
	size_t left = len < buf->size_ ? len : buf->size_;
	size_t dropped = left;

	while (left > 0) {
		struct xr_iobuf_piece *first = pieces_first(buf);
		struct xr_block *block = first->block;

		if (first->len > left) {
			trim_front(buf, left);
			break;
		}
		left -= first->len;
		buf->size_ -= first->len;
		pop_front(buf);
		block_drop(block);
	}
	release_if_empty(buf);
	return dropped;
}

/* The pieces are no longer the iobuf's when they are dropped: a free_fn may use it again. */
void
xr_iobuf_clear(struct xr_iobuf *buf)
{
	struct xr_iobuf old;

	hand_over(&old, buf);
	for (const struct xr_iobuf_piece *piece = pieces_first(&old); piece < pieces_end(&old); piece++)
		block_drop(piece->block);
	pieces_release(&old);
}

/* Looking at the bytes. */

/* The piece that *offset lies in; *offset becomes the offset in the piece. The end when there is none. */
static const struct xr_iobuf_piece *
seek(const struct xr_iobuf *buf, size_t *offset)
{
	const struct xr_iobuf_piece *piece = pieces_first(buf);

	for (; piece < pieces_end(buf) && *offset >= piece->len; piece++)
		*offset -= piece->len;
	return piece;
}

size_t
xr_iobuf_copy_out(const struct xr_iobuf *buf, size_t offset, void *to, size_t len)
{
	const struct xr_iobuf_piece *piece = seek(buf, &offset);
	size_t done = 0;

	for (; piece < pieces_end(buf) && done < len; piece++, offset = 0) {
		size_t n = piece->len - offset;

		if (n > len - done)
			n = len - done;
		memcpy((char *)to + done, piece->data + offset, n);
		done += n;
	}
	return done;
}

int
xr_iobuf_iovec(const struct xr_iobuf *buf, size_t offset, struct iovec *iov, int max)
{
	const struct xr_iobuf_piece *piece = seek(buf, &offset);
	int count = 0;

	for (; piece < pieces_end(buf) && count < max; piece++, offset = 0) {
		iov[count].iov_base = piece->data + offset;
		iov[count].iov_len = piece->len - offset;
		count++;
	}
	return count;
}

bool
xr_iobuf_equal(const struct xr_iobuf *a, const struct xr_iobuf *b)
{
	const struct xr_iobuf_piece *pa = pieces_first(a), *pb = pieces_first(b);
	size_t in_a = 0, in_b = 0;

	if (a->size_ != b->size_)
		return false;
	while (pa < pieces_end(a)) {
		size_t n = pa->len - in_a < pb->len - in_b ? pa->len - in_a : pb->len - in_b;

		if (memcmp(pa->data + in_a, pb->data + in_b, n) != 0)
			return false;
		in_a += n;
		in_b += n;
		if (in_a == pa->len) {
			pa++;
			in_a = 0;
		}
		if (in_b == pb->len) {
			pb++;
			in_b = 0;
		}
	}
	return true;
}

size_t
iobuf_pinned_bytes(const struct xr_iobuf *buf)
{
	size_t bytes = 0;

	for (const struct xr_iobuf_piece *piece = pieces_first(buf); piece < pieces_end(buf); piece++)
		bytes += block_is_user(piece->block) ? piece->len : block_bytes(piece->block->type);
	return bytes;
}

size_t
iobuf_pool_bytes(const struct xr_iobuf *buf)
{
	size_t bytes = 0;

	for (const struct xr_iobuf_piece *piece = pieces_first(buf); piece < pieces_end(buf); piece++)
		bytes += block_is_user(piece->block) ? 0 : block_bytes(piece->block->type);
	return bytes;
}
