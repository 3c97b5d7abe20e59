/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_DRAIN_H
#define NET_DRAIN_H

/*
 * How the library stops: it drains first. Each lcore closes its listeners and begins nothing new. A moment later, when
 * what had come by then has been read and no lcore accepts any more, it asks its connections to end (conn_drain()). It
 * is drained when the last of them has gone; the loops end when all lcores are, or when --drain_ms have passed, or at
 * the next stop. What is left then is cut off.
 */

#include "net/net.h"
#include <stdbool.h>
#include <xrdma/reactor.h>

struct net_lcore;

enum drain_phase {
	DRAIN_NONE,
	DRAIN_BEGUN, /* its listeners are closed; what comes on its connections is served as ever */
	DRAIN_ASKED, /* its connections have been asked to end, and latecomers are */
	DRAIN_DONE,  /* the last of them has gone, also of those on their way */
};

/* What an lcore needs for it. */
struct drain {
	enum drain_phase phase;
	struct xr_msg begin, all_closed;
	struct xr_timer ask;
};

extern bool g_drain_begun;

/* Nothing new begins: no dial, no listener, no call. Any thread. */
static inline bool
drain_begun(void)
{
	return __builtin_expect(__atomic_load_n(&g_drain_begun, __ATOMIC_RELAXED), 0);
}

/* No stop has been asked for so far. Before the lcores' loops begin. */
void drain_init(void);
void drain_lcore_init(struct drain *drain);

/* xr_stop(): the first drains, the next ends the loops. Any thread, async-signal-safe. */
void drain_stop(void);

/* A connection of the lcore has gone. */
void drain_progress(struct net_lcore *net);

/* The loop has ended: counts and tells what the end cuts off. */
void drain_cut_off(struct net_lcore *net);

#endif
