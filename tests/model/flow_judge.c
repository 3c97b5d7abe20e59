/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What must hold in every state. It counts for itself, from what was posted and looked at; of an end's own counters it
 * reads the windows only, since they are what the law of conservation speaks about.
 */

#include "tests/model/flow.h"

static unsigned
remote_window(const struct end *end)
{
	return end->shape->maker == OURS ? end->ours.window.remote : end->brpc.remote_window;
}

static unsigned
remote_capacity(const struct end *end)
{
	return end->shape->maker == OURS ? end->ours.window.remote_capacity : end->brpc.local_capacity;
}

static bool
windows_open(const struct end *end)
{
	if (end->shape->maker == OURS)
		return window_open(&end->ours.window);
	return end->brpc.remote_window > 0 && end->brpc.sq_window > 0;
}

static bool
has_turn(const struct end *end)
{
	return end->shape->maker == OURS ? our_end_has_turn(end) : brpc_end_has_turn(end);
}

static bool
wakes(const struct card *card)
{
	for (unsigned i = 0; i < card->arrived_count; i++) {
		if (card->arrived[i].solicited)
			return true;
	}
	return false;
}

static bool
completes(const struct card *card)
{
	for (unsigned i = 0; i < card->request_count; i++) {
		if (card->request[i].covers > 0)
			return true;
	}
	return false;
}

/*
 * The end will act, whatever the other one does: it is asleep with its receive queue armed for solicited messages and
 * its send queue for every completion, and one of them is there; or it has a turn.
 */
static bool
outstanding(const struct end *end)
{
	return wakes(&end->card) || completes(&end->card) || has_turn(end);
}

/* ---- each message and each credit is in one place ---- */

static unsigned
travelling_data(const struct card *receiver)
{
	unsigned n = 0;

	for (unsigned i = 0; i < receiver->arrived_count; i++)
		n += receiver->arrived[i].kind == KIND_DATA;
	return n;
}

static unsigned
travelling_credits(const struct card *sender)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sender->arrived_count; i++)
		n += sender->arrived[i].credits;
	return n;
}

static const char *
judge_credits(const struct end *sender, const struct end *receiver)
{
	const struct card *at = &receiver->card;
	unsigned sum = remote_window(sender) + travelling_data(at) + at->slotless + travelling_credits(&sender->card);

	if (at->unreported < 0)
		return "a credit was reported that is not owed";
	sum += (unsigned)at->unreported + sender->card.farewells;
	if (sum < remote_capacity(sender))
		return "a credit was lost";
	if (sum > remote_capacity(sender))
		return "a credit came from nowhere";
	return NULL;
}

static const char *
judge_receive_queue(const struct end *end)
{
	const struct card *card = &end->card;
	unsigned zero_length = end->shape->maker == BRPC && end->brpc.reposting && !end->brpc.reposting_data;

	if (card->posted + card->arrived_count + card->slotless + zero_length != end->shape->rq_size)
		return "a receive slot was lost";
	return NULL;
}

/* Two at the most by our rules, one by brpc's: what the reserved receives of the other end are sized by. */
static const char *
judge_acks(const struct end *sender, const struct end *receiver)
{
	unsigned acks = 0;

	for (unsigned i = 0; i < receiver->card.arrived_count; i++)
		acks += receiver->card.arrived[i].kind == KIND_ACK;
	return acks > (sender->shape->maker == OURS ? 2 : 1) ? "too many pure ACKs at once" : NULL;
}

/* ---- nobody waits for something that will not come ---- */

/* Messages whose credits may not be kept back: the slot is posted again, and taken or not to be held. */
static unsigned
owed(const struct end *end)
{
	unsigned untaken = (end->card.untaken + MESSAGE_BYTES - 1) / MESSAGE_BYTES;
	unsigned here = (unsigned)end->card.unreported + end->card.slotless;

	if (end->shape->maker == BRPC || !end->ours.credit.holding)
		return (unsigned)end->card.unreported;
	return untaken < here && here - untaken < (unsigned)end->card.unreported ? here - untaken
	       : untaken < here							 ? (unsigned)end->card.unreported
										 : 0;
}

/* The receiver's application keeps its sender back, or has no block for it: then alone may bytes stay where they are.
 */
static bool
kept_back(const struct end *receiver)
{
	return owed(receiver) == 0 && receiver->card.unreported + receiver->card.slotless > 0;
}

static const char *
judge_sender(const struct end *sender, const struct end *receiver)
{
	if (sender->queued && !windows_open(sender) && !kept_back(receiver))
		return "bytes wait for ever";
	return NULL;
}

static const char *
judge_receiver(const struct end *end)
{
	return end->card.arrived_count > 0 ? "a message waits unseen for ever" : NULL;
}

static const char *
judge_close(const struct end *end, const struct end *peer)
{
	if (end->closing && !end->finished && !(end->queued && kept_back(peer)))
		return "a closing end waits for ever";
	return NULL;
}

static const char *
judge_blocks(const struct end *end)
{
	if (end->queued || end->shape->maker == BRPC)
		return NULL;
	for (unsigned i = 0; i < end->card.request_count; i++) {
		if (end->card.request[i].holds)
			return "an idle end holds blocks";
	}
	return NULL;
}

/* ---- the end of a close ---- */

static bool
completed(const struct card *sender)
{
	for (unsigned i = 0; i < sender->request_count; i++) {
		if (sender->request[i].kind != KIND_ACK)
			return false;
	}
	return true;
}

/* All that was posted has arrived, by word of completions or of the peer. What a pure ACK said matters no more. */
static const char *
judge_finish(const struct end *end, const struct end *peer)
{
	unsigned uncredited = travelling_data(&peer->card) + peer->card.slotless + (unsigned)peer->card.unreported +
			      travelling_credits(&end->card);

	if (end->finished && (end->queued || (!completed(&end->card) && uncredited > 0)))
		return "the FIN left before the data had arrived";
	return NULL;
}

const char *
judge(const struct world *world)
{
	bool quiet = !outstanding(&world->end[0]) && !outstanding(&world->end[1]);
	const char *flaw = world->flaw;

	for (unsigned who = 0; who < 2 && !flaw; who++) {
		const struct end *end = &world->end[who], *peer = &world->end[!who];

		flaw = judge_credits(end, peer);
		if (!flaw)
			flaw = judge_receive_queue(end);
		if (!flaw)
			flaw = judge_acks(end, peer);
		if (!flaw)
			flaw = judge_finish(end, peer);
		if (flaw || !quiet || world->end[0].finished || world->end[1].finished)
			continue;
		flaw = judge_receiver(end);
		if (!flaw)
			flaw = judge_sender(end, peer);
		if (!flaw)
			flaw = judge_close(end, peer);
		if (!flaw)
			flaw = judge_blocks(end);
	}
	return flaw;
}
