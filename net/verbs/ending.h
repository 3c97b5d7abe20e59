/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_ENDING_H
#define NET_VERBS_ENDING_H

/*
 * How an open endpoint comes to its end when nothing is wrong: the peer closes its TCP connection, having seen that all
 * its SENDs arrived, and what they brought is still to be delivered.
 */

struct endpoint;
struct xr_conn;

/* The peer's end of the TCP connection has been read. */
void ending_begin(struct xr_conn *conn);

/* Completions were taken: the connection has its end when none is left. */
void ending_progress(struct endpoint *endpoint);

#endif
