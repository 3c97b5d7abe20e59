/* SPDX-License-Identifier: Apache-2.0 */

#include "net/handshake/hello.h"
#include <endian.h>
#include <string.h>

/*
 * The layout: magic 4, msg_len 2 (of the whole, magic included), hello_ver 2, impl_ver 2, block_size 4, sq_size 2,
 * rq_size 2, lid 2, gid 16 (as it is), qp_num 4, then a tail up to msg_len that nobody has defined yet.
 */
static const uint8_t magic[HELLO_MAGIC_BYTES] = {'R', 'D', 'M', 'A'};

#define FRAME_BYTES (HELLO_MAGIC_BYTES + 2u)

#define VERSION_REFUSAL 0xFFFFu

#define BLOCK_MIN  1024u
#define BLOCK_MAX  (1u << 31) /* the longest message of a queue pair */
#define QUEUE_MIN  16u
#define QUEUE_MAX  32768u  /* the deepest queue of common cards */
#define LID_MAX	   0xBFFFu /* multicast begins behind it */
#define QP_NUM_MIN 2u	   /* 0 and 1 belong to subnet management */
#define QP_NUM_MAX 0xFFFFFFu

static uint8_t *
put(uint8_t *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

static uint8_t *
put16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	return put(at, &value, sizeof value);
}

static uint8_t *
put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	return put(at, &value, sizeof value);
}

static const uint8_t *
get(const uint8_t *at, void *bytes, size_t len)
{
	memcpy(bytes, at, len);
	return at + len;
}

static const uint8_t *
get16(const uint8_t *at, uint16_t *value)
{
	at = get(at, value, sizeof *value);
	*value = be16toh(*value);
	return at;
}

static const uint8_t *
get32(const uint8_t *at, uint32_t *value)
{
	at = get(at, value, sizeof *value);
	*value = be32toh(*value);
	return at;
}

void
hello_v2_encode(const struct hello *hello, uint8_t out[HELLO_V2_BYTES])
{
	uint8_t *at = out;

	at = put(at, magic, sizeof magic);
	at = put16(at, HELLO_V2_BYTES);
	at = put16(at, hello->hello_ver);
	at = put16(at, hello->impl_ver);
	at = put32(at, hello->block_size);
	at = put16(at, hello->sq_size);
	at = put16(at, hello->rq_size);
	at = put16(at, hello->lid);
	at = put(at, hello->gid, sizeof hello->gid);
	put32(at, hello->qp_num);
}

void
hello_v2_encode_refusal(uint8_t out[HELLO_V2_BYTES])
{
	hello_v2_encode(&(struct hello){.hello_ver = VERSION_REFUSAL}, out);
}

static void
decode_body(const uint8_t *at, struct hello *hello)
{
	at = get16(at, &hello->hello_ver);
	at = get16(at, &hello->impl_ver);
	at = get32(at, &hello->block_size);
	at = get16(at, &hello->sq_size);
	at = get16(at, &hello->rq_size);
	at = get16(at, &hello->lid);
	at = get(at, hello->gid, sizeof hello->gid);
	get32(at, &hello->qp_num);
}

enum hello_parse
hello_v2_decode(const uint8_t *data, size_t len, struct hello *hello, size_t *used)
{
	uint16_t msg_len;

	*used = 0;
	if (memcmp(data, magic, len < sizeof magic ? len : sizeof magic) != 0)
		return HELLO_OTHER;
	if (len < FRAME_BYTES)
		return HELLO_PARTIAL;
	get16(data + sizeof magic, &msg_len);
	if (msg_len < HELLO_V2_BYTES || msg_len > HELLO_V2_MAX)
		return HELLO_BAD;
	if (len < msg_len)
		return HELLO_PARTIAL;
	decode_body(data + FRAME_BYTES, hello);
	*used = msg_len;
	return HELLO_GOT;
}

/* A server's "no" has carried 0xFFFF, or zeros in front of garbage, depending on its age. */
static bool
is_refusal(const struct hello *hello)
{
	return hello->hello_ver == VERSION_REFUSAL || hello->hello_ver == 0 || hello->impl_ver == 0;
}

static bool
is_unicast(const uint8_t gid[16])
{
	static const uint8_t unspecified[16];

	return gid[0] != 0xFF && memcmp(gid, unspecified, sizeof unspecified) != 0;
}

bool
hello_v2_negotiable(const struct hello *hello, const char **why)
{
	const struct {
		bool wrong;
		const char *why;
	} checks[] = {
		{is_refusal(hello), "refused by the peer"},
		{hello->hello_ver != HELLO_V2_VERSION, "the peer's hello has an unknown version"},
		{hello->impl_ver != HELLO_V2_IMPL, "the peer's implementation has an unknown version"},
		{hello->block_size < BLOCK_MIN, "the peer's block size is below 1024 bytes"},
		{hello->block_size > BLOCK_MAX, "the peer's block size is beyond 2 GiB"},
		{hello->sq_size < QUEUE_MIN, "the peer's send queue is below 16 entries"},
		{hello->sq_size > QUEUE_MAX, "the peer's send queue is beyond 32768 entries"},
		{hello->rq_size < QUEUE_MIN, "the peer's receive queue is below 16 entries"},
		{hello->rq_size > QUEUE_MAX, "the peer's receive queue is beyond 32768 entries"},
		{hello->lid > LID_MAX, "the peer's LID is not that of a port"},
		{!is_unicast(hello->gid), "the peer's GID is not that of a port"},
		{hello->qp_num < QP_NUM_MIN || hello->qp_num > QP_NUM_MAX, "the peer's queue pair has no valid number"},
	};

	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
		if (checks[i].wrong) {
			*why = checks[i].why;
			return false;
		}
	}
	return true;
}

void
hello_ack_encode(bool use_rdma, uint8_t out[HELLO_ACK_BYTES])
{
	put32(out, use_rdma ? HELLO_ACK_RDMA : 0);
}

bool
hello_ack_decode(const uint8_t ack[HELLO_ACK_BYTES])
{
	uint32_t flags;

	get32(ack, &flags);
	return flags & HELLO_ACK_RDMA;
}
