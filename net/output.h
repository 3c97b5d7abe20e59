/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_OUTPUT_H
#define NET_OUTPUT_H

/*
 * How much output a connection may queue: conn_output_limit_kb, and of the pool its share of what is free
 * (net/share.h). On its lcore, as everything of a connection's.
 */

#include "net/conn.h"
#include "net/net.h"
#include "net/turn.h"

static inline size_t
output_limit(void)
{
	return (size_t)option_int(&g_conn_output_limit_kb) * 1024;
}

/* Most queues are: nothing has to be counted then. */
static inline bool
output_is_short(const struct xr_conn *conn)
{
	const struct scarcity *scarcity = &conn->home->scarcity;
	size_t most = xr_iobuf_size(&conn->out) + iobuf_pinned_at_most(&conn->out, (enum block_type)conn->in_type);

	return most <= scarcity->of_free && scarcity->unseen >= 0 && most < output_limit();
}

/* What is queued has reached its limit, or the connection's share of the pool: on_writable will follow. */
bool output_full(struct xr_conn *conn);

/* It has come down to half of that: time for on_writable. */
bool output_half_drained(const struct xr_conn *conn);

#endif
