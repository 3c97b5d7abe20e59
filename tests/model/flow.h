/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MODEL_FLOW_H
#define TESTS_MODEL_FLOW_H

/*
 * The model of flow control (doc/flow.md): two ends, what lies between them, and a judge that looks at every state.
 * An end of ours is moved by the library's own window.c and credit.c; a brpc end by rules written anew (brpc_end.c).
 *
 * Everything that may happen is a small action of one end, and the actions of both are taken in any order. So a turn of
 * the loop is a run of actions that ends with ACTION_TURN_END, other ends may act in the midst of it as they can in the
 * field, and a poll that finds some of what has arrived and not the rest is a run that stops earlier.
 *
 * A message is in its receiver's hands at the very moment it is posted; when the receiver looks is its own choice. That
 * covers every delay of the wire: what is still travelling is what the receiver has not looked at. It is also the
 * hardest case for the receive queue, which has then the fewest slots that it can ever have.
 */

#include "net/verbs/credit.h"
#include "net/verbs/window.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_BYTES 2u /* so that a message can be taken by half */
#define LARGEST_QUEUE 24u
#define LARGEST_DEPTH (LARGEST_QUEUE * 5 / 4)

enum action {
	ACTION_RECEIVE,	 /* look at the next message that has arrived */
	ACTION_COMPLETE, /* look at the next send completion */
	ACTION_REPOST,	 /* a slot without a block gets one */
	ACTION_TAKE,	 /* the application takes input */
	ACTION_HOLD,	 /* the input is past its limit now */
	ACTION_RELEASE,	 /* it is not any more, or the consumer needs more to go on */
	ACTION_SEND,	 /* one inlined message, more behind it */
	ACTION_SEND_LAST,
	ACTION_SEND_BLOCKS, /* the same with references to blocks */
	ACTION_SEND_BLOCKS_LAST,
	ACTION_TURN_END, /* a report by itself, where one is due */
	ACTION_CLOSE,	 /* the application closes */
	ACTION_FAREWELL, /* an empty message whose completion tells that all has arrived */
	ACTION_FINISH,	 /* flushed: the FIN leaves */
	ACTIONS
};

/* What an end may do at all; a search is made small by leaving some of it out. */
enum ability {
	MAY_SEND = 1,
	MAY_HOLD = 2,	/* else the application takes everything at once */
	MAY_STARVE = 4, /* else each slot has a block again at once */
	MAY_CLOSE = 8,
	MAY_INLINE = 16, /* else every message holds references */
	MAY_BLOCK = 32,	 /* else every message is inlined */
	MAY_LAG = 64,	 /* else each send completion is looked at as soon as it is there */
};

enum maker {
	OURS,
	BRPC
};

struct end_shape {
	enum maker maker;
	uint8_t sq_size, rq_size, depth;
	uint8_t abilities;
};

struct shape {
	struct end_shape end[2];
};

enum kind {
	KIND_DATA,
	KIND_ACK,
	KIND_FAREWELL
};

struct message {
	uint8_t kind;
	uint8_t credits;
	bool solicited;
};

struct request {
	uint8_t kind;
	uint8_t covers; /* 0: unsignaled */
	bool holds;
};

/* An end's card, and what the judge writes down about it, both without a look at the end's own counters. */
struct card {
	uint8_t posted; /* receives that are ready for a message */
	uint8_t arrived_count;
	struct message arrived[LARGEST_QUEUE];
	uint8_t request_count; /* in the send queue: each is there until a signaled completion behind it was looked at
				*/
	struct request request[LARGEST_DEPTH];

	uint8_t slotless;  /* data messages whose slot is not posted again yet */
	int unreported;	   /* those whose slot is, and which were not reported since */
	uint32_t untaken;  /* bytes */
	uint8_t farewells; /* messages without payload that were charged to the peer's window, which never come back */
};

struct our_end {
	struct window window;
	struct credit credit;
	uint64_t ends[LARGEST_QUEUE];
	bool due; /* something happened after which a report is tested for, at the end of this turn */
};

struct brpc_end {
	uint16_t local_capacity, remote_capacity;
	uint16_t remote_window, sq_window, ack_window;
	uint16_t new_receives;
	uint16_t unsignaled;
	uint16_t unsolicited, unsolicited_credits;
	bool reposting; /* the last message's credits are in force, its slot is not posted yet */
	bool reposting_data;
};

struct end {
	const struct end_shape *shape;
	struct card card;
	bool queued; /* the application has bytes that were not posted */
	bool closing, finished;
	union {
		struct our_end ours;
		struct brpc_end brpc;
	};
};

struct world {
	struct end end[2];
	const char *flaw; /* what the last action broke, found by the card or an end; NULL */
};

/* Ways to break the rules, one at a time: each must be caught. */
enum mutant {
	MUTANT_NONE,
	MUTANT_NO_ACK_AT_ALL_OF_K,
	MUTANT_STARVED_NOT_COUNTED,
	MUTANT_ACK_BEFORE_REPOST,
	MUTANT_HOLDS_TAKEN_ONES,
	MUTANT_NO_TEST_WHEN_TAKEN,
	MUTANT_NO_TEST_WHEN_SERVED,
	MUTANT_NO_TEST_WHEN_SLOT_RETURNS,
	MUTANT_ACK_UNSOLICITED,
	MUTANT_NOT_SOLICITED_AT_REMOTE_EDGE,
	MUTANT_NOT_SOLICITED_WHEN_EMPTIED,
	MUTANT_NOT_SIGNALED_WHEN_EMPTIED,
	MUTANT_NOT_SIGNALED_AT_REMOTE_EDGE,
	MUTANT_COVERS_ITSELF_ONLY,
	MUTANT_NO_OWN_WINDOW,
	MUTANT_TWO_RECEIVES_RESERVED,
	MUTANT_TWO_SENDS_RESERVED,
	MUTANT_CREDITS_SENT_TWICE,
	MUTANT_CLOSE_DROPS_CREDITS,
	MUTANT_CLOSE_HOLDS,
	MUTANT_NO_FAREWELL,
	MUTANT_CLOSE_BEFORE_QUIET,
	MUTANT_ZERO_LENGTH_COUNTED,
	MUTANT_PROBE,
	MUTANTS
};

extern enum mutant g_mutant;

/* ---- the world (flow_world.c) ---- */

void world_init(struct world *world, const struct shape *shape);

/* Takes the action if it is possible; bytes is what ACTION_TAKE takes. */
bool world_step(struct world *world, unsigned who, enum action action, uint32_t bytes);

/* Puts a message on the wire; an overrun of either queue is a flaw. */
void world_post(struct world *world, unsigned from, struct message message, struct request request);
struct message world_receive(struct world *world, unsigned who);

/* The next signaled request, and all before it leave the send queue with it. false: there is none. */
bool world_complete(struct world *world, unsigned who, struct request *request);

/* ---- the two makes of an end ---- */

void our_end_init(struct world *world, unsigned who);
bool our_end_step(struct world *world, unsigned who, enum action action, uint32_t bytes);
bool our_end_has_turn(const struct end *end); /* it acts again, by itself or for what has already happened */

void brpc_end_init(struct world *world, unsigned who);
bool brpc_end_step(struct world *world, unsigned who, enum action action);
bool brpc_end_has_turn(const struct end *end);

/* ---- the judge (flow_judge.c) ---- */

/* What is wrong with this state; NULL: nothing. */
const char *judge(const struct world *world);

/* ---- states as bytes (flow_code.c) ---- */

#define CODE_BYTES 192u

/* Equal for states that behave alike; returns its length. */
size_t world_encode(const struct world *world, uint8_t *code);
void world_decode(struct world *world, const struct world *fresh, const uint8_t *code);

/* ---- ways through the states ---- */

struct verdict {
	const char *flaw; /* NULL: none was found */
	size_t states;
	bool complete; /* a search: every reachable state was looked at */
};

/* Every reachable state, breadth first, up to a number of them. With trace the way to a flaw is printed. */
struct verdict search(const struct shape *shape, size_t most_states, bool trace);

/* A way of that many actions, chosen by the seed. */
struct verdict walk(const struct shape *shape, uint64_t seed, size_t steps, bool trace);

/* ---- for people (flow_print.c) ---- */

/* One line: what was done and what it led to. */
void print_step(const struct world *world, unsigned who, enum action action);

#endif
