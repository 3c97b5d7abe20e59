/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RX_H
#define NET_RX_H

/*
 * An lcore's blocks to read into, shared by all its sockets: the first may be filled in part, the rest are fresh.
 * So a connection holds no block while it is idle, small messages share blocks, and a large read costs one call.
 */

#include "mem/iobuf.h"
#include <sys/types.h>

#define RX_BLOCKS_MAX 16u

struct rx {
	struct xr_block *blocks[RX_BLOCKS_MAX];
	unsigned count;
	size_t used;  /* bytes of blocks[0] that are taken */
	size_t taken; /* bytes of blocks that have become input; the caller's to set back */
};

/* Offers up to `blocks` blocks; how many bytes they have room for, 0 when the pool is empty. */
size_t rx_offer(struct rx *rx, unsigned blocks, struct iovec iov[RX_BLOCKS_MAX], int *iov_count);

/* The first len bytes that were offered hold data now: appends them to buf. -ENOMEM: they are lost. */
int rx_take(struct rx *rx, size_t len, struct xr_iobuf *buf);

void rx_clear(struct rx *rx);

#endif
