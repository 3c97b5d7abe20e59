/* SPDX-License-Identifier: Apache-2.0 */
#include "net/output.h"

#include "mem/pieces.h"
#include "mem/user_block.h"

static size_t
smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* What it may pin of the pool; received blocks that are sent on may be of another type than those that are written. */
static size_t
output_share(const struct xr_conn *conn)
{
	struct scarcity *scarcity = &conn->home->scarcity;

	return smaller(scarcity_limits(scarcity, BLOCK_DEFAULT)->of_free,
		       scarcity_limits(scarcity, (enum block_type)conn->in_type)->of_free);
}

/* Blocks of the pool in the queue. Frames go on in the block of the one before, or in the next but one. */
static size_t
queued_pinned(const struct xr_iobuf *out)
{
	const struct xr_block *last = NULL, *last_but_one = NULL;
	size_t bytes = 0;

	for (const struct xr_iobuf_piece *piece = pieces_first(out); piece < pieces_end(out); piece++) {
		if (piece->block == last || piece->block == last_but_one)
			continue;
		last_but_one = last;
		last = piece->block;
		bytes += block_is_user(piece->block) ? 0 : block_bytes((enum block_type)piece->block->type);
	}
	return bytes;
}

/* An empty queue is never at its limit: what it takes leaves without anybody's help. */
static bool
output_over(const struct xr_conn *conn, size_t limit, size_t share)
{
	const struct xr_iobuf *out = &conn->out;

	if (xr_iobuf_size(out) >= limit)
		return xr_iobuf_size(out) > 0;
	share = smaller(share, limit);
	if (xr_iobuf_size(out) <= share && iobuf_pinned_at_most(out, (enum block_type)conn->in_type) <= share)
		return false;
	return xr_iobuf_size(out) > 0 && queued_pinned(out) > share;
}

bool
output_full(struct xr_conn *conn)
{
	if (output_is_short(conn) || !output_over(conn, output_limit(), output_share(conn)))
		return false;
	conn->want_writable = true;
	net_count(NET_OUTPUT_FULL, 1);
	return true;
}

bool
output_half_drained(const struct xr_conn *conn)
{
	return !output_over(conn, output_limit() / 2, output_share(conn) / 2);
}
