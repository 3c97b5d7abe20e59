/* SPDX-License-Identifier: Apache-2.0 */

/* An end of ours: the endpoint's order of doing things around the library's own arithmetic, and its mutants. */

#include "tests/model/flow.h"

static bool
may(const struct end *end, unsigned ability)
{
	return end->shape->abilities & ability;
}

void
our_end_init(struct world *world, unsigned who)
{
	struct end *end = &world->end[who];
	struct our_end *ours = &end->ours;
	const struct end_shape *own = end->shape, *peer = world->end[!who].shape;

	window_init(&ours->window, own->sq_size, own->rq_size, own->depth, peer->sq_size, peer->rq_size);
	credit_init(&ours->credit, credit_capacity(own->rq_size, peer->sq_size), ours->ends);
	if (g_mutant == MUTANT_TWO_RECEIVES_RESERVED) {
		ours->window.remote = ++ours->window.remote_capacity;
		ours->window.peer_capacity++;
		ours->credit.capacity++;
	}
	if (g_mutant == MUTANT_TWO_SENDS_RESERVED)
		ours->window.own = ++ours->window.own_capacity;
}

/* ---- the rules, with their mutants ---- */

static uint16_t
reportable(const struct credit *credit)
{
	if (g_mutant == MUTANT_HOLDS_TAKEN_ONES && credit->holding)
		return 0;
	return credit_reportable(credit);
}

static bool
ack_due(const struct credit *credit)
{
	if (g_mutant == MUTANT_NO_ACK_AT_ALL_OF_K)
		return reportable(credit) > credit->capacity / 2;
	if (g_mutant == MUTANT_STARVED_NOT_COUNTED)
		return reportable(credit) > credit->capacity / 2 ||
		       (reportable(credit) > 0 && credit->unreported == credit->capacity);
	if (g_mutant == MUTANT_HOLDS_TAKEN_ONES && credit->holding)
		return false;
	return credit_ack_due(credit);
}

static bool
open_window(const struct window *window)
{
	if (g_mutant == MUTANT_NO_OWN_WINDOW)
		return window->remote > 0;
	return window_open(window);
}

/* Whether nothing but the emptied queue asks for this completion. */
static bool
signaled_early(const struct window *window)
{
	unsigned quarter = window->remote_capacity / 4;

	return quarter > 1 && window->unsignaled + 1u < quarter;
}

static struct window_flags
decide(const struct window *window, const struct window_request *request)
{
	struct window_flags flags = window_decide(window, request);

	if (g_mutant == MUTANT_NOT_SOLICITED_AT_REMOTE_EDGE && window->remote == 1 && !request->last)
		flags.solicited = false;
	if (g_mutant == MUTANT_NOT_SOLICITED_WHEN_EMPTIED && request->last && window->remote > 1)
		flags.solicited = false;
	if (g_mutant == MUTANT_NOT_SIGNALED_WHEN_EMPTIED && signaled_early(window))
		flags.signaled = false;
	if (g_mutant == MUTANT_NOT_SIGNALED_AT_REMOTE_EDGE && signaled_early(window) && !request->holds &&
	    !window->unsignaled_holds)
		flags.signaled = false;
	if (g_mutant == MUTANT_COVERS_ITSELF_ONLY)
		flags.covers = 1;
	return flags;
}

static bool
sends_ack(const struct our_end *ours)
{
	return ack_due(&ours->credit) && ours->window.ack_slots > 0;
}

/* ---- actions ---- */

static void
report(struct our_end *ours, uint16_t credits)
{
	if (g_mutant != MUTANT_CREDITS_SENT_TWICE)
		credit_reported(&ours->credit, credits);
}

static void
repost(struct end *end)
{
	end->card.slotless--;
	end->card.unreported++;
	end->card.posted++;
	if (g_mutant != MUTANT_ACK_BEFORE_REPOST)
		credit_reposted(&end->ours.credit);
}

static void
take(struct end *end, uint32_t bytes)
{
	credit_taken(&end->ours.credit, bytes);
	end->card.untaken -= bytes;
	if (end->card.untaken == 0)
		end->ours.credit.holding = false;
}

static void
receive_data(struct world *world, struct end *end)
{
	end->card.slotless++;
	end->card.untaken += MESSAGE_BYTES;
	if (g_mutant == MUTANT_CLOSE_DROPS_CREDITS && end->closing) {
		end->card.slotless--;
		end->card.posted++;
		end->card.untaken = 0;
		return;
	}
	if (credit_received(&end->ours.credit, MESSAGE_BYTES)) {
		world->flaw = "a message came without credit";
		return;
	}
	if (g_mutant == MUTANT_ACK_BEFORE_REPOST)
		credit_reposted(&end->ours.credit);
	if (!may(end, MAY_STARVE))
		repost(end);
	if ((end->closing && g_mutant != MUTANT_CLOSE_HOLDS) || !may(end, MAY_HOLD))
		take(end, end->card.untaken);
}

static bool
receive(struct world *world, unsigned who)
{
	struct end *end = &world->end[who];
	struct message message;

	if (end->card.arrived_count == 0)
		return false;
	message = world_receive(world, who);
	if (window_credited(&end->ours.window, message.credits))
		world->flaw = "credits for more than was sent";
	if (message.kind == KIND_DATA)
		receive_data(world, end);
	else
		end->card.posted++;
	if (message.kind != KIND_DATA && g_mutant == MUTANT_ZERO_LENGTH_COUNTED) {
		if (credit_received(&end->ours.credit, 0))
			world->flaw = "a message came without credit";
		credit_reposted(&end->ours.credit);
	}
	end->ours.due = true;
	return true;
}

static bool
complete(struct world *world, unsigned who)
{
	struct our_end *ours = &world->end[who].ours;
	struct request request;

	if (!world_complete(world, who, &request))
		return false;
	if (request.kind == KIND_ACK) {
		ours->window.ack_slots++;
		ours->due |= g_mutant != MUTANT_NO_TEST_WHEN_SLOT_RETURNS;
	} else if (window_completed(&ours->window, request.covers)) {
		world->flaw = "a completion for more than was posted";
	}
	return true;
}

static bool
serve(struct end *end)
{
	if (end->card.slotless == 0)
		return false;
	repost(end);
	end->ours.due |= g_mutant != MUTANT_NO_TEST_WHEN_SERVED;
	return true;
}

static bool
take_some(struct end *end, uint32_t bytes)
{
	if (!may(end, MAY_HOLD) || end->card.untaken < bytes || bytes == 0)
		return false;
	take(end, bytes);
	end->ours.due |= g_mutant != MUTANT_NO_TEST_WHEN_TAKEN;
	return true;
}

static bool
set_holding(struct end *end, bool holding)
{
	if (!may(end, MAY_HOLD) || end->ours.credit.holding == holding || end->closing || end->card.untaken == 0)
		return false;
	end->ours.credit.holding = holding;
	end->ours.due = true;
	return true;
}

static bool
send_data(struct world *world, unsigned who, bool last, bool holds)
{
	struct end *end = &world->end[who];
	struct our_end *ours = &end->ours;
	struct window_request request = {.bytes = MESSAGE_BYTES, .last = last, .holds = holds};
	struct window_flags flags;

	if (!may(end, holds ? MAY_BLOCK : MAY_INLINE) || !open_window(&ours->window))
		return false;
	if (!end->queued && (end->closing || !may(end, MAY_SEND)))
		return false;
	request.credits = reportable(&ours->credit);
	flags = decide(&ours->window, &request);
	world_post(world, who, (struct message){KIND_DATA, (uint8_t)request.credits, flags.solicited},
		   (struct request){KIND_DATA, flags.signaled ? (uint8_t)flags.covers : 0, holds});
	window_charge(&ours->window, &request, flags);
	report(ours, request.credits);
	end->queued = !last;
	return true;
}

static bool
end_turn(struct world *world, unsigned who)
{
	struct our_end *ours = &world->end[who].ours;
	uint16_t credits = reportable(&ours->credit);

	if (!ours->due)
		return false;
	ours->due = false;
	if (sends_ack(ours)) {
		world_post(world, who, (struct message){KIND_ACK, (uint8_t)credits, g_mutant != MUTANT_ACK_UNSOLICITED},
			   (struct request){KIND_ACK, 1, false});
		ours->window.ack_slots--;
		report(ours, credits);
	}
	return true;
}

static bool
begin_close(struct end *end)
{
	if (end->closing || !may(end, MAY_CLOSE))
		return false;
	end->closing = true;
	if (g_mutant != MUTANT_CLOSE_HOLDS)
		take(end, end->card.untaken);
	end->ours.due = true;
	return true;
}

/* Some SEND is neither credited nor will a completion cover it. A mutant uses the same message to probe a live peer. */
static bool
needs_farewell(const struct end *end)
{
	const struct window *window = &end->ours.window;

	if (g_mutant == MUTANT_PROBE && !end->closing && end->card.farewells == 0)
		return true;
	return end->closing && !end->queued && window_uncovered(window) && g_mutant != MUTANT_NO_FAREWELL;
}

static bool
send_farewell(struct world *world, unsigned who)
{
	struct our_end *ours = &world->end[who].ours;
	struct window_request request = {.credits = reportable(&ours->credit), .last = true};
	struct window_flags flags = {.signaled = true, .solicited = true, .covers = ours->window.unsignaled + 1};

	if (!needs_farewell(&world->end[who]) || !open_window(&ours->window))
		return false;
	world_post(world, who, (struct message){KIND_FAREWELL, (uint8_t)request.credits, true},
		   (struct request){KIND_FAREWELL, (uint8_t)flags.covers, false});
	window_charge(&ours->window, &request, flags);
	report(ours, request.credits);
	world->end[who].card.farewells++;
	return true;
}

static bool
flushed(const struct end *end)
{
	return end->closing && !end->queued &&
	       (window_quiet(&end->ours.window) || g_mutant == MUTANT_CLOSE_BEFORE_QUIET);
}

static bool
finish(struct end *end)
{
	if (!flushed(end))
		return false;
	end->finished = true;
	return true;
}

static bool
act(struct world *world, unsigned who, enum action action, uint32_t bytes)
{
	struct end *end = &world->end[who];

	switch (action) {
	case ACTION_RECEIVE:
		return receive(world, who);
	case ACTION_COMPLETE:
		return complete(world, who);
	case ACTION_REPOST:
		return serve(end);
	case ACTION_TAKE:
		return take_some(end, bytes);
	case ACTION_HOLD:
	case ACTION_RELEASE:
		return set_holding(end, action == ACTION_HOLD);
	case ACTION_SEND:
	case ACTION_SEND_LAST:
	case ACTION_SEND_BLOCKS:
	case ACTION_SEND_BLOCKS_LAST:
		return send_data(world, who, action == ACTION_SEND_LAST || action == ACTION_SEND_BLOCKS_LAST,
				 action >= ACTION_SEND_BLOCKS);
	case ACTION_TURN_END:
		return end_turn(world, who);
	case ACTION_CLOSE:
		return begin_close(end);
	case ACTION_FAREWELL:
		return send_farewell(world, who);
	case ACTION_FINISH:
		return finish(end);
	case ACTIONS:
		break;
	}
	return false;
}

/* A turn that is due and would report nothing ends without a trace, so it is not told apart from none. */
bool
our_end_step(struct world *world, unsigned who, enum action action, uint32_t bytes)
{
	struct our_end *ours = &world->end[who].ours;

	ours->credit.ends = ours->ends;
	if (!act(world, who, action, bytes))
		return false;
	ours->due &= sends_ack(ours);
	return true;
}

bool
our_end_has_turn(const struct end *end)
{
	const struct our_end *ours = &end->ours;
	bool open = open_window(&ours->window);

	return ours->due || (end->queued && open) || flushed(end) || (needs_farewell(end) && open);
}
