/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/frame.h"
#include <endian.h>
#include <errno.h>
#include <string.h>

/* A message up to this size travels beside its meta: copying it costs less than a segment of its own. */
#define MESSAGE_COPY_BYTES 256u

static const char magic[4] = {'P', 'R', 'P', 'C'};

static enum frame_status
bad(const char **why, const char *text)
{
	*why = text;
	return FRAME_BAD;
}

static enum frame_status
partial(size_t *need, size_t bytes)
{
	*need = bytes;
	return FRAME_PARTIAL;
}

static uint32_t
read_u32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return be32toh(value);
}

static void
write_u32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof value);
}

enum frame_status
frame_peek(const struct xr_iobuf *in, uint64_t max_body_size, struct frame *frame, size_t *need, const char **why)
{
	char header[FRAME_HEADER_BYTES];
	size_t got = xr_iobuf_copy_out(in, 0, header, sizeof header);

	if (memcmp(header, magic, got < sizeof magic ? got : sizeof magic) != 0)
		return bad(why, "it does not begin with PRPC");
	if (got < sizeof header)
		return partial(need, sizeof header);

	frame->body_size = read_u32(header + 4);
	frame->meta_size = read_u32(header + 8);
	if (frame->body_size > max_body_size)
		return bad(why, "the body is larger than max_body_size");
	if (frame->meta_size > frame->body_size)
		return bad(why, "the meta is larger than the body");
	if (frame->meta_size > FRAME_MAX_META)
		return bad(why, "the meta is larger than 64 KiB");
	if (xr_iobuf_size(in) < sizeof header + (size_t)frame->body_size)
		return partial(need, sizeof header + (size_t)frame->body_size);
	return FRAME_WHOLE;
}

/* The meta's bytes in one piece: where they lie when they lie so, else copied into the arena. */
static const uint8_t *
meta_bytes(const struct xr_iobuf *in, const struct frame *frame, struct arena *arena)
{
	const uint8_t *bytes = xr_iobuf_peek(in, FRAME_HEADER_BYTES, frame->meta_size, NULL);
	uint8_t *copy;

	if (bytes)
		return bytes;
	copy = arena_alloc(arena, frame->meta_size);
	if (copy)
		xr_iobuf_copy_out(in, FRAME_HEADER_BYTES, copy, frame->meta_size);
	return copy;
}

int
frame_meta(const struct xr_iobuf *in, const struct frame *frame, struct arena *arena, struct meta *meta)
{
	const uint8_t *bytes;

	arena_reset(arena);
	bytes = meta_bytes(in, frame, arena);
	return bytes ? meta_decode(bytes, frame->meta_size, arena, meta) : -ENOMEM;
}

bool
frame_attachment_fits(const struct frame *frame, const struct meta *meta)
{
	return meta->attachment_size >= 0 && (uint32_t)meta->attachment_size <= frame->body_size - frame->meta_size;
}

int
frame_cut(struct xr_iobuf *in, const struct frame *frame, const struct meta *meta, struct xr_iobuf *message,
	  struct xr_iobuf *attachment)
{
	size_t attachment_size = (uint32_t)meta->attachment_size;
	size_t message_size = frame->body_size - frame->meta_size - attachment_size;

	xr_iobuf_drop(in, FRAME_HEADER_BYTES + (size_t)frame->meta_size);
	if (message_size && xr_iobuf_cut(in, message_size, message) != message_size)
		return -ENOMEM;
	if (attachment_size && xr_iobuf_cut(in, attachment_size, attachment) != attachment_size)
		return -ENOMEM;
	return 0;
}

void
frame_drop(struct xr_iobuf *in, const struct frame *frame)
{
	xr_iobuf_drop(in, FRAME_HEADER_BYTES + (size_t)frame->body_size);
}

static void
write_header(uint8_t header[FRAME_HEADER_BYTES], size_t meta_size, size_t payload_size)
{
	memcpy(header, magic, sizeof magic);
	write_u32(header + 4, (uint32_t)(meta_size + payload_size));
	write_u32(header + 8, (uint32_t)meta_size);
}

/* Header, meta and copied bytes of the message in one piece. False: there is no such room. */
static bool
write_front(struct xr_iobuf *out, const struct meta_out *meta, size_t meta_size, const struct xr_iobuf *message,
	    size_t copied, size_t payload_size)
{
	size_t want = FRAME_HEADER_BYTES + meta_size + copied, got;
	uint8_t *room = xr_iobuf_reserve(out, want, &got);

	if (!room)
		return false;
	if (got < want) {
		xr_iobuf_commit(out, 0);
		return false;
	}
	write_header(room, meta_size, payload_size);
	meta_out_pack(meta, room + FRAME_HEADER_BYTES);
	if (copied)
		xr_iobuf_copy_out(message, 0, room + FRAME_HEADER_BYTES + meta_size, copied);
	xr_iobuf_commit(out, want);
	return true;
}

/* The same in as many pieces as the blocks at hand make of it, the message shared. */
static int
append_front(struct xr_iobuf *out, const struct meta_out *meta, size_t meta_size, size_t payload_size)
{
	uint8_t header[FRAME_HEADER_BYTES];
	int error;

	write_header(header, meta_size, payload_size);
	error = xr_iobuf_append(out, header, sizeof header);
	return error ? error : meta_out_append(meta, out);
}

int
frame_begin(struct xr_iobuf *out, const struct meta_out *meta, const struct xr_iobuf *message, uint32_t attachment_size)
{
	size_t message_size = message ? xr_iobuf_size(message) : 0;
	size_t copied = message_size <= MESSAGE_COPY_BYTES ? message_size : 0;
	size_t meta_size = meta_out_size(meta);
	int error = 0;

	if (!write_front(out, meta, meta_size, message, copied, message_size + attachment_size)) {
		copied = 0;
		error = append_front(out, meta, meta_size, message_size + attachment_size);
	}
	if (!error && message_size > copied)
		error = xr_iobuf_share(out, message);
	if (error)
		xr_iobuf_clear(out);
	return error;
}
