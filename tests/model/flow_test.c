/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Flow control against the model (tests/model/flow.h, doc/flow.md). What is proven, and what is only tried:
 *
 * Exhaustive. Every state that can be reached, in every order of the actions of both ends, for the windows and with the
 * abilities that each line of g_search names. Sizes up to 7 with bytes both ways and everything that an application may
 * do; up to 11 one way, where a request may go unsignaled (a window of 8 or more), with send completions that are
 * looked at however late. Left out to keep that within a minute:
 *   - late send completions and, at the same time, all else both ways: searched together for the smallest window only;
 *   - receive queues longer than the peer's send queue. They make no window larger, only more room for what arrives:
 * the states are the same and a receiver that is not ready is farther away. Mirror images of a pair of our ends too.
 *   - send queues deeper than was advertised (they are a quarter deeper): the tightest that a device may give is
 *     searched. With completions looked at at once the depth changes nothing at all.
 *   - inlined messages where the window is below 8: every request is signaled there, so both kinds are one.
 * There is no bound on what an application sends: whether more bytes stand behind a message is all that matters.
 *
 * Sampled. Every combination of sizes from 5 to 24 is walked by chance with everything allowed (flow_walk.c), the same
 * way in every run.
 *
 * Poll and event mode are not told apart, as the search covers both: an end may look at its queues at any time, as in
 * poll mode and as another connection's wake-up makes it in event mode; but what must not be waited for in vain is
 * judged by what would wake a sleeping end, solicited messages and completions of its own. How an end goes to sleep is
 * another model's matter (sleep.pml).
 *
 * At last the rules are broken, one after the other, and each time the search must notice.
 *
 *   flow_test [--full] [--seed N] [--mutant NAME]
 *
 * --full takes larger windows and longer walks (a quarter of an hour and 2 GiB rather than half a minute). --mutant
 * breaks one rule and prints the way to where it shows.
 */

#include "tests/model/flow.h"
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_STATES 60000000u

static struct {
	bool full;
	uint64_t seed;
	unsigned passed, failed;
} g_run = {.seed = 1};

/* ---- results ---- */

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
tell(bool ok, const char *text, const char *found)
{
	printf("%-7s %s%s%s\n", ok ? "ok" : "FAILED", text, found[0] ? ": " : "", found);
	fflush(stdout);
	if (ok)
		g_run.passed++;
	else
		g_run.failed++;
}

static const char *
shape_text(const struct shape *shape)
{
	static char text[128];
	const struct end_shape *a = &shape->end[0], *b = &shape->end[1];

	snprintf(text, sizeof text, "sq %u rq %u depth %u against sq %u rq %u depth %u", a->sq_size, a->rq_size,
		 a->depth, b->sq_size, b->rq_size, b->depth);
	return text;
}

/* ---- shapes of a group ---- */

#define TALKS (MAY_SEND | MAY_BLOCK)
#define LIVES (MAY_HOLD | MAY_STARVE | MAY_CLOSE)

/* B is brpc's or ours; A is always ours. Sizes from least on, in check and in check-full up to most and full. */
struct search_group {
	const char *text;
	enum maker maker;
	uint8_t abilities[2];
	uint8_t least, most, full;
	bool one_way;	/* bytes from one end only: what the other's windows could be does not matter */
	bool from_peer; /* that is B */
	bool equal;	/* a send queue as long as the peer's receive queue */
};

static const struct search_group g_search[] = {
	{"both ways, all but late completions", OURS, {TALKS | LIVES, TALKS | LIVES}, 5, 7, 8, false, false, false},
	{"both ways with brpc, all but late completions", BRPC, {TALKS | LIVES, TALKS}, 6, 7, 8, false, false, false},
	{"both ways, holding and late completions",
	 OURS,
	 {TALKS | MAY_HOLD | MAY_LAG, TALKS | MAY_HOLD | MAY_LAG},
	 5,
	 5,
	 6,
	 false,
	 false,
	 false},
	{"both ways with brpc, holding and late completions",
	 BRPC,
	 {TALKS | MAY_HOLD | MAY_LAG, TALKS},
	 6,
	 6,
	 7,
	 false,
	 false,
	 false},
	{"one way, all", OURS, {TALKS | LIVES | MAY_LAG, LIVES | MAY_LAG}, 5, 10, 11, true, false, false},
	{"one way, all but starving",
	 OURS,
	 {TALKS | LIVES | MAY_INLINE | MAY_LAG, MAY_HOLD | MAY_CLOSE | MAY_LAG},
	 11,
	 11,
	 13,
	 true,
	 false,
	 false},
	{"one way to brpc, all", BRPC, {TALKS | LIVES | MAY_INLINE | MAY_LAG, MAY_LAG}, 6, 11, 14, true, false, false},
	{"one way from brpc, all", BRPC, {LIVES | MAY_LAG, TALKS | MAY_LAG}, 6, 8, 9, true, true, false},
	{"one way, all but late completions", OURS, {TALKS | LIVES | MAY_INLINE, LIVES}, 5, 16, 20, true, false, true},
};

static struct shape
make_shape(const struct search_group *group, unsigned sq_a, unsigned rq_a, unsigned sq_b, unsigned rq_b)
{
	return (struct shape){{
		{OURS, (uint8_t)sq_a, (uint8_t)rq_a, (uint8_t)sq_a, group->abilities[0]},
		{group->maker, (uint8_t)sq_b, (uint8_t)rq_b, (uint8_t)sq_b, group->abilities[1]},
	}};
}

/* Calls visit for every shape of a group whose largest size is most; false ends it. */
static bool
each_both_ways(const struct search_group *group, unsigned most, bool (*visit)(const struct shape *, void *), void *arg)
{
	for (unsigned sq_a = group->least; sq_a <= most; sq_a++) {
		for (unsigned rq_b = group->least; rq_b <= sq_a; rq_b++) {
			for (unsigned sq_b = group->least; sq_b <= most; sq_b++) {
				for (unsigned rq_a = group->least; rq_a <= sq_b; rq_a++) {
					struct shape shape = make_shape(group, sq_a, rq_a, sq_b, rq_b);

					if (group->maker == OURS && sq_a * 32 + rq_b < sq_b * 32 + rq_a)
						continue;
					if (!visit(&shape, arg))
						return false;
				}
			}
		}
	}
	return true;
}

static bool
each_one_way(const struct search_group *group, unsigned most, bool (*visit)(const struct shape *, void *), void *arg)
{
	unsigned small = group->maker == BRPC ? 6 : 5;

	for (unsigned sq = group->least; sq <= most; sq++) {
		for (unsigned rq = group->equal ? sq : group->least; rq <= sq; rq++) {
			struct shape shape = group->from_peer ? make_shape(group, small, rq, sq, small)
							      : make_shape(group, sq, small, small, rq);

			if (!visit(&shape, arg))
				return false;
		}
	}
	return true;
}

/* ---- searching ---- */

struct sum {
	size_t shapes, states;
	const char *flaw;
	struct shape where;
};

static bool
search_shape(const struct shape *shape, void *arg)
{
	struct sum *sum = arg;
	struct verdict verdict = search(shape, MOST_STATES, true);

	sum->shapes++;
	sum->states += verdict.states;
	sum->flaw = verdict.flaw ? verdict.flaw : verdict.complete ? NULL : "more states than there is room for";
	sum->where = *shape;
	return !sum->flaw;
}

static void
search_group(const struct search_group *group)
{
	struct sum sum = {0};
	unsigned most = g_run.full ? group->full : group->most;
	double start = seconds();
	char text[200], found[200] = "";

	if (group->one_way)
		each_one_way(group, most, search_shape, &sum);
	else
		each_both_ways(group, most, search_shape, &sum);
	snprintf(text, sizeof text, "%s, sizes %u to %u (%zu shapes, %zu states, %.1f s)", group->text, group->least,
		 most, sum.shapes, sum.states, seconds() - start);
	if (sum.flaw)
		snprintf(found, sizeof found, "%s with %s", sum.flaw, shape_text(&sum.where));
	tell(!sum.flaw, text, found);
}

/* ---- walking ---- */

#define EVERYTHING (TALKS | LIVES | MAY_INLINE | MAY_LAG)

struct walks {
	struct sum sum;
	size_t steps;
};

static bool
walk_shape(const struct shape *shape, void *arg)
{
	struct walks *walks = arg;
	struct shape deep = *shape;
	struct verdict verdict;
	uint64_t seed = g_run.seed * 1000003 + walks->sum.shapes;

	for (unsigned who = 0; who < 2; who++) {
		if (deep.end[who].maker == OURS && (seed + who) % 3)
			deep.end[who].depth = deep.end[who].sq_size * 5 / 4;
	}
	verdict = walk(&deep, seed, walks->steps, false);
	walks->sum.shapes++;
	walks->sum.states += verdict.states;
	walks->sum.flaw = verdict.flaw;
	walks->sum.where = deep;
	if (verdict.flaw)
		walk(&deep, seed, walks->steps, true);
	return !verdict.flaw;
}

static void
walk_group(const struct search_group *group, size_t steps)
{
	struct walks walks = {.steps = steps};
	double start = seconds();
	char text[200], found[200] = "";

	each_both_ways(group, group->most, walk_shape, &walks);
	snprintf(text, sizeof text, "%s, sizes %u to %u (%zu walks of %zu steps, %.1f s)", group->text, group->least,
		 group->most, walks.sum.shapes, steps, seconds() - start);
	if (walks.sum.flaw)
		snprintf(found, sizeof found, "%s with %s", walks.sum.flaw, shape_text(&walks.sum.where));
	tell(!walks.sum.flaw, text, found);
}

static void
walk_all(void)
{
	static const struct search_group groups[] = {
		{"walks both ways, all", OURS, {EVERYTHING, EVERYTHING}, 5, 24, 24, false, false, false},
		{"walks with brpc, all", BRPC, {EVERYTHING, TALKS | MAY_LAG}, 6, 24, 24, false, false, false},
	};

	for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
		walk_group(&groups[i], g_run.full ? 10000 : 400);
}

/* ---- broken rules ---- */

static const struct shape g_both = {
	{{OURS, 5, 5, 5, TALKS | LIVES}, {OURS, 5, 5, 5, TALKS | LIVES}},
};
static const struct shape g_late = {
	{{OURS, 5, 5, 5, TALKS | MAY_HOLD | MAY_LAG}, {OURS, 5, 5, 5, TALKS | MAY_HOLD | MAY_LAG}},
};
static const struct shape g_large = {
	{{OURS, 11, 5, 11, TALKS | LIVES | MAY_INLINE}, {OURS, 5, 11, 5, LIVES}},
};
static const struct shape g_one_way = {
	{{OURS, 10, 5, 10, TALKS | LIVES | MAY_LAG}, {OURS, 5, 10, 5, LIVES | MAY_LAG}},
};
static const struct shape g_brpc = {
	{{OURS, 6, 6, 6, TALKS | LIVES}, {BRPC, 6, 6, 6, TALKS}},
};

/* Each on a shape that is small and where it shows. */
static const struct {
	const char *name, *text;
	const struct shape *shape;
} g_mutants[MUTANTS] = {
	[MUTANT_NO_ACK_AT_ALL_OF_K] = {"no-ack-at-all-of-k", "no report when all of the window is here", &g_both},
	[MUTANT_STARVED_NOT_COUNTED] = {"starved-not-counted", "starved messages are not counted as here", &g_both},
	[MUTANT_ACK_BEFORE_REPOST] = {"ack-before-repost", "a report before the slot is posted", &g_both},
	[MUTANT_HOLDS_TAKEN_ONES] = {"holds-taken-ones", "holding keeps the credits of taken messages", &g_both},
	[MUTANT_NO_TEST_WHEN_TAKEN] = {"no-test-when-taken", "no test for a report when input is taken", &g_both},
	[MUTANT_NO_TEST_WHEN_SERVED] = {"no-test-when-served", "no test when a starved slot is served", &g_both},
	[MUTANT_NO_TEST_WHEN_SLOT_RETURNS] = {"no-test-when-slot-returns", "no test when an ACK slot returns",
					      &g_one_way},
	[MUTANT_ACK_UNSOLICITED] = {"ack-unsolicited", "pure ACKs are not solicited", &g_both},
	[MUTANT_NOT_SOLICITED_AT_REMOTE_EDGE] = {"not-solicited-at-edge", "not solicited where the window closes",
						 &g_both},
	[MUTANT_NOT_SOLICITED_WHEN_EMPTIED] = {"not-solicited-when-emptied", "not solicited when the queue empties",
					       &g_both},
	[MUTANT_NOT_SIGNALED_WHEN_EMPTIED] = {"not-signaled-when-emptied", "not signaled when the queue empties",
					      &g_large},
	[MUTANT_NOT_SIGNALED_AT_REMOTE_EDGE] = {"not-signaled-at-edge",
						"inlined bytes are not signaled where queue and window end", &g_large},
	[MUTANT_COVERS_ITSELF_ONLY] = {"covers-itself-only", "a completion gives back its own request only", &g_large},
	[MUTANT_NO_OWN_WINDOW] = {"no-own-window", "one window for two queues", &g_one_way},
	[MUTANT_TWO_RECEIVES_RESERVED] = {"two-receives-reserved", "two receives reserved for ACKs", &g_brpc},
	[MUTANT_TWO_SENDS_RESERVED] = {"two-sends-reserved", "two sends reserved for three ACKs", &g_late},
	[MUTANT_CREDITS_SENT_TWICE] = {"credits-sent-twice", "credits stay owed after their report", &g_both},
	[MUTANT_CLOSE_DROPS_CREDITS] = {"close-drops-credits", "a closing end does not credit what it drops", &g_both},
	[MUTANT_CLOSE_HOLDS] = {"close-holds", "a closing end goes on holding", &g_both},
	[MUTANT_NO_FAREWELL] = {"no-farewell", "no farewell when something is uncovered", &g_large},
	[MUTANT_CLOSE_BEFORE_QUIET] = {"close-before-quiet", "the FIN does not wait", &g_large},
	[MUTANT_ZERO_LENGTH_COUNTED] = {"zero-length-counted", "pure ACKs are credited too", &g_both},
	[MUTANT_PROBE] = {"probe", "an empty message is charged to a window that stays in use", &g_both},
};

static void
catch_mutants(void)
{
	for (enum mutant mutant = MUTANT_NONE + 1; mutant < MUTANTS; mutant++) {
		struct verdict verdict;
		char text[200];

		g_mutant = mutant;
		verdict = search(g_mutants[mutant].shape, MOST_STATES, false);
		snprintf(text, sizeof text, "caught: %s", g_mutants[mutant].text);
		tell(verdict.flaw, text, verdict.flaw ? verdict.flaw : "it went unnoticed");
	}
	g_mutant = MUTANT_NONE;
}

/* With a window of 2 brpc's report above half comes one message too late; its sizes start at 16, so it does not matter.
 */
static void
know_brpc_limit(void)
{
	static const struct shape shape = {{{OURS, 5, 5, 5, TALKS}, {BRPC, 5, 5, 5, TALKS}}};
	struct verdict verdict = search(&shape, MOST_STATES, false);

	tell(verdict.flaw, "known: brpc hangs with a window of 2", verdict.flaw ? verdict.flaw : "it does not");
}

static int
show_mutant(const char *name)
{
	for (enum mutant mutant = MUTANT_NONE + 1; mutant < MUTANTS; mutant++) {
		if (strcmp(name, g_mutants[mutant].name) == 0) {
			g_mutant = mutant;
			printf("%s, with %s\n", g_mutants[mutant].text, shape_text(g_mutants[mutant].shape));
			printf("%s\n", search(g_mutants[mutant].shape, MOST_STATES, true).flaw);
			return EXIT_SUCCESS;
		}
		fprintf(stderr, "%s%s", mutant == MUTANT_NONE + 1 ? "allowed are: " : ", ", g_mutants[mutant].name);
	}
	fprintf(stderr, "\n");
	return EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"full", no_argument, NULL, 'f'},
		{"seed", required_argument, NULL, 's'},
		{"mutant", required_argument, NULL, 'm'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'f')
			g_run.full = true;
		else if (option == 's')
			g_run.seed = strtoull(optarg, NULL, 0);
		else if (option == 'm')
			return show_mutant(optarg);
		else
			return EXIT_FAILURE;
	}
	for (size_t i = 0; i < sizeof g_search / sizeof g_search[0]; i++)
		search_group(&g_search[i]);
	walk_all();
	catch_mutants();
	know_brpc_limit();
	printf("flow: %u passed, %u failed, 0 skipped\n", g_run.passed, g_run.failed);
	return g_run.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
