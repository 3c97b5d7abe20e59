/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/meta.h"
#include "tests/unit/mem/fixture.h"
#include "tests/unit/vectors.h"

#define ID_1 ((int64_t)0x40 << 35 | 2) /* as in the captured bytes */

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

static void
pack_and_compare(const struct meta_out *out, const char *vector)
{
	uint8_t frame[256], packed[256];
	size_t size = vector_load(vector, frame, sizeof frame), meta_size = frame[11];

	ASSERT_FATAL(size > 12 + meta_size);
	ASSERT_FATAL(meta_out_size(out) == meta_size);
	meta_out_pack(out, packed);
	CU_ASSERT(memcmp(packed, frame + 12, meta_size) == 0);
}

static void
test_captured_bytes(void)
{
	struct meta_out out;

	meta_out_request(&out, "test.PerfTestService", "Test", 0, ((int64_t)0x40 << 35) | 2, 16);
	pack_and_compare(&out, "rpc-echo16-request");
	meta_out_request(&out, "test.PerfTestService", "Test", 0, ((int64_t)0x30 << 28) | 2, 0);
	pack_and_compare(&out, "rpc-warmup-request");
	meta_out_response(&out, 0, NULL, ((int64_t)0x40 << 35) | 2, 16);
	pack_and_compare(&out, "rpc-echo16-response");
}

static void
test_round_trip(void)
{
	uint8_t packed[256];
	struct meta_out out;
	struct meta meta;

	setup();
	meta_out_request(&out, "a.B", "c", -5, INT64_MIN, INT32_MAX);
	meta_out_pack(&out, packed);
	ASSERT_FATAL(decode(packed, meta_out_size(&out), &meta) == 0);
	ASSERT_STR(meta.service, "a.B");
	ASSERT_STR(meta.method, "c");
	ASSERT_EQ(meta.log_id, -5);
	ASSERT_EQ(meta.correlation_id, INT64_MIN);
	ASSERT_EQ(meta.attachment_size, INT32_MAX);

	meta_out_response(&out, 2004, "slow down", 1, 0);
	meta_out_pack(&out, packed);
	ASSERT_FATAL(decode(packed, meta_out_size(&out), &meta) == 0);
	ASSERT_EQ(meta.error_code, 2004);
	ASSERT_STR(meta.error_text, "slow down");
	CU_ASSERT(!meta.has_request);
	teardown();
}

static void
test_append_to_iobuf(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	uint8_t packed[256], appended[256];
	struct meta_out out;
	size_t size;

	fixture_start(1);
	meta_out_request(&out, "test.PerfTestService", "Test", 1, 2, 3);
	size = meta_out_size(&out);
	meta_out_pack(&out, packed);
	ASSERT_EQ(meta_out_append(&out, &buf), 0);
	ASSERT_EQ(xr_iobuf_size(&buf), size);
	xr_iobuf_copy_out(&buf, 0, appended, size);
	CU_ASSERT(memcmp(packed, appended, size) == 0);
	xr_iobuf_clear(&buf);
	fixture_stop();
}

/* What a usual meta takes stays in the room: nothing is malloc'd. */
static void
test_fits_the_room(void)
{
	uint8_t packed[256];
	struct meta_out out;
	struct meta meta;

	setup();
	meta_out_request(&out, "test.PerfTestService", "Test", 1, 2, 3);
	meta_out_pack(&out, packed);
	ASSERT_FATAL(decode(packed, meta_out_size(&out), &meta) == 0);
	CU_ASSERT(g_arena.chunks == NULL);
	CU_ASSERT(g_arena.next - g_arena.room < ARENA_ROOM_BYTES / 4);
	teardown();
}

UNIT_SUITE("rpc meta", {"an empty meta has defaults", test_nothing},
	   {"every field in use is read", test_every_field_used}, {"unknown fields are skipped", test_unknown_fields},
	   {"fields of other features are skipped", test_fields_of_others}, {"what is no RpcMeta is refused", test_bad},
	   {"captured metas are packed to the byte", test_captured_bytes}, {"what is packed decodes", test_round_trip},
	   {"a meta can be packed to an iobuf", test_append_to_iobuf},
	   {"a usual meta needs no malloc", test_fits_the_room});
