/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A brpc end, from a description of what it does on the wire, and sharing no arithmetic with ours. Two threads of it
 * matter: one looks at completions, the other writes; the writer may get in between the moment at which a message's
 * credits are in force and the moment at which its slot is posted again.
 *
 * A writer that found a window closed looks again by itself within 50 ms, so wake-ups of writers are no matter here.
 * Its application takes what arrives at once, or in its own time; it makes no difference to what is reported.
 */

#include "tests/model/flow.h"

#define RESERVED 3

static uint16_t
smaller(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

void
brpc_end_init(struct world *world, unsigned who)
{
	struct brpc_end *brpc = &world->end[who].brpc;
	const struct end_shape *own = world->end[who].shape, *peer = world->end[!who].shape;

	brpc->local_capacity = smaller(own->sq_size, peer->rq_size) - RESERVED;
	brpc->remote_capacity = smaller(own->rq_size, peer->sq_size) - RESERVED;
	if (g_mutant == MUTANT_TWO_RECEIVES_RESERVED) {
		brpc->local_capacity++;
		brpc->remote_capacity++;
	}
	brpc->remote_window = brpc->local_capacity;
	brpc->sq_window = brpc->local_capacity;
	brpc->ack_window = RESERVED;
}

static bool
writer_may_go(const struct end *end)
{
	return end->brpc.remote_window > 0 && end->brpc.sq_window > 0;
}

static bool
solicit(struct brpc_end *brpc, uint16_t credits, bool last_buffer)
{
	if (brpc->remote_window == 1 || brpc->sq_window == 1 || last_buffer ||
	    brpc->unsolicited > brpc->local_capacity / 4 || brpc->unsolicited_credits > brpc->remote_capacity / 4) {
		brpc->unsolicited = 0;
		brpc->unsolicited_credits = 0;
		return true;
	}
	brpc->unsolicited++;
	brpc->unsolicited_credits += credits;
	return false;
}

static bool
write_one(struct world *world, unsigned who, bool last)
{
	struct end *end = &world->end[who];
	struct brpc_end *brpc = &end->brpc;
	uint16_t credits = brpc->new_receives;
	struct request request = {KIND_DATA, 0, false};
	bool solicited;

	if (!writer_may_go(end) || (!end->queued && !(end->shape->abilities & MAY_SEND)))
		return false;
	brpc->new_receives = 0;
	solicited = solicit(brpc, credits, last);
	if (++brpc->unsignaled >= brpc->local_capacity / 4) {
		request.covers = (uint8_t)brpc->unsignaled;
		brpc->unsignaled = 0;
	}
	brpc->remote_window--;
	brpc->sq_window--;
	world_post(world, who, (struct message){KIND_DATA, (uint8_t)credits, solicited}, request);
	end->queued = !last;
	return true;
}

/* Counts n receives more; what it compares is the count before them. */
static void
acknowledge(struct world *world, unsigned who, uint16_t n)
{
	struct brpc_end *brpc = &world->end[who].brpc;
	uint16_t before = brpc->new_receives;

	brpc->new_receives += n;
	if (before <= brpc->remote_capacity / 2 || brpc->ack_window == 0)
		return;
	brpc->ack_window--;
	world_post(world, who, (struct message){KIND_ACK, (uint8_t)brpc->new_receives, true},
		   (struct request){KIND_ACK, 1, false});
	brpc->new_receives = 0;
}

static bool
receive(struct world *world, unsigned who)
{
	struct end *end = &world->end[who];
	struct brpc_end *brpc = &end->brpc;
	struct message message;

	if (brpc->reposting || end->card.arrived_count == 0)
		return false;
	message = world_receive(world, who);
	brpc->remote_window += message.credits;
	brpc->reposting = true;
	brpc->reposting_data = message.kind == KIND_DATA;
	end->card.slotless += brpc->reposting_data;
	return true;
}

static bool
repost(struct world *world, unsigned who)
{
	struct end *end = &world->end[who];
	struct brpc_end *brpc = &end->brpc;

	if (!brpc->reposting)
		return false;
	brpc->reposting = false;
	end->card.posted++;
	if (!brpc->reposting_data)
		return true;
	brpc->reposting_data = false;
	end->card.slotless--;
	end->card.unreported++;
	acknowledge(world, who, 1);
	return true;
}

static bool
complete(struct world *world, unsigned who)
{
	struct brpc_end *brpc = &world->end[who].brpc;
	struct request request;

	if (brpc->reposting || !world_complete(world, who, &request))
		return false;
	if (request.kind == KIND_ACK) {
		brpc->ack_window++;
		acknowledge(world, who, 0);
	} else {
		brpc->sq_window += request.covers;
	}
	return true;
}

bool
brpc_end_step(struct world *world, unsigned who, enum action action)
{
	switch (action) {
	case ACTION_RECEIVE:
		return receive(world, who);
	case ACTION_REPOST:
		return repost(world, who);
	case ACTION_COMPLETE:
		return complete(world, who);
	case ACTION_SEND_BLOCKS:
		return write_one(world, who, false);
	case ACTION_SEND_BLOCKS_LAST:
		return write_one(world, who, true);
	default:
		return false;
	}
}

bool
brpc_end_has_turn(const struct end *end)
{
	return end->brpc.reposting || (end->queued && writer_may_go(end));
}
