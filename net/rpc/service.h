/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_SERVICE_H
#define NET_RPC_SERVICE_H

/*
 * The methods that a server serves, found by service and method name. The table is filled before the server listens
 * and only read after that, by every lcore at once. A service is also known by its short name, the part after the last
 * dot; of two services with the same short name the first one has it, unless it is the full name of another.
 */

#include <xrdma/rpc.h>

struct method {
	const char *service; /* as the client names it: the full or the short name */
	const char *name;
	xr_rpc_handler *handler;
	void *arg;
	uint32_t hash;
};

/* One service as it was added. */
struct service {
	char *name;
	const char *short_name; /* inside name */
	struct service_method {
		char *name;
		xr_rpc_handler *handler;
		void *arg;
	} * methods;
	size_t method_count;
};

struct service_table {
	struct service *services;
	size_t service_count;
	struct method *index; /* every name of every method: open addressing, a slot without handler is free */
	size_t index_cap;     /* a power of two, or 0 */
};

#define SERVICE_TABLE_INIT       \
	{                        \
		NULL, 0, NULL, 0 \
	}

/* Copies the names. Errors: -EINVAL an empty name, -EEXIST, -ENOMEM; nothing is added then. */
int service_add(struct service_table *table, const char *service, const char *name, xr_rpc_handler *handler, void *arg);

/* NULL: *error is XR_RPC_ENOSERVICE for an unknown name without a dot, else XR_RPC_ENOMETHOD, as brpc answers. */
const struct method *service_find(const struct service_table *table, const char *service, const char *name, int *error);

void service_table_fini(struct service_table *table);

#endif
