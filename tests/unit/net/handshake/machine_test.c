/* SPDX-License-Identifier: Apache-2.0 */

#include "net/handshake/machine.h"
#include "tests/unit/net/handshake/side.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"

static const uint8_t ack_rdma[HELLO_ACK_BYTES] = {0, 0, 0, 1};
static const uint8_t ack_tcp[HELLO_ACK_BYTES] = {0, 0, 0, 0};

/* Feeds one piece and expects all of it used, or all of it left. */
static enum handshake_result
feed_taken(struct side *side, const void *data, size_t len)
{
	size_t used = SIZE_MAX;
	enum handshake_result result = handshake_feed(&side->hs, data, len, &used);

	ASSERT_EQ(used, len);
	return result;
}

static enum handshake_result
feed_left(struct side *side, const void *data, size_t len)
{
	size_t used = SIZE_MAX;
	enum handshake_result result = handshake_feed(&side->hs, data, len, &used);

	ASSERT_EQ(used, 0);
	return result;
}

static void
assert_out(struct side *side, const void *expected, size_t len)
{
	ASSERT_EQ(side->hs.out_len, len);
	CU_ASSERT(side->hs.out_len == len && memcmp(side->hs.out, expected, len) == 0);
	side->hs.out_len = 0;
}

static void
assert_refusal_out(struct side *side)
{
	uint8_t refusal[HELLO_V2_BYTES];

	hello_v2_encode_refusal(refusal);
	assert_out(side, refusal, sizeof refusal);
}

static void
assert_vector_out(struct side *side, const char *vector)
{
	uint8_t bytes[64];
	size_t len = vector_load(vector, bytes, sizeof bytes);

	assert_out(side, bytes, len);
}

static void
assert_ended(const struct side *side, enum handshake_state state, const char *reason)
{
	ASSERT_STR(handshake_state_name(side->hs.state), handshake_state_name(state));
	ASSERT_STR(side->hs.reason, reason);
	ASSERT_EQ(side->hs.refused, state != HANDSHAKE_ESTABLISHED);
}

/* A client that has said hello, and a server that has answered one. */
static void
start_client(struct side *side, enum side_fault fault)
{
	ASSERT_FATAL(side_start(side, HANDSHAKE_CLIENT, fault) == HANDSHAKE_GO_ON);
	side->hs.out_len = 0;
}

static void
answer_client(struct side *side, enum side_fault fault)
{
	struct hello hello = side_peer_hello();
	uint8_t bytes[HELLO_V2_BYTES];

	side_start(side, HANDSHAKE_SERVER, fault);
	hello_v2_encode(&hello, bytes);
	ASSERT_FATAL(feed_taken(side, bytes, sizeof bytes) == HANDSHAKE_GO_ON);
	ASSERT_EQ(side->hs.state, HANDSHAKE_S_ACK_WAIT);
}

static void
test_client_without_rdma(void)
{
	struct side side;

	ASSERT_EQ(side_start(&side, HANDSHAKE_CLIENT, SIDE_NO_RDMA), HANDSHAKE_TCP);
	assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "no RDMA on this side");
	assert_out(&side, "", 0);
	CU_ASSERT_FALSE(side.hs.started);
}

static void
test_client_alloc_fails(void)
{
	struct side side;

	ASSERT_EQ(side_start(&side, HANDSHAKE_CLIENT, SIDE_ALLOC_FAILS), HANDSHAKE_TCP);
	assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "no memory for a queue pair");
	assert_out(&side, "", 0);
	CU_ASSERT_FALSE(side.hs.started);
	ASSERT_EQ(feed_left(&side, "PRPC", 4), HANDSHAKE_TCP);
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
	assert_vector_out(&side, "hello-v2-client");
}

static void
test_client_establishes(void)
{
	uint8_t bytes[64];
	size_t len = vector_load("hello-v2-server", bytes, sizeof bytes);
	struct side side;

	start_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_taken(&side, bytes, len), HANDSHAKE_RDMA);
	assert_ended(&side, HANDSHAKE_ESTABLISHED, "");
	assert_vector_out(&side, "ack-use-rdma");
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
	ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_RDMA);
	vector_load("hello-v2-client", expected, HELLO_V2_BYTES);
	memcpy(expected + HELLO_V2_BYTES, ack_rdma, sizeof ack_rdma);
	assert_out(&side, expected, sizeof expected);
}

static void
test_client_bring_up_fails(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side;

	start_client(&side, SIDE_BRING_UP_FAILS);
	vector_load("hello-v2-server", bytes, sizeof bytes);
	ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
	assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "no route to the peer");
	assert_out(&side, ack_tcp, sizeof ack_tcp);
}

static void
test_client_is_refused(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side;

	start_client(&side, SIDE_WORKS);
	hello_v2_encode_refusal(bytes);
	ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
	assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "refused by the peer");
	assert_out(&side, ack_tcp, sizeof ack_tcp);
	ASSERT_EQ(side.bring_ups, 0);
}

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

		start_client(&side, SIDE_WORKS);
		hello_v2_encode(&flawed[i].hello, bytes);
		ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
		assert_ended(&side, HANDSHAKE_FALLBACK_TCP, flawed[i].reason);
		assert_out(&side, ack_tcp, sizeof ack_tcp);
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
		ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_GO_ON);
		ASSERT_EQ(side.hs.state, HANDSHAKE_S_ACK_WAIT);
		CU_ASSERT_TRUE(side.hs.refused);
		assert_refusal_out(&side);
		ASSERT_EQ(feed_taken(&side, ack_tcp, sizeof ack_tcp), HANDSHAKE_TCP);
		assert_ended(&side, HANDSHAKE_FALLBACK_TCP, flawed[i].reason);
		ASSERT_EQ(side.allocs, 0);
	}
}

static void
test_client_wrong_magic(void)
{
	struct side side;

	start_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_left(&side, "ABCD", 4), HANDSHAKE_FAIL);
	assert_ended(&side, HANDSHAKE_FAILED, "the peer answered the hello with something else");
	assert_out(&side, "", 0);
	start_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_left(&side, "RDM3", 4), HANDSHAKE_FAIL);
}

/* Lengths that are no hello's, for both roles: known to be wrong with the sixth byte. */
static void
assert_bad_length(enum handshake_role role, unsigned msg_len)
{
	uint8_t bytes[6] = {'R', 'D', 'M', 'A', (uint8_t)(msg_len >> 8), (uint8_t)msg_len};
	struct side side;

	side_start(&side, role, SIDE_WORKS);
	side.hs.out_len = 0;
	ASSERT_EQ(feed_left(&side, bytes, 5), HANDSHAKE_GO_ON);
	ASSERT_EQ(feed_left(&side, bytes, 6), HANDSHAKE_FAIL);
	assert_ended(&side, HANDSHAKE_FAILED, "a hello whose length is not 40 to 4096 bytes");
	assert_out(&side, "", 0);
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

static void
test_client_drains_tail(void)
{
	struct hello hello = side_peer_hello();
	uint8_t bytes[48];
	struct side side;

	memset(bytes, 0xEE, sizeof bytes);
	hello_v2_encode(&hello, bytes);
	bytes[5] = sizeof bytes;
	start_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_left(&side, bytes, sizeof bytes - 1), HANDSHAKE_GO_ON);
	ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_RDMA);
	assert_out(&side, ack_rdma, sizeof ack_rdma);
}

static void
test_client_bytes_behind_rdma(void)
{
	uint8_t bytes[HELLO_V2_BYTES + 1] = {0};
	struct side side;
	size_t used;

	start_client(&side, SIDE_WORKS);
	vector_load("hello-v2-server", bytes, HELLO_V2_BYTES);
	ASSERT_EQ(handshake_feed(&side.hs, bytes, sizeof bytes, &used), HANDSHAKE_FAIL);
	ASSERT_EQ(used, HELLO_V2_BYTES);
	assert_ended(&side, HANDSHAKE_FAILED, "bytes on TCP behind the handshake");
}

static void
test_client_bytes_behind_refusal(void)
{
	uint8_t bytes[HELLO_V2_BYTES + 4] = {0};
	struct side side;
	size_t used;

	start_client(&side, SIDE_WORKS);
	hello_v2_encode_refusal(bytes);
	ASSERT_EQ(handshake_feed(&side.hs, bytes, sizeof bytes, &used), HANDSHAKE_TCP);
	ASSERT_EQ(used, HELLO_V2_BYTES);
	ASSERT_EQ(feed_left(&side, bytes + used, sizeof bytes - used), HANDSHAKE_TCP);
}

static void
test_server_waits_for_magic(void)
{
	struct side side;

	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	ASSERT_EQ(side.hs.state, HANDSHAKE_UNINIT);
	CU_ASSERT_FALSE(side.hs.started);
	ASSERT_EQ(feed_left(&side, "", 0), HANDSHAKE_GO_ON);
	ASSERT_EQ(feed_left(&side, NULL, 0), HANDSHAKE_GO_ON);
	CU_ASSERT_FALSE(side.hs.started);
	ASSERT_EQ(feed_left(&side, "RD", 2), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_UNINIT);
	CU_ASSERT_TRUE(side.hs.started);
	ASSERT_EQ(feed_left(&side, "RDMA", 4), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_HELLO_WAIT);
	ASSERT_EQ(feed_left(&side, "RDMA\0\x28", 6), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_HELLO_WAIT);
	assert_out(&side, "", 0);
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
		ASSERT_EQ(feed_left(&whole, openings[i], len), HANDSHAKE_TCP);
		assert_ended(&whole, HANDSHAKE_FALLBACK_TCP, "not asked for");
		CU_ASSERT_FALSE(whole.hs.started);
		side_start(&bytewise, HANDSHAKE_SERVER, SIDE_WORKS);
		for (size_t n = 1; n < len; n++)
			feed_left(&bytewise, openings[i], n);
		ASSERT_EQ(feed_left(&bytewise, openings[i], len), HANDSHAKE_TCP);
		assert_ended(&bytewise, HANDSHAKE_FALLBACK_TCP, "not asked for");
		CU_ASSERT_FALSE(bytewise.hs.started);
		assert_out(&bytewise, "", 0);
	}
}

static void
test_server_answers(void)
{
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side;

	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	vector_load("hello-v2-client", bytes, sizeof bytes);
	ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_ACK_WAIT);
	CU_ASSERT_FALSE(side.hs.refused);
	ASSERT_EQ(side.bring_ups, 1);
	ASSERT_EQ(side.heard.qp_num, 0x20);
	assert_vector_out(&side, "hello-v2-server");
	ASSERT_EQ(feed_left(&side, ack_rdma, 3), HANDSHAKE_GO_ON);
	ASSERT_EQ(feed_taken(&side, ack_rdma, 4), HANDSHAKE_RDMA);
	assert_ended(&side, HANDSHAKE_ESTABLISHED, "");
}

static void
assert_server_refuses(enum side_fault fault, const char *reason)
{
	struct side side;

	answer_client(&side, fault);
	CU_ASSERT_TRUE(side.hs.refused);
	ASSERT_STR(side.hs.reason, reason);
	assert_refusal_out(&side);
	ASSERT_EQ(feed_taken(&side, ack_tcp, sizeof ack_tcp), HANDSHAKE_TCP);
	assert_ended(&side, HANDSHAKE_FALLBACK_TCP, reason);
	answer_client(&side, fault);
	ASSERT_EQ(feed_taken(&side, ack_rdma, sizeof ack_rdma), HANDSHAKE_FAIL);
	assert_ended(&side, HANDSHAKE_FAILED, "the peer goes on with RDMA although it was refused");
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

	answer_client(&side, SIDE_WORKS);
	ASSERT_EQ(handshake_feed(&side.hs, bytes, sizeof bytes, &used), HANDSHAKE_TCP);
	ASSERT_EQ(used, HELLO_ACK_BYTES);
	assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "refused by the peer");
}

static void
test_server_ack_is_one_bit(void)
{
	struct side side;

	answer_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_taken(&side, "\x80\0\0\x02", 4), HANDSHAKE_TCP);
	answer_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_taken(&side, "\x80\0\0\x03", 4), HANDSHAKE_RDMA);
}

static void
test_server_bytes_behind_rdma(void)
{
	struct side side;
	size_t used;

	answer_client(&side, SIDE_WORKS);
	ASSERT_EQ(handshake_feed(&side.hs, (const uint8_t *)"\0\0\0\1PRPC", 8, &used), HANDSHAKE_FAIL);
	ASSERT_EQ(used, HELLO_ACK_BYTES);
	assert_ended(&side, HANDSHAKE_FAILED, "bytes on TCP behind the handshake");
	answer_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_taken(&side, ack_rdma, 4), HANDSHAKE_RDMA);
	ASSERT_EQ(feed_left(&side, "", 0), HANDSHAKE_RDMA);
	ASSERT_EQ(feed_left(&side, "PRPC", 4), HANDSHAKE_FAIL);
	assert_ended(&side, HANDSHAKE_FAILED, "bytes on TCP behind the handshake");
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
	ASSERT_EQ(feed_left(&side, bytes, 47), HANDSHAKE_GO_ON);
	ASSERT_EQ(side.hs.state, HANDSHAKE_S_HELLO_WAIT);
	ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_RDMA);
	assert_vector_out(&side, "hello-v2-server");
}

/* The ways in which a peer may leave, and what is said of it. */
static void
assert_leaves(struct side *side, void (*leave)(struct handshake *hs), const char *reason)
{
	side->hs.out_len = 0;
	leave(&side->hs);
	assert_ended(side, HANDSHAKE_FAILED, reason);
	ASSERT_EQ(side->hs.out_len, 0);
	leave(&side->hs);
	ASSERT_STR(side->hs.reason, reason);
	ASSERT_EQ(feed_left(side, "RDMA", 4), HANDSHAKE_FAIL);
}

static void
test_peer_closes(void)
{
	struct side side;

	start_client(&side, SIDE_WORKS);
	assert_leaves(&side, handshake_eof, "the peer closed instead of answering the hello");
	start_client(&side, SIDE_WORKS);
	feed_left(&side, "RDMA\0\x28", 6);
	assert_leaves(&side, handshake_eof, "the peer closed instead of answering the hello");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	assert_leaves(&side, handshake_eof, "the peer closed before its first bytes");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	feed_left(&side, "RDMA", 4);
	assert_leaves(&side, handshake_eof, "the peer closed within its hello");
	answer_client(&side, SIDE_NO_RDMA);
	assert_leaves(&side, handshake_eof, "the peer closed before its ACK");
}

static void
test_peer_is_silent(void)
{
	struct side side;

	start_client(&side, SIDE_WORKS);
	assert_leaves(&side, handshake_timeout, "the peer did not answer the hello in time");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	feed_left(&side, "RD", 2);
	assert_leaves(&side, handshake_timeout, "the peer's first bytes did not come in time");
	side_start(&side, HANDSHAKE_SERVER, SIDE_WORKS);
	feed_left(&side, "RDMA\0\x28\0", 7);
	assert_leaves(&side, handshake_timeout, "the peer's hello was not whole in time");
	answer_client(&side, SIDE_WORKS);
	feed_left(&side, ack_rdma, 3);
	assert_leaves(&side, handshake_timeout, "the peer's ACK did not come in time");
}

static void
test_over_is_over(void)
{
	struct side side;

	answer_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_taken(&side, ack_rdma, 4), HANDSHAKE_RDMA);
	handshake_eof(&side.hs);
	handshake_timeout(&side.hs);
	assert_ended(&side, HANDSHAKE_ESTABLISHED, "");
	answer_client(&side, SIDE_WORKS);
	ASSERT_EQ(feed_taken(&side, ack_tcp, 4), HANDSHAKE_TCP);
	handshake_eof(&side.hs);
	handshake_timeout(&side.hs);
	ASSERT_EQ(feed_left(&side, "RDMA", 4), HANDSHAKE_TCP);
	assert_ended(&side, HANDSHAKE_FALLBACK_TCP, "refused by the peer");
}

/* Resources that fail without a word still leave a reason. */
static int
fail_silently(void *arg, struct hello *own, const char **why)
{
	(void)arg, (void)own, (void)why;
	return -ENOMEM;
}

static int
fail_silently_too(void *arg, const struct hello *peer, const char **why)
{
	(void)arg, (void)peer, (void)why;
	return -EIO;
}

static void
test_reason_without_words(void)
{
	static const struct handshake_ops no_alloc = {.alloc = fail_silently, .bring_up = side_bring_up};
	static const struct handshake_ops no_bring_up = {.alloc = side_alloc, .bring_up = fail_silently_too};
	uint8_t bytes[HELLO_V2_BYTES];
	struct side side = {0};

	ASSERT_EQ(handshake_start_client(&side.hs, &no_alloc, &side), HANDSHAKE_TCP);
	ASSERT_STR(side.hs.reason, "no resources for RDMA");
	ASSERT_EQ(handshake_start_client(&side.hs, &no_bring_up, &side), HANDSHAKE_GO_ON);
	vector_load("hello-v2-server", bytes, sizeof bytes);
	ASSERT_EQ(feed_taken(&side, bytes, sizeof bytes), HANDSHAKE_TCP);
	ASSERT_STR(side.hs.reason, "the queue pair could not be brought up");
}

/* A state that no call leaves the machine in: it fails and does not guess. */
static void
test_impossible_step(void)
{
	struct side side;

	start_client(&side, SIDE_WORKS);
	side.hs.state = HANDSHAKE_C_BRINGUP_QP;
	handshake_eof(&side.hs);
	assert_ended(&side, HANDSHAKE_FAILED, "the handshake has no such step");
}

UNIT_SUITE("machine", {"a client without RDMA sends nothing", test_client_without_rdma},
	   {"nor does one without resources", test_client_alloc_fails},
	   {"a client says the captured hello", test_client_says_hello},
	   {"and goes on with RDMA after the captured answer", test_client_establishes},
	   {"out holds a client's hello and its ACK", test_client_out_holds_both},
	   {"a client whose queue pair fails goes on with TCP", test_client_bring_up_fails},
	   {"a client takes a refusal", test_client_is_refused},
	   {"a client takes no flawed hello", test_client_takes_no_flawed_hello},
	   {"nor does a server", test_server_takes_no_flawed_hello},
	   {"a client fails at another magic", test_client_wrong_magic},
	   {"both fail at a length that is no hello's", test_bad_lengths},
	   {"a client drains a tail", test_client_drains_tail},
	   {"bytes behind a client's ACK 1 are an error", test_client_bytes_behind_rdma},
	   {"bytes behind a client's ACK 0 are left", test_client_bytes_behind_refusal},
	   {"a server waits for the magic", test_server_waits_for_magic},
	   {"a server leaves other protocols alone", test_server_other_protocols},
	   {"a server answers with the captured hello", test_server_answers},
	   {"a server that can't refuses", test_server_refuses},
	   {"bytes behind a client's ACK 0 are the application's", test_server_peer_gives_up},
	   {"only one bit of the ACK counts", test_server_ack_is_one_bit},
	   {"bytes behind a client's ACK 1 close a server", test_server_bytes_behind_rdma},
	   {"a server drains a tail and then reads the ACK", test_server_drains_tail_then_ack},
	   {"a peer that closes", test_peer_closes}, {"a peer that is silent", test_peer_is_silent},
	   {"over is over", test_over_is_over}, {"a failure without words has a reason", test_reason_without_words},
	   {"an impossible step fails", test_impossible_step});
