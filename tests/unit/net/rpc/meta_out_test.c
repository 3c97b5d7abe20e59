/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/meta_out.h"
#include "net/rpc/rpc_meta.pb-c.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"
#include <stdlib.h>

static void
pack_and_compare(const struct meta_out *out, const char *vector)
{
	uint8_t frame[256], packed[256];
	size_t size = vector_load(vector, frame, sizeof frame), meta_size = frame[11];

	ASSERT_FATAL(size > 12 + meta_size);
	ASSERT_FATAL(out->size == meta_size);
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
	meta_out_response(&out, 0, NULL, ((int64_t)0x60 << 35) | 2, 16);
	pack_and_compare(&out, "rpc-echo16-response-empty");
	meta_out_response(&out, 0, NULL, ((int64_t)0x30 << 28) | 2, 0);
	pack_and_compare(&out, "rpc-warmup-response");
}

/* ---- against protobuf-c ---- */

static void
set_common(Rpc__RpcMeta *meta, int64_t id, uint32_t attachment_size)
{
	rpc__rpc_meta__init(meta);
	meta->has_compress_type = meta->has_content_type = meta->has_checksum_type = meta->has_checksum_value = true;
	meta->has_correlation_id = true;
	meta->correlation_id = id;
	meta->has_attachment_size = attachment_size != 0;
	meta->attachment_size = (int32_t)attachment_size;
}

static void
assert_same(const struct meta_out *out, const Rpc__RpcMeta *meta)
{
	size_t size = rpc__rpc_meta__get_packed_size(meta);
	uint8_t *ours = malloc(size + 1), *theirs = malloc(size + 1);

	ASSERT_FATAL(out->size == size);
	ours[size] = theirs[size] = 0xa5;
	meta_out_pack(out, ours);
	rpc__rpc_meta__pack(meta, theirs);
	CU_ASSERT(memcmp(ours, theirs, size + 1) == 0);
	free(ours);
	free(theirs);
}

static const int64_t numbers[] = {
	0,	   1,	      127,	 128,	    16383,     16384,	  1 << 21, (1 << 28) - 1, 1 << 28,
	INT32_MAX, 1ll << 35, 1ll << 42, 1ll << 49, 1ll << 56, INT64_MAX, -1,	   INT64_MIN};

#define NUMBERS (sizeof numbers / sizeof numbers[0])

static void
test_every_length_of_number(void)
{
	for (size_t i = 0; i < NUMBERS; i++)
		for (size_t j = 0; j < NUMBERS; j++) {
			uint32_t attachment = (uint32_t)numbers[j] & INT32_MAX;
			Rpc__RpcRequestMeta request = RPC__RPC_REQUEST_META__INIT;
			Rpc__RpcResponseMeta response = RPC__RPC_RESPONSE_META__INIT;
			struct meta_out out;
			Rpc__RpcMeta meta;

			request.service_name = "a.B";
			request.method_name = "c";
			request.has_log_id = numbers[j] != 0;
			request.log_id = numbers[j];
			set_common(&meta, numbers[i], attachment);
			meta.request = &request;
			meta_out_request(&out, "a.B", "c", numbers[j], numbers[i], attachment);
			assert_same(&out, &meta);

			response.has_error_code = true;
			response.error_code = (int32_t)numbers[j];
			set_common(&meta, numbers[i], attachment);
			meta.response = &response;
			meta_out_response(&out, (int32_t)numbers[j], NULL, numbers[i], attachment);
			assert_same(&out, &meta);
		}
}

/* Lengths at which the length of a length changes. */
static void
test_every_length_of_text(void)
{
	static const size_t lens[] = {0, 1, 100, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 16370, 16384, 70000};

	for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
		Rpc__RpcRequestMeta request = RPC__RPC_REQUEST_META__INIT;
		Rpc__RpcResponseMeta response = RPC__RPC_RESPONSE_META__INIT;
		char *text = malloc(lens[i] + 1);
		struct meta_out out;
		Rpc__RpcMeta meta;

		memset(text, 'x', lens[i]);
		text[lens[i]] = '\0';
		request.service_name = text;
		request.method_name = text;
		set_common(&meta, 1, 2);
		meta.request = &request;
		meta_out_request(&out, text, text, 0, 1, 2);
		assert_same(&out, &meta);

		response.has_error_code = true;
		response.error_code = 2001;
		response.error_text = text;
		set_common(&meta, 1, 0);
		meta.response = &response;
		meta_out_response(&out, 2001, text, 1, 0);
		assert_same(&out, &meta);
		free(text);
	}
}

UNIT_SUITE("rpc meta out", {"captured metas are packed to the byte", test_captured_bytes},
	   {"numbers of every length are packed as by protobuf-c", test_every_length_of_number},
	   {"texts of every length are packed as by protobuf-c", test_every_length_of_text});
