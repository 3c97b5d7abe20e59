/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "net/verbs/window.h"
#include <errno.h>

#define MIB (1u << 20)

/* Both sides with queues of that size and a send queue a quarter deeper, as the library makes it. */
static struct window
fresh(uint16_t size)
{
	struct window window;

	window_init(&window, size, size, (uint16_t)(size * 5 / 4), size, size);
	return window;
}

static struct window_flags
post(struct window *window, struct window_request request)
{
	struct window_flags flags = window_decide(window, &request);

	window_charge(window, &request, flags);
	return flags;
}

/* Posts n inlined requests with more behind them, whatever their flags. */
static void
post_some(struct window *window, unsigned n)
{
	while (n-- > 0)
		post(window, (struct window_request){.bytes = 1});
}

static void
test_capacities(void)
{
	static const struct {
		uint16_t sq, rq, depth, peer_sq, peer_rq;
		uint16_t remote, own, peer;
	} rows[] = {
		{128, 128, 160, 128, 128, 125, 157, 125}, /* what brpc has by default */
		{16, 16, 16, 16, 16, 13, 13, 13},	  /* the smallest that a hello may say */
		{128, 64, 160, 32, 16, 13, 157, 29},	  /* the receiver's queue is the smaller one, both ways */
		{16, 32, 20, 64, 128, 13, 17, 29},	  /* the sender's is */
		{128, 128, 128, 128, 128, 125, 125, 125}, /* the device gave no more than was advertised */
		{65535, 65535, 65535, 65535, 65535, 65532, 65532, 65532},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window;

		window_init(&window, rows[i].sq, rows[i].rq, rows[i].depth, rows[i].peer_sq, rows[i].peer_rq);
		ASSERT_EQ(window.remote_capacity, rows[i].remote);
		ASSERT_EQ(window.remote, rows[i].remote);
		ASSERT_EQ(window.own_capacity, rows[i].own);
		ASSERT_EQ(window.own, rows[i].own);
		ASSERT_EQ(window.peer_capacity, rows[i].peer);
		ASSERT_EQ(window.ack_slots, 3);
		CU_ASSERT(window_open(&window));
		CU_ASSERT(window_quiet(&window));
	}
}

/* A stream that never empties: the completion interval is a quarter of the smaller window, as brpc counts it. */
static void
test_signaled_once_in_an_interval(void)
{
	static const struct {
		uint16_t size, depth;
		unsigned interval;
	} rows[] = {
		{128, 160, 31}, {16, 20, 3}, {11, 11, 2}, {10, 10, 1}, {7, 7, 1}, {6, 6, 1}, {5, 5, 1}, {128, 32, 7},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window;

		window_init(&window, rows[i].size, rows[i].size, rows[i].depth, rows[i].size, rows[i].size);
		for (unsigned sent = 1; window.remote > 1 && window.own > 1; sent++) {
			struct window_flags flags = post(&window, (struct window_request){.bytes = 1, .holds = true});

			ASSERT_EQ(flags.signaled, sent % rows[i].interval == 0);
			if (flags.signaled)
				ASSERT_EQ(flags.covers, rows[i].interval);
		}
	}
}

static void
test_signaled_when_the_queue_empties(void)
{
	static const struct {
		bool before_holds, holds, last;
		bool signaled;
	} rows[] = {
		{false, false, true, false}, /* inlined only: nothing waits for a completion */
		{false, true, true, true},   {true, false, true, true},	 {true, true, true, true},
		{false, true, false, false}, {true, true, false, false},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window = fresh(128);
		struct window_flags flags;

		post(&window, (struct window_request){.bytes = 1, .holds = rows[i].before_holds});
		flags = post(&window,
			     (struct window_request){.bytes = 1, .last = rows[i].last, .holds = rows[i].holds});
		ASSERT_EQ(flags.signaled, rows[i].signaled);
		ASSERT_EQ(flags.covers, 2);
	}
}

/* The peer's credits may stay away, so what closes its window last is covered by a completion, inlined or not. */
static void
test_signaled_when_the_queue_empties_at_the_edge(void)
{
	static const struct {
		bool last, holds;
		uint16_t remote;
		bool signaled;
	} rows[] = {
		{true, false, 1, true},	  {true, false, 2, false}, {true, true, 1, true},
		{false, false, 1, false}, {false, true, 1, false},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window = fresh(128);
		struct window_flags flags;

		post(&window, (struct window_request){.bytes = 1});
		window.remote = rows[i].remote;
		flags = post(&window,
			     (struct window_request){.bytes = 1, .last = rows[i].last, .holds = rows[i].holds});
		ASSERT_EQ(flags.signaled, rows[i].signaled);
		ASSERT_EQ(flags.covers, 2);
		ASSERT_EQ(window_uncovered(&window), !rows[i].signaled);
	}
}

/* A signaled request covers what was posted before it, so it takes its references off the account too. */
static void
test_signaled_covers_once(void)
{
	struct window window = fresh(128);

	post(&window, (struct window_request){.bytes = 1, .holds = true});
	ASSERT_EQ(post(&window, (struct window_request){.bytes = 1, .last = true}).covers, 2);
	CU_ASSERT_FALSE(window.unsignaled_holds);
	ASSERT_EQ(window.unsignaled, 0);
	CU_ASSERT_FALSE(post(&window, (struct window_request){.bytes = 1, .last = true}).signaled);
	ASSERT_EQ(post(&window, (struct window_request){.bytes = 1, .last = true, .holds = true}).covers, 2);
}

/* At depth 1 small requests cost one send completion in an interval and no more. */
static void
test_small_requests_at_depth_1(void)
{
	struct window window = fresh(128);
	unsigned signaled = 0;

	for (unsigned i = 0; i < 124; i++) {
		struct window_flags flags = post(&window, (struct window_request){.bytes = 64, .last = true});

		CU_ASSERT(flags.solicited);
		signaled += flags.signaled;
		ASSERT_EQ(window_credited(&window, 1), 0);
	}
	ASSERT_EQ(signaled, 4);
}

static void
test_solicited_when_the_queue_empties(void)
{
	struct window window = fresh(128);

	CU_ASSERT_FALSE(post(&window, (struct window_request){.bytes = 1}).solicited);
	CU_ASSERT(post(&window, (struct window_request){.bytes = 1, .last = true}).solicited);
	CU_ASSERT_FALSE(post(&window, (struct window_request){.bytes = 1}).solicited);
}

static void
test_solicited_at_the_edge_of_either_window(void)
{
	static const struct {
		uint16_t remote, own;
		bool solicited;
	} rows[] = {{1, 9, true}, {2, 9, false}, {9, 1, true}, {9, 2, false}, {1, 1, true}, {2, 2, false}};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window = fresh(128);
		struct window_request request = {.bytes = 1};

		window.remote = rows[i].remote;
		window.own = rows[i].own;
		ASSERT_EQ(window_decide(&window, &request).solicited, rows[i].solicited);
	}
}

/* A quarter of the window goes unsolicited, the next one is not. */
static void
test_solicited_past_a_quarter_of_requests(void)
{
	static const struct {
		uint16_t size;
		unsigned quiet; /* of 125: 31, of 13: 3, of 5 and 7: 1, below 4: none */
	} rows[] = {{128, 31}, {16, 3}, {10, 1}, {8, 1}, {7, 1}, {6, 0}, {5, 0}};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window = fresh(rows[i].size);

		for (unsigned round = 0; round < 2; round++) {
			for (unsigned n = 0; n < rows[i].quiet; n++) {
				CU_ASSERT_FALSE(post(&window, (struct window_request){.bytes = 1}).solicited);
				CU_ASSERT(window_credited(&window, 1) == 0 && ++window.own);
			}
			CU_ASSERT(post(&window, (struct window_request){.bytes = 1}).solicited);
			CU_ASSERT(window_credited(&window, 1) == 0 && ++window.own);
		}
	}
}

/* Measured against the peer's window towards us, which these credits open. */
static void
test_solicited_past_a_quarter_in_credits(void)
{
	static const struct {
		uint16_t first, second;
		bool solicited;
	} rows[] = {{31, 0, false}, {31, 1, true}, {0, 31, false}, {0, 32, true}, {15, 16, false}, {16, 16, true}};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window = fresh(128);
		struct window_flags flags;

		post(&window, (struct window_request){.bytes = 1, .credits = rows[i].first});
		flags = post(&window, (struct window_request){.bytes = 1, .credits = rows[i].second});
		ASSERT_EQ(flags.solicited, rows[i].solicited);
	}
}

static void
test_solicited_past_a_mib(void)
{
	static const struct {
		uint32_t first, second;
		bool solicited;
	} rows[] = {
		{MIB - 1, 1, false}, {MIB - 1, 2, true}, {1, MIB, true},
		{0, MIB, false},     {0, MIB + 1, true}, {MIB, 2097120, true},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct window window = fresh(128);
		struct window_flags flags;

		post(&window, (struct window_request){.bytes = rows[i].first});
		flags = post(&window, (struct window_request){.bytes = rows[i].second});
		ASSERT_EQ(flags.solicited, rows[i].solicited);
		ASSERT_EQ(window.unsolicited_bytes, flags.solicited ? 0 : rows[i].first + rows[i].second);
	}
}

/* Each solicited request, for whatever reason, wipes all three counts. */
static void
test_solicited_starts_the_counts_anew(void)
{
	struct window window = fresh(128);

	post(&window, (struct window_request){.bytes = 700, .credits = 20});
	ASSERT_EQ(window.unsolicited, 1);
	ASSERT_EQ(window.unsolicited_credits, 20);
	ASSERT_EQ(window.unsolicited_bytes, 700);
	post(&window, (struct window_request){.bytes = 1, .last = true});
	ASSERT_EQ(window.unsolicited, 0);
	ASSERT_EQ(window.unsolicited_credits, 0);
	ASSERT_EQ(window.unsolicited_bytes, 0);
}

static void
test_charge_moves_both_windows(void)
{
	struct window window = fresh(16);

	post_some(&window, 12);
	ASSERT_EQ(window.remote, 1);
	ASSERT_EQ(window.own, 5);
	CU_ASSERT(window_open(&window));
	post_some(&window, 1);
	ASSERT_EQ(window.remote, 0);
	CU_ASSERT_FALSE(window_open(&window));
	ASSERT_EQ(window_credited(&window, 13), 0);
	post_some(&window, 4);
	ASSERT_EQ(window.remote, 9);
	ASSERT_EQ(window.own, 0);
	CU_ASSERT_FALSE(window_open(&window));
	ASSERT_EQ(window_completed(&window, 3), 0);
	CU_ASSERT(window_open(&window));
}

/* Deciding changes nothing: what was not posted is decided anew. */
static void
test_decide_has_no_effect(void)
{
	struct window window = fresh(128), before;
	struct window_request request = {.bytes = 100, .credits = 5, .last = true, .holds = true};

	post_some(&window, 7);
	before = window;
	window_decide(&window, &request);
	ASSERT_EQ(memcmp(&window, &before, sizeof window), 0);
}

static void
test_flags_of_the_caller_count(void)
{
	struct window window = fresh(128);
	struct window_request request = {0};

	post_some(&window, 3);
	window_charge(&window, &request, (struct window_flags){.signaled = true, .solicited = true, .covers = 4});
	ASSERT_EQ(window.unsignaled, 0);
	ASSERT_EQ(window.unsolicited, 0);
	ASSERT_EQ(window.remote, 121);
}

static void
test_completions_beyond_what_was_posted(void)
{
	struct window window = fresh(16);

	ASSERT_EQ(window_completed(&window, 1), -EPROTO);
	post_some(&window, 3);
	ASSERT_EQ(window_completed(&window, 4), -EPROTO);
	ASSERT_EQ(window.own, 14);
	ASSERT_EQ(window_completed(&window, 3), 0);
	ASSERT_EQ(window.own, 17);
	ASSERT_EQ(window_completed(&window, 0), 0);
}

static void
test_credits_beyond_what_was_sent(void)
{
	static const uint32_t wild[] = {4, 65535, 65536, 65536 + 3, 0x7fffffff, 0xffffffff};
	struct window window = fresh(16);

	ASSERT_EQ(window_credited(&window, 0), 0);
	ASSERT_EQ(window_credited(&window, 1), -EPROTO);
	post_some(&window, 3);
	for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
		ASSERT_EQ(window_credited(&window, wild[i]), -EPROTO);
		ASSERT_EQ(window.remote, 10);
	}
	ASSERT_EQ(window_credited(&window, 3), 0);
	ASSERT_EQ(window.remote, 13);
}

static void
test_quiet(void)
{
	struct window window = fresh(16);

	post_some(&window, 4); /* the third is signaled */
	CU_ASSERT_FALSE(window_quiet(&window));
	ASSERT_EQ(window_completed(&window, 3), 0);
	CU_ASSERT_FALSE(window_quiet(&window));
	ASSERT_EQ(window_credited(&window, 4), 0); /* covered by the peer's word */
	CU_ASSERT(window_quiet(&window));
	post_some(&window, 1);
	CU_ASSERT_FALSE(window_quiet(&window));
	ASSERT_EQ(window_completed(&window, 2), 0); /* covered by a completion */
	CU_ASSERT(window_quiet(&window));
}

static void
test_uncovered(void)
{
	struct window window = fresh(16);

	CU_ASSERT_FALSE(window_uncovered(&window));
	post_some(&window, 2);
	CU_ASSERT(window_uncovered(&window));
	ASSERT_EQ(window_credited(&window, 1), 0);
	CU_ASSERT(window_uncovered(&window));
	ASSERT_EQ(window_credited(&window, 1), 0);
	CU_ASSERT_FALSE(window_uncovered(&window)); /* the peer has both */
	post_some(&window, 1);			    /* the third is signaled */
	CU_ASSERT_FALSE(window_uncovered(&window));
	CU_ASSERT_FALSE(window_quiet(&window)); /* its completion is still to come */
	post_some(&window, 1);
	CU_ASSERT(window_uncovered(&window));
}

UNIT_SUITE("window", {"capacities follow both hellos", test_capacities},
	   {"one request in a quarter window is signaled", test_signaled_once_in_an_interval},
	   {"the request that empties the queue is signaled for blocks", test_signaled_when_the_queue_empties},
	   {"the request that empties the queue and fills the peer is signaled",
	    test_signaled_when_the_queue_empties_at_the_edge},
	   {"a signaled request settles all before it", test_signaled_covers_once},
	   {"small requests at depth 1 cost few completions", test_small_requests_at_depth_1},
	   {"the request that empties the queue is solicited", test_solicited_when_the_queue_empties},
	   {"a window's last request is solicited", test_solicited_at_the_edge_of_either_window},
	   {"requests past a quarter are solicited", test_solicited_past_a_quarter_of_requests},
	   {"credits past a quarter are solicited", test_solicited_past_a_quarter_in_credits},
	   {"bytes past a MiB are solicited", test_solicited_past_a_mib},
	   {"a solicited request starts the counts anew", test_solicited_starts_the_counts_anew},
	   {"a charge moves both windows", test_charge_moves_both_windows},
	   {"deciding has no effect", test_decide_has_no_effect},
	   {"a charge takes the flags that were posted", test_flags_of_the_caller_count},
	   {"completions beyond what was posted are refused", test_completions_beyond_what_was_posted},
	   {"credits beyond what was sent are refused", test_credits_beyond_what_was_sent},
	   {"quiet is covered one way or the other", test_quiet},
	   {"uncovered is what nothing will tell of", test_uncovered});
