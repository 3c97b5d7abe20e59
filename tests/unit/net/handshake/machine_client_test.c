/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/handshake/side.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"

static const uint8_t ack_rdma[HELLO_ACK_BYTES] = {0, 0, 0, 1};
static const uint8_t ack_tcp[HELLO_ACK_BYTES] = {0, 0, 0, 0};

static void
test_client_without_rdma(void)
{
	struct side side;

	ASSERT_EQ(side_start(&side, HANDSHAKE_CLIENT, SIDE_NO_RDMA), HANDSHAKE_TCP);
	side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "no RDMA on this side");
	side_assert_out(&side, "", 0);
	CU_ASSERT_FALSE(side.hs.started);
}

static void
test_client_alloc_fails(void)
{
	struct side side;

	ASSERT_EQ(side_start(&side, HANDSHAKE_CLIENT, SIDE_ALLOC_FAILS), HANDSHAKE_TCP);
	side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "no memory for a queue pair");
	side_assert_out(&side, "", 0);
	CU_ASSERT_FALSE(side.hs.started);
	ASSERT_EQ(side_feed_left(&side, "PRPC", 4), HANDSHAKE_TCP);
}

static void
test_client_says_hello(void)
{
	struct side side;

	ASSERT_EQ(side_start(&side, HANDSHAKE_CLIENT, SIDE_WORKS), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_C_HELLO_WAIT);
	CU_ASSERT_TRUE(side.hs.started);
	CU_ASSERT_FALSE(side.hs.refused);
	ASSERT_STR(side.hs.reason, "");
	side_assert_vector_out(&side, "hello-v2-client");
}

static void
test_client_establishes(void)
{
	uint8_t bytes[64];
	size_t len = vector_load("hello-v2-server", bytes, sizeof bytes);
	struct side side;

	side_after_hello(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_taken(&side, bytes, len), HANDSHAKE_RDMA);
	side_assert_ended(&side, HANDSHAKE_ESTABLISHED, "");
	side_assert_vector_out(&side, "ack-use-rdma");
	ASSERT_EQ(side.bring_ups, 1);
	ASSERT_EQ(side.heard.qp_num, 0x18);
	ASSERT_EQ(side.heard.block_size, 8160);
}

/* A connection that is slow to send finds the hello and the ACK in out, one behind the other. */
static void
test_client_out_holds_both(void)
{
	uint8_t expected[HANDSHAKE_OUT_BYTES], bytes[HELLO_V2_BYTES];
	struct side side;

	ASSERT_EQ(side_start(&side, HANDSHAKE_CLIENT, SIDE_WORKS), HANDSHAKE_GO_ON);
	vector_load("hello-v2-server", bytes, sizeof bytes);
	ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_RDMA);
	vector_load("hello-v2-client", expected, HELLO_V2_BYTES);
	memcpy(expected + HELLO_V2_BYTES, ack_rdma, sizeof ack_rdma);
	side_assert_out(&side, expected, sizeof expected);
}

static void
test_client_bring_up_fails(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side;

	side_after_hello(&side, SIDE_BRING_UP_FAILS);
	vector_load("hello-v2-server", bytes, sizeof bytes);
	ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
	side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "no route to the peer");
	side_assert_out(&side, ack_tcp, sizeof ack_tcp);
}

static void
test_client_is_refused(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side;

	side_after_hello(&side, SIDE_WORKS);
	hello_v2_encode_refusal(bytes);
	ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
	side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "refused by the peer");
	side_assert_out(&side, ack_tcp, sizeof ack_tcp);
	ASSERT_EQ(side.bring_ups, 0);
}

static void
test_client_wrong_magic(void)
{
	struct side side;

	side_after_hello(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_left(&side, "ABCD", 4), HANDSHAKE_FAIL);
	side_assert_ended(&side, HANDSHAKE_FAILED, "the peer answered the hello with something else");
	side_assert_out(&side, "", 0);
	side_after_hello(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_left(&side, "RDM3", 4), HANDSHAKE_FAIL);
}

static void
test_client_drains_tail(void)
{
	struct hello hello = side_peer_hello();
	uint8_t bytes[48];
	struct side side;

	memset(bytes, 0xEE, sizeof bytes);
	hello_v2_encode(&hello, bytes);
	bytes[5] = sizeof bytes;
	side_after_hello(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_left(&side, bytes, sizeof bytes - 1), HANDSHAKE_GO_ON);
	ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_RDMA);
	side_assert_out(&side, ack_rdma, sizeof ack_rdma);
}

static void
test_client_bytes_behind_rdma(void)
{
	uint8_t bytes[HELLO_V2_BYTES + 1] = {0};
	struct side side;
	size_t used;

	side_after_hello(&side, SIDE_WORKS);
	vector_load("hello-v2-server", bytes, HELLO_V2_BYTES);
	ASSERT_EQ(handshake_feed(&side.hs, bytes, sizeof bytes, &used), HANDSHAKE_FAIL);
	ASSERT_EQ(used, HELLO_V2_BYTES);
	side_assert_ended(&side, HANDSHAKE_FAILED, "bytes on TCP behind the handshake");
}

static void
test_client_bytes_behind_refusal(void)
{
	uint8_t bytes[HELLO_V2_BYTES + 4] = {0};
	struct side side;
	size_t used;

	side_after_hello(&side, SIDE_WORKS);
	hello_v2_encode_refusal(bytes);
	ASSERT_EQ(handshake_feed(&side.hs, bytes, sizeof bytes, &used), HANDSHAKE_TCP);
	ASSERT_EQ(used, HELLO_V2_BYTES);
	ASSERT_EQ(side_feed_left(&side, bytes + used, sizeof bytes - used), HANDSHAKE_TCP);
}

UNIT_SUITE("machine, client", {"a client without RDMA sends nothing", test_client_without_rdma},
	   {"a client without resources sends nothing", test_client_alloc_fails},
	   {"a client says the captured hello", test_client_says_hello},
	   {"a client goes on with RDMA after the captured answer", test_client_establishes},
	   {"out holds a client's hello and its ACK", test_client_out_holds_both},
	   {"a client whose queue pair fails goes on with TCP", test_client_bring_up_fails},
	   {"a client takes a refusal", test_client_is_refused},
	   {"a client fails at another magic", test_client_wrong_magic},
	   {"a client drains a tail", test_client_drains_tail},
	   {"bytes behind a client's ACK 1 are an error", test_client_bytes_behind_rdma},
	   {"bytes behind a client's ACK 0 are left", test_client_bytes_behind_refusal});
