/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/flow.h"
#include <stdio.h>

static const char *const g_action_name[ACTIONS] = {
	[ACTION_RECEIVE] = "receive",
	[ACTION_COMPLETE] = "complete",
	[ACTION_REPOST] = "repost",
	[ACTION_TAKE] = "take",
	[ACTION_HOLD] = "hold",
	[ACTION_RELEASE] = "release",
	[ACTION_SEND] = "send inlined",
	[ACTION_SEND_LAST] = "send inlined, last",
	[ACTION_SEND_BLOCKS] = "send blocks",
	[ACTION_SEND_BLOCKS_LAST] = "send blocks, last",
	[ACTION_TURN_END] = "end turn",
	[ACTION_CLOSE] = "close",
	[ACTION_FAREWELL] = "farewell",
	[ACTION_FINISH] = "finish",
};

/* data, ack, farewell; their credits; '!' solicited */
static void
print_arrived(const struct card *card)
{
	printf(" in[");
	for (unsigned i = 0; i < card->arrived_count; i++)
		printf("%s%c%u%s", i ? " " : "", "daf"[card->arrived[i].kind], card -> arrived[i].credits,
		       card->arrived[i].solicited ? "!" : "");
	printf("]");
}

/* what each covers (0: unsignaled); 'b' it holds blocks */
static void
print_requests(const struct card *card)
{
	printf(" sq[");
	for (unsigned i = 0; i < card->request_count; i++)
		printf("%s%c%u%s", i ? " " : "", "daf"[card->request[i].kind], card -> request[i].covers,
		       card->request[i].holds ? "b" : "");
	printf("]");
}

static void
print_end(const struct end *end)
{
	const struct card *card = &end->card;

	printf("%s%s%s", end->queued ? " queued" : "", end->closing ? " closing" : "", end->finished ? " done" : "");
	print_arrived(card);
	print_requests(card);
	printf(" starved %u unreported %d untaken %u", card->slotless, card->unreported, card->untaken);
	if (end->shape->maker == OURS)
		printf(" remote %u own %u acks %u%s%s", end->ours.window.remote, end->ours.window.own,
		       end->ours.window.ack_slots, end->ours.credit.holding ? " holding" : "",
		       end->ours.due ? " due" : "");
	else
		printf(" remote %u own %u acks %u%s", end->brpc.remote_window, end->brpc.sq_window,
		       end->brpc.ack_window, end->brpc.reposting ? " reposting" : "");
}

void
print_step(const struct world *world, unsigned who, enum action action)
{
	printf("    %c %-19s A", "AB"[who], g_action_name[action]);
	print_end(&world->end[0]);
	printf(" | B");
	print_end(&world->end[1]);
	printf("\n");
}
