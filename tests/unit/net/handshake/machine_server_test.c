/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/handshake/side.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"

static const uint8_t ack_rdma[HELLO_ACK_BYTES] = {0, 0, 0, 1};
static const uint8_t ack_tcp[HELLO_ACK_BYTES] = {0, 0, 0, 0};

static void
test_server_waits_for_magic(void)
{
	struct side side;

	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	ASSERT_EQ(side.hs.state, HANDSHAKE_UNINIT);
	CU_ASSERT_FALSE(side.hs.started);
	ASSERT_EQ(side_feed_left(&side, "", 0), HANDSHAKE_GO_ON);
	ASSERT_EQ(side_feed_left(&side, NULL, 0), HANDSHAKE_GO_ON);
	CU_ASSERT_FALSE(side.hs.started);
	ASSERT_EQ(side_feed_left(&side, "RD", 2), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_UNINIT);
	CU_ASSERT_TRUE(side.hs.started);
	ASSERT_EQ(side_feed_left(&side, "RDMA", 4), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_HELLO_WAIT);
	ASSERT_EQ(side_feed_left(&side, "RDMA\0\x28", 6), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_HELLO_WAIT);
	side_assert_out(&side, "", 0);
}

/* However many bytes of the magic come first, and in however many calls: all stay with the application. */
static void
test_server_other_protocols(void)
{
	static const char *const openings[] = {"P", "PRPC", "RPC", "RDP", "RDMX", "RDM3", "\r\n", "GET / HTTP/1.1"};

	for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
		size_t len = strlen(openings[i]);
		struct side whole, bytewise;

		side_start(&whole, HANDSHAKE_SERVER, SIDE_WORKS);
		ASSERT_EQ(side_feed_left(&whole, openings[i], len), HANDSHAKE_TCP);
		side_assert_ended(&whole, HANDSHAKE_FALLBACK_TCP, "not asked for");
		CU_ASSERT_FALSE(whole.hs.started);
		side_start(&bytewise, HANDSHAKE_SERVER, SIDE_WORKS);
		for (size_t n = 1; n < len; n++)
			side_feed_left(&bytewise, openings[i], n);
		ASSERT_EQ(side_feed_left(&bytewise, openings[i], len), HANDSHAKE_TCP);
		side_assert_ended(&bytewise, HANDSHAKE_FALLBACK_TCP, "not asked for");
		CU_ASSERT_FALSE(bytewise.hs.started);
		side_assert_out(&bytewise, "", 0);
	}
}

static void
test_server_answers(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side;

	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	vector_load("hello-v2-client", bytes, sizeof bytes);
	ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_ACK_WAIT);
	CU_ASSERT_FALSE(side.hs.refused);
	ASSERT_EQ(side.bring_ups, 1);
	ASSERT_EQ(side.heard.qp_num, 0x20);
	side_assert_vector_out(&side, "hello-v2-server");
	ASSERT_EQ(side_feed_left(&side, ack_rdma, 3), HANDSHAKE_GO_ON);
	ASSERT_EQ(side_feed_taken(&side, ack_rdma, 4), HANDSHAKE_RDMA);
	side_assert_ended(&side, HANDSHAKE_ESTABLISHED, "");
}

static void
assert_server_refuses(enum side_fault fault, const char *reason)
{
	struct side side;

	side_after_answer(&side, fault);
	CU_ASSERT_TRUE(side.hs.refused);
	ASSERT_STR(side.hs.reason, reason);
	side_assert_refusal_out(&side);
	ASSERT_EQ(side_feed_taken(&side, ack_tcp, sizeof ack_tcp), HANDSHAKE_TCP);
	side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, reason);
	side_after_answer(&side, fault);
	ASSERT_EQ(side_feed_taken(&side, ack_rdma, sizeof ack_rdma), HANDSHAKE_FAIL);
	side_assert_ended(&side, HANDSHAKE_FAILED, "the peer goes on with RDMA although it was refused");
}

static void
test_server_refuses(void)
{
	assert_server_refuses(SIDE_NO_RDMA, "no RDMA on this side");
	assert_server_refuses(SIDE_ALLOC_FAILS, "no memory for a queue pair");
	assert_server_refuses(SIDE_BRING_UP_FAILS, "no route to the peer");
}

static void
test_server_peer_gives_up(void)
{
	uint8_t bytes[HELLO_ACK_BYTES + 5] = "\0\0\0\0PRPC";
	struct side side;
	size_t used;

	side_after_answer(&side, SIDE_WORKS);
	ASSERT_EQ(handshake_feed(&side.hs, bytes, sizeof bytes, &used), HANDSHAKE_TCP);
	ASSERT_EQ(used, HELLO_ACK_BYTES);
	side_assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "refused by the peer");
}

static void
test_server_ack_is_one_bit(void)
{
	struct side side;

	side_after_answer(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_taken(&side, "\x80\0\0\x02", 4), HANDSHAKE_TCP);
	side_after_answer(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_taken(&side, "\x80\0\0\x03", 4), HANDSHAKE_RDMA);
}

static void
test_server_bytes_behind_rdma(void)
{
	struct side side;
	size_t used;

	side_after_answer(&side, SIDE_WORKS);
	ASSERT_EQ(handshake_feed(&side.hs, (const uint8_t *)"\0\0\0\1PRPC", 8, &used), HANDSHAKE_FAIL);
	ASSERT_EQ(used, HELLO_ACK_BYTES);
	side_assert_ended(&side, HANDSHAKE_FAILED, "bytes on TCP behind the handshake");
	side_after_answer(&side, SIDE_WORKS);
	ASSERT_EQ(side_feed_taken(&side, ack_rdma, 4), HANDSHAKE_RDMA);
	ASSERT_EQ(side_feed_left(&side, "", 0), HANDSHAKE_RDMA);
	ASSERT_EQ(side_feed_left(&side, "PRPC", 4), HANDSHAKE_FAIL);
	side_assert_ended(&side, HANDSHAKE_FAILED, "bytes on TCP behind the handshake");
}

static void
test_server_drains_tail_then_ack(void)
{
	struct hello hello = side_peer_hello();
	uint8_t bytes[48 + HELLO_ACK_BYTES];
	struct side side;

	memset(bytes, 0xEE, sizeof bytes);
	hello_v2_encode(&hello, bytes);
	bytes[5] = 48;
	memcpy(bytes + 48, ack_rdma, sizeof ack_rdma);
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	ASSERT_EQ(side_feed_left(&side, bytes, 47), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_HELLO_WAIT);
	ASSERT_EQ(side_feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_RDMA);
	side_assert_vector_out(&side, "hello-v2-server");
}

UNIT_SUITE("machine, server", {"a server waits for the magic", test_server_waits_for_magic},
	   {"a server leaves other protocols alone", test_server_other_protocols},
	   {"a server answers with the captured hello", test_server_answers},
	   {"a server that can't refuses", test_server_refuses},
	   {"bytes behind a client's ACK 0 are the application's", test_server_peer_gives_up},
	   {"only one bit of the ACK counts", test_server_ack_is_one_bit},
	   {"bytes behind a client's ACK 1 close a server", test_server_bytes_behind_rdma},
	   {"a server drains a tail and then reads the ACK", test_server_drains_tail_then_ack});
