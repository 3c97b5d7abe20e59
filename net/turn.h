/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TURN_H
#define NET_TURN_H

/*
 * What `net` keeps on an lcore, and its two steps in the turn of the loop: deliver and flush (net/conn.h says what they
 * call). Both work off lists that were filled since; a connection stands in each at most once.
 */

#include "core/lcore.h"
#include "net/drain.h"
#include "net/ledger.h"
#include "net/peers.h"
#include "net/rx.h"
#include "net/scarcity.h"
#include "poll/source.h"
#include <urcu/list.h>

struct net_lcore {
	struct source deliver, flush;
	uint64_t turn;		       /* number of the deliver step, so that a connection has one on_data in each */
	struct cds_list_head touched;  /* for the next deliver step */
	struct cds_list_head flushing; /* for the next flush step */
	struct cds_list_head ended;
	struct cds_list_head conns, listeners; /* all there are */
	struct rx rx;
	struct scarcity scarcity;
	int worked; /* what this turn's deliver step did */
	struct peers peers;
	struct drain drain;
	const struct lcore *lcore;
	bool closing; /* the loop has ended: no new connection, no new listener */
	struct ledger_sums sums;
	unsigned live __attribute__((aligned(64))); /* connections, those on their way included; any thread */
} __attribute__((aligned(64)));

/* The calling worker's; NULL elsewhere. */
extern __thread struct net_lcore *t_net __attribute__((tls_model("initial-exec")));

int net_lcores_init(void); /* for all lcores, before any enters; -ENOMEM */
void net_lcores_fini(void);

/* On each worker's own thread: adds its steps to its reactor; takes them away when the loop has ended. */
void net_lcore_enter(struct lcore *lcore);
void net_lcore_leave(void);

struct net_lcore *net_lcore_at(unsigned index);

#endif
