/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/meta.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"
#include <errno.h>

static struct arena g_arena;

static void
setup(void)
{
	arena_init(&g_arena);
}

static void
teardown(void)
{
	arena_fini(&g_arena);
}

static int
decode(const void *bytes, size_t len, struct meta *meta)
{
	arena_reset(&g_arena);
	return meta_decode(bytes, len, &g_arena, meta);
}

static void
test_nothing(void)
{
	struct meta meta;

	setup();
	ASSERT_EQ(decode("", 0, &meta), 0);
	CU_ASSERT(!meta.has_request);
	ASSERT_STR(meta.service, "");
	ASSERT_STR(meta.method, "");
	ASSERT_STR(meta.error_text, "");
	ASSERT_EQ(meta.correlation_id, 0);
	teardown();
}

static void
test_every_field_used(void)
{
	static const uint8_t bytes[] = "\x0a\x0c\x0a\x01s\x12\x02mm\x18\x07\x40\xac\x02" /* log_id 7, timeout_ms 300 */
				       "\x12\x07\x08\xeb\x07\x12\x02no"			 /* 1003, "no" */
				       "\x18\x01\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x05";
	struct meta meta;

	setup();
	ASSERT_FATAL(decode(bytes, sizeof bytes - 1, &meta) == 0);
	CU_ASSERT(meta.has_request);
	ASSERT_STR(meta.service, "s");
	ASSERT_STR(meta.method, "mm");
	ASSERT_EQ(meta.log_id, 7);
	ASSERT_EQ(meta.timeout_ms, 300);
	ASSERT_EQ(meta.error_code, 1003);
	ASSERT_STR(meta.error_text, "no");
	ASSERT_EQ(meta.compress_type, 1);
	ASSERT_EQ(meta.correlation_id, -1);
	ASSERT_EQ(meta.attachment_size, 5);
	teardown();
}

/* Fields of every wire type that RpcMeta does not have, before, between and behind those it has. */
static void
test_unknown_fields(void)
{
	static const uint8_t bytes[] = "\xa0\x06\x01"				  /* 100: varint */
				       "\x20\x09"				  /* correlation_id 9 */
				       "\xa9\x06\x01\x02\x03\x04\x05\x06\x07\x08" /* 101: 64 bit */
				       "\xb2\x06\x03xyz"			  /* 102: bytes */
				       "\x28\x02"				  /* attachment_size 2 */
				       "\xbd\x06\x01\x02\x03\x04"		  /* 103: 32 bit */
				       "\x0a\x0a\x0a\x01s\x12\x01m\xfa\x06\x01x"; /* inside the request */
	struct meta meta;

	setup();
	ASSERT_FATAL(decode(bytes, sizeof bytes - 1, &meta) == 0);
	ASSERT_EQ(meta.correlation_id, 9);
	ASSERT_EQ(meta.attachment_size, 2);
	ASSERT_STR(meta.service, "s");
	teardown();
}

static void
test_fields_of_others(void)
{
	static const uint8_t bytes[] = "\x32\x04\x08\x01\x10\x02"		  /* chunk_info */
				       "\x3a\x02\x01\x02"			  /* authentication_data */
				       "\x42\x08\x08\x05\x10\x01\x18\x01\x20\x06" /* stream_settings */
				       "\x4a\x06\x0a\x01k\x12\x01v"		  /* user_fields */
				       "\x4a\x00"
				       "\x50\x63" /* content_type 99 */
				       "\x58\x01\x62\x04\x01\x02\x03\x04\x68\x01\x20\x03";
	struct meta meta;

	setup();
	ASSERT_FATAL(decode(bytes, sizeof bytes - 1, &meta) == 0);
	ASSERT_EQ(meta.correlation_id, 3);
	teardown();
}

static void
test_bad(void)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{"\x0a\x03\x0a\x01s", 5},	 /* a request without a method */
		{"\x0a\x03\x12\x01m", 5},	 /* without a service */
		{"\x0a\x00", 2},		 /* with neither */
		{"\x42\x02\x10\x01", 4},	 /* stream settings without a stream */
		{"\x20", 1},			 /* a field that stops behind its tag */
		{"\x20\xff", 2},		 /* within its value */
		{"\x0a\x7f\x0a", 3},		 /* a length beyond the end */
		{"\x00\x01", 2},		 /* field 0 */
		{"\xff\xff\xff\xff\xff\xff", 6}, /* a tag that does not end */
		{"\x27\x01", 2},		 /* a wire type that does not exist */
	};

	setup();
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct meta meta;

		ASSERT_EQ(decode(bad[i].bytes, bad[i].len, &meta), -EBADMSG);
	}
	teardown();
}

/* What a usual meta takes stays in the room: nothing is malloc'd, by either decoder. */
static void
test_fits_the_room(void)
{
	uint8_t frame[256];
	struct meta meta;

	setup();
	vector_load("rpc-echo16-request", frame, sizeof frame);
	CU_ASSERT(meta_scan(frame + 12, frame[11], &g_arena, &meta));
	ASSERT_EQ(meta_unpack(frame + 12, frame[11], &g_arena, &meta), 0);
	CU_ASSERT(g_arena.chunks == NULL);
	CU_ASSERT(g_arena.next - g_arena.room < ARENA_ROOM_BYTES / 4);
	teardown();
}

/* ---- the two decoders ---- */

static const char *const vectors[] = {"rpc-echo16-request", "rpc-echo16-response", "rpc-echo16-response-empty",
				      "rpc-warmup-request", "rpc-warmup-response"};

static void
assert_same(const struct meta *a, const struct meta *b)
{
	ASSERT_EQ(a->has_request, b->has_request);
	ASSERT_STR(a->service, b->service);
	ASSERT_STR(a->method, b->method);
	ASSERT_EQ(a->log_id, b->log_id);
	ASSERT_EQ(a->timeout_ms, b->timeout_ms);
	ASSERT_EQ(a->error_code, b->error_code);
	ASSERT_STR(a->error_text, b->error_text);
	ASSERT_EQ(a->correlation_id, b->correlation_id);
	ASSERT_EQ(a->attachment_size, b->attachment_size);
	ASSERT_EQ(a->compress_type, b->compress_type);
}

/* What the quick one takes the other one takes as well, and alike. */
static bool
compare_decoders(const uint8_t *bytes, size_t len)
{
	struct meta scanned, unpacked;
	bool usual;

	arena_reset(&g_arena);
	usual = meta_scan(bytes, len, &g_arena, &scanned);
	if (!usual)
		return false;
	CU_ASSERT(meta_unpack(bytes, len, &g_arena, &unpacked) == 0);
	assert_same(&scanned, &unpacked);
	return true;
}

static void
test_usual_metas(void)
{
	setup();
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		uint8_t frame[256];

		vector_load(vectors[i], frame, sizeof frame);
		CU_ASSERT(compare_decoders(frame + 12, frame[11]));
	}
	teardown();
}

/* Each captured meta with each of its bytes replaced by each value, and cut at each length. */
static void
test_decoders_agree(void)
{
	unsigned usual = 0;

	setup();
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		uint8_t frame[256], *meta = frame + 12;
		size_t len;

		vector_load(vectors[i], frame, sizeof frame);
		len = frame[11];
		for (size_t at = 0; at < len; at++) {
			uint8_t kept = meta[at];

			for (unsigned value = 0; value < 256; value++) {
				meta[at] = (uint8_t)value;
				usual += compare_decoders(meta, len);
			}
			meta[at] = kept;
			compare_decoders(meta, at);
		}
	}
	CU_ASSERT(usual > 1000);
	teardown();
}

static void
test_left_to_protobuf(void)
{
	static const struct {
		const char *bytes;
		size_t len;
	} unusual[] = {
		{"\x0a\x06\x0a\x01s\x12\x01m\x0a\x02\x18\x01", 12},	  /* a request in two parts */
		{"\x20\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12}, /* a varint of 11 bytes */
		{"\xa0\x01\x01", 3},
		{"\x62\x05\x01", 3},
		{"\x12\x03\x08\x80", 4},
	};
	struct meta meta;

	setup();
	for (size_t i = 0; i < sizeof unusual / sizeof unusual[0]; i++)
		CU_ASSERT(!meta_scan((const uint8_t *)unusual[i].bytes, unusual[i].len, &g_arena, &meta));
	teardown();
}

UNIT_SUITE("rpc meta", {"an empty meta has defaults", test_nothing},
	   {"every field in use is read", test_every_field_used}, {"unknown fields are skipped", test_unknown_fields},
	   {"fields of other features are skipped", test_fields_of_others}, {"what is no RpcMeta is refused", test_bad},
	   {"a usual meta needs no malloc", test_fits_the_room}, {"captured metas are usual ones", test_usual_metas},
	   {"both decoders agree", test_decoders_agree}, {"what is left to protobuf-c", test_left_to_protobuf});
