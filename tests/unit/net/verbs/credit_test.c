/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "net/verbs/credit.h"
#include <errno.h>

#define MESSAGE_BYTES 10u

static uint64_t g_ends[125];

static struct credit
fresh(uint16_t capacity)
{
	struct credit credit;

	memset(g_ends, 0xee, sizeof g_ends);
	credit_init(&credit, capacity, g_ends);
	return credit;
}

static void
receive(struct credit *credit, unsigned n)
{
	while (n-- > 0)
		ASSERT_EQ(credit_received(credit, MESSAGE_BYTES), 0);
}

static void
repost(struct credit *credit, unsigned n)
{
	while (n-- > 0)
		credit_reposted(credit);
}

/* n messages arrived, their slots posted again. */
static void
turn_over(struct credit *credit, unsigned n)
{
	receive(credit, n);
	repost(credit, n);
}

static void
report(struct credit *credit, uint16_t n)
{
	ASSERT_EQ(credit_reportable(credit) >= n, true);
	credit_reported(credit, n);
}

static void
test_capacity(void)
{
	ASSERT_EQ(credit_capacity(128, 128), 125);
	ASSERT_EQ(credit_capacity(16, 128), 13);
	ASSERT_EQ(credit_capacity(128, 16), 13);
	ASSERT_EQ(credit_capacity(5, 5), 2);
	ASSERT_EQ(credit_capacity(65535, 65535), 65532);
}

static void
test_states_of_a_message(void)
{
	struct credit credit = fresh(13);

	receive(&credit, 2);
	ASSERT_EQ(credit.starved, 2);
	ASSERT_EQ(credit_reportable(&credit), 0); /* not before its slot is posted again */
	repost(&credit, 1);
	ASSERT_EQ(credit.starved, 1);
	ASSERT_EQ(credit_reportable(&credit), 1);
	report(&credit, 1);
	ASSERT_EQ(credit_reportable(&credit), 0);
	repost(&credit, 1);
	report(&credit, 1);
	ASSERT_EQ(credit.starved + credit.unreported, 0);
}

static void
test_a_message_without_credit_is_refused(void)
{
	static const struct {
		unsigned unreported, starved;
	} rows[] = {{13, 0}, {0, 13}, {6, 7}};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct credit credit = fresh(13);

		turn_over(&credit, rows[i].unreported);
		receive(&credit, rows[i].starved);
		ASSERT_EQ(credit_received(&credit, MESSAGE_BYTES), -EPROTO);
		ASSERT_EQ(credit.received, 130);
		ASSERT_EQ(credit.starved, rows[i].starved);
		if (rows[i].unreported == 0)
			repost(&credit, 1);
		report(&credit, 1);
		ASSERT_EQ(credit_received(&credit, MESSAGE_BYTES), 0);
	}
}

/* Held are the messages that are not fully taken, wherever taking has come to. */
static void
test_held_at_every_position(void)
{
	for (unsigned messages = 0; messages <= 13; messages++) {
		for (unsigned taken = 0; taken <= messages * MESSAGE_BYTES; taken++) {
			struct credit credit = fresh(13);

			turn_over(&credit, messages);
			credit_taken(&credit, taken);
			ASSERT_EQ(credit_held(&credit), 0);
			ASSERT_EQ(credit_reportable(&credit), messages);
			credit.holding = true;
			ASSERT_EQ(credit_held(&credit), messages - taken / MESSAGE_BYTES);
			ASSERT_EQ(credit_reportable(&credit), taken / MESSAGE_BYTES);
		}
	}
}

/* Messages reported before holding began are out of reach; those that arrive while it lasts are held. */
static void
test_held_counts_unreported_ones_only(void)
{
	struct credit credit = fresh(13);

	turn_over(&credit, 6);
	report(&credit, 4);
	credit.holding = true;
	ASSERT_EQ(credit_held(&credit), 2);
	credit_taken(&credit, 5 * MESSAGE_BYTES - 1);
	ASSERT_EQ(credit_held(&credit), 2);
	credit_taken(&credit, 1);
	ASSERT_EQ(credit_held(&credit), 1);
	receive(&credit, 3);
	ASSERT_EQ(credit_held(&credit), 1); /* starved ones are no credits yet */
	repost(&credit, 3);
	ASSERT_EQ(credit_held(&credit), 4);
	ASSERT_EQ(credit_reportable(&credit), 1);
	credit.holding = false;
	ASSERT_EQ(credit_reportable(&credit), 5);
}

static void
test_messages_of_unequal_length(void)
{
	static const uint32_t bytes[] = {1, 2097120, 1, 8160, 512};
	struct credit credit = fresh(5);

	for (size_t i = 0; i < 5; i++)
		ASSERT_EQ(credit_received(&credit, bytes[i]), 0);
	repost(&credit, 5);
	credit.holding = true;
	ASSERT_EQ(credit_held(&credit), 5);
	credit_taken(&credit, 1);
	ASSERT_EQ(credit_held(&credit), 4);
	credit_taken(&credit, 2097119);
	ASSERT_EQ(credit_held(&credit), 4);
	credit_taken(&credit, 2);
	ASSERT_EQ(credit_held(&credit), 2);
	credit_taken(&credit, 8160 + 511);
	ASSERT_EQ(credit_held(&credit), 1);
	credit_taken(&credit, 1);
	ASSERT_EQ(credit_held(&credit), 0);
}

/* The ring turns many times, in steps that its length is no multiple of, holding from one lap to the next. */
static void
test_ring_wraps(void)
{
	for (uint16_t capacity = 2; capacity <= 13; capacity++) {
		struct credit credit = fresh(capacity);
		unsigned step = capacity - 1u;

		credit.holding = true;
		for (unsigned lap = 0; lap < 5u * capacity; lap++) {
			turn_over(&credit, step);
			ASSERT_EQ(credit_held(&credit), step);
			for (unsigned n = 1; n <= step; n++) {
				credit_taken(&credit, MESSAGE_BYTES - 1);
				ASSERT_EQ(credit_reportable(&credit), n - 1);
				credit_taken(&credit, 1);
				ASSERT_EQ(credit_reportable(&credit), n);
			}
			report(&credit, (uint16_t)step);
		}
		ASSERT_EQ(credit.received, credit.taken);
		CU_ASSERT(credit.first < capacity);
	}
}

/* A report of everything puts the ring's start where it was, also with the largest ring. */
static void
test_ring_full_turn(void)
{
	static uint64_t ends[65532];
	struct credit credit;

	credit_init(&credit, 65532, ends);
	turn_over(&credit, 1);
	report(&credit, 1);
	turn_over(&credit, 65532);
	credit_taken(&credit, 2 * MESSAGE_BYTES);
	credit.holding = true;
	ASSERT_EQ(credit_held(&credit), 65531);
	credit.holding = false;
	report(&credit, 65532);
	ASSERT_EQ(credit.first, 1);
	ASSERT_EQ(credit.unreported, 0);
}

/* The first pure ACK leaves when more than half is owed, the message just counted included: at 125 with the 63rd. */
static void
test_ack_due_above_half(void)
{
	static const struct {
		uint16_t capacity;
		unsigned due;
	} rows[] = {{125, 63}, {13, 7}, {12, 7}, {5, 3}, {4, 3}, {3, 2}, {2, 2}};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct credit credit = fresh(rows[i].capacity);

		CU_ASSERT_FALSE(credit_ack_due(&credit));
		for (unsigned n = 1; n < rows[i].due; n++) {
			turn_over(&credit, 1);
			CU_ASSERT_FALSE(credit_ack_due(&credit));
		}
		receive(&credit, 1);
		CU_ASSERT(rows[i].due == rows[i].capacity || !credit_ack_due(&credit));
		repost(&credit, 1);
		CU_ASSERT(credit_ack_due(&credit));
		report(&credit, (uint16_t)rows[i].due);
		CU_ASSERT_FALSE(credit_ack_due(&credit));
	}
}

/* The peer can send nothing more and is owed something: at once, however little. */
static void
test_ack_due_when_all_of_the_window_is_here(void)
{
	static const struct {
		unsigned held, starved, owed;
		bool due;
	} rows[] = {
		{12, 0, 1, true}, {11, 0, 1, false}, {0, 12, 1, true},	{0, 11, 1, false},
		{6, 6, 1, true},  {6, 5, 1, false},  {13, 0, 0, false}, {0, 13, 0, false},
		{7, 6, 0, false}, {7, 0, 6, true},   {6, 0, 6, false},	{6, 0, 7, true},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct credit credit = fresh(13);

		turn_over(&credit, rows[i].owed);
		credit_taken(&credit, rows[i].owed * MESSAGE_BYTES);
		credit.holding = true;
		turn_over(&credit, rows[i].held);
		receive(&credit, rows[i].starved);
		ASSERT_EQ(credit_held(&credit), rows[i].held);
		ASSERT_EQ(credit_reportable(&credit), rows[i].owed);
		ASSERT_EQ(credit_ack_due(&credit), rows[i].due);
	}
}

/* What makes a report due although no message arrived: data taken, holding ended, a starved slot served. */
static void
test_ack_due_without_a_message(void)
{
	struct credit credit = fresh(13);

	credit.holding = true;
	turn_over(&credit, 13);
	CU_ASSERT_FALSE(credit_ack_due(&credit));
	credit_taken(&credit, MESSAGE_BYTES - 1);
	CU_ASSERT_FALSE(credit_ack_due(&credit));
	credit_taken(&credit, 1);
	CU_ASSERT(credit_ack_due(&credit));
	report(&credit, 1);
	CU_ASSERT_FALSE(credit_ack_due(&credit));
	credit.holding = false;
	CU_ASSERT(credit_ack_due(&credit));
	report(&credit, 12);
	receive(&credit, 13);
	CU_ASSERT_FALSE(credit_ack_due(&credit));
	repost(&credit, 1);
	CU_ASSERT(credit_ack_due(&credit));
}

UNIT_SUITE("credit", {"the capacity follows both hellos", test_capacity},
	   {"a message is starved, unreported, reported", test_states_of_a_message},
	   {"a message that the peer had no credit for is refused", test_a_message_without_credit_is_refused},
	   {"what is not fully taken is held", test_held_at_every_position},
	   {"held are unreported messages only", test_held_counts_unreported_ones_only},
	   {"messages differ in length", test_messages_of_unequal_length}, {"the ring wraps", test_ring_wraps},
	   {"the largest ring makes a full turn", test_ring_full_turn},
	   {"an ACK is due above half", test_ack_due_above_half},
	   {"an ACK is due when all of the window is here", test_ack_due_when_all_of_the_window_is_here},
	   {"an ACK falls due without a message", test_ack_due_without_a_message});
