/* SPDX-License-Identifier: Apache-2.0 */

/* What holds for both roles. */

#include "tests/unit/net/handshake/side.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"
#include <errno.h>

static const uint8_t ack_rdma[HELLO_ACK_BYTES] = {0, 0, 0, 1};
static const uint8_t ack_tcp[HELLO_ACK_BYTES] = {0, 0, 0, 0};

/* What a hello may say and yet be no offer: each on its own makes either side go on with TCP. */
struct flaw {
	const char *reason;
	struct hello hello;
};

static size_t
flaws(struct flaw out[16])
{
	struct hello good = side_peer_hello();
	size_t count = 0;

#define FLAW(field, value, why)                                             \
	do {                                                                \
		out[count] = (struct flaw){.reason = (why), .hello = good}; \
		out[count++].hello.field = (value);                         \
	} while (0)
	FLAW(hello_ver, 0, "refused by the peer");
	FLAW(hello_ver, 1, "the peer's hello has an unknown version");
	FLAW(impl_ver, 0, "refused by the peer");
	FLAW(impl_ver, 2, "the peer's implementation has an unknown version");
	FLAW(block_size, 1000, "the peer's block size is below 1024 bytes");
	FLAW(block_size, UINT32_MAX, "the peer's block size is beyond 2 GiB");
	FLAW(sq_size, 10, "the peer's send queue is below 16 entries");
	FLAW(sq_size, UINT16_MAX, "the peer's send queue is beyond 32768 entries");
	FLAW(rq_size, 10, "the peer's receive queue is below 16 entries");
	FLAW(rq_size, UINT16_MAX, "the peer's receive queue is beyond 32768 entries");
	FLAW(qp_num, 0, "the peer's queue pair has no valid number");
#undef FLAW
	return count;
}

static void
test_client_takes_no_flawed_hello(void)
{
	struct flaw flawed[16];
	size_t count = flaws(flawed);

	for (size_t i = 0; i < count; i++) {
		uint8_t bytes[HELLO_V2_BYTES];
		struct side side;

		side_after_hello(&side, SIDE_WORKS);
		hello_v2_encode(&flawed[i].hello, bytes);
		ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
		side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, flawed[i].reason);
		side_assert_out(&side, ack_tcp, sizeof ack_tcp);
		ASSERT_EQ(side.bring_ups, 0);
	}
}

static void
test_server_takes_no_flawed_hello(void)
{
	struct flaw flawed[16];
	size_t count = flaws(flawed);

	for (size_t i = 0; i < count; i++) {
		uint8_t bytes[HELLO_V2_BYTES];
		struct side side;

		side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
		hello_v2_encode(&flawed[i].hello, bytes);
		ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_GO_ON);
		ASSERT_EQ(side.hs.state, HANDSHAKE_S_ACK_WAIT);
		CU_ASSERT_TRUE(side.hs.refused);
		side_assert_refusal_out(&side);
		ASSERT_EQ(side_feed_taken(&side, ack_tcp, sizeof ack_tcp), HANDSHAKE_TCP);
		side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, flawed[i].reason);
		ASSERT_EQ(side.allocs, 0);
	}
}

/* Lengths that are no hello's, for both roles: known to be wrong with the sixth byte. */
static void
assert_bad_length(enum handshake_role role, unsigned msg_len)
{
	uint8_t bytes[6] = {'R', 'D', 'M', 'A', (uint8_t)(msg_len >> 8), (uint8_t)msg_len};
	struct side side;

	side_start(&side, role, SIDE_WORKS);
	side.hs.out_len = 0;
	ASSERT_EQ(side_feed_left(&side, bytes, 5), HANDSHAKE_GO_ON);
	ASSERT_EQ(side_feed_left(&side, bytes, 6), HANDSHAKE_FAIL);
	side_assert_ended(&side, HANDSHAKE_FAILED, "a hello whose length is not 40 to 4096 bytes");
	side_assert_out(&side, "", 0);
}

static void
test_bad_lengths(void)
{
	static const unsigned lengths[] = {0, 6, 35, 38, 39, 4097, 32768, 65535};

	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		assert_bad_length(HANDSHAKE_CLIENT, lengths[i]);
		assert_bad_length(HANDSHAKE_SERVER, lengths[i]);
	}
}

/* The ways in which a peer may leave, and what is said of it. */
static void
assert_leaves(struct side *side, void (*leave)(struct handshake *hs), const char *reason)
{
	side->hs.out_len = 0;
	leave(&side->hs);
	side_assert_ended(side, HANDSHAKE_FAILED, reason);
	ASSERT_EQ(side->hs.out_len, 0);
	leave(&side->hs);
	ASSERT_STR(side->hs.reason, reason);
	ASSERT_EQ(side_feed_left(side, "RDMA", 4), HANDSHAKE_FAIL);
}

static void
test_peer_closes(void)
{
	struct side side;

	side_after_hello(&side, SIDE_WORKS);
	assert_leaves(&side, handshake_eof, "the peer closed instead of answering the hello");
	side_after_hello(&side, SIDE_WORKS);
	side_feed_left(&side, "RDMA\0\x28", 6);
	assert_leaves(&side, handshake_eof, "the peer closed instead of answering the hello");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	assert_leaves(&side, handshake_eof, "the peer closed before its first bytes");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	side_feed_left(&side, "RDMA", 4);
	assert_leaves(&side, handshake_eof, "the peer closed within its hello");
	side_after_answer(&side, SIDE_NO_RDMA);
	assert_leaves(&side, handshake_eof, "the peer closed before its ACK");
}

static void
test_peer_is_silent(void)
{
	struct side side;

	side_after_hello(&side, SIDE_WORKS);
	assert_leaves(&side, handshake_timeout, "the peer did not answer the hello in time");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	side_feed_left(&side, "RD", 2);
	assert_leaves(&side, handshake_timeout, "the peer's first bytes did not come in time");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	side_feed_left(&side, "RDMA\0\x28\0", 7);
	assert_leaves(&side, handshake_timeout, "the peer's hello was not whole in time");
	side_after_answer(&side, SIDE_WORKS);
	side_feed_left(&side, ack_rdma, 3);
	assert_leaves(&side, handshake_timeout, "the peer's ACK did not come in time");
}

static void
test_over_is_over(void)
{
	struct side side;

	side_after_answer(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_taken(&side, ack_rdma, 4), HANDSHAKE_RDMA);
	handshake_eof(&side.hs);
	handshake_timeout(&side.hs);
	side_assert_ended(&side, HANDSHAKE_ESTABLISHED, "");
	side_after_answer(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_taken(&side, ack_tcp, 4), HANDSHAKE_TCP);
	handshake_eof(&side.hs);
	handshake_timeout(&side.hs);
	ASSERT_EQ(side_feed_left(&side, "RDMA", 4), HANDSHAKE_TCP);
	side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "refused by the peer");
}

/* Resources that fail without a word still leave a reason. */
static int
alloc_nothing(void *arg, struct hello *own, const char **why)
{
	(void)arg, (void)own, (void)why;
	return 0;
}

static int
fail_alloc(void *arg, struct hello *own, const char **why)
{
	(void)arg, (void)own, (void)why;
	return -ENOMEM;
}

static int
fail_bring_up(void *arg, const struct hello *peer, const char **why)
{
	(void)arg, (void)peer, (void)why;
	return -EIO;
}

static void
test_reason_without_words(void)
{
	static const struct handshake_ops no_alloc = {.alloc = fail_alloc, .bring_up = fail_bring_up};
	static const struct handshake_ops no_bring_up = {.alloc = alloc_nothing, .bring_up = fail_bring_up};
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side;

	ASSERT_EQ(handshake_start_client(&side.hs, &no_alloc, NULL), HANDSHAKE_TCP);
	ASSERT_STR(side.hs.reason, "no resources for RDMA");
	ASSERT_EQ(handshake_start_client(&side.hs, &no_bring_up, NULL), HANDSHAKE_GO_ON);
	vector_load("hello-v2-server", bytes, sizeof bytes);
	ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
	ASSERT_STR(side.hs.reason, "the queue pair could not be brought up");
}

/* A state that no call leaves the machine in: it fails and does not guess. */
static void
test_impossible_step(void)
{
	struct side side;

	side_after_hello(&side, SIDE_WORKS);
	side.hs.state = HANDSHAKE_C_BRINGUP_QP;
	handshake_eof(&side.hs);
	side_assert_ended(&side, HANDSHAKE_FAILED, "the handshake has no such step");
}

UNIT_SUITE("machine", {"a client takes no flawed hello", test_client_takes_no_flawed_hello},
	   {"a server takes no flawed hello", test_server_takes_no_flawed_hello},
	   {"both fail at a length that is no hello's", test_bad_lengths}, {"a peer that closes", test_peer_closes},
	   {"a peer that is silent", test_peer_is_silent}, {"over is over", test_over_is_over},
	   {"a failure without words has a reason", test_reason_without_words},
	   {"an impossible step fails", test_impossible_step});
