/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_ENDPOINT_H
#define NET_VERBS_ENDPOINT_H

/*
 * The RDMA endpoint of a connection: queue pair, windows, slots. It is the connection's link (g_rdma_link) from
 * ESTABLISHED on, and what the handshake's machine calls for its resources (g_endpoint_handshake_ops).
 */

#include "net/handshake/machine.h"
#include "net/link.h"
#include <infiniband/verbs.h>

struct endpoint;
struct xr_conn;

extern const struct link_ops g_rdma_link;

/*
 * Both with the connection as their arg; on its lcore. alloc makes conn->endpoint; a bring_up that fails takes it back.
 */
extern const struct handshake_ops g_endpoint_handshake_ops;

/*
 * Maps and registers the first receive blocks of every port that may use RDMA, on the nodes of its lcores: in the
 * middle of a handshake it would take the time of both sides. At start, when the devices are there; blocks.
 */
void endpoints_warm(void);

/* The handshake ended in ESTABLISHED: g_rdma_link is the connection's link from now on. 0. */
int endpoint_attach(struct xr_conn *conn);

/* Gives back what alloc made; at any time. */
void endpoint_discard(struct xr_conn *conn);

/* ---- called by the completion queues (cq.c) ---- */

/* One completion. An error is remembered; the connection fails at the end of the batch, not inside it. */
void endpoint_complete(struct endpoint *endpoint, const struct ibv_wc *wc);

/* The poll is over for this endpoint, once a poll: reposts its slots with one call, reports, fails what has failed. */
void endpoint_batch_end(struct endpoint *endpoint);

/* An asynchronous event of the device's ends it: IBV_EVENT_QP_FATAL, IBV_EVENT_CQ_ERR, IBV_EVENT_DEVICE_FATAL, ... */
void endpoint_async_event(struct endpoint *endpoint, enum ibv_event_type type);

#endif
