/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_LINK_H
#define NET_LINK_H

/*
 * What carries a connection's bytes. A link appends what arrives to conn->in and reports with conn_touch(), conn_eof()
 * and conn_fail(); it never calls the application. All of it on the connection's lcore.
 */

#include <stdbool.h>

struct xr_conn;
struct xr_conn_info;
struct xr_iobuf;

struct link_ops {
	const char *transport; /* as xr_conn_info names it */
	/*
	 * Sends the front of conn->out and drops what has left. What can't leave now stays, and the link comes back
	 * with conn_flush_later() when it can. 0, or a negative errno: the connection has failed.
	 */
	int (*flush)(struct xr_conn *conn);
	/* conn->hold_input has changed: read on, or let the peer wait. */
	void (*hold)(struct xr_conn *conn);
	/* conn->out has left: the peer shall see the end. Input is discarded from here on, up to conn_eof(). */
	void (*shutdown)(struct xr_conn *conn);
	/* The connection is over: nothing of it is called any more. */
	void (*close)(struct xr_conn *conn);

	/* What a link need not have: NULL. */

	/* Makes out fit to be sent: 0, or -XR_ERDMAMEM or -ENOMEM with out as it was. NULL: it always is. */
	int (*accept)(struct xr_conn *conn, struct xr_iobuf *out);
	/* The application has had its turn with conn->in. */
	void (*taken)(struct xr_conn *conn);
	/* conn->out is empty: whether the peer has all of it; if not yet, conn_flush_later() follows. NULL: it has. */
	bool (*settled)(const struct xr_conn *conn);
	/* Fills in what only this link knows. */
	void (*info)(const struct xr_conn *conn, struct xr_conn_info *info);
};

#endif
