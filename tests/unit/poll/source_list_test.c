/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <errno.h>

/* Sources that write down what is done to them, as letters: a poll in lower case, an arm in upper, a disarm as !x. */
struct probe {
	struct source source;
	char letter;
	int arm_result;
	void (*then)(struct probe *probe);
};

static char g_log[128];
static struct probe g_probes[4]; /* a: cq, b: cq, c: deliver, d: flush */

static void
note(const char *text)
{
	ASSERT_FATAL(strlen(g_log) + strlen(text) < sizeof g_log);
	strcat(g_log, text);
}

static int
probe_poll(struct source *source, struct reactor *reactor)
{
	struct probe *probe = (struct probe *)source;

	(void)reactor;
	note((char[]){probe->letter, '\0'});
	if (probe->then)
		probe->then(probe);
	return 1;
}

static int
probe_arm(struct source *source, struct reactor *reactor)
{
	struct probe *probe = (struct probe *)source;

	(void)reactor;
	note((char[]){(char)(probe->letter - 'a' + 'A'), '\0'});
	return probe->arm_result;
}

static void
probe_disarm(struct source *source, struct reactor *reactor)
{
	(void)reactor;
	note((char[]){'!', ((struct probe *)source)->letter, '\0'});
}

static uint64_t
probe_deadline(struct source *source, struct reactor *reactor)
{
	(void)reactor;
	return (uint64_t)((struct probe *)source)->letter;
}

static const struct source_ops g_ops = {
	.poll = probe_poll, .arm = probe_arm, .disarm = probe_disarm, .deadline = probe_deadline};

/* Added in an order that is not the order of a turn. */
static void
probes_add(void)
{
	static const enum source_stage stages[] = {SOURCE_CQ, SOURCE_CQ, SOURCE_DELIVER, SOURCE_FLUSH};
	static const unsigned order[] = {3, 0, 2, 1};

	fixture_start(1);
	for (unsigned i = 0; i < 4; i++) {
		struct probe *probe = &g_probes[order[i]];

		*probe = (struct probe){
			{.name = "probe", .ops = &g_ops, .stage = stages[order[i]]}, (char)('a' + order[i]), 0, NULL};
		source_add(reactor_current(), &probe->source);
	}
	g_log[0] = '\0';
}

static void
probes_end(void)
{
	for (unsigned i = 0; i < 4; i++) {
		if (g_probes[i].source.link.next)
			source_del(reactor_current(), &g_probes[i].source);
	}
	fixture_end();
}

static void
delete_probe(unsigned index)
{
	source_del(reactor_current(), &g_probes[index].source);
	memset(&g_probes[index], 0, sizeof g_probes[index]);
}

static int
poll_all(void)
{
	return source_list_poll(&reactor_current()->sources, reactor_current(), SOURCES_ALL);
}

static void
test_order_of_a_turn(void)
{
	probes_add();
	ASSERT_EQ(poll_all(), 4);
	ASSERT_STR(g_log, "abcd");
	ASSERT_EQ(reactor_current()->sources.cq_count, 2);
	probes_end();
}

static void
delete_a(struct probe *probe)
{
	(void)probe;
	delete_probe(0);
}

static void
delete_bc(struct probe *probe)
{
	(void)probe;
	delete_probe(1);
	delete_probe(2);
}

static void
test_deletes_itself(void)
{
	probes_add();
	g_probes[0].then = delete_a;
	poll_all();
	poll_all();
	ASSERT_STR(g_log, "abcdbcd");
	ASSERT_EQ(reactor_current()->sources.cq_count, 1);
	probes_end();
}

static void
test_deletes_the_next_ones(void)
{
	probes_add();
	g_probes[0].then = delete_bc;
	poll_all();
	ASSERT_STR(g_log, "ad");
	probes_end();
}

static void
test_deletes_an_earlier_one(void)
{
	probes_add();
	g_probes[2].then = delete_a;
	poll_all();
	g_probes[2].then = NULL;
	poll_all();
	ASSERT_STR(g_log, "abcdbcd");
	probes_end();
}

static int
arm_all(struct source **refused)
{
	return source_list_arm(&reactor_current()->sources, reactor_current(), refused);
}

static void
test_disarmed_in_reverse(void)
{
	struct source *refused = NULL;

	probes_add();
	ASSERT_EQ(arm_all(&refused), 0);
	source_list_disarm(&reactor_current()->sources, reactor_current());
	source_list_disarm(&reactor_current()->sources, reactor_current());
	ASSERT_STR(g_log, "ABCD!d!c!b!a");
	probes_end();
}

static void
test_refusal_rolls_back(void)
{
	struct source *refused = NULL;

	probes_add();
	g_probes[2].arm_result = -EBUSY;
	ASSERT_EQ(arm_all(&refused), -EBUSY);
	CU_ASSERT(refused == &g_probes[2].source);
	source_list_disarm(&reactor_current()->sources, reactor_current());
	ASSERT_STR(g_log, "ABC!b!a");
	probes_end();
}

static void
test_deleted_while_armed(void)
{
	struct source *refused;

	probes_add();
	ASSERT_EQ(arm_all(&refused), 0);
	delete_probe(1);
	source_list_disarm(&reactor_current()->sources, reactor_current());
	ASSERT_STR(g_log, "ABCD!b!d!c!a");
	probes_end();
}

static void
test_earliest_deadline(void)
{
	probes_add();
	ASSERT_EQ(source_list_deadline(&reactor_current()->sources, reactor_current()), 'a');
	delete_probe(0);
	ASSERT_EQ(source_list_deadline(&reactor_current()->sources, reactor_current()), 'b');
	probes_end();
}

static void
test_choices(void)
{
	static const struct source_ops kernel_ops = {.poll = probe_poll, .waits_in_kernel = true};

	probes_add();
	g_probes[3].source.ops = &kernel_ops;
	source_list_poll(&reactor_current()->sources, reactor_current(), SOURCES_BEFORE_WAIT);
	ASSERT_STR(g_log, "abc");
	g_log[0] = '\0';
	source_list_poll(&reactor_current()->sources, reactor_current(), SOURCES_CQ);
	ASSERT_STR(g_log, "ab");
	probes_end();
}

UNIT_SUITE("source_list", {"the order of a turn", test_order_of_a_turn}, {"deletes itself", test_deletes_itself},
	   {"deletes the next ones", test_deletes_the_next_ones},
	   {"deletes an earlier one", test_deletes_an_earlier_one}, {"disarmed in reverse", test_disarmed_in_reverse},
	   {"a refusal rolls back", test_refusal_rolls_back}, {"deleted while armed", test_deleted_while_armed},
	   {"the earliest deadline", test_earliest_deadline}, {"choices", test_choices});
