/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arbitrary bytes as a stream of PRPC frames, cut at arbitrary places: however they are cut, the same frames come out,
 * and their parts are the stream's bytes. What decodes as a request or a response encodes, and decodes again alike.
 *
 * The first byte of the input chooses how the stream is cut.
 */

#include "net/rpc/frame.h"
#include "tests/fuzz/memory.h"

#define MAX_BODY 65536u

static struct arena g_arena;

/* ---- the outcome of a stream ---- */

struct outcome {
	uint64_t digest; /* of everything that came out */
	unsigned frames;
	enum frame_status end; /* why it ended */
};

static void
digest(struct outcome *outcome, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		outcome->digest = (outcome->digest ^ bytes[i]) * 0x100000001b3u;
}

static void
digest_text(struct outcome *outcome, const char *text)
{
	digest(outcome, text, strlen(text) + 1);
}

static void
digest_meta(struct outcome *outcome, const struct meta *meta)
{
	digest_text(outcome, meta->service);
	digest_text(outcome, meta->method);
	digest_text(outcome, meta->error_text);
	digest(outcome, &meta->correlation_id, sizeof meta->correlation_id);
	digest(outcome, &meta->log_id, sizeof meta->log_id);
	digest(outcome, &meta->timeout_ms, sizeof meta->timeout_ms);
	digest(outcome, &meta->error_code, sizeof meta->error_code);
	digest(outcome, &meta->attachment_size, sizeof meta->attachment_size);
	digest(outcome, &meta->compress_type, sizeof meta->compress_type);
}

static void
digest_iobuf(struct outcome *outcome, struct xr_iobuf *buf)
{
	uint8_t byte;

	for (size_t i = 0; xr_iobuf_copy_out(buf, i, &byte, 1) == 1; i++)
		digest(outcome, &byte, 1);
	xr_iobuf_clear(buf);
}

/* ---- what was decoded encodes ---- */

static void
check_again(const struct meta *meta)
{
	char service[256], method[256];
	struct arena arena;
	struct meta_out out;
	struct meta again;
	uint8_t *packed;
	size_t size;

	if (strlen(meta->service) >= sizeof service || strlen(meta->method) >= sizeof method)
		return;
	strcpy(service, meta->service);
	strcpy(method, meta->method);
	arena_init(&arena);
	if (meta->has_request)
		meta_out_request(&out, service, method, meta->log_id, meta->correlation_id, 7);
	else
		meta_out_response(&out, meta->error_code, method, meta->correlation_id, 7);
	size = meta_out_size(&out);
	packed = malloc(size);
	FUZZ_ASSERT(packed);
	meta_out_pack(&out, packed);
	FUZZ_ASSERT(meta_decode(packed, size, &arena, &again) == 0);
	FUZZ_ASSERT(again.correlation_id == meta->correlation_id && again.attachment_size == 7);
	if (meta->has_request)
		FUZZ_ASSERT(strcmp(again.service, service) == 0 && again.log_id == meta->log_id);
	else
		FUZZ_ASSERT(again.error_code == meta->error_code);
	free(packed);
	arena_fini(&arena);
}

/* ---- one frame, one stream ---- */

static void
take_frame(struct xr_iobuf *in, const struct frame *frame, struct outcome *outcome)
{
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	size_t before = xr_iobuf_size(in);
	struct meta meta;

	outcome->frames++;
	if (frame_meta(in, frame, &g_arena, &meta) != 0) {
		digest_text(outcome, "undecodable");
		frame_drop(in, frame);
	} else if (!frame_attachment_fits(frame, &meta)) {
		digest_text(outcome, "attachment");
		frame_drop(in, frame);
	} else {
		digest_meta(outcome, &meta);
		check_again(&meta);
		FUZZ_ASSERT(frame_cut(in, frame, &meta, &message, &attachment) == 0);
		FUZZ_ASSERT(xr_iobuf_size(&attachment) == (size_t)meta.attachment_size);
		FUZZ_ASSERT(xr_iobuf_size(&message) + xr_iobuf_size(&attachment) ==
			    frame->body_size - frame->meta_size);
		digest_iobuf(outcome, &message);
		digest_iobuf(outcome, &attachment);
	}
	FUZZ_ASSERT(before - xr_iobuf_size(in) == FRAME_HEADER_BYTES + (size_t)frame->body_size);
}

/* Takes what is whole. False: the stream is broken. */
static bool
take_frames(struct xr_iobuf *in, struct outcome *outcome)
{
	struct frame frame;
	const char *why = NULL;
	size_t need = 0;

	while (xr_iobuf_size(in) > 0) {
		outcome->end = frame_peek(in, MAX_BODY, &frame, &need, &why);
		if (outcome->end == FRAME_BAD) {
			FUZZ_ASSERT(why && *why);
			return false;
		}
		if (outcome->end == FRAME_PARTIAL) {
			FUZZ_ASSERT(need > xr_iobuf_size(in) && need <= FRAME_HEADER_BYTES + (size_t)MAX_BODY);
			return true;
		}
		take_frame(in, &frame, outcome);
	}
	return true;
}

static size_t
next_piece(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return 1 + (*state >> 24) % ((*state >> 8) % 64 + 1);
}

/* seed 0: not cut at all. */
static struct outcome
run(uint8_t *data, size_t size, uint32_t seed)
{
	struct outcome outcome = {.digest = 0xcbf29ce484222325u, .end = FRAME_PARTIAL};
	struct xr_iobuf in = XR_IOBUF_INIT;
	uint32_t state = seed;

	for (size_t at = 0; at < size;) {
		size_t n = seed ? next_piece(&state) : size;

		if (n > size - at)
			n = size - at;
		FUZZ_ASSERT(xr_iobuf_append_user(&in, data + at, n, XR_MEM_KEY_NONE, NULL, NULL) == 0);
		at += n;
		if (!take_frames(&in, &outcome))
			break;
	}
	xr_iobuf_clear(&in);
	return outcome;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, cut;
	uint8_t *copy;

	if (fuzz_start_memory())
		arena_init(&g_arena);
	if (size == 0)
		return 0;
	/* The captured messages are seeds as they are: their first byte is the magic's. */
	copy = fuzz_copy(data[0] == 'P' ? data : data + 1, data[0] == 'P' ? size : size - 1);
	size -= data[0] != 'P';
	whole = run(copy, size, 0);
	cut = run(copy, size, data[0] + 1u);
	FUZZ_ASSERT(whole.frames == cut.frames && whole.digest == cut.digest);
	FUZZ_ASSERT((whole.end == FRAME_BAD) == (cut.end == FRAME_BAD));
	free(copy);
	return 0;
}
