/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A way through the states of one shape chosen by chance, for windows whose states are too many. Each end has moods
 * that change now and then, in which it likes some actions and neglects others: so it happens that an end does not look
 * at its completions for long, or that everything travels one way. Nothing is made canonical here, so positions and
 * rings go on as they do in the field, and input is taken in odd pieces.
 */

#include "tests/model/flow.h"
#include <stdio.h>

#define MOOD_STEPS 128u /* at most */
#define TRIES	   64u

struct moods {
	uint8_t likes[2][ACTIONS];
	unsigned sum;
};

static uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static unsigned
below(uint64_t *seed, unsigned limit)
{
	return (unsigned)((next_random(seed) >> 32) * limit >> 32);
}

/* Closing and the like come rarely, else a walk would be over before the windows have ever closed. */
static void
change_moods(struct moods *moods, uint64_t *seed)
{
	static const uint8_t steps[] = {0, 1, 4, 16, 64};

	moods->sum = 0;
	for (unsigned who = 0; who < 2; who++) {
		for (enum action action = 0; action < ACTIONS; action++) {
			uint8_t likes = steps[below(seed, sizeof steps)];

			if (action == ACTION_CLOSE)
				likes = below(seed, 8) == 0;
			moods->likes[who][action] = likes;
			moods->sum += likes;
		}
	}
}

static void
choose(const struct moods *moods, uint64_t *seed, unsigned *who, enum action *action)
{
	unsigned at = below(seed, moods->sum);

	for (*who = 0; *who < 2; ++*who) {
		for (*action = 0; *action < ACTIONS; ++*action) {
			if (at < moods->likes[*who][*action])
				return;
			at -= moods->likes[*who][*action];
		}
	}
}

/* One action that is possible, by the moods. false: none was met. */
static bool
step(struct world *world, const struct moods *moods, uint64_t *seed, bool trace)
{
	for (unsigned try = 0; try < TRIES && moods->sum > 0; try++) {
		unsigned who;
		enum action action;

		choose(moods, seed, &who, &action);
		if (!world_step(world, who, action, 1 + below(seed, 4 * MESSAGE_BYTES)))
			continue;
		if (trace)
			print_step(world, who, action);
		return true;
	}
	return false;
}

struct verdict
walk(const struct shape *shape, uint64_t seed, size_t steps, bool trace)
{
	struct verdict verdict = {0};
	struct moods moods = {0};
	struct world world;
	size_t change = 0;

	seed = seed * 0x9e3779b97f4a7c15u + 1;
	world_init(&world, shape);
	for (size_t i = 0; i < steps && !verdict.flaw; i++) {
		if (i == change) {
			change_moods(&moods, &seed);
			change = i + 1 + below(&seed, MOOD_STEPS);
		}
		if (!step(&world, &moods, &seed, trace))
			change = i + 1;
		verdict.flaw = judge(&world);
		verdict.states++;
		if (world.end[0].finished || world.end[1].finished)
			world_init(&world, shape);
	}
	return verdict;
}
