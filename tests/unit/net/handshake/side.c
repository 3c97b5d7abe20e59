/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/handshake/side.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"
#include <errno.h>

static int
alloc(void *arg, struct hello *own, const char **why)
{
	static const uint8_t gid[16] = {[10] = 0xFF, [11] = 0xFF, [12] = 10, [13] = 77, [15] = 1};
	struct side *side = arg;

	side->allocs++;
	if (side->fault == SIDE_ALLOC_FAILS) {
		*why = "no memory for a queue pair";
		return -ENOMEM;
	}
	own->block_size = 8160;
	own->sq_size = 128;
	own->rq_size = 128;
	memcpy(own->gid, gid, sizeof gid);
	own->qp_num = side->hs.role == HANDSHAKE_CLIENT ? 0x20 : 0x18;
	return 0;
}

static int
bring_up(void *arg, const struct hello *peer, const char **why)
{
	struct side *side = arg;

	side->bring_ups++;
	side->heard = *peer;
	if (side->fault == SIDE_BRING_UP_FAILS) {
		*why = "no route to the peer";
		return -ENETUNREACH;
	}
	return 0;
}

static const struct handshake_ops ops_with_faults = {.alloc = alloc, .bring_up = bring_up};

enum handshake_result
side_start(struct side *side, enum handshake_role role, enum side_fault fault)
{
	const struct handshake_ops *ops = fault == SIDE_NO_RDMA ? NULL : &ops_with_faults;

	*side = (struct side){.fault = fault};
	if (role == HANDSHAKE_CLIENT)
		return handshake_start_client(&side->hs, ops, side);
	handshake_start_server(&side->hs, ops, side);
	return HANDSHAKE_GO_ON;
}

struct hello
side_peer_hello(void)
{
	return (struct hello){
		.hello_ver = HELLO_V2_VERSION,
		.impl_ver = HELLO_V2_IMPL,
		.block_size = 65504,
		.sq_size = 64,
		.rq_size = 32,
		.gid = {[0] = 0xFE, [1] = 0x80, [15] = 9},
		.qp_num = 0x1A3,
	};
}

void
side_after_hello(struct side *side, enum side_fault fault)
{
	ASSERT_FATAL(side_start(side, HANDSHAKE_CLIENT, fault) == HANDSHAKE_GO_ON);
	side->hs.out_len = 0;
}

void
side_after_answer(struct side *side, enum side_fault fault)
{
	struct hello hello = side_peer_hello();
	uint8_t bytes[HELLO_V2_BYTES];

	side_start(side, HANDSHAKE_SERVER, fault);
	hello_v2_encode(&hello, bytes);
	ASSERT_FATAL(side_feed_taken(side, bytes, sizeof bytes) == HANDSHAKE_GO_ON);
	ASSERT_EQ(side->hs.state, HANDSHAKE_S_ACK_WAIT);
}

enum handshake_result
side_feed_taken(struct side *side, const void *data, size_t len)
{
	size_t used = SIZE_MAX;
	enum handshake_result result = handshake_feed(&side->hs, data, len, &used);

	ASSERT_EQ(used, len);
	return result;
}

enum handshake_result
side_feed_left(struct side *side, const void *data, size_t len)
{
	size_t used = SIZE_MAX;
	enum handshake_result result = handshake_feed(&side->hs, data, len, &used);

	ASSERT_EQ(used, 0);
	return result;
}

void
side_assert_out(struct side *side, const void *expected, size_t len)
{
	ASSERT_EQ(side->hs.out_len, len);
	CU_ASSERT(side->hs.out_len == len && memcmp(side->hs.out, expected, len) == 0);
	side->hs.out_len = 0;
}

void
side_assert_refusal_out(struct side *side)
{
	uint8_t refusal[HELLO_V2_BYTES];

	hello_v2_encode_refusal(refusal);
	side_assert_out(side, refusal, sizeof refusal);
}

void
side_assert_vector_out(struct side *side, const char *vector)
{
	uint8_t bytes[64];
	size_t len = vector_load(vector, bytes, sizeof bytes);

	side_assert_out(side, bytes, len);
}

void
side_assert_ended(const struct side *side, enum handshake_state state, const char *reason)
{
	ASSERT_STR(handshake_state_name(side->hs.state), handshake_state_name(state));
	ASSERT_STR(side->hs.reason, reason);
	ASSERT_EQ(side->hs.refused, state != HANDSHAKE_ESTABLISHED);
}
