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
};

/* Looks at the machine. Before any connection. */
void rdma_provider_init(void);

/* Another one in its place; it must outlive all connections. Before any connection. */
void rdma_provider_set(const struct rdma_provider *provider);

/* Never NULL. Any thread. */
const struct rdma_provider *rdma_provider(void);

#endif
