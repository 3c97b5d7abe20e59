/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handshake fed with arbitrary bytes in arbitrary cuts. The input's last bytes choose the role, what fails, the
 * cuts and how the peer leaves; all before them is what the peer sends. The stream is fed whole, in equal pieces
 * (single bytes, unless it is long) and in the chosen cuts: the end must be the same.
 */

#include "net/handshake/machine.h"
#include "tests/fuzz/fuzz.h"
#include <errno.h>
#include <stdbool.h>

enum {
	CHOICE_SERVER = 1,
	CHOICE_NO_RDMA = 2,
	CHOICE_ALLOC_FAILS = 4,
	CHOICE_BRING_UP_FAILS = 8,
	CHOICE_WITHOUT_WORDS = 16,
	CHOICE_PEER_CLOSES = 32,
	CHOICE_DEADLINE = 64,
};

/* The bytes at the end of the input: the choices, and the seed of the cuts. */
#define CONTROL_BYTES 3

/* A long stream comes in about so many equal pieces, a short one byte by byte. */
#define EQUAL_PIECES 256

struct input {
	const uint8_t *bytes;
	size_t len;
	unsigned choices;
	uint32_t cut_seed;
};

/* All that the outside can see. */
struct outcome {
	enum handshake_state state;
	bool started, refused;
	const char *reason;
	size_t used, sent_len;
	uint8_t sent[HANDSHAKE_OUT_BYTES];
};

static int
fail(unsigned choices, int error, const char **why)
{
	if (!(choices & CHOICE_WITHOUT_WORDS))
		*why = "the fuzzer says so";
	return error;
}

static int
alloc(void *arg, struct hello *own, const char **why)
{
	const struct input *input = arg;

	if (input->choices & CHOICE_ALLOC_FAILS)
		return fail(input->choices, -ENOMEM, why);
	own->block_size = 8160;
	own->sq_size = 128;
	own->rq_size = 128;
	own->qp_num = 0x20;
	return 0;
}

/* The transport is told only of peers that a queue pair can be made of. */
static int
bring_up(void *arg, const struct hello *peer, const char **why)
{
	const struct input *input = arg;
	const char *flaw;

	FUZZ_ASSERT(hello_v2_negotiable(peer, &flaw));
	if (input->choices & CHOICE_BRING_UP_FAILS)
		return fail(input->choices, -EIO, why);
	return 0;
}

static const struct handshake_ops fuzz_ops = {.alloc = alloc, .bring_up = bring_up};

static enum handshake_result
start(struct handshake *hs, struct input *input)
{
	const struct handshake_ops *ops = input->choices & CHOICE_NO_RDMA ? NULL : &fuzz_ops;

	if (!(input->choices & CHOICE_SERVER))
		return handshake_start_client(hs, ops, input);
	handshake_start_server(hs, ops, input);
	return HANDSHAKE_GO_ON;
}

static enum handshake_result
result_for(enum handshake_state state)
{
	switch (state) {
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

static void
take_out(struct handshake *hs, struct outcome *outcome)
{
	FUZZ_ASSERT(hs->out_len <= sizeof outcome->sent - outcome->sent_len);
	memcpy(outcome->sent + outcome->sent_len, hs->out, hs->out_len);
	outcome->sent_len += hs->out_len;
	hs->out_len = 0;
}

/* Only between calls: what a call leaves behind. */
static void
check_rest(const struct handshake *hs, enum handshake_result result)
{
	FUZZ_ASSERT(result == result_for(hs->state));
	FUZZ_ASSERT(hs->reason);
	switch (hs->state) {
	case HANDSHAKE_UNINIT:
	case HANDSHAKE_S_HELLO_WAIT:
	case HANDSHAKE_S_ACK_WAIT:
		FUZZ_ASSERT(hs->role == HANDSHAKE_SERVER);
		break;
	case HANDSHAKE_C_HELLO_WAIT:
		FUZZ_ASSERT(hs->role == HANDSHAKE_CLIENT && hs->started && !hs->refused);
		break;
	case HANDSHAKE_ESTABLISHED:
		FUZZ_ASSERT(!hs->refused && !*hs->reason);
		break;
	case HANDSHAKE_FALLBACK_TCP:
	case HANDSHAKE_FAILED:
		FUZZ_ASSERT(hs->refused && *hs->reason);
		break;
	default:
		FUZZ_ASSERT(!"a state that no call ends in");
	}
}

static void
check_end_stays(enum handshake_state before, enum handshake_state after, bool bytes)
{
	if (before == HANDSHAKE_FALLBACK_TCP || before == HANDSHAKE_FAILED)
		FUZZ_ASSERT(after == before);
	if (before == HANDSHAKE_ESTABLISHED)
		FUZZ_ASSERT(after == (bytes ? HANDSHAKE_FAILED : HANDSHAKE_ESTABLISHED));
}

/* Lets arrive what stands before `arrived`, in memory that ends where the bytes end. */
static void
feed(struct handshake *hs, const struct input *input, size_t arrived, struct outcome *outcome)
{
	enum handshake_state before = hs->state;
	size_t len = arrived - outcome->used, used;
	uint8_t *piece = fuzz_copy(input->bytes + outcome->used, len);
	enum handshake_result result = handshake_feed(hs, piece, len, &used);

	free(piece);
	FUZZ_ASSERT(used <= len);
	FUZZ_ASSERT(result != HANDSHAKE_GO_ON || len - used < HELLO_V2_MAX);
	outcome->used += used;
	check_rest(hs, result);
	check_end_stays(before, hs->state, len > 0);
	take_out(hs, outcome);
}

static void
leave(struct handshake *hs, unsigned choices)
{
	enum handshake_state before = hs->state;

	if (choices & CHOICE_PEER_CLOSES)
		handshake_eof(hs);
	if (choices & CHOICE_DEADLINE)
		handshake_timeout(hs);
	check_rest(hs, result_for(hs->state));
	check_end_stays(before, hs->state, false);
	if (choices & (CHOICE_PEER_CLOSES | CHOICE_DEADLINE))
		FUZZ_ASSERT(hs->state >= HANDSHAKE_ESTABLISHED);
	FUZZ_ASSERT(hs->out_len == 0);
}

static uint32_t
word_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A client that fell back has said nothing, or has taken its hello back with an ACK of 0. */
static void
check_client_sent(const struct outcome *outcome)
{
	const uint8_t *ack = outcome->sent + HELLO_V2_BYTES;

	switch (outcome->state) {
	case HANDSHAKE_FALLBACK_TCP:
		FUZZ_ASSERT(outcome->sent_len == 0 || outcome->sent_len == HANDSHAKE_OUT_BYTES);
		FUZZ_ASSERT(outcome->sent_len == 0 || word_at(ack) == 0);
		break;
	case HANDSHAKE_ESTABLISHED:
		FUZZ_ASSERT(outcome->sent_len == HANDSHAKE_OUT_BYTES && word_at(ack) == HELLO_ACK_RDMA);
		break;
	default:
		FUZZ_ASSERT(outcome->sent_len == HELLO_V2_BYTES || outcome->sent_len == HANDSHAKE_OUT_BYTES);
	}
}

/* A server sends a hello or a refusal once it has taken a hello, and never anything else. */
static void
check_server_sent(const struct outcome *outcome)
{
	uint8_t refusal[HELLO_V2_BYTES];
	bool refused;

	FUZZ_ASSERT(outcome->sent_len == (outcome->used ? HELLO_V2_BYTES : 0));
	if (!outcome->used)
		return;
	hello_v2_encode_refusal(refusal);
	refused = memcmp(outcome->sent, refusal, sizeof refusal) == 0;
	if (outcome->state == HANDSHAKE_ESTABLISHED)
		FUZZ_ASSERT(!refused);
	if (refused)
		FUZZ_ASSERT(outcome->refused);
}

static void
check_sent(const struct outcome *outcome, unsigned choices)
{
	if (choices & CHOICE_SERVER)
		check_server_sent(outcome);
	else
		check_client_sent(outcome);
}

/* The size of the next piece: step, or by chance when step is 0. */
static size_t
next_piece(size_t step, size_t left, uint32_t *seed)
{
	if (step)
		return step < left ? step : left;
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % (left < 64 ? left + 1 : 64);
}

static struct outcome
run(struct input *input, size_t step)
{
	struct outcome outcome = {.used = 0};
	uint32_t seed = input->cut_seed;
	enum handshake_result result;
	struct handshake hs;
	size_t arrived = 0;

	result = start(&hs, input);
	check_rest(&hs, result);
	take_out(&hs, &outcome);
	while (arrived < input->len) {
		arrived += next_piece(step, input->len - arrived, &seed);
		feed(&hs, input, arrived, &outcome);
	}
	leave(&hs, input->choices);
	outcome.state = hs.state;
	outcome.started = hs.started;
	outcome.refused = hs.refused;
	outcome.reason = hs.reason;
	check_sent(&outcome, input->choices);
	return outcome;
}

static void
check_same(const struct outcome *cut, const struct outcome *whole)
{
	FUZZ_ASSERT(cut->state == whole->state);
	FUZZ_ASSERT(cut->started == whole->started && cut->refused == whole->refused);
	FUZZ_ASSERT(strcmp(cut->reason, whole->reason) == 0);
	FUZZ_ASSERT(cut->used == whole->used);
	FUZZ_ASSERT(cut->sent_len == whole->sent_len && memcmp(cut->sent, whole->sent, cut->sent_len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, equal, chosen;
	struct input input;

	if (size < CONTROL_BYTES)
		return 0;
	input.bytes = data;
	input.len = size - CONTROL_BYTES;
	input.choices = data[size - 1];
	input.cut_seed = (uint32_t)data[size - 2] << 8 | data[size - 3];
	whole = run(&input, SIZE_MAX);
	equal = run(&input, 1 + input.len / EQUAL_PIECES);
	chosen = run(&input, 0);
	check_same(&equal, &whole);
	check_same(&chosen, &whole);
	return 0;
}
