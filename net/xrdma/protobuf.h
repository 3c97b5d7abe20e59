/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_PROTOBUF_H
#define XRDMA_PROTOBUF_H

#include <protobuf-c/protobuf-c.h>
#include <xrdma/iobuf.h>

XR_BEGIN_DECLS

/**
 * protobuf-c's messages to and from iobufs, as the messages of <xrdma/rpc.h> are. Not a part of <xrdma/xrdma.h>: a
 * program that includes this needs protobuf-c's headers and links with it, as its generated code does anyway. Any
 * thread; nothing here blocks.
 *
 *   struct xr_iobuf message = XR_IOBUF_INIT;
 *   Echo__Request *request;
 *
 *   err = xr_protobuf_pack(&message, &mine.base);
 *   ...
 *   request = (Echo__Request *)xr_protobuf_unpack(&echo__request__descriptor, NULL, &message);
 */

/**
 * Appends a packed message: straight into the iobuf's blocks, without a buffer between.
 * Errors: -ENOMEM the pool is at its limit; nothing has been appended.
 */
XR_API int xr_protobuf_pack(struct xr_iobuf *to, const ProtobufCMessage *message);

/**
 * Unpacks the message that an iobuf holds, and nothing besides; the iobuf stays as it is. Bytes that lie in one piece
 * are read where they lie, others through one copy, which up to 1 KiB takes no memory of the allocator. NULL for the
 * allocator is malloc(). To be freed by protobuf_c_message_free_unpacked() or the generated function, with the same
 * allocator; it does not refer to the iobuf.
 *
 * NULL with errno EBADMSG: it is no such message, or the allocator had too little for it, which protobuf-c does not
 * tell apart; or ENOMEM: the allocator had no room for the copy.
 */
XR_API ProtobufCMessage *xr_protobuf_unpack(const ProtobufCMessageDescriptor *descriptor, ProtobufCAllocator *allocator,
					    const struct xr_iobuf *from);

/**
 * A ProtobufCBuffer that appends to an iobuf, for code that packs to a buffer by itself: pass &sink.base to it. Since
 * such a buffer can't refuse anything, the sink remembers that it could not take all: look at error at the end.
 *
 *   struct xr_protobuf_sink sink = XR_PROTOBUF_SINK_INIT(&message);
 *
 *   echo__request__pack_to_buffer(&mine, &sink.base);
 *   err = sink.error;
 */
struct xr_protobuf_sink {
	ProtobufCBuffer base;
	struct xr_iobuf *to;
	int error; /**< 0; -ENOMEM: what came from then on is missing */
};

#define XR_PROTOBUF_SINK_INIT(to)                  \
	{                                          \
		{xr_protobuf_sink_append}, (to), 0 \
	}

/** The sink's own append, for its initializer. */
XR_API void xr_protobuf_sink_append(ProtobufCBuffer *base, size_t len, const uint8_t *data);

XR_END_DECLS

#endif
