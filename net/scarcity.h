/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_SCARCITY_H
#define NET_SCARCITY_H

/*
 * When the pool is at its limit and a socket can't be read. Most times blocks come back soon. But messages that are
 * not whole yet hold blocks that only further blocks could set free, and so does output that its peer does not read:
 * once such connections have all there are, each waits for the others for ever. So an lcore that has had no block for
 * a while gives up the connection that holds most in this way, its own first, else the other lcores'.
 */

#include <stdint.h>
#include <xrdma/reactor.h>

struct xr_conn;
struct net_lcore;

struct scarcity {
	uint64_t since_us;     /* reading waits since then; 0: there are blocks */
	uint64_t gave_up_us;   /* when it last had to; 0: never */
	struct xr_msg relieve; /* another lcore asks for blocks */
};

void scarcity_init(struct scarcity *scarcity);

/* The connection found no block to read into: after how many microseconds to try again. May end connections. */
uint64_t scarcity_wait(struct xr_conn *conn);

/* There was one. */
static inline void
scarcity_over(struct scarcity *scarcity)
{
	if (__builtin_expect(scarcity->since_us != 0, 0))
		scarcity->since_us = 0;
}

#endif
