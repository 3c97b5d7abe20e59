/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rx.h"
#include <string.h>

static bool
refill(struct rx *rx, unsigned blocks)
{
	if (rx->count < blocks)
		rx->count += block_alloc_bulk(BLOCK_DEFAULT, &rx->blocks[rx->count], blocks - rx->count);
	return rx->count > 0;
}

/* When everybody has dropped what the first block brought, it is written again while it is warm in the cache. */
static void
rewind_first(struct rx *rx)
{
	if (rx->used && __atomic_load_n(&rx->blocks[0]->refs, __ATOMIC_ACQUIRE) == 1)
		rx->used = 0;
}

size_t
rx_offer(struct rx *rx, unsigned blocks, struct iovec iov[RX_BLOCKS_MAX], int *iov_count)
{
	size_t payload = block_payload_bytes(BLOCK_DEFAULT);
	unsigned n = blocks;

	if (!refill(rx, blocks))
		return 0;
	rewind_first(rx);
	if (n > rx->count)
		n = rx->count;
	iov[0] = (struct iovec){block_payload(rx->blocks[0]) + rx->used, payload - rx->used};
	for (unsigned i = 1; i < n; i++)
		iov[i] = (struct iovec){block_payload(rx->blocks[i]), payload};
	*iov_count = (int)n;
	return n * payload - rx->used;
}

/* Appends len bytes of the first block, of which this side keeps a reference unless they reach its end. */
static int
take_of_first(struct rx *rx, size_t len, struct xr_iobuf *buf)
{
	struct xr_block *block = rx->blocks[0];
	char *data = block_payload(block) + rx->used;
	int ret;

	rx->used += len;
	if (rx->used < block_payload_bytes(BLOCK_DEFAULT)) {
		block_hold(block);
	} else {
		rx->used = 0;
		rx->taken += block_bytes(BLOCK_DEFAULT);
		rx->count--;
		memmove(&rx->blocks[0], &rx->blocks[1], rx->count * sizeof rx->blocks[0]);
	}
	ret = iobuf_append_block(buf, block, data, len);
	if (ret)
		block_drop(block);
	return ret;
}

int
rx_take(struct rx *rx, size_t len, struct xr_iobuf *buf)
{
	while (len) {
		size_t room = block_payload_bytes(BLOCK_DEFAULT) - rx->used;
		size_t part = len < room ? len : room;
		int ret = take_of_first(rx, part, buf);

		if (ret)
			return ret;
		len -= part;
	}
	return 0;
}

void
rx_clear(struct rx *rx)
{
	while (rx->count)
		block_drop(rx->blocks[--rx->count]);
	rx->used = 0;
}
