/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_SHARE_H
#define NET_SHARE_H

/*
 * How the memory of one pool is shared among connections. Arithmetic only; doc/flow.md, "Fair shares", has the reasons,
 * and that nothing waits for ever.
 *
 * Input that waits for its application, and output that waits for its peer, are each limited by a fraction of what is
 * free: the dynamic thresholds of switch buffers. N connections that never read leave more than 1/(1 + N/16) of it, and
 * a quarter of the pool always.
 *
 * Input that waits for more of its own message is another matter, as only more memory sets it free. What all such
 * messages pin together is limited, and a message that needs more than its part of that has a reservation.
 *
 * Sizes are bytes of whole blocks.
 */

#include "mem/block.h"
#include <stdbool.h>
#include <stddef.h>

/* What is known of a pool. Each figure may be a little old: limits are not exact to some blocks an lcore. */
struct share_pool {
	size_t capacity;  /* all blocks that there are or may still be */
	size_t available; /* of those, nobody's */
	size_t receives;  /* in the receive slots of open RDMA connections */
	size_t promised;  /* to messages with a reservation, which have not got it yet */
	size_t partial;	  /* pinned by messages that are not whole and have no reservation */
};

/* The untaken input that one connection may pin, and likewise the queued output. */
size_t share_of_free(const struct share_pool *pool);

/* What one message that is not whole may pin without a reservation: all of them together less than 1/8 of the pool. */
size_t share_of_partial(const struct share_pool *pool);

/* What so many bytes of input pin when they arrive in full blocks; SIZE_MAX: more than can be counted. */
size_t share_blocks(size_t bytes, enum block_type type);

/* The largest reservation that can be had when everything is at home but the receives of open connections. */
size_t share_largest(const struct share_pool *pool);

/*
 * Whether a message of so much in all can have a reservation now. Room is left for partial messages and for what
 * applications allocate; and, by one that is not `urgent`, for urgent ones.
 */
bool share_fits(const struct share_pool *pool, size_t bytes, bool urgent);

/* What the receive slots of a new connection may take: half of the pool is theirs at most, and others need some now. */
size_t share_of_receives(const struct share_pool *pool);

#endif
