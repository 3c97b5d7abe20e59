/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_CALL_H
#define NET_RPC_CALL_H

/*
 * The calls of one lcore on one channel that wait for their answers. A call lives in a slot that never moves; its id
 * is slot and generation, travels as the correlation id, and is never used twice, so that an answer that comes too
 * late finds nothing. One thread; no malloc once there are slots enough.
 */

#include <urcu/list.h>
#include <xrdma/reactor.h>
#include <xrdma/rpc.h>

struct client_conn;
struct channel_lcore;

#define CALL_SLOT_BITS 20u /* a million calls in work, per lcore and channel */

struct call {
	uint64_t id; /* generation << CALL_SLOT_BITS | slot; of a free slot the next one */
	bool used;
	struct cds_list_head link; /* free: in the table; taken: its user's */
	struct xr_timer timer;
	xr_rpc_done *done;
	void *arg;
	int timeout_ms;		    /* 0: none */
	struct client_conn *conn;   /* that it was sent on */
	struct channel_lcore *here; /* of every call in the table */
};

struct call_table {
	struct call **chunks;
	size_t chunk_count;
	struct cds_list_head free;
	void (*on_timeout)(struct xr_timer *timer);
	struct channel_lcore *here;
};

/* on_timeout is the function of each call's timer. The table must not move from here on. */
void call_table_init(struct call_table *table, struct channel_lcore *here, void (*on_timeout)(struct xr_timer *timer));

/* No call is in use, no timer armed. */
void call_table_fini(struct call_table *table);

/* A call with an id of its own, on no list; NULL: no memory, or all slots in use. */
struct call *call_take(struct call_table *table);

/* The call that has this id and is in use; NULL: there is none (any more). */
struct call *call_find(const struct call_table *table, uint64_t id);

/* Its id ends here: call_find() does not know it any more. The call stays taken until call_release(). */
void call_retire(struct call *call);

/* On no list, its timer not armed. */
void call_release(struct call_table *table, struct call *call);

#endif
