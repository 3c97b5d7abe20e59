/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/tail.h"
#include "mem/user_block.h"
#include <errno.h>

/* A rest of the running block shorter than this is given up rather than split a piece over it. */
#define REST_MIN 256u

static __thread struct {
	struct xr_block *block; /* with a reference of the tail's own; NULL: none yet */
	char *at, *end;
	bool on; /* this thread is an lcore */
} t_tail __attribute__((tls_model("initial-exec")));

static bool
is_only_holder(const struct xr_block *block)
{
	return __atomic_load_n(&block->refs, __ATOMIC_ACQUIRE) == 1;
}

static char *
block_end(struct xr_block *block)
{
	return (char *)block + block_bytes(block->type);
}

static const struct xr_iobuf_piece *
last_piece(const struct xr_iobuf *buf)
{
	return buf->count_ > 0 ? pieces_end(buf) - 1 : NULL;
}

static void
close_running(void)
{
	if (t_tail.block)
		block_drop(t_tail.block);
	t_tail.block = NULL;
	t_tail.at = t_tail.end = NULL;
}

static int
renew_running(void)
{
	struct xr_block *block = block_alloc(BLOCK_DEFAULT);

	if (!block)
		return -ENOMEM;
	close_running();
	t_tail.block = block;
	t_tail.at = block_payload(block);
	t_tail.end = block_end(block);
	return 0;
}

static int
open_running(const struct xr_iobuf *buf, size_t want, struct room *room)
{
	const struct xr_iobuf_piece *last = last_piece(buf);
	bool extends = last && last->block == t_tail.block && last->data + last->len == t_tail.at;
	size_t rest;

	if (t_tail.block && is_only_holder(t_tail.block))
		t_tail.at = block_payload(t_tail.block);
	rest = (size_t)(t_tail.end - t_tail.at);
	if (rest == 0 || (!extends && rest < want && rest < REST_MIN)) {
		if (renew_running() != 0)
			return -ENOMEM;
		extends = false;
		rest = (size_t)(t_tail.end - t_tail.at);
	}
	*room = (struct room){.block = t_tail.block, .data = t_tail.at, .len = rest, .extends = extends};
	return 0;
}

static int
open_own(const struct xr_iobuf *buf, struct room *room)
{
	const struct xr_iobuf_piece *last = last_piece(buf);
	struct xr_block *block;

	if (last && !block_is_user(last->block) && is_only_holder(last->block) &&
	    last->data + last->len < block_end(last->block)) {
		block = last->block;
		*room = (struct room){.block = block, .data = last->data + last->len, .extends = true};
	} else {
		block = block_alloc(BLOCK_DEFAULT);
		if (!block)
			return -ENOMEM;
		*room = (struct room){.block = block, .data = block_payload(block)};
	}
	room->len = (size_t)(block_end(block) - room->data);
	return 0;
}

int
tail_open(const struct xr_iobuf *buf, size_t want, struct room *room)
{
	return t_tail.on ? open_running(buf, want, room) : open_own(buf, room);
}

void
tail_take(const struct room *room, size_t len)
{
	if (!t_tail.on)
		return;
	t_tail.at = room->data + len;
	if (!room->extends)
		block_hold(room->block);
}

void
tail_cancel(const struct room *room)
{
	if (!t_tail.on && !room->extends)
		block_drop(room->block);
}

void
tail_lcore_init(void)
{
	t_tail.on = true;
}

void
tail_lcore_fini(void)
{
	close_running();
	t_tail.on = false;
}
