/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/flow.h"
#include <string.h>

enum mutant g_mutant;

void
world_init(struct world *world, const struct shape *shape)
{
	*world = (struct world){0};
	for (unsigned who = 0; who < 2; who++) {
		world->end[who].shape = &shape->end[who];
		world->end[who].card.posted = shape->end[who].rq_size;
	}
	for (unsigned who = 0; who < 2; who++) {
		if (shape->end[who].maker == OURS)
			our_end_init(world, who);
		else
			brpc_end_init(world, who);
	}
}

static bool
end_step(struct world *world, unsigned who, enum action action, uint32_t bytes)
{
	if (world->end[who].shape->maker == OURS)
		return our_end_step(world, who, action, bytes);
	return brpc_end_step(world, who, action);
}

bool
world_step(struct world *world, unsigned who, enum action action, uint32_t bytes)
{
	if (world->end[0].finished || world->end[1].finished || !end_step(world, who, action, bytes))
		return false;
	if (!(world->end[who].shape->abilities & MAY_LAG)) {
		while (!world->flaw && end_step(world, who, ACTION_COMPLETE, 0))
			;
	}
	return true;
}

/* A later solicited message wakes the receiver for the earlier ones too, so only the last one's mark matters. */
static void
arrive(struct card *card, struct message message)
{
	if (message.solicited) {
		for (unsigned i = 0; i < card->arrived_count; i++)
			card->arrived[i].solicited = false;
	}
	card->posted--;
	card->arrived[card->arrived_count++] = message;
}

/* A signaled request gives back the blocks of all before it, so their own marks matter no more. */
static void
enqueue(struct card *card, struct request request)
{
	if (request.covers > 0) {
		for (unsigned i = 0; i < card->request_count; i++)
			card->request[i].holds = false;
		request.holds = false;
	}
	card->request[card->request_count++] = request;
}

void
world_post(struct world *world, unsigned from, struct message message, struct request request)
{
	struct end *sender = &world->end[from], *receiver = &world->end[!from];

	if (sender->card.request_count == sender->shape->depth) {
		world->flaw = "send queue overrun";
		return;
	}
	if (receiver->card.posted == 0) {
		world->flaw = "receiver not ready";
		return;
	}
	enqueue(&sender->card, request);
	arrive(&receiver->card, message);
	sender->card.unreported -= message.credits;
}

struct message
world_receive(struct world *world, unsigned who)
{
	struct card *card = &world->end[who].card;
	struct message message = card->arrived[0];

	card->arrived_count--;
	memmove(card->arrived, card->arrived + 1, card->arrived_count * sizeof card->arrived[0]);
	return message;
}

bool
world_complete(struct world *world, unsigned who, struct request *request)
{
	struct card *card = &world->end[who].card;
	unsigned n = 0;

	while (n < card->request_count && card->request[n].covers == 0)
		n++;
	if (n == card->request_count)
		return false;
	*request = card->request[n++];
	card->request_count -= (uint8_t)n;
	memmove(card->request, card->request + n, card->request_count * sizeof card->request[0]);
	return true;
}
