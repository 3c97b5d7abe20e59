/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_FRAME_H
#define NET_RPC_FRAME_H

/*
 * A PRPC frame: 12 bytes of header (magic, size of the body, size of the meta, big endian), then the meta, the message
 * and, at the very end, the attachment. Pure functions over iobufs: no connection, no state.
 */

#include "net/rpc/arena.h"
#include "net/rpc/meta.h"
#include <xrdma/iobuf.h>

#define FRAME_HEADER_BYTES 12u
#define FRAME_MAX_BODY	   (64u << 20) /* where a peer names no limit of its own: the protocol's default */

/* A meta is some dozens of bytes. A larger one than this is refused: decoding it would cost far more memory than it has
 * bytes. */
#define FRAME_MAX_META 65536u

struct frame {
	uint32_t body_size; /* meta, message and attachment */
	uint32_t meta_size;
};

enum frame_status {
	FRAME_WHOLE,   /* all of it is there */
	FRAME_PARTIAL, /* more is needed: *need bytes counted from the front of in */
	FRAME_BAD,     /* no frame, or beyond a limit: *why says it (static text) */
};

/* Looks at the front of in, which is not empty; takes nothing. Bytes that can't begin a frame are BAD at once. */
enum frame_status frame_peek(const struct xr_iobuf *in, uint64_t max_body_size, struct frame *frame, size_t *need,
			     const char **why);

/*
 * Decodes the meta of a whole frame at the front of in, in place when it lies in one piece. Resets the arena.
 * Errors: those of meta_decode().
 */
int frame_meta(const struct xr_iobuf *in, const struct frame *frame, struct arena *arena, struct meta *meta);

/* True when the attachment that the meta speaks of fits into what follows the meta. */
bool frame_attachment_fits(const struct frame *frame, const struct meta *meta);

/*
 * Takes a whole frame off the front of in and moves its message and its attachment, which fits, to the ends of two
 * other iobufs. No byte is copied. -ENOMEM: in is in pieces; its connection can't go on.
 */
int frame_cut(struct xr_iobuf *in, const struct frame *frame, const struct meta *meta, struct xr_iobuf *message,
	      struct xr_iobuf *attachment);

/* Drops a whole frame. */
void frame_drop(struct xr_iobuf *in, const struct frame *frame);

/* Message and attachment together stay below this: the protocol counts an attachment in an int32. */
#define FRAME_MAX_PAYLOAD INT32_MAX

/*
 * Begins a frame in an empty iobuf: header, meta and a message of few bytes stand in one piece, so that they cost the
 * transport one segment; a longer message is shared. The message (NULL: none) stays as it is. The caller appends the
 * attachment, whose size the header counts already. Errors: -ENOMEM, with out empty again.
 */
int frame_begin(struct xr_iobuf *out, const struct meta_out *meta, const struct xr_iobuf *message,
		uint32_t attachment_size);

#endif
