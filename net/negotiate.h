/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_NEGOTIATE_H
#define NET_NEGOTIATE_H

/* How a connection comes to its transport: drives the handshake's machine with what the socket brings. */

#include "net/conn.h"

/* Why this dial can't get RDMA at all, static text; NULL: a hello may be sent. */
const char *negotiate_obstacle(const struct xr_conn *conn);

/* It is to have RDMA or not to open at all. */
bool negotiate_requires_rdma(const struct xr_conn *conn);

/* The socket is connected: opens at once, sends a hello, or waits for the peer's first bytes. */
void negotiate_start(struct xr_conn *conn);

/* There is more in conn->in. */
void negotiate_input(struct xr_conn *conn);

void negotiate_eof(struct xr_conn *conn);
void negotiate_timeout(struct xr_conn *conn);

/* The socket failed: true when the connection goes on with another one. */
bool negotiate_broken(struct xr_conn *conn);

/* Sends what the handshake has to say, before anything of conn->out; false while something of it is left. */
bool negotiate_send(struct xr_conn *conn);

static inline bool
negotiate_flush(struct xr_conn *conn)
{
	return conn->hs.out_len == 0 || negotiate_send(conn);
}

/* Gives back what the handshake has made for RDMA, if anything: it has no use for it any more. */
void negotiate_discard(struct xr_conn *conn);

/* RDMA with the peer has not worked: the next dials go without a hello for --rdma_retry_after_s. */
void negotiate_avoid_rdma(struct xr_conn *conn);

/* Why it is not RDMA, "" when it is. */
const char *negotiate_reason(const struct xr_conn *conn);

#endif
