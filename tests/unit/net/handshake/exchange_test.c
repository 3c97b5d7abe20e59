/* SPDX-License-Identifier: Apache-2.0 */

/* Whole exchanges: the same bytes in every cut, and a client against a server through two pipes. */

#include "net/handshake/machine.h"
#include "tests/unit/net/handshake/side.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define STREAM_MAX 128

/* What one peer sends over the whole life of a connection. */
struct stream {
	uint8_t bytes[STREAM_MAX];
	size_t len;
};

static void
add(struct stream *stream, const void *bytes, size_t len)
{
	ASSERT_FATAL(stream->len + len <= sizeof stream->bytes);
	memcpy(stream->bytes + stream->len, bytes, len);
	stream->len += len;
}

static void
add_hello(struct stream *stream, uint16_t hello_ver, uint16_t msg_len)
{
	static const uint8_t tail[STREAM_MAX] = "a tail that nobody reads";
	struct hello hello = side_peer_hello();
	uint8_t bytes[HELLO_V2_BYTES];

	hello.hello_ver = hello_ver;
	hello_v2_encode(&hello, bytes);
	bytes[4] = (uint8_t)(msg_len >> 8);
	bytes[5] = (uint8_t)msg_len;
	add(stream, bytes, sizeof bytes);
	if (msg_len > sizeof bytes && msg_len < sizeof tail)
		add(stream, tail, msg_len - sizeof bytes);
}

/* A peer's opening, as a hello and what follows it; msg_len 0: no hello at all. */
struct script {
	uint16_t hello_ver, msg_len;
	const char *then;
	size_t then_len;
	enum handshake_state end; /* of a side without a fault */
};

#define THEN(text) (text), sizeof(text) - 1

static const struct script to_client[] = {
	{2, 40, THEN(""), HANDSHAKE_ESTABLISHED},
	{2, 48, THEN(""), HANDSHAKE_ESTABLISHED},
	{2, 40, THEN("PRPC"), HANDSHAKE_FAILED},
	{2, 48, THEN("P"), HANDSHAKE_FAILED},
	{0xFFFF, 40, THEN(""), HANDSHAKE_FALLBACK_TCP},
	{0, 40, THEN("PRPC\0\0"), HANDSHAKE_FALLBACK_TCP},
	{3, 60, THEN("RDMA"), HANDSHAKE_FALLBACK_TCP},
	{2, 35, THEN(""), HANDSHAKE_FAILED},
	{2, 4097, THEN(""), HANDSHAKE_FAILED},
	{2, 100, THEN(""), HANDSHAKE_ESTABLISHED},
	{2, 4096, THEN("not whole"), HANDSHAKE_C_HELLO_WAIT},
	{0, 0, THEN("ABCDEF"), HANDSHAKE_FAILED},
	{0, 0, THEN("RDMX"), HANDSHAKE_FAILED},
	{0, 0, THEN("RDMA\0"), HANDSHAKE_C_HELLO_WAIT},
	{0, 0, THEN(""), HANDSHAKE_C_HELLO_WAIT},
};

static const struct script to_server[] = {
	{2, 40, THEN("\0\0\0\1"), HANDSHAKE_ESTABLISHED},
	{2, 48, THEN("\0\0\0\1"), HANDSHAKE_ESTABLISHED},
	{2, 40, THEN("\0\0\0\1P"), HANDSHAKE_FAILED},
	{2, 40, THEN("\0\0\0\0"), HANDSHAKE_FALLBACK_TCP},
	{2, 40, THEN("\0\0\0\0PRPC\0\0\0\1"), HANDSHAKE_FALLBACK_TCP},
	{2, 100, THEN("\0\0\0\0RDMA"), HANDSHAKE_FALLBACK_TCP},
	{2, 40, THEN("\0\0\0"), HANDSHAKE_S_ACK_WAIT},
	{2, 40, THEN(""), HANDSHAKE_S_ACK_WAIT},
	{3, 40, THEN("\0\0\0\0PRPC"), HANDSHAKE_FALLBACK_TCP},
	{3, 40, THEN("\0\0\0\1PRPC"), HANDSHAKE_FAILED},
	{2, 35, THEN(""), HANDSHAKE_FAILED},
	{2, 4097, THEN(""), HANDSHAKE_FAILED},
	{2, 4096, THEN("not whole"), HANDSHAKE_S_HELLO_WAIT},
	{0, 0, THEN("PRPC\0\0\0\x29"), HANDSHAKE_FALLBACK_TCP},
	{0, 0, THEN("RDPRPC"), HANDSHAKE_FALLBACK_TCP},
	{0, 0, THEN("RDM3\0\0\0\x1f"), HANDSHAKE_FALLBACK_TCP},
	{0, 0, THEN("RDM"), HANDSHAKE_UNINIT},
	{0, 0, THEN("RDMA\0"), HANDSHAKE_S_HELLO_WAIT},
	{0, 0, THEN(""), HANDSHAKE_UNINIT},
};

static struct stream
stream_of(const struct script *script)
{
	struct stream stream = {.len = 0};

	if (script->msg_len)
		add_hello(&stream, script->hello_ver, script->msg_len);
	add(&stream, script->then, script->then_len);
	return stream;
}

/* All that the outside can see of an exchange. */
struct outcome {
	enum handshake_result result;
	enum handshake_state state;
	bool started, refused;
	const char *reason;
	unsigned allocs, bring_ups;
	size_t used, sent_len;
	uint8_t sent[HANDSHAKE_OUT_BYTES];
};

static void
take_out(struct side *side, struct outcome *outcome)
{
	ASSERT_FATAL(outcome->sent_len + side->hs.out_len <= sizeof outcome->sent);
	memcpy(outcome->sent + outcome->sent_len, side->hs.out, side->hs.out_len);
	outcome->sent_len += side->hs.out_len;
	side->hs.out_len = 0;
}

/* Feeds the stream as it comes: up to each of the cuts, then all of it. */
static struct outcome
run(enum handshake_role role, enum side_fault fault, const struct stream *stream, const size_t *cuts, size_t count)
{
	struct outcome outcome = {.used = 0};
	struct side side;

	outcome.result = side_start(&side, role, fault);
	take_out(&side, &outcome);
	for (size_t i = 0; i <= count; i++) {
		size_t arrived = i < count ? cuts[i] : stream->len, used;

		outcome.result = handshake_feed(&side.hs, stream->bytes + outcome.used, arrived - outcome.used, &used);
		ASSERT_FATAL(used <= arrived - outcome.used);
		outcome.used += used;
		take_out(&side, &outcome);
	}
	outcome.state = side.hs.state;
	outcome.started = side.hs.started;
	outcome.refused = side.hs.refused;
	outcome.reason = side.hs.reason;
	outcome.allocs = side.allocs;
	outcome.bring_ups = side.bring_ups;
	return outcome;
}

static void
assert_same(const struct outcome *cut, const struct outcome *whole)
{
	CU_ASSERT(cut->result == whole->result && cut->state == whole->state);
	CU_ASSERT(cut->started == whole->started && cut->refused == whole->refused);
	CU_ASSERT(cut->reason == whole->reason);
	CU_ASSERT(cut->allocs == whole->allocs && cut->bring_ups == whole->bring_ups);
	CU_ASSERT(cut->used == whole->used);
	CU_ASSERT(cut->sent_len == whole->sent_len && memcmp(cut->sent, whole->sent, cut->sent_len) == 0);
}

static void
every_pair_of_cuts(enum handshake_role role, enum side_fault fault, const struct stream *stream,
		   const struct outcome *whole)
{
	for (size_t first = 0; first <= stream->len; first++) {
		for (size_t second = first; second <= stream->len; second++) {
			struct outcome cut = run(role, fault, stream, (const size_t[]){first, second}, 2);

			assert_same(&cut, whole);
		}
	}
}

static void
byte_by_byte(enum handshake_role role, enum side_fault fault, const struct stream *stream, const struct outcome *whole)
{
	size_t cuts[STREAM_MAX];
	struct outcome cut;

	for (size_t i = 0; i < stream->len; i++)
		cuts[i] = i;
	cut = run(role, fault, stream, cuts, stream->len);
	assert_same(&cut, whole);
}

static void
cut_every_way(enum handshake_role role, const struct script *scripts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct stream stream = stream_of(&scripts[i]);

		for (int fault = 0; fault < SIDE_FAULTS; fault++) {
			struct outcome whole = run(role, (enum side_fault)fault, &stream, NULL, 0);

			if (fault == SIDE_WORKS)
				ASSERT_STR(handshake_state_name(whole.state), handshake_state_name(scripts[i].end));
			every_pair_of_cuts(role, (enum side_fault)fault, &stream, &whole);
			byte_by_byte(role, (enum side_fault)fault, &stream, &whole);
		}
	}
}

static void
test_client_in_every_cut(void)
{
	cut_every_way(HANDSHAKE_CLIENT, to_client, COUNT(to_client));
}

static void
test_server_in_every_cut(void)
{
	cut_every_way(HANDSHAKE_SERVER, to_server, COUNT(to_server));
}

/* A side with the pipe that it reads from, and what its application says once the connection is plain TCP. */
struct end {
	struct side side;
	enum handshake_result result;
	struct stream in;
	size_t arrived, taken;
	const char *says;
	bool has_said;
};

/* Puts into the peer's pipe what this end has to send. */
static void
flush(struct end *end, struct end *peer)
{
	add(&peer->in, end->side.hs.out, end->side.hs.out_len);
	end->side.hs.out_len = 0;
	if (end->result == HANDSHAKE_TCP && !end->has_said) {
		add(&peer->in, end->says, strlen(end->says));
		end->has_said = true;
	}
}

/* Lets some of the bytes arrive that are on their way. False: there are none. */
static bool
arrive(struct end *end, struct end *peer, unsigned *seed)
{
	size_t on_their_way = end->in.len - end->arrived, used;

	if (!on_their_way)
		return false;
	end->arrived += 1 + (size_t)rand_r(seed) % on_their_way;
	end->result = handshake_feed(&end->side.hs, end->in.bytes + end->taken, end->arrived - end->taken, &used);
	end->taken += used;
	flush(end, peer);
	return true;
}

static void
exchange(struct end *client, struct end *server, enum side_fault client_fault, enum side_fault server_fault,
	 unsigned seed)
{
	*client = (struct end){.says = "PRPC, a request"};
	*server = (struct end){.says = "a response"};
	server->result = side_start(&server->side, HANDSHAKE_SERVER, server_fault);
	client->result = side_start(&client->side, HANDSHAKE_CLIENT, client_fault);
	flush(client, server);
	for (bool client_first = true;; client_first = rand_r(&seed) % 2) {
		struct end *one = client_first ? client : server, *other = client_first ? server : client;

		if (!arrive(one, other, &seed) && !arrive(other, one, &seed))
			return;
	}
}

/* The application's input begins with the first byte that the handshake has not used. */
static void
assert_application_gets(const struct end *end, const char *expected)
{
	size_t len = strlen(expected);

	ASSERT_EQ(end->in.len - end->taken, len);
	CU_ASSERT(end->in.len - end->taken == len && memcmp(end->in.bytes + end->taken, expected, len) == 0);
}

static const char *
client_reason(enum side_fault client, enum side_fault server)
{
	if (client == SIDE_NO_RDMA)
		return "no RDMA on this side";
	if (client == SIDE_ALLOC_FAILS)
		return "no memory for a queue pair";
	if (server != SIDE_WORKS)
		return "refused by the peer";
	return client == SIDE_WORKS ? "" : "no route to the peer";
}

static const char *
server_reason(enum side_fault client, enum side_fault server)
{
	if (client == SIDE_NO_RDMA || client == SIDE_ALLOC_FAILS)
		return "not asked for";
	if (server == SIDE_NO_RDMA)
		return "no RDMA on this side";
	if (server == SIDE_ALLOC_FAILS)
		return "no memory for a queue pair";
	if (server == SIDE_BRING_UP_FAILS)
		return "no route to the peer";
	return client == SIDE_WORKS ? "" : "refused by the peer";
}

static void
assert_met(const struct end *client, const struct end *server)
{
	enum side_fault c = client->side.fault, s = server->side.fault;
	bool rdma = c == SIDE_WORKS && s == SIDE_WORKS;

	ASSERT_EQ(client->result, rdma ? HANDSHAKE_RDMA : HANDSHAKE_TCP);
	ASSERT_EQ(server->result, rdma ? HANDSHAKE_RDMA : HANDSHAKE_TCP);
	ASSERT_STR(client->side.hs.reason, client_reason(c, s));
	ASSERT_STR(server->side.hs.reason, server_reason(c, s));
	assert_application_gets(client, rdma ? "" : "a response");
	assert_application_gets(server, rdma ? "" : "PRPC, a request");
	if (rdma) {
		ASSERT_EQ(client->side.heard.qp_num, server->side.hs.own.qp_num);
		ASSERT_EQ(server->side.heard.qp_num, client->side.hs.own.qp_num);
	}
}

/* Every fault of the one against every fault of the other, with the bytes cut by chance. */
static void
test_client_meets_server(void)
{
	for (int c = 0; c < SIDE_FAULTS; c++) {
		for (int s = 0; s < SIDE_FAULTS; s++) {
			for (unsigned seed = 0; seed < 500; seed++) {
				struct end client, server;

				exchange(&client, &server, (enum side_fault)c, (enum side_fault)s, seed);
				assert_met(&client, &server);
			}
		}
	}
}

UNIT_SUITE("exchange", {"a client's exchanges end alike in every cut", test_client_in_every_cut},
	   {"a server's exchanges do too", test_server_in_every_cut},
	   {"a client and a server meet, whatever fails", test_client_meets_server});
