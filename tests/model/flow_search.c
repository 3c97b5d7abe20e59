/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every reachable state of one shape, breadth first, kept whole (no hash stands for a state, so none is mistaken for
 * another). What is broken is found by one of its shortest ways.
 */

#include "tests/model/flow.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_WHO 16u

struct state {
	uint64_t at; /* in the arena */
	uint32_t from;
	uint8_t length;
	uint8_t step; /* what led here: STEP_WHO * who + action */
};

struct states {
	struct state *state;
	uint8_t *arena;
	uint32_t *slot; /* hash table of state numbers + 1 */
	size_t count, capacity, slots;
	uint64_t arena_used, arena_size;
};

static void *
grow(void *memory, size_t size)
{
	memory = realloc(memory, size);
	if (!memory) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return memory;
}

static uint64_t
hash(const uint8_t *code, size_t length)
{
	uint64_t h = length, word = 0;

	for (size_t i = 0; i < length; i += 8) {
		size_t n = length - i < 8 ? length - i : 8;

		word = 0;
		memcpy(&word, code + i, n);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

static uint32_t *
find(const struct states *states, const uint8_t *code, size_t length)
{
	size_t i = hash(code, length) & (states->slots - 1);

	for (;; i = (i + 1) & (states->slots - 1)) {
		uint32_t number = states->slot[i];
		const struct state *state = &states->state[number - 1];

		if (number == 0 || (state->length == length && memcmp(states->arena + state->at, code, length) == 0))
			return &states->slot[i];
	}
}

static void
rehash(struct states *states)
{
	states->slots = states->slots ? states->slots * 2 : 1024;
	free(states->slot);
	states->slot = grow(NULL, states->slots * sizeof *states->slot);
	memset(states->slot, 0, states->slots * sizeof *states->slot);
	for (size_t i = 0; i < states->count; i++) {
		const struct state *state = &states->state[i];

		*find(states, states->arena + state->at, state->length) = (uint32_t)i + 1;
	}
}

/* true: it was not known. */
static bool
add(struct states *states, const struct world *world, uint32_t from, uint8_t step)
{
	uint8_t code[CODE_BYTES];
	size_t length = world_encode(world, code);
	uint32_t *slot;

	if (states->count * 2 >= states->slots)
		rehash(states);
	slot = find(states, code, length);
	if (*slot)
		return false;
	if (states->count == states->capacity) {
		states->capacity = states->capacity ? states->capacity * 2 : 1024;
		states->state = grow(states->state, states->capacity * sizeof *states->state);
	}
	if (states->arena_used + length > states->arena_size) {
		states->arena_size = states->arena_size ? states->arena_size * 2 : 65536;
		states->arena = grow(states->arena, states->arena_size);
	}
	memcpy(states->arena + states->arena_used, code, length);
	states->state[states->count] = (struct state){states->arena_used, from, (uint8_t)length, step};
	states->arena_used += length;
	*slot = (uint32_t)++states->count;
	return true;
}

static void
print_way(const struct states *states, const struct shape *shape, uint32_t to, uint8_t last_step)
{
	static uint8_t steps[100000];
	struct world world;
	unsigned n = 0;

	steps[n++] = last_step;
	for (uint32_t i = to; i > 0 && n < sizeof steps; i = states->state[i].from)
		steps[n++] = states->state[i].step;
	world_init(&world, shape);
	while (n-- > 0) {
		enum action action = steps[n] % STEP_WHO;

		world_step(&world, steps[n] / STEP_WHO, action, MESSAGE_BYTES);
		print_step(&world, steps[n] / STEP_WHO, action);
	}
}

/* All that may follow a state. NULL: nothing wrong among it. */
static const char *
expand(struct states *states, const struct world *world, uint32_t number, uint8_t *step)
{
	for (unsigned who = 0; who < 2; who++) {
		for (enum action action = 0; action < ACTIONS; action++) {
			struct world next = *world;
			const char *flaw;

			*step = (uint8_t)(STEP_WHO * who + action);
			if (!world_step(&next, who, action, MESSAGE_BYTES))
				continue;
			flaw = judge(&next);
			if (flaw)
				return flaw;
			add(states, &next, number, *step);
		}
	}
	return NULL;
}

struct verdict
search(const struct shape *shape, size_t most_states, bool trace)
{
	struct states states = {0};
	struct verdict verdict = {0};
	struct world fresh, world;
	uint32_t number;
	uint8_t step;

	world_init(&fresh, shape);
	rehash(&states);
	add(&states, &fresh, 0, 0);
	for (number = 0; number < states.count && states.count < most_states && !verdict.flaw; number++) {
		world_decode(&world, &fresh, states.arena + states.state[number].at);
		verdict.flaw = expand(&states, &world, number, &step);
		if (verdict.flaw && trace)
			print_way(&states, shape, number, step);
	}
	verdict.states = states.count;
	verdict.complete = !verdict.flaw && number == states.count;
	free(states.state);
	free(states.arena);
	free(states.slot);
	return verdict;
}
