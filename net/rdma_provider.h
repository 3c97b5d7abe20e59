/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RDMA_PROVIDER_H
#define NET_RDMA_PROVIDER_H

/* Where RDMA plugs in: what a handshake needs of it, or the reason why this process has none. */

#include "net/handshake/machine.h"

struct xr_conn;

struct rdma_provider {
	const struct handshake_ops *ops; /* called with the connection as arg; NULL: no RDMA here */
	const char *reason;		 /* without ops: why, static text */
	/* The handshake ended in ESTABLISHED: puts its link into conn->link. 0 or a negative errno. */
	int (*attach)(struct xr_conn *conn);
	/* It ended otherwise: gives back conn->endpoint, which ops->alloc has set. */
	void (*discard)(struct xr_conn *conn);
};

/* Opens the devices of the machine. After the memory pool is there, before any connection. -EINVAL, -ENOMEM. */
int rdma_provider_init(void);

/* On each worker's own thread when its connections have ended. */
void rdma_provider_leave(void);

/* After all workers have ended. */
void rdma_provider_fini(void);

/* Another one in its place; it must outlive all connections. Before any connection. */
void rdma_provider_set(const struct rdma_provider *provider);

/* Never NULL. Any thread. */
const struct rdma_provider *rdma_provider(void);

#endif
