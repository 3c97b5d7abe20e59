/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <xrdma/protobuf.h>

/* A message up to this size that lies in several pieces is put together on the stack. */
#define SCRATCH_BYTES 1024u

/* ---- packing ---- */

void
xr_protobuf_sink_append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	struct xr_protobuf_sink *sink = (struct xr_protobuf_sink *)base;

	if (!sink->error)
		sink->error = xr_iobuf_append(sink->to, data, len);
}

/* In one go. False: there is no such room. */
static bool
pack_in_place(struct xr_iobuf *to, const ProtobufCMessage *message, size_t size)
{
	size_t got;
	uint8_t *room = xr_iobuf_reserve(to, size, &got);

	if (!room)
		return false;
	if (got < size) {
		xr_iobuf_commit(to, 0);
		return false;
	}
	protobuf_c_message_pack(message, room);
	xr_iobuf_commit(to, size);
	return true;
}

int
xr_protobuf_pack(struct xr_iobuf *to, const ProtobufCMessage *message)
{
	struct xr_protobuf_sink sink = XR_PROTOBUF_SINK_INIT(to);
	size_t size = protobuf_c_message_get_packed_size(message);
	size_t before = xr_iobuf_size(to);

	if (size == 0 || pack_in_place(to, message, size))
		return 0;
	protobuf_c_message_pack_to_buffer(message, &sink.base);
	if (sink.error)
		xr_iobuf_drop_back(to, xr_iobuf_size(to) - before);
	return sink.error;
}

/* ---- unpacking ---- */

static ProtobufCMessage *
unpack_bytes(const ProtobufCMessageDescriptor *descriptor, ProtobufCAllocator *allocator, const void *bytes, size_t len)
{
	ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, allocator, len, bytes);

	if (!message)
		errno = EBADMSG;
	return message;
}

static void *
allocate(ProtobufCAllocator *allocator, size_t size)
{
	return allocator ? allocator->alloc(allocator->allocator_data, size) : malloc(size);
}

static void
release(ProtobufCAllocator *allocator, void *memory)
{
	if (allocator)
		allocator->free(allocator->allocator_data, memory);
	else
		free(memory);
}

static ProtobufCMessage *
unpack_copy(const ProtobufCMessageDescriptor *descriptor, ProtobufCAllocator *allocator, const struct xr_iobuf *from)
{
	size_t len = xr_iobuf_size(from);
	void *copy = allocate(allocator, len);
	ProtobufCMessage *message;

	if (!copy) {
		errno = ENOMEM;
		return NULL;
	}
	xr_iobuf_copy_out(from, 0, copy, len);
	message = unpack_bytes(descriptor, allocator, copy, len);
	release(allocator, copy);
	return message;
}

ProtobufCMessage *
xr_protobuf_unpack(const ProtobufCMessageDescriptor *descriptor, ProtobufCAllocator *allocator,
		   const struct xr_iobuf *from)
{
	size_t len = xr_iobuf_size(from);
	uint8_t scratch[SCRATCH_BYTES];
	const void *bytes = xr_iobuf_peek(from, 0, len, len <= sizeof scratch ? scratch : NULL);

	return bytes ? unpack_bytes(descriptor, allocator, bytes, len) : unpack_copy(descriptor, allocator, from);
}
