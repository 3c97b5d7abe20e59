/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_IOBUF_H
#define MEM_IOBUF_H

/* What `net` needs of iobufs beyond the public calls. */

#include "mem/block.h"
#include <xrdma/iobuf.h>

/*
 * Appends len bytes at data, inside block; takes over one reference of the caller's. Grows the last piece when it ends
 * right there in the same block (the reference is then dropped). -ENOMEM: nothing taken.
 */
int iobuf_append_block(struct xr_iobuf *buf, struct xr_block *block, char *data, size_t len);

/* Bytes of blocks that the pieces pin, whole blocks counted once per piece: what a held-back input really costs. */
size_t iobuf_pinned_bytes(const struct xr_iobuf *buf);

/* Not less than that, without looking at each piece; no block of buf is larger than those of the type. */
static inline size_t
iobuf_pinned_at_most(const struct xr_iobuf *buf, enum block_type largest)
{
	return buf->count_ * block_bytes(largest);
}

/* Of those the pool's: what the pool gets back when the iobuf is dropped, at most. */
size_t iobuf_pool_bytes(const struct xr_iobuf *buf);

#endif
