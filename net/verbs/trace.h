/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_TRACE_H
#define NET_VERBS_TRACE_H

/* What --rdma_trace_verbose logs of a handshake, a line a step. Nothing without it. */

#include "net/handshake/hello.h"

struct xr_conn;

/* whose: "own" or "peer's". */
void trace_hello(const struct xr_conn *conn, const char *whose, const struct hello *hello);

/* Gives ret back. */
int trace_failed(const struct xr_conn *conn, const char *what, const char *why, int ret);

void trace_open(const struct xr_conn *conn);

#endif
