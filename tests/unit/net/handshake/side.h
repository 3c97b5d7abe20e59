/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HANDSHAKE_SIDE_H
#define TESTS_HANDSHAKE_SIDE_H

/* One side of a handshake under test: the machine, and resources that fail where the test says. */

#include "net/handshake/machine.h"
#include <errno.h>
#include <string.h>

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

static inline int
side_alloc(void *arg, struct hello *own, const char **why)
{
	static const uint8_t gid[16] = {[10] = 0xFF, [11] = 0xFF, [12] = 10, [13] = 77, [15] = 1};
	struct side *side = arg;

	side->allocs++;
	if (side->fault == SIDE_ALLOC_FAILS) {
		*why = "no memory for a queue pair";
		return -ENOMEM;
	}
	own->block_size = 8160;
	own->sq_size = 128;
	own->rq_size = 128;
	memcpy(own->gid, gid, sizeof gid);
	own->qp_num = side->hs.role == HANDSHAKE_CLIENT ? 0x20 : 0x18;
	return 0;
}

static inline int
side_bring_up(void *arg, const struct hello *peer, const char **why)
{
	struct side *side = arg;

	side->bring_ups++;
	side->heard = *peer;
	if (side->fault == SIDE_BRING_UP_FAILS) {
		*why = "no route to the peer";
		return -ENETUNREACH;
	}
	return 0;
}

static const struct handshake_ops side_ops = {.alloc = side_alloc, .bring_up = side_bring_up};

static inline enum handshake_result
side_start(struct side *side, enum handshake_role role, enum side_fault fault)
{
	const struct handshake_ops *ops = fault == SIDE_NO_RDMA ? NULL : &side_ops;

	*side = (struct side){.fault = fault};
	if (role == HANDSHAKE_CLIENT)
		return handshake_start_client(&side->hs, ops, side);
	handshake_start_server(&side->hs, ops, side);
	return HANDSHAKE_GO_ON;
}

/* A hello that every side takes. */
static inline struct hello
side_peer_hello(void)
{
	return (struct hello){
		.hello_ver = HELLO_V2_VERSION,
		.impl_ver = HELLO_V2_IMPL,
		.block_size = 65504,
		.sq_size = 64,
		.rq_size = 32,
		.gid = {[0] = 0xFE, [1] = 0x80, [15] = 9},
		.qp_num = 0x1A3,
	};
}

#endif
