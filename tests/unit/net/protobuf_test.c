/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc/arena.h"
#include "net/rpc/rpc_meta.pb-c.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/mem/iobuf_fixture.h"
#include <xrdma/protobuf.h>

#define SCRATCH 1024u /* a message up to this size is put together without the allocator */

/* A message whose packed form has about that many bytes. */
struct sample {
	Rpc__RpcMeta meta;
	Rpc__RpcRequestMeta request;
	char text[40000];
};

static struct sample g_sample;

static const ProtobufCMessage *
sample_of(size_t text_len)
{
	memset(g_sample.text, 'a', text_len);
	g_sample.text[text_len] = '\0';
	rpc__rpc_meta__init(&g_sample.meta);
	rpc__rpc_request_meta__init(&g_sample.request);
	g_sample.request.service_name = g_sample.text;
	g_sample.request.method_name = "Echo";
	g_sample.meta.request = &g_sample.request;
	g_sample.meta.has_correlation_id = true;
	g_sample.meta.correlation_id = -5;
	return &g_sample.meta.base;
}

/* The same bytes with a cut behind each of them, or behind every so many. */
static void
cut_up(struct xr_iobuf *to, const uint8_t *bytes, size_t len, size_t each)
{
	for (size_t at = 0; at < len; at += each)
		ASSERT_FATAL(xr_iobuf_append_user(to, (void *)(bytes + at), len - at < each ? len - at : each,
						  XR_MEM_KEY_NONE, NULL, NULL) == 0);
}

static uint8_t g_packed[50000];

static size_t
packed(const ProtobufCMessage *message)
{
	return protobuf_c_message_pack(message, g_packed);
}

static bool
is_sample(const ProtobufCMessage *message)
{
	const Rpc__RpcMeta *meta = (const Rpc__RpcMeta *)message;

	return meta && meta->correlation_id == -5 && meta->request &&
	       strcmp(meta->request->service_name, g_sample.text) == 0 &&
	       strcmp(meta->request->method_name, "Echo") == 0;
}

static void
test_pack_of_any_size(void)
{
	const size_t sizes[] = {0, 1, 100, PAYLOAD - 30, PAYLOAD, 39999};

	start(2);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const ProtobufCMessage *message = sample_of(sizes[i]);
		struct xr_iobuf buf = XR_IOBUF_INIT;
		size_t len = packed(message);

		ASSERT_EQ(xr_protobuf_pack(&buf, message), 0);
		CU_ASSERT(xr_iobuf_equal_bytes(&buf, g_packed, len));
		ASSERT_EQ(xr_protobuf_pack(&buf, message), 0);
		ASSERT_EQ(xr_iobuf_drop(&buf, len), len);
		CU_ASSERT(xr_iobuf_equal_bytes(&buf, g_packed, len));
		xr_iobuf_clear(&buf);
	}
	stop();
}

static void
test_pack_of_nothing(void)
{
	Rpc__RpcMeta empty = RPC__RPC_META__INIT;
	struct xr_iobuf buf = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_protobuf_pack(&buf, &empty.base), 0);
	CU_ASSERT(xr_iobuf_size(&buf) == 0 && !buf.pieces_);
	stop();
}

static void
test_pack_at_the_limit_changes_nothing(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;
	const ProtobufCMessage *message = sample_of(39999);

	start(1);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 100), 0);
	while (xr_iobuf_append(&hog, pattern, PAYLOAD) == 0)
		;
	ASSERT_EQ(xr_protobuf_pack(&buf, message), -ENOMEM);
	CU_ASSERT(holds(&buf, pattern, 100));
	ASSERT_EQ(xr_iobuf_drop(&hog, 3 * (size_t)PAYLOAD), 3 * PAYLOAD);
	ASSERT_EQ(xr_protobuf_pack(&buf, message), -ENOMEM);
	CU_ASSERT(holds(&buf, pattern, 100));
	xr_iobuf_clear(&hog);
	ASSERT_EQ(xr_protobuf_pack(&buf, message), 0);
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_a_sink_takes_what_is_packed_to_it(void)
{
	const ProtobufCMessage *message = sample_of(500);
	struct xr_iobuf buf = XR_IOBUF_INIT;
	struct xr_protobuf_sink sink = XR_PROTOBUF_SINK_INIT(&buf);
	size_t len = packed(message);

	start(1);
	ASSERT_EQ(rpc__rpc_meta__pack_to_buffer(&g_sample.meta, &sink.base), len);
	ASSERT_EQ(sink.error, 0);
	CU_ASSERT(xr_iobuf_equal_bytes(&buf, g_packed, len));
	xr_iobuf_clear(&buf);
	stop();
}

/* There may be room again further on: what came in between is missing all the same. */
static void
test_a_sink_remembers_an_error(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;
	struct xr_protobuf_sink sink = XR_PROTOBUF_SINK_INIT(&buf);

	start(1);
	while (xr_iobuf_append(&hog, pattern, PAYLOAD) == 0)
		;
	sink.base.append(&sink.base, 10, (const uint8_t *)pattern);
	ASSERT_EQ(sink.error, -ENOMEM);
	xr_iobuf_clear(&hog);
	sink.base.append(&sink.base, 10, (const uint8_t *)pattern);
	ASSERT_EQ(sink.error, -ENOMEM);
	ASSERT_EQ(xr_iobuf_size(&buf), 0);
	stop();
}

static void
test_unpack_however_it_is_cut(void)
{
	const size_t sizes[] = {0, 100, SCRATCH - 30, SCRATCH, 39999}, cuts[] = {1, 7, 1000, SIZE_MAX};

	start(2);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t len = packed(sample_of(sizes[i]));

		for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
			struct xr_iobuf buf = XR_IOBUF_INIT;
			ProtobufCMessage *message;

			cut_up(&buf, g_packed, len, cuts[k] < len ? cuts[k] : len);
			message = xr_protobuf_unpack(&rpc__rpc_meta__descriptor, NULL, &buf);
			xr_iobuf_clear(&buf);
			CU_ASSERT(is_sample(message));
			protobuf_c_message_free_unpacked(message, NULL);
		}
	}
	stop();
}

static void
test_unpack_of_nothing(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	ProtobufCMessage *message;

	start(1);
	message = xr_protobuf_unpack(&rpc__rpc_meta__descriptor, NULL, &buf);
	CU_ASSERT(message != NULL);
	protobuf_c_message_free_unpacked(message, NULL);
	stop();
}

static void
test_unpack_of_what_is_none(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	size_t len = packed(sample_of(2000));

	start(1);
	for (size_t each = 1; each < len; each += len - 2) {
		cut_up(&buf, g_packed, len - 1, each);
		errno = 0;
		CU_ASSERT_PTR_NULL(xr_protobuf_unpack(&rpc__rpc_meta__descriptor, NULL, &buf));
		ASSERT_EQ(errno, EBADMSG);
		ASSERT_EQ(xr_iobuf_size(&buf), len - 1);
		xr_iobuf_clear(&buf);
	}
	stop();
}

static size_t g_allocated, g_allocations, g_released;
static size_t g_allocations_max = SIZE_MAX; /* further ones fail */

static void *
count_alloc(void *data, size_t size)
{
	CU_ASSERT(data == &g_allocated);
	if (g_allocations == g_allocations_max)
		return NULL;
	g_allocated += size;
	g_allocations++;
	return malloc(size);
}

static void
count_release(void *data, void *memory)
{
	CU_ASSERT(data == &g_allocated);
	g_released += memory != NULL;
	free(memory);
}

/* Bytes that lie in one piece are not copied; nor does the copy of a small message ask for memory. */
static void
test_the_allocator_is_asked_for_no_more_than_is_needed(void)
{
	ProtobufCAllocator allocator = {count_alloc, count_release, &g_allocated};
	const size_t sizes[] = {100, 39999};
	size_t asked[2][2];

	start(2);
	for (size_t i = 0; i < 2; i++) {
		size_t len = packed(sample_of(sizes[i]));

		for (size_t k = 0; k < 2; k++) {
			struct xr_iobuf buf = XR_IOBUF_INIT;
			ProtobufCMessage *message;

			cut_up(&buf, g_packed, len, k == 0 ? len : len / 2);
			g_allocated = g_allocations = g_released = 0;
			message = xr_protobuf_unpack(&rpc__rpc_meta__descriptor, &allocator, &buf);
			CU_ASSERT(is_sample(message));
			asked[i][k] = g_allocated;
			protobuf_c_message_free_unpacked(message, &allocator);
			ASSERT_EQ(g_released, g_allocations);
			xr_iobuf_clear(&buf);
		}
	}
	ASSERT_EQ(asked[0][1], asked[0][0]);
	ASSERT_EQ(asked[1][1], asked[1][0] + packed(sample_of(39999)));
	stop();
}

static void
test_unpack_with_an_arena(void)
{
	static struct arena arena;
	struct xr_iobuf buf = XR_IOBUF_INIT;
	size_t len = packed(sample_of(39999));

	start(2);
	arena_init(&arena);
	cut_up(&buf, g_packed, len, 1000);
	CU_ASSERT(is_sample(xr_protobuf_unpack(&rpc__rpc_meta__descriptor, &arena.protobuf, &buf)));
	arena_fini(&arena);
	xr_iobuf_clear(&buf);
	stop();
}

/* The n-th allocation failing: nothing leaks, and errno says what is known. */
static void
test_any_allocation_of_unpack_may_fail(void)
{
	ProtobufCAllocator allocator = {count_alloc, count_release, &g_allocated};
	struct xr_iobuf buf = XR_IOBUF_INIT;
	ProtobufCMessage *message = NULL;
	size_t len = packed(sample_of(2000)), n;

	start(1);
	cut_up(&buf, g_packed, len, 1000);
	for (n = 0; n < 100 && !message; n++) {
		g_allocations = g_released = 0;
		g_allocations_max = n;
		errno = 0;
		message = xr_protobuf_unpack(&rpc__rpc_meta__descriptor, &allocator, &buf);
		CU_ASSERT(message || errno == (n == 0 ? ENOMEM : EBADMSG));
		CU_ASSERT(message || g_released == g_allocations);
		ASSERT_EQ(xr_iobuf_size(&buf), len);
	}
	g_allocations_max = SIZE_MAX;
	CU_ASSERT(n > 4 && is_sample(message));
	protobuf_c_message_free_unpacked(message, &allocator);
	ASSERT_EQ(g_released, g_allocations);
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_unpack_without_memory_for_the_copy(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	size_t len = packed(sample_of(2000));

	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer has its own malloc()");
		return;
	}
	start(1);
	cut_up(&buf, g_packed, len, 1000);
	g_fail_alloc_after = 0;
	CU_ASSERT_PTR_NULL(xr_protobuf_unpack(&rpc__rpc_meta__descriptor, NULL, &buf));
	g_fail_alloc_after = -1;
	ASSERT_EQ(errno, ENOMEM);
	xr_iobuf_clear(&buf);
	stop();
}

UNIT_SUITE("protobuf", {"pack of any size", test_pack_of_any_size}, {"pack of nothing", test_pack_of_nothing},
	   {"a pack at the pool's limit changes nothing", test_pack_at_the_limit_changes_nothing},
	   {"a sink takes what is packed to it", test_a_sink_takes_what_is_packed_to_it},
	   {"a sink remembers an error", test_a_sink_remembers_an_error},
	   {"unpack, however it is cut", test_unpack_however_it_is_cut}, {"unpack of nothing", test_unpack_of_nothing},
	   {"unpack of what is no message", test_unpack_of_what_is_none},
	   {"the allocator is asked for no more than is needed",
	    test_the_allocator_is_asked_for_no_more_than_is_needed},
	   {"unpack with an arena", test_unpack_with_an_arena},
	   {"any allocation of unpack may fail", test_any_allocation_of_unpack_may_fail},
	   {"unpack without memory for the copy", test_unpack_without_memory_for_the_copy});
