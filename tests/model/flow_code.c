/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A state as bytes: what tells it from others, and nothing else. Positions in the stream become relative to the oldest
 * message that still counts, and the ring of a credit starts at 0; what an application has not taken matters only while
 * it holds its peer back, so until then everything counts as untaken.
 */

#include "tests/model/flow.h"
#include <string.h>

struct bits {
	uint8_t *at;
	uint64_t word;
	unsigned used;
};

static void
put(struct bits *bits, unsigned value, unsigned width)
{
	bits->word |= (uint64_t)value << bits->used;
	bits->used += width;
	while (bits->used >= 8) {
		*bits->at++ = (uint8_t)bits->word;
		bits->word >>= 8;
		bits->used -= 8;
	}
}

static unsigned
get(struct bits *bits, unsigned width)
{
	unsigned value;

	while (bits->used < width) {
		bits->word |= (uint64_t)*bits->at++ << bits->used;
		bits->used += 8;
	}
	value = (unsigned)(bits->word & ((1u << width) - 1));
	bits->word >>= width;
	bits->used -= width;
	return value;
}

enum {
	COUNT = 5
}; /* bits of a number up to 31 */

/* ---- the card ---- */

static void
put_card(struct bits *bits, const struct card *card)
{
	put(bits, card->arrived_count, COUNT);
	for (unsigned i = 0; i < card->arrived_count; i++) {
		put(bits, card->arrived[i].kind, 2);
		put(bits, card->arrived[i].credits, COUNT);
		put(bits, card->arrived[i].solicited, 1);
	}
	put(bits, card->request_count, COUNT);
	for (unsigned i = 0; i < card->request_count; i++) {
		put(bits, card->request[i].kind, 2);
		put(bits, card->request[i].covers, COUNT);
		put(bits, card->request[i].holds, 1);
	}
	put(bits, card->posted, COUNT);
	put(bits, card->slotless, COUNT);
	put(bits, (unsigned)card->unreported, COUNT);
	put(bits, card->farewells, 1);
}

static void
get_card(struct bits *bits, struct card *card)
{
	card->arrived_count = (uint8_t)get(bits, COUNT);
	for (unsigned i = 0; i < card->arrived_count; i++) {
		card->arrived[i].kind = (uint8_t)get(bits, 2);
		card->arrived[i].credits = (uint8_t)get(bits, COUNT);
		card->arrived[i].solicited = get(bits, 1);
	}
	card->request_count = (uint8_t)get(bits, COUNT);
	for (unsigned i = 0; i < card->request_count; i++) {
		card->request[i].kind = (uint8_t)get(bits, 2);
		card->request[i].covers = (uint8_t)get(bits, COUNT);
		card->request[i].holds = get(bits, 1);
	}
	card->posted = (uint8_t)get(bits, COUNT);
	card->slotless = (uint8_t)get(bits, COUNT);
	card->unreported = (int)get(bits, COUNT);
	card->farewells = (uint8_t)get(bits, 1);
}

/* ---- an end of ours ---- */

static uint32_t
untaken_messages(const struct end *end)
{
	unsigned here = end->ours.credit.unreported + end->ours.credit.starved;
	uint32_t untaken = (end->card.untaken + MESSAGE_BYTES - 1) / MESSAGE_BYTES;

	if (!(end->shape->abilities & MAY_HOLD) || end->closing)
		return 0;
	return end->ours.credit.holding && untaken < here ? untaken : here;
}

static void
put_ours(struct bits *bits, const struct end *end)
{
	const struct window *window = &end->ours.window;
	const struct credit *credit = &end->ours.credit;

	put(bits, window->remote, COUNT);
	put(bits, window->own, COUNT);
	put(bits, window->ack_slots, 2);
	put(bits, window->unsignaled, COUNT);
	put(bits, window->unsignaled_holds, 1);
	put(bits, window->unsolicited, COUNT);
	put(bits, window->unsolicited_credits, COUNT);
	put(bits, credit->starved, COUNT);
	put(bits, credit->unreported, COUNT);
	put(bits, credit->holding, 1);
	put(bits, untaken_messages(end), COUNT);
	put(bits, end->ours.due, 1);
}

static void
get_ours(struct bits *bits, struct end *end)
{
	struct window *window = &end->ours.window;
	struct credit *credit = &end->ours.credit;
	unsigned here, untaken;

	window->remote = (uint16_t)get(bits, COUNT);
	window->own = (uint16_t)get(bits, COUNT);
	window->ack_slots = (uint16_t)get(bits, 2);
	window->unsignaled = (uint16_t)get(bits, COUNT);
	window->unsignaled_holds = get(bits, 1);
	window->unsolicited = (uint16_t)get(bits, COUNT);
	window->unsolicited_credits = (uint16_t)get(bits, COUNT);
	window->unsolicited_bytes = window->unsolicited * MESSAGE_BYTES;
	credit->starved = (uint16_t)get(bits, COUNT);
	credit->unreported = (uint16_t)get(bits, COUNT);
	credit->holding = get(bits, 1);
	here = credit->unreported + credit->starved;
	untaken = get(bits, COUNT);
	for (unsigned i = 0; i < here; i++)
		end->ours.ends[i] = (uint64_t)(i + 1) * MESSAGE_BYTES;
	credit->received = (uint64_t)here * MESSAGE_BYTES;
	credit->taken = (uint64_t)(here - untaken) * MESSAGE_BYTES;
	end->card.untaken = untaken * MESSAGE_BYTES;
	end->ours.due = get(bits, 1);
}

/* ---- a brpc end ---- */

static void
put_brpc(struct bits *bits, const struct brpc_end *brpc)
{
	put(bits, brpc->remote_window, COUNT);
	put(bits, brpc->sq_window, COUNT);
	put(bits, brpc->ack_window, 2);
	put(bits, brpc->new_receives, COUNT);
	put(bits, brpc->unsignaled, COUNT);
	put(bits, brpc->unsolicited, COUNT);
	put(bits, brpc->unsolicited_credits, COUNT);
	put(bits, brpc->reposting, 1);
	put(bits, brpc->reposting_data, 1);
}

static void
get_brpc(struct bits *bits, struct brpc_end *brpc)
{
	brpc->remote_window = (uint16_t)get(bits, COUNT);
	brpc->sq_window = (uint16_t)get(bits, COUNT);
	brpc->ack_window = (uint16_t)get(bits, 2);
	brpc->new_receives = (uint16_t)get(bits, COUNT);
	brpc->unsignaled = (uint16_t)get(bits, COUNT);
	brpc->unsolicited = (uint16_t)get(bits, COUNT);
	brpc->unsolicited_credits = (uint16_t)get(bits, COUNT);
	brpc->reposting = get(bits, 1);
	brpc->reposting_data = get(bits, 1);
}

/* ---- the whole ---- */

size_t
world_encode(const struct world *world, uint8_t *code)
{
	struct bits bits = {.at = code};

	for (unsigned who = 0; who < 2; who++) {
		const struct end *end = &world->end[who];

		put_card(&bits, &end->card);
		put(&bits, end->queued, 1);
		put(&bits, end->closing, 1);
		put(&bits, end->finished, 1);
		if (end->shape->maker == OURS)
			put_ours(&bits, end);
		else
			put_brpc(&bits, &end->brpc);
	}
	put(&bits, 0, 7); /* pads the last byte */
	return (size_t)(bits.at - code);
}

/* What does not change in a world comes from a fresh one of the same shape. */
void
world_decode(struct world *world, const struct world *fresh, const uint8_t *code)
{
	struct bits bits = {.at = (uint8_t *)(uintptr_t)code};

	*world = *fresh;
	for (unsigned who = 0; who < 2; who++) {
		struct end *end = &world->end[who];

		get_card(&bits, &end->card);
		end->queued = get(&bits, 1);
		end->closing = get(&bits, 1);
		end->finished = get(&bits, 1);
		if (end->shape->maker == OURS)
			get_ours(&bits, end);
		else
			get_brpc(&bits, &end->brpc);
	}
}
