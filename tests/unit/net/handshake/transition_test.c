/* SPDX-License-Identifier: Apache-2.0 */

#include "net/handshake/transition.h"
#include "tests/unit/unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum handshake_state states[] = {
	HANDSHAKE_UNINIT,	HANDSHAKE_C_ALLOC_QPCQ, HANDSHAKE_C_HELLO_SEND, HANDSHAKE_C_HELLO_WAIT,
	HANDSHAKE_C_BRINGUP_QP, HANDSHAKE_C_ACK_SEND,	HANDSHAKE_S_HELLO_WAIT, HANDSHAKE_S_ALLOC_QPCQ,
	HANDSHAKE_S_BRINGUP_QP, HANDSHAKE_S_HELLO_SEND, HANDSHAKE_S_ACK_WAIT,	HANDSHAKE_ESTABLISHED,
	HANDSHAKE_FALLBACK_TCP, HANDSHAKE_FAILED,
};

/* One more than the state that each event leads to; 0 where it leads nowhere. */
typedef int row[HANDSHAKE_EVENTS];
#define TO(state) (HANDSHAKE_##state + 1)

static const row uninit = {
	[EVENT_DIALLED] = TO(C_ALLOC_QPCQ),	   [EVENT_NO_RDMA] = TO(FALLBACK_TCP), [EVENT_MAGIC] = TO(S_HELLO_WAIT),
	[EVENT_OTHER_PROTOCOL] = TO(FALLBACK_TCP), [EVENT_CLOSED] = TO(FAILED),	       [EVENT_DEADLINE] = TO(FAILED),
};
static const row c_alloc_qpcq = {
	[EVENT_ALLOC_OK] = TO(C_HELLO_SEND),
	[EVENT_ALLOC_FAILED] = TO(FALLBACK_TCP),
};
static const row c_hello_send = {
	[EVENT_HELLO_SENT] = TO(C_HELLO_WAIT),
};
static const row c_hello_wait = {
	[EVENT_NEGOTIABLE] = TO(C_BRINGUP_QP), [EVENT_NOT_NEGOTIABLE] = TO(C_ACK_SEND), [EVENT_MALFORMED] = TO(FAILED),
	[EVENT_CLOSED] = TO(FAILED),	       [EVENT_DEADLINE] = TO(FAILED),
};
static const row c_bringup_qp = {
	[EVENT_BRING_UP_OK] = TO(C_ACK_SEND),
	[EVENT_BRING_UP_FAILED] = TO(C_ACK_SEND),
};
static const row c_ack_send = {
	[EVENT_ACK_RDMA] = TO(ESTABLISHED),
	[EVENT_ACK_TCP] = TO(FALLBACK_TCP),
};
static const row s_hello_wait = {
	[EVENT_NEGOTIABLE] = TO(S_ALLOC_QPCQ), [EVENT_NOT_NEGOTIABLE] = TO(S_HELLO_SEND),
	[EVENT_NO_RDMA] = TO(S_HELLO_SEND),    [EVENT_MALFORMED] = TO(FAILED),
	[EVENT_CLOSED] = TO(FAILED),	       [EVENT_DEADLINE] = TO(FAILED),
};
static const row s_alloc_qpcq = {
	[EVENT_ALLOC_OK] = TO(S_BRINGUP_QP),
	[EVENT_ALLOC_FAILED] = TO(S_HELLO_SEND),
};
static const row s_bringup_qp = {
	[EVENT_BRING_UP_OK] = TO(S_HELLO_SEND),
	[EVENT_BRING_UP_FAILED] = TO(S_HELLO_SEND),
};
static const row s_hello_send = {
	[EVENT_HELLO_SENT] = TO(S_ACK_WAIT),
};
static const row s_ack_wait = {
	[EVENT_ACK_RDMA] = TO(ESTABLISHED), [EVENT_ACK_TCP] = TO(FALLBACK_TCP), [EVENT_ACK_UNWANTED] = TO(FAILED),
	[EVENT_CLOSED] = TO(FAILED),	    [EVENT_DEADLINE] = TO(FAILED),
};
static const row established = {
	[EVENT_BYTES_BEHIND] = TO(FAILED),
};
static const row end;

static const int *const expected[COUNT(states)] = {
	uninit,	      c_alloc_qpcq, c_hello_send, c_hello_wait, c_bringup_qp, c_ack_send, s_hello_wait,
	s_alloc_qpcq, s_bringup_qp, s_hello_send, s_ack_wait,	established,  end,	  end,
};

static void
test_every_cell(void)
{
	for (size_t s = 0; s < COUNT(states); s++) {
		for (int e = 0; e < HANDSHAKE_EVENTS; e++) {
			int next = handshake_next(states[s], (enum handshake_event)e);

			if (next != expected[s][e] - 1)
				printf("%s, event %d\n", handshake_state_name(states[s]), e);
			ASSERT_EQ(next, expected[s][e] - 1);
		}
	}
}

static void
test_no_other_state(void)
{
	for (int state = -1; state <= 0x400; state++) {
		bool known = false;

		for (size_t s = 0; s < COUNT(states); s++)
			known |= state == (int)states[s];
		for (int e = 0; !known && e < HANDSHAKE_EVENTS; e++)
			ASSERT_EQ(handshake_next((enum handshake_state)state, (enum handshake_event)e),
				  HANDSHAKE_NOWHERE);
	}
}

static size_t
index_of(int state)
{
	size_t s = 0;

	while ((int)states[s] != state)
		s++;
	return s;
}

/* Marks what can be reached from a state. The table has no loop, so this ends. */
static void
walk(enum handshake_state from, bool reached[COUNT(states)])
{
	reached[index_of((int)from)] = true;
	for (int e = 0; e < HANDSHAKE_EVENTS; e++) {
		int next = handshake_next(from, (enum handshake_event)e);

		if (next != HANDSHAKE_NOWHERE)
			walk((enum handshake_state)next, reached);
	}
}

static void
test_every_state_is_reached(void)
{
	bool reached[COUNT(states)] = {false};

	walk(HANDSHAKE_UNINIT, reached);
	for (size_t s = 0; s < COUNT(states); s++)
		CU_ASSERT_TRUE(reached[s]);
}

static void
test_every_state_can_reach_tcp(void)
{
	for (size_t s = 0; s < COUNT(states); s++) {
		bool reached[COUNT(states)] = {false};

		walk(states[s], reached);
		if (states[s] < HANDSHAKE_ESTABLISHED)
			CU_ASSERT_TRUE(reached[index_of(HANDSHAKE_FALLBACK_TCP)]);
	}
}

static void
test_names(void)
{
	static const char *const names[COUNT(states)] = {
		"UNINIT",     "C_ALLOC_QPCQ", "C_HELLO_SEND", "C_HELLO_WAIT", "C_BRINGUP_QP",
		"C_ACK_SEND", "S_HELLO_WAIT", "S_ALLOC_QPCQ", "S_BRINGUP_QP", "S_HELLO_SEND",
		"S_ACK_WAIT", "ESTABLISHED",  "FALLBACK_TCP", "FAILED",
	};

	for (size_t s = 0; s < COUNT(states); s++)
		ASSERT_STR(handshake_state_name(states[s]), names[s]);
	ASSERT_STR(handshake_state_name((enum handshake_state)0x99), "unknown");
}

UNIT_SUITE("transition", {"every state and event leads where it should, or nowhere", test_every_cell},
	   {"a number that is no state leads nowhere", test_no_other_state},
	   {"every state is reached from UNINIT", test_every_state_is_reached},
	   {"every state before the end can reach TCP", test_every_state_can_reach_tcp},
	   {"states have the names of brpc", test_names});
