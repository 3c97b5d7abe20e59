/* SPDX-License-Identifier: Apache-2.0 */

#include "net/handshake/machine.h"
#include "net/handshake/transition.h"

static void
step(struct handshake *hs, enum handshake_event event)
{
	int next = handshake_next(hs->state, event);

	if (next == HANDSHAKE_NOWHERE) {
		hs->state = HANDSHAKE_FAILED;
		hs->reason = "the handshake has no such step";
		return;
	}
	hs->state = (enum handshake_state)next;
}

/* A step behind which there is no RDMA on this connection. */
static void
turn_off(struct handshake *hs, enum handshake_event event, const char *reason)
{
	hs->refused = true;
	hs->reason = reason;
	step(hs, event);
}

static enum handshake_result
result_of(const struct handshake *hs)
{
	switch (hs->state) {
	case HANDSHAKE_ESTABLISHED:
		return HANDSHAKE_RDMA;
	case HANDSHAKE_FALLBACK_TCP:
		return HANDSHAKE_TCP;
	case HANDSHAKE_FAILED:
		return HANDSHAKE_FAIL;
	default:
		return HANDSHAKE_GO_ON;
	}
}

static uint8_t *
reserve_out(struct handshake *hs, size_t len)
{
	uint8_t *at = hs->out + hs->out_len;

	hs->out_len += len;
	return at;
}

static void
send_hello(struct handshake *hs)
{
	uint8_t *out = reserve_out(hs, HELLO_V2_BYTES);

	if (hs->refused)
		hello_v2_encode_refusal(out);
	else
		hello_v2_encode(&hs->own, out);
	step(hs, EVENT_HELLO_SENT);
}

static void
send_ack(struct handshake *hs)
{
	hello_ack_encode(!hs->refused, reserve_out(hs, HELLO_ACK_BYTES));
	step(hs, hs->refused ? EVENT_ACK_TCP : EVENT_ACK_RDMA);
}

static bool
alloc(struct handshake *hs)
{
	const char *why = "no resources for RDMA";

	hs->own = (struct hello){.hello_ver = HELLO_V2_VERSION, .impl_ver = HELLO_V2_IMPL};
	if (hs->ops->alloc(hs->ops_arg, &hs->own, &why) != 0) {
		turn_off(hs, EVENT_ALLOC_FAILED, why);
		return false;
	}
	step(hs, EVENT_ALLOC_OK);
	return true;
}

static void
bring_up(struct handshake *hs)
{
	const char *why = "the queue pair could not be brought up";

	if (hs->ops->bring_up(hs->ops_arg, &hs->peer, &why) != 0)
		turn_off(hs, EVENT_BRING_UP_FAILED, why);
	else
		step(hs, EVENT_BRING_UP_OK);
}

static void
client_got_hello(struct handshake *hs)
{
	const char *why;

	if (hello_v2_negotiable(&hs->peer, &why)) {
		step(hs, EVENT_NEGOTIABLE);
		bring_up(hs);
	} else {
		turn_off(hs, EVENT_NOT_NEGOTIABLE, why);
	}
	send_ack(hs);
}

/* The queue pair is up before the answer leaves: a peer that has read it may send at once. */
static void
server_got_hello(struct handshake *hs)
{
	const char *why;

	if (!hs->ops) {
		turn_off(hs, EVENT_NO_RDMA, "no RDMA on this side");
	} else if (!hello_v2_negotiable(&hs->peer, &why)) {
		turn_off(hs, EVENT_NOT_NEGOTIABLE, why);
	} else {
		step(hs, EVENT_NEGOTIABLE);
		if (alloc(hs))
			bring_up(hs);
	}
	send_hello(hs);
}

/* A server learns from its peer's first bytes whether there is to be a handshake at all. */
static void
server_met_peer(struct handshake *hs, enum hello_parse parse, size_t len)
{
	hs->started = parse != HELLO_OTHER;
	if (parse == HELLO_OTHER)
		turn_off(hs, EVENT_OTHER_PROTOCOL, "not asked for");
	else if (len >= HELLO_MAGIC_BYTES)
		step(hs, EVENT_MAGIC);
}

static size_t
take_hello(struct handshake *hs, const uint8_t *data, size_t len)
{
	size_t used;

	switch (hello_v2_decode(data, len, &hs->peer, &used)) {
	case HELLO_GOT:
		if (hs->role == HANDSHAKE_CLIENT)
			client_got_hello(hs);
		else
			server_got_hello(hs);
		break;
	case HELLO_PARTIAL:
		break;
	case HELLO_OTHER:
		turn_off(hs, EVENT_MALFORMED, "the peer answered the hello with something else");
		break;
	case HELLO_BAD:
		turn_off(hs, EVENT_MALFORMED, "a hello whose length is not 40 to 4096 bytes");
		break;
	}
	return used;
}

static size_t
take_first_bytes(struct handshake *hs, const uint8_t *data, size_t len)
{
	struct hello hello;
	size_t used;

	server_met_peer(hs, hello_v2_decode(data, len, &hello, &used), len);
	return hs->state == HANDSHAKE_S_HELLO_WAIT ? take_hello(hs, data, len) : 0;
}

static size_t
take_ack(struct handshake *hs, const uint8_t *data, size_t len)
{
	if (len < HELLO_ACK_BYTES)
		return 0;
	if (!hello_ack_decode(data))
		turn_off(hs, EVENT_ACK_TCP, hs->refused ? hs->reason : "refused by the peer");
	else if (hs->refused)
		turn_off(hs, EVENT_ACK_UNWANTED, "the peer goes on with RDMA although it was refused");
	else
		step(hs, EVENT_ACK_RDMA);
	return HELLO_ACK_BYTES;
}

/* Takes one whole message from the front, if there is one. */
static size_t
take(struct handshake *hs, const uint8_t *data, size_t len)
{
	switch (hs->state) {
	case HANDSHAKE_UNINIT:
		return take_first_bytes(hs, data, len);
	case HANDSHAKE_C_HELLO_WAIT:
	case HANDSHAKE_S_HELLO_WAIT:
		return take_hello(hs, data, len);
	case HANDSHAKE_S_ACK_WAIT:
		return take_ack(hs, data, len);
	case HANDSHAKE_ESTABLISHED:
		turn_off(hs, EVENT_BYTES_BEHIND, "bytes on TCP behind the handshake");
		return 0;
	default:
		return 0;
	}
}

static void
init(struct handshake *hs, enum handshake_role role, const struct handshake_ops *ops, void *arg)
{
	*hs = (struct handshake){
		.role = role,
		.state = HANDSHAKE_UNINIT,
		.reason = "",
		.ops = ops,
		.ops_arg = arg,
	};
}

enum handshake_result
handshake_start_client(struct handshake *hs, const struct handshake_ops *ops, void *arg)
{
	init(hs, HANDSHAKE_CLIENT, ops, arg);
	if (!ops) {
		turn_off(hs, EVENT_NO_RDMA, "no RDMA on this side");
		return result_of(hs);
	}
	step(hs, EVENT_DIALLED);
	if (alloc(hs)) {
		send_hello(hs);
		hs->started = true;
	}
	return result_of(hs);
}

void
handshake_start_server(struct handshake *hs, const struct handshake_ops *ops, void *arg)
{
	init(hs, HANDSHAKE_SERVER, ops, arg);
}

enum handshake_result
handshake_feed(struct handshake *hs, const uint8_t *data, size_t len, size_t *used)
{
	size_t taken;

	*used = 0;
	while (*used < len && (taken = take(hs, data + *used, len - *used)) > 0)
		*used += taken;
	return result_of(hs);
}

/* A connection that ends before its handshake: what it was waiting for. */
static const char *
why_ended(enum handshake_state state, bool closed)
{
	switch (state) {
	case HANDSHAKE_C_HELLO_WAIT:
		return closed ? "the peer closed instead of answering the hello"
			      : "the peer did not answer the hello in time";
	case HANDSHAKE_S_HELLO_WAIT:
		return closed ? "the peer closed within its hello" : "the peer's hello was not whole in time";
	case HANDSHAKE_S_ACK_WAIT:
		return closed ? "the peer closed before its ACK" : "the peer's ACK did not come in time";
	default:
		return closed ? "the peer closed before its first bytes"
			      : "the peer's first bytes did not come in time";
	}
}

static void
end(struct handshake *hs, enum handshake_event event)
{
	if (hs->state < HANDSHAKE_ESTABLISHED)
		turn_off(hs, event, why_ended(hs->state, event == EVENT_CLOSED));
}

void
handshake_eof(struct handshake *hs)
{
	end(hs, EVENT_CLOSED);
}

void
handshake_timeout(struct handshake *hs)
{
	end(hs, EVENT_DEADLINE);
}
