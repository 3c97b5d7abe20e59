/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/iobuf.h"
#include "mem/pieces.h"
#include "mem/tail.h"
#include "mem/user_block.h"
#include <errno.h>
#include <string.h>

/* ---- putting in ---- */

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
	tail_append(buf, &room, *done);
	return 0;
}

/* From the end, until size bytes are left. */
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
	pieces_release_if_empty(buf);
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

		pieces_release_if_empty(buf);
		return -error;
	}
	pieces_push(buf, &user->block, data, len);
	return 0;
}

int
xr_iobuf_prepend(struct xr_iobuf *buf, const void *data, size_t len)
{
	struct xr_iobuf front = XR_IOBUF_INIT;
	int status = xr_iobuf_append(&front, data, len);

	if (status == 0)
		status = xr_iobuf_move_front(buf, &front);
	xr_iobuf_clear(&front);
	return status;
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
		pieces_release_if_empty(buf);
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
		.extends = pieces_extends_last(buf, waiting->block, waiting->data),
	};

	if (len == 0) {
		tail_cancel(&room);
		pieces_release_if_empty(buf);
		return;
	}
	tail_append(buf, &room, len);
}

/* ---- taking away ---- */

size_t
xr_iobuf_drop(struct xr_iobuf *buf, size_t len)
{
	size_t left = len < buf->size_ ? len : buf->size_;
	size_t dropped = left;

	/* A free_fn may have cleared it. */
	while (left > 0 && buf->count_ > 0) {
		struct xr_iobuf_piece *first = pieces_first(buf);
		struct xr_block *block = first->block;

		if (first->len > left) {
			pieces_trim_front(buf, left);
			break;
		}
		left -= first->len;
		pieces_pop_front(buf, first->len);
		block_drop(block);
	}
	pieces_release_if_empty(buf);
	return dropped;
}

size_t
xr_iobuf_drop_back(struct xr_iobuf *buf, size_t len)
{
	size_t dropped = len < buf->size_ ? len : buf->size_;

	truncate_to(buf, buf->size_ - dropped);
	return dropped;
}

size_t
xr_iobuf_cut_out(struct xr_iobuf *buf, void *to, size_t len)
{
	return xr_iobuf_drop(buf, xr_iobuf_copy_out(buf, 0, to, len));
}

/* The pieces are no longer the iobuf's when they are dropped: a free_fn may use it again. */
void
xr_iobuf_clear(struct xr_iobuf *buf)
{
	struct xr_iobuf old;

	pieces_hand_over(&old, buf);
	for (const struct xr_iobuf_piece *piece = pieces_first(&old); piece < pieces_end(&old); piece++)
		block_drop(piece->block);
	pieces_release(&old);
}
