/* SPDX-License-Identifier: Apache-2.0 */

#include "net/handshake/hello.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"

#define MSG_LEN_AT 4

/* The hello of the captured client, field by field. */
static const struct hello client_hello = {
	.hello_ver = 2,
	.impl_ver = 1,
	.block_size = 8160,
	.sq_size = 128,
	.rq_size = 128,
	.lid = 0,
	.gid = {[10] = 0xFF, [11] = 0xFF, [12] = 10, [13] = 77, [14] = 0, [15] = 1},
	.qp_num = 0x20,
};

static void
assert_same(const struct hello *actual, const struct hello *expected)
{
	ASSERT_EQ(actual->hello_ver, expected->hello_ver);
	ASSERT_EQ(actual->impl_ver, expected->impl_ver);
	ASSERT_EQ(actual->block_size, expected->block_size);
	ASSERT_EQ(actual->sq_size, expected->sq_size);
	ASSERT_EQ(actual->rq_size, expected->rq_size);
	ASSERT_EQ(actual->lid, expected->lid);
	ASSERT_EQ(memcmp(actual->gid, expected->gid, sizeof actual->gid), 0);
	ASSERT_EQ(actual->qp_num, expected->qp_num);
}

static void
assert_vector(const char *name, const struct hello *expected)
{
	uint8_t bytes[64], again[HELLO_V2_BYTES];
	struct hello hello;
	size_t used;

	ASSERT_FATAL(vector_load(name, bytes, sizeof bytes) == HELLO_V2_BYTES);
	ASSERT_EQ(hello_v2_decode(bytes, HELLO_V2_BYTES, &hello, &used), HELLO_GOT);
	ASSERT_EQ(used, HELLO_V2_BYTES);
	assert_same(&hello, expected);
	hello_v2_encode(&hello, again);
	ASSERT_EQ(memcmp(again, bytes, sizeof again), 0);
}

static void
test_vectors(void)
{
	struct hello server_hello = client_hello;

	server_hello.qp_num = 0x18;
	assert_vector("hello-v2-client", &client_hello);
	assert_vector("hello-v2-server", &server_hello);
}

/* Every field has bytes of its own here, so that two that changed places would show. */
static void
test_layout(void)
{
	static const uint8_t expected[HELLO_V2_BYTES] = {
		'R',  'D',  'M',  'A',	0,    40,   0xA1, 0xA2, 0xB1, 0xB2, 0xC1, 0xC2, 0xC3, 0xC4,
		0xD1, 0xD2, 0xE1, 0xE2, 0xF1, 0xF2, 1,	  2,	3,    4,    5,	  6,	7,    8,
		9,    10,   11,	  12,	13,   14,   15,	  16,	0x71, 0x72, 0x73, 0x74,
	};
	const struct hello hello = {
		.hello_ver = 0xA1A2,
		.impl_ver = 0xB1B2,
		.block_size = 0xC1C2C3C4,
		.sq_size = 0xD1D2,
		.rq_size = 0xE1E2,
		.lid = 0xF1F2,
		.gid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		.qp_num = 0x71727374,
	};
	uint8_t bytes[HELLO_V2_BYTES];
	struct hello back;
	size_t used;

	hello_v2_encode(&hello, bytes);
	ASSERT_EQ(memcmp(bytes, expected, sizeof expected), 0);
	ASSERT_EQ(hello_v2_decode(bytes, sizeof bytes, &back, &used), HELLO_GOT);
	assert_same(&back, &hello);
}

static void
test_refusal(void)
{
	static const uint8_t expected[HELLO_V2_BYTES] = {'R', 'D', 'M', 'A', 0, 40, 0xFF, 0xFF};
	uint8_t bytes[HELLO_V2_BYTES];
	const char *why = NULL;
	struct hello hello;
	size_t used;

	memset(bytes, 0x55, sizeof bytes);
	hello_v2_encode_refusal(bytes);
	ASSERT_EQ(memcmp(bytes, expected, sizeof expected), 0);
	ASSERT_EQ(hello_v2_decode(bytes, sizeof bytes, &hello, &used), HELLO_GOT);
	CU_ASSERT_FALSE(hello_v2_negotiable(&hello, &why));
	ASSERT_STR(why, "refused by the peer");
}

static void
test_ack(void)
{
	static const uint8_t tcp[HELLO_ACK_BYTES];
	uint8_t vector[HELLO_ACK_BYTES], bytes[HELLO_ACK_BYTES];

	ASSERT_FATAL(vector_load("ack-use-rdma", vector, sizeof vector) == HELLO_ACK_BYTES);
	hello_ack_encode(true, bytes);
	ASSERT_EQ(memcmp(bytes, vector, sizeof vector), 0);
	hello_ack_encode(false, bytes);
	ASSERT_EQ(memcmp(bytes, tcp, sizeof tcp), 0);
}

static void
test_ack_is_one_bit(void)
{
	CU_ASSERT_TRUE(hello_ack_decode((const uint8_t[]){0, 0, 0, 1}));
	CU_ASSERT_TRUE(hello_ack_decode((const uint8_t[]){0xFF, 0xFF, 0xFF, 0xFF}));
	CU_ASSERT_FALSE(hello_ack_decode((const uint8_t[]){0, 0, 0, 0}));
	CU_ASSERT_FALSE(hello_ack_decode((const uint8_t[]){0xFF, 0xFF, 0xFF, 0xFE}));
	CU_ASSERT_FALSE(hello_ack_decode((const uint8_t[]){1, 0, 0, 0}));
}

static void
test_every_prefix_waits(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct hello hello;
	size_t used;

	hello_v2_encode(&client_hello, bytes);
	for (size_t len = 0; len < sizeof bytes; len++) {
		used = 99;
		ASSERT_EQ(hello_v2_decode(bytes, len, &hello, &used), HELLO_PARTIAL);
		ASSERT_EQ(used, 0);
	}
}

static void
test_other_magic(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct hello hello;
	size_t used;

	for (size_t wrong = 0; wrong < HELLO_MAGIC_BYTES; wrong++) {
		hello_v2_encode(&client_hello, bytes);
		bytes[wrong] ^= 0x20;
		for (size_t len = 0; len <= sizeof bytes; len++) {
			used = 99;
			ASSERT_EQ(hello_v2_decode(bytes, len, &hello, &used),
				  len <= wrong ? HELLO_PARTIAL : HELLO_OTHER);
			ASSERT_EQ(used, 0);
		}
	}
	ASSERT_EQ(hello_v2_decode((const uint8_t *)"RDM3", 4, &hello, &used), HELLO_OTHER);
	ASSERT_EQ(hello_v2_decode((const uint8_t *)"PRPC", 4, &hello, &used), HELLO_OTHER);
}

/* All 65536 lengths: told apart as soon as the length has come, and a good one waits for its tail. */
static void
test_every_length(void)
{
	static uint8_t bytes[UINT16_MAX];
	struct hello hello;
	size_t used;

	hello_v2_encode(&client_hello, bytes);
	for (unsigned msg_len = 0; msg_len <= UINT16_MAX; msg_len++) {
		bool allowed = msg_len >= HELLO_V2_BYTES && msg_len <= HELLO_V2_MAX;
		enum hello_parse early = hello_v2_decode(bytes, MSG_LEN_AT + 1, &hello, &used), framed, whole;

		ASSERT_FATAL(early == HELLO_PARTIAL && used == 0);
		bytes[MSG_LEN_AT] = (uint8_t)(msg_len >> 8);
		bytes[MSG_LEN_AT + 1] = (uint8_t)msg_len;
		framed = hello_v2_decode(bytes, MSG_LEN_AT + 2, &hello, &used);
		ASSERT_FATAL(framed == (allowed ? HELLO_PARTIAL : HELLO_BAD) && used == 0);
		if (allowed) {
			framed = hello_v2_decode(bytes, msg_len - 1, &hello, &used);
			ASSERT_FATAL(framed == HELLO_PARTIAL && used == 0);
		}
		whole = hello_v2_decode(bytes, sizeof bytes, &hello, &used);
		ASSERT_FATAL(whole == (allowed ? HELLO_GOT : HELLO_BAD) && used == (allowed ? msg_len : 0));
	}
}

static void
test_bytes_behind_are_left(void)
{
	uint8_t bytes[HELLO_V2_BYTES + 100];
	struct hello hello;
	size_t used;

	memset(bytes, 0xEE, sizeof bytes);
	hello_v2_encode(&client_hello, bytes);
	ASSERT_EQ(hello_v2_decode(bytes, sizeof bytes, &hello, &used), HELLO_GOT);
	ASSERT_EQ(used, HELLO_V2_BYTES);
	assert_same(&hello, &client_hello);
}

struct bounds {
	const char *field;
	size_t offset, width;
	uint32_t lowest, highest;
};

static struct hello
hello_with(const struct bounds *bounds, uint32_t value)
{
	struct hello hello = client_hello;
	char *field = (char *)&hello + bounds->offset;
	uint16_t narrow = (uint16_t)value;

	memcpy(field, bounds->width == sizeof narrow ? (void *)&narrow : (void *)&value, bounds->width);
	return hello;
}

/* Every value from first to last is negotiable exactly when it is within the bounds, and a refusal has a reason. */
static void
assert_bounds(const struct bounds *bounds, uint32_t first, uint32_t last)
{
	for (uint64_t value = first; value <= last; value++) {
		struct hello hello = hello_with(bounds, (uint32_t)value);
		bool within = value >= bounds->lowest && value <= bounds->highest, yes;
		const char *why = "";

		yes = hello_v2_negotiable(&hello, &why);
		if (yes != within || (!yes && !*why)) {
			printf("%s = %llu: %d \"%s\"\n", bounds->field, (unsigned long long)value, yes, why);
			CU_FAIL("bounds of a field");
		}
	}
}

#define BOUNDS(field, lowest, highest)                                                                       \
	{                                                                                                    \
#field, offsetof(struct hello, field), sizeof((struct hello *)NULL)->field, lowest, highest, \
	}

static void
test_bounds_of_short_fields(void)
{
	static const struct bounds fields[] = {
		BOUNDS(hello_ver, 2, 2),    BOUNDS(impl_ver, 1, 1), BOUNDS(sq_size, 16, 32768),
		BOUNDS(rq_size, 16, 32768), BOUNDS(lid, 0, 0xBFFF),
	};

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		assert_bounds(&fields[i], 0, UINT16_MAX);
}

static void
test_bounds_of_long_fields(void)
{
	static const struct bounds block_size = BOUNDS(block_size, 1024, 0x80000000u);
	static const struct bounds qp_num = BOUNDS(qp_num, 2, 0xFFFFFF);

	assert_bounds(&block_size, 0, 10000);
	assert_bounds(&block_size, 2097120, 2097120);
	assert_bounds(&block_size, 0x7FFFFFF0u, 0x80000010u);
	assert_bounds(&block_size, UINT32_MAX - 1, UINT32_MAX);
	assert_bounds(&qp_num, 0, 10000);
	assert_bounds(&qp_num, 0xFFFFF0, 0x1000010);
	assert_bounds(&qp_num, UINT32_MAX - 1, UINT32_MAX);
}

static void
assert_why(const struct hello *hello, const char *expected)
{
	const char *why = NULL;

	CU_ASSERT_FALSE(hello_v2_negotiable(hello, &why));
	ASSERT_STR(why, expected);
}

static void
test_gid(void)
{
	struct hello hello = client_hello;
	const char *why = NULL;

	memset(hello.gid, 0, sizeof hello.gid);
	assert_why(&hello, "the peer's GID is not that of a port");
	hello.gid[15] = 1;
	CU_ASSERT_TRUE(hello_v2_negotiable(&hello, &why));
	hello.gid[0] = 0xFE;
	CU_ASSERT_TRUE(hello_v2_negotiable(&hello, &why));
	hello.gid[0] = 0xFF;
	assert_why(&hello, "the peer's GID is not that of a port");
}

/* Old servers refuse with zero versions and whatever their memory held behind them. */
static void
test_refusals_of_every_age(void)
{
	struct hello hello;

	memset(&hello, 0xAB, sizeof hello);
	hello.hello_ver = 0;
	hello.impl_ver = 0;
	assert_why(&hello, "refused by the peer");
	hello = client_hello;
	hello.impl_ver = 0;
	assert_why(&hello, "refused by the peer");
	hello = (struct hello){0};
	assert_why(&hello, "refused by the peer");
	hello = client_hello;
	hello.hello_ver = 3;
	assert_why(&hello, "the peer's hello has an unknown version");
	hello = client_hello;
	hello.impl_ver = 2;
	assert_why(&hello, "the peer's implementation has an unknown version");
	hello = client_hello;
	hello.block_size = 1023;
	assert_why(&hello, "the peer's block size is below 1024 bytes");
}

UNIT_SUITE("hello", {"the captured hellos decode and encode exactly", test_vectors},
	   {"each field has its place", test_layout}, {"the refusal is length, 0xFFFF and zeros", test_refusal},
	   {"the ACK is a flags word", test_ack}, {"only one bit of the ACK counts", test_ack_is_one_bit},
	   {"every prefix of a hello waits", test_every_prefix_waits},
	   {"another magic shows at its first byte that differs", test_other_magic},
	   {"40 to 4096 bytes are a hello, no other length is", test_every_length},
	   {"bytes behind a hello are left", test_bytes_behind_are_left},
	   {"two-byte fields have their bounds", test_bounds_of_short_fields},
	   {"four-byte fields have theirs", test_bounds_of_long_fields}, {"the GID is one of a port", test_gid},
	   {"refusals of every age", test_refusals_of_every_age});
