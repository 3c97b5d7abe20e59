/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/frame.h"
#include "tests/unit/mem/fixture.h"
#include "tests/unit/vectors.h"

#define ECHO16_ID (((int64_t)0x40 << 35) | 2)
#define BLOCK	  8160u /* payload of a default block */

static struct arena g_arena;

static void
setup(void)
{
	fixture_start(4);
	arena_init(&g_arena);
}

static void
teardown(void)
{
	arena_fini(&g_arena);
	fixture_stop();
}

/* One byte of user memory a piece, so that nothing lies together. */
static void
append_in_bytes(struct xr_iobuf *buf, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		ASSERT_FATAL(xr_iobuf_append_user(buf, (void *)(data + i), 1, XR_MEM_KEY_NONE, NULL, NULL) == 0);
}

static void
append_cut(struct xr_iobuf *buf, const uint8_t *data, size_t len, size_t piece)
{
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		ASSERT_FATAL(xr_iobuf_append_user(buf, (void *)(data + at), n, XR_MEM_KEY_NONE, NULL, NULL) == 0);
	}
}

static void
assert_bytes(const struct xr_iobuf *buf, const void *expected, size_t len)
{
	uint8_t *got = malloc(len + 1);

	ASSERT_EQ(xr_iobuf_size(buf), len);
	xr_iobuf_copy_out(buf, 0, got, len);
	CU_ASSERT(memcmp(got, expected, len) == 0);
	free(got);
}

struct parts {
	struct frame frame;
	struct meta meta;
	struct xr_iobuf message, attachment;
};

/* Takes one frame apart; the result of frame_peek(). */
static enum frame_status
take(struct xr_iobuf *in, struct parts *parts, size_t *need, const char **why)
{
	enum frame_status status = frame_peek(in, FRAME_MAX_BODY, &parts->frame, need, why);

	if (status != FRAME_WHOLE)
		return status;
	ASSERT_FATAL(frame_meta(in, &parts->frame, &g_arena, &parts->meta) == 0);
	ASSERT_FATAL(frame_attachment_fits(&parts->frame, &parts->meta));
	ASSERT_FATAL(frame_cut(in, &parts->frame, &parts->meta, &parts->message, &parts->attachment) == 0);
	return status;
}

static void
parts_clear(struct parts *parts)
{
	xr_iobuf_clear(&parts->message);
	xr_iobuf_clear(&parts->attachment);
}

/* ---- captured bytes ---- */

static const struct captured {
	const char *name;
	int64_t id;
	const char *message;
	size_t message_size, attachment_size;
	bool request;
} captured[] = {
	{"rpc-echo16-request", ECHO16_ID, "\x08\x01", 2, 16, true},
	{"rpc-echo16-response", ECHO16_ID,
	 "\x0a\x05"
	 "0.342",
	 7, 16, false},
	{"rpc-echo16-response-empty", ((int64_t)0x60 << 35) | 2, "\x0a\x00", 2, 16, false},
	{"rpc-warmup-request", ((int64_t)0x30 << 28) | 2, "\x08\x01", 2, 0, true},
	{"rpc-warmup-response", ((int64_t)0x30 << 28) | 2,
	 "\x0a\x05"
	 "0.342",
	 7, 0, false},
};

#define CAPTURED_COUNT (sizeof captured / sizeof captured[0])

static void
decode_captured(const struct captured *want, size_t piece)
{
	struct xr_iobuf in = XR_IOBUF_INIT;
	struct parts parts = {.meta = {0}};
	uint8_t bytes[256];
	size_t size = vector_load(want->name, bytes, sizeof bytes), need;
	const char *why;

	append_cut(&in, bytes, size, piece);
	ASSERT_FATAL(take(&in, &parts, &need, &why) == FRAME_WHOLE);
	ASSERT_EQ(xr_iobuf_size(&in), 0);
	ASSERT_EQ(parts.meta.correlation_id, want->id);
	ASSERT_EQ(parts.meta.attachment_size, want->attachment_size);
	ASSERT_EQ(parts.meta.compress_type, 0);
	ASSERT_EQ(parts.meta.error_code, 0);
	ASSERT_EQ(parts.meta.has_request, want->request);
	if (want->request) {
		ASSERT_STR(parts.meta.service, "test.PerfTestService");
		ASSERT_STR(parts.meta.method, "Test");
	}
	assert_bytes(&parts.message, want->message, want->message_size);
	assert_bytes(&parts.attachment, bytes + size - want->attachment_size, want->attachment_size);
	parts_clear(&parts);
}

static void
test_captured_decode(void)
{
	setup();
	for (size_t i = 0; i < CAPTURED_COUNT; i++)
		for (size_t piece = 1; piece < 120; piece++)
			decode_captured(&captured[i], piece);
	teardown();
}

static void
encode_captured(const struct captured *want)
{
	struct xr_iobuf out = XR_IOBUF_INIT, message = XR_IOBUF_INIT;
	uint8_t bytes[256];
	size_t size = vector_load(want->name, bytes, sizeof bytes), attachment_size = want->attachment_size;
	struct meta_out meta;

	if (want->request)
		meta_out_request(&meta, "test.PerfTestService", "Test", 0, want->id, (uint32_t)attachment_size);
	else
		meta_out_response(&meta, 0, NULL, want->id, (uint32_t)attachment_size);
	xr_iobuf_append(&message, want->message, want->message_size);
	ASSERT_EQ(frame_begin(&out, &meta, &message, (uint32_t)attachment_size), 0);
	xr_iobuf_append(&out, bytes + size - attachment_size, attachment_size);
	assert_bytes(&out, bytes, size);
	ASSERT_EQ(xr_iobuf_size(&message), want->message_size);
	xr_iobuf_clear(&message);
	xr_iobuf_clear(&out);
}

static void
test_captured_encode(void)
{
	setup();
	for (size_t i = 0; i < CAPTURED_COUNT; i++)
		encode_captured(&captured[i]);
	teardown();
}

static uint8_t
nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static size_t
unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	return n;
}

/* The smallest request that the protocol allows: no explicit zeros. It decodes; this library writes more. */
static void
test_minimal_request(void)
{
	static const char hex[] = "5052504300000028000000220a1c0a14746573742e506572665465737453657276696365"
				  "120454657374200128040801"
				  "61626364";
	struct xr_iobuf in = XR_IOBUF_INIT;
	struct parts parts = {.meta = {0}};
	uint8_t bytes[128];
	const char *why;
	size_t need;

	setup();
	append_cut(&in, bytes, unhex(hex, bytes), 7);
	ASSERT_FATAL(take(&in, &parts, &need, &why) == FRAME_WHOLE);
	ASSERT_STR(parts.meta.service, "test.PerfTestService");
	ASSERT_EQ(parts.meta.correlation_id, 1);
	assert_bytes(&parts.message, "\x08\x01", 2);
	assert_bytes(&parts.attachment, "abcd", 4);
	parts_clear(&parts);
	teardown();
}

static void
test_computed_response(void)
{
	static const char hex[] = "505250430000001600000010120208001800200128045000580062000a0061626364";
	struct xr_iobuf out = XR_IOBUF_INIT, message = XR_IOBUF_INIT;
	uint8_t bytes[64];
	size_t size = unhex(hex, bytes);
	struct meta_out meta;

	setup();
	meta_out_response(&meta, 0, NULL, 1, 4);
	xr_iobuf_append(&message, "\x0a\x00", 2);
	ASSERT_EQ(frame_begin(&out, &meta, &message, 4), 0);
	xr_iobuf_append(&out, "abcd", 4);
	assert_bytes(&out, bytes, size);
	xr_iobuf_clear(&message);
	xr_iobuf_clear(&out);
	teardown();
}

/* ---- what is not there yet, and what is wrong ---- */

static void
test_every_truncation(void)
{
	uint8_t bytes[256];
	size_t size = vector_load("rpc-echo16-request", bytes, sizeof bytes);

	setup();
	for (size_t len = 1; len < size; len++) {
		struct xr_iobuf in = XR_IOBUF_INIT;
		struct frame frame;
		const char *why;
		size_t need = 0;

		append_in_bytes(&in, bytes, len);
		ASSERT_EQ(frame_peek(&in, FRAME_MAX_BODY, &frame, &need, &why), FRAME_PARTIAL);
		ASSERT_EQ(need, len < 12 ? 12 : size);
		ASSERT_EQ(xr_iobuf_size(&in), len);
		xr_iobuf_clear(&in);
	}
	teardown();
}

static enum frame_status
peek(const void *bytes, size_t len, uint64_t max_body, const char **why)
{
	struct xr_iobuf in = XR_IOBUF_INIT;
	enum frame_status status;
	struct frame frame;
	size_t need;

	append_cut(&in, bytes, len, 5);
	status = frame_peek(&in, max_body, &frame, &need, why);
	xr_iobuf_clear(&in);
	return status;
}

static void
test_bad_headers(void)
{
	const char *why = NULL;

	setup();
	ASSERT_EQ(peek("G", 1, FRAME_MAX_BODY, &why), FRAME_BAD);
	ASSERT_STR(why, "it does not begin with PRPC");
	ASSERT_EQ(peek("PRP!", 4, FRAME_MAX_BODY, &why), FRAME_BAD);
	ASSERT_EQ(peek("STRM\0\0\0\0\0\0\0\0", 12, FRAME_MAX_BODY, &why), FRAME_BAD);
	ASSERT_EQ(peek("PRPC\0\0\0\1\0\0\0\2", 12, FRAME_MAX_BODY, &why), FRAME_BAD);
	ASSERT_STR(why, "the meta is larger than the body");
	ASSERT_EQ(peek("PRPC\x80\0\0\0\0\0\0\1", 12, FRAME_MAX_BODY, &why), FRAME_BAD);
	ASSERT_STR(why, "the body is larger than max_body_size");
	ASSERT_EQ(peek("PRPC\0\2\0\0\0\1\0\1", 12, FRAME_MAX_BODY, &why), FRAME_BAD);
	ASSERT_STR(why, "the meta is larger than 64 KiB");
	teardown();
}

static void
test_limits_are_inclusive(void)
{
	const char *why;

	setup();
	ASSERT_EQ(peek("PRPC\0\0\0\x10\0\0\0\x10", 12, 16, &why), FRAME_PARTIAL);
	ASSERT_EQ(peek("PRPC\0\0\0\x11\0\0\0\x10", 12, 16, &why), FRAME_BAD);
	ASSERT_EQ(peek("PRPC\0\1\0\0\0\1\0\0", 12, FRAME_MAX_BODY, &why), FRAME_PARTIAL);
	ASSERT_EQ(peek("PRPC\xff\xff\xff\xff\0\0\0\0", 12, UINT64_MAX, &why), FRAME_PARTIAL);
	ASSERT_EQ(peek("PRPC\0\0\0\0\0\0\0\0", 12, FRAME_MAX_BODY, &why), FRAME_WHOLE);
	teardown();
}

static void
test_attachment_fits(void)
{
	const struct frame frame = {.body_size = 100, .meta_size = 40};
	struct meta meta = {.attachment_size = 60};

	CU_ASSERT(frame_attachment_fits(&frame, &meta));
	meta.attachment_size = 61;
	CU_ASSERT(!frame_attachment_fits(&frame, &meta));
	meta.attachment_size = -1;
	CU_ASSERT(!frame_attachment_fits(&frame, &meta));
	meta.attachment_size = INT32_MIN;
	CU_ASSERT(!frame_attachment_fits(&frame, &meta));
	meta.attachment_size = 0;
	CU_ASSERT(frame_attachment_fits(&frame, &meta));
}

static void
test_bad_meta(void)
{
	struct xr_iobuf in = XR_IOBUF_INIT;
	struct frame frame;
	struct meta meta;
	const char *why;
	size_t need;

	setup();
	append_cut(&in, (const uint8_t *)"PRPC\0\0\0\5\0\0\0\2\x20\xffxyz", 17, 13);
	ASSERT_EQ(frame_peek(&in, 1000, &frame, &need, &why), FRAME_WHOLE);
	ASSERT_EQ(frame_meta(&in, &frame, &g_arena, &meta), -EBADMSG);
	frame_drop(&in, &frame);
	ASSERT_EQ(xr_iobuf_size(&in), 0);
	teardown();
}

/* ---- many frames ---- */

static uint32_t g_seed;

static uint32_t
draw(uint32_t below)
{
	g_seed = g_seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)g_seed * below) >> 32);
}

static uint8_t
pattern(uint32_t n, size_t at)
{
	return (uint8_t)(n * 31 + at * 7 + (at >> 8));
}

#define FRAMES 40u

static const uint32_t sizes[] = {0, 1, 2, 64, 256, 257, 511, 512, 4000, 8159, 8160, 8161, 20000};

static void
append_pattern(struct xr_iobuf *buf, uint32_t n, size_t len)
{
	uint8_t bytes[20000];

	for (size_t i = 0; i < len; i++)
		bytes[i] = pattern(n, i);
	ASSERT_FATAL(xr_iobuf_append(buf, bytes, len) == 0);
}

static void
assert_pattern(const struct xr_iobuf *buf, uint32_t n, size_t len)
{
	uint8_t bytes[20000];

	for (size_t i = 0; i < len; i++)
		bytes[i] = pattern(n, i);
	assert_bytes(buf, bytes, len);
}

static void
append_frame(struct xr_iobuf *stream, uint32_t n, uint32_t message_size, uint32_t attachment_size)
{
	struct xr_iobuf out = XR_IOBUF_INIT, message = XR_IOBUF_INIT;
	struct meta_out meta;

	append_pattern(&message, n, message_size);
	meta_out_request(&meta, "test.PerfTestService", "Test", n, n, attachment_size);
	ASSERT_FATAL(frame_begin(&out, &meta, &message, attachment_size) == 0);
	append_pattern(&out, n + 1, attachment_size);
	ASSERT_FATAL(xr_iobuf_move(stream, &out) == 0);
	xr_iobuf_clear(&message);
}

/* A stream of frames, fed to the parser in pieces of any length, comes out as it went in. */
static void
run_stream(uint32_t seed)
{
	struct xr_iobuf stream = XR_IOBUF_INIT, in = XR_IOBUF_INIT;
	uint32_t message_sizes[FRAMES], attachment_sizes[FRAMES], taken = 0;
	size_t need = 1;

	g_seed = seed;
	for (uint32_t n = 0; n < FRAMES; n++) {
		message_sizes[n] = sizes[draw(sizeof sizes / sizeof sizes[0])];
		attachment_sizes[n] = sizes[draw(sizeof sizes / sizeof sizes[0])];
		append_frame(&stream, n, message_sizes[n], attachment_sizes[n]);
	}
	while (xr_iobuf_size(&stream) > 0) {
		xr_iobuf_cut(&stream, 1 + draw(draw(4) ? 100 : 30000), &in);
		while (xr_iobuf_size(&in) > 0) {
			struct parts parts = {.meta = {0}};
			const char *why;
			size_t before = xr_iobuf_size(&in);

			if (take(&in, &parts, &need, &why) != FRAME_WHOLE) {
				CU_ASSERT(need > before);
				break;
			}
			ASSERT_FATAL(taken < FRAMES);
			ASSERT_EQ(parts.meta.correlation_id, taken);
			assert_pattern(&parts.message, taken, message_sizes[taken]);
			assert_pattern(&parts.attachment, taken + 1, attachment_sizes[taken]);
			parts_clear(&parts);
			taken++;
		}
	}
	ASSERT_EQ(taken, FRAMES);
	ASSERT_EQ(xr_iobuf_size(&in), 0);
	xr_iobuf_clear(&in);
}

static void
test_streams_cut_anywhere(void)
{
	setup();
	for (uint32_t seed = 1; seed <= 30; seed++)
		run_stream(seed);
	teardown();
}

/* ---- how frames are built ---- */

static int
pieces(const struct xr_iobuf *buf)
{
	struct iovec iov[16];

	return xr_iobuf_iovec(buf, 0, iov, 16);
}

static void
test_short_message_stands_with_the_meta(void)
{
	struct xr_iobuf out = XR_IOBUF_INIT, message = XR_IOBUF_INIT;
	struct meta_out meta;

	setup();
	meta_out_response(&meta, 0, NULL, 1, 0);
	append_pattern(&message, 1, 256);
	ASSERT_EQ(frame_begin(&out, &meta, &message, 0), 0);
	ASSERT_EQ(pieces(&out), 1);
	xr_iobuf_clear(&out);
	xr_iobuf_append(&message, "x", 1);
	ASSERT_EQ(frame_begin(&out, &meta, &message, 0), 0);
	CU_ASSERT(pieces(&out) >= 2);
	xr_iobuf_clear(&out);
	xr_iobuf_clear(&message);
	teardown();
}

/* Texts longer than a block: the meta is packed in pieces, and the frame is the same to its reader. */
static void
test_long_texts(void)
{
	struct xr_iobuf out = XR_IOBUF_INIT, message = XR_IOBUF_INIT;
	struct parts parts = {.meta = {0}};
	size_t lens[] = {500, 5000, 8160, 9000, 20000}, need;
	struct meta_out meta;
	const char *why;
	char *text;

	setup();
	xr_iobuf_append(&message, "msg", 3);
	for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
		text = malloc(lens[i] + 1);
		memset(text, 'e', lens[i]);
		text[lens[i]] = '\0';
		meta_out_response(&meta, 2001, text, 5, 0);
		ASSERT_EQ(frame_begin(&out, &meta, &message, 0), 0);
		ASSERT_FATAL(take(&out, &parts, &need, &why) == FRAME_WHOLE);
		ASSERT_STR(parts.meta.error_text, text);
		assert_bytes(&parts.message, "msg", 3);
		parts_clear(&parts);
		free(text);
	}
	xr_iobuf_clear(&message);
	teardown();
}

static void
test_no_memory(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, out = XR_IOBUF_INIT, message = XR_IOBUF_INIT;
	struct meta_out meta;
	char *block = calloc(1, BLOCK);

	fixture_start(1);
	arena_init(&g_arena);
	ASSERT_FATAL(xr_iobuf_append(&message, block, 300) == 0);
	while (xr_iobuf_append(&hog, block, BLOCK) == 0)
		;
	while (xr_iobuf_append(&hog, block, 1) == 0)
		;
	meta_out_response(&meta, 0, NULL, 1, 0);
	ASSERT_EQ(frame_begin(&out, &meta, &message, 0), -ENOMEM);
	ASSERT_EQ(xr_iobuf_size(&out), 0);
	ASSERT_EQ(xr_iobuf_size(&message), 300);
	xr_iobuf_clear(&hog);
	ASSERT_EQ(frame_begin(&out, &meta, &message, 0), 0);
	xr_iobuf_clear(&out);
	xr_iobuf_clear(&message);
	free(block);
	teardown();
}

UNIT_SUITE("rpc frame", {"captured frames decode however they are cut", test_captured_decode},
	   {"captured frames are encoded to the byte", test_captured_encode},
	   {"the smallest request decodes", test_minimal_request},
	   {"the computed response is encoded to the byte", test_computed_response},
	   {"every truncation waits for what is missing", test_every_truncation},
	   {"what is no frame is refused", test_bad_headers}, {"limits are inclusive", test_limits_are_inclusive},
	   {"an attachment must fit", test_attachment_fits}, {"a bad meta is refused", test_bad_meta},
	   {"streams of frames may be cut anywhere", test_streams_cut_anywhere},
	   {"a short message stands with the meta", test_short_message_stands_with_the_meta},
	   {"texts longer than a block", test_long_texts}, {"without memory nothing is taken", test_no_memory});
