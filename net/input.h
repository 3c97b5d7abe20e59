/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_INPUT_H
#define NET_INPUT_H

/*
 * How much input a connection may pin, and when it holds its peer back. What it is limited by:
 *
 *   untaken   the application has all that it asked for: conn_input_limit_kb, and its share of what is free
 *   partial   the application needs more (xr_conn_need): its part of what all such messages may have, or a reservation
 *
 * See net/share.h and doc/flow.md. Holding is what the connection looks like; the link puts it into effect.
 */

#include "net/ledger.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/list.h>

struct xr_conn;

/* What a connection keeps for it. All zero: nothing. */
struct input_claim {
	struct claim claim;
	struct cds_list_head entry; /* in the lcore's list of claims */
	size_t seen, mark;	    /* bytes of input at the last look, and when the peer had made some progress last */
	uint64_t mark_us;	    /* when that was, or when this side did not read last */
};

/* After the application's turn, and whenever the input or what is needed has changed. May end the connection. */
void input_review(struct xr_conn *conn);

/* Before there is an application: only copied together where it pins much for little. */
void input_compact(struct xr_conn *conn);

/* The input is gone, or belongs to nobody any more. */
void input_over(struct xr_conn *conn);

/* How much one turn may read, at least a block's worth. */
size_t input_turn_bytes(struct xr_conn *conn);

/* ---- for net/scarcity.c; true: something has changed ---- */

/* It may have been granted. */
bool input_review_claim(struct cds_list_head *entry);

/* There may be more again. */
bool input_review_squeezed(struct cds_list_head *entry);

/* A peer that hardly sends what it has a reservation for, while others wait for one: its connection ends in time. */
bool input_check_peer(struct cds_list_head *entry);

#endif
