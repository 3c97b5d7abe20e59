/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_STREAM_H
#define NET_RPC_STREAM_H

/* Frames as they stand in a connection's input, one behind the other: what both sides do with it. */

#include "net/rpc/frame.h"
#include <xrdma/conn.h>

/*
 * As frame_peek(). As long as the frame is not whole the peer is not held back before it is: *needs_more, which is the
 * connection's, says that it was told so.
 */
static inline enum frame_status
stream_peek(struct xr_conn *conn, bool *needs_more, const struct xr_iobuf *in, uint64_t max_body_size,
	    struct frame *frame, const char **why)
{
	size_t bytes = 1;
	enum frame_status status = frame_peek(in, max_body_size, frame, &bytes, why);
	bool partial = status == FRAME_PARTIAL;

	if (__builtin_expect(partial || *needs_more, 0))
		xr_conn_need(conn, partial ? bytes : 1);
	*needs_more = partial && bytes > 1;
	return status;
}

#endif
