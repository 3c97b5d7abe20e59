/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HANDSHAKE_SIDE_H
#define TESTS_HANDSHAKE_SIDE_H

/* One side of a handshake under test: the machine, and resources that fail where the test says. */

#include "net/handshake/machine.h"

enum side_fault {
	SIDE_WORKS,
	SIDE_NO_RDMA,
	SIDE_ALLOC_FAILS,
	SIDE_BRING_UP_FAILS,
};

#define SIDE_FAULTS (SIDE_BRING_UP_FAILS + 1)

struct side {
	struct handshake hs;
	enum side_fault fault;
	unsigned allocs, bring_ups;
	struct hello heard; /* the peer, as it was told to bring_up */
};

enum handshake_result side_start(struct side *side, enum handshake_role role, enum side_fault fault);

/* A hello that every side takes. */
struct hello side_peer_hello(void);

/* A client that has said its hello, and a server that has answered one. */
void side_after_hello(struct side *side, enum side_fault fault);
void side_after_answer(struct side *side, enum side_fault fault);

/* Feeds one piece and asserts that all of it was used, or that all of it was left. */
enum handshake_result side_feed_taken(struct side *side, const void *data, size_t len);
enum handshake_result side_feed_left(struct side *side, const void *data, size_t len);

/* Asserts what the side has to send, and takes it. */
void side_assert_out(struct side *side, const void *expected, size_t len);
void side_assert_refusal_out(struct side *side);
void side_assert_vector_out(struct side *side, const char *vector);

void side_assert_ended(const struct side *side, enum handshake_state state, const char *reason);

#endif
