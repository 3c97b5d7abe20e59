/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_DEVICE_H
#define NET_VERBS_DEVICE_H

/*
 * The RDMA devices of this machine: opened at start, their protection domain, the pool's registrations with them, and
 * their asynchronous events. Numbered as `mem` numbers them.
 */

#include "mem/mem.h"
#include "net/verbs/gid.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <xrdma/reactor.h>

struct device {
	unsigned number; /* < MEM_DEVICES; what mem_lkey() wants */
	char name[IBV_SYSFS_NAME_MAX];
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	uint32_t max_sge; /* of a send; min(device's, --rdma_max_sge) */
	bool failed;	  /* IBV_EVENT_DEVICE_FATAL: no new connection; read with relaxed atomics by any lcore */
	struct xr_fd events;
};

extern const struct xr_option g_rdma_options[];

/*
 * Opens the devices that --rdma_device allows, allocates their protection domains, registers the pool and reads their
 * GID tables. After the pool is there, on the main lcore before it runs. A device that can't be used costs one log
 * line; none at all is no error. 0, -EINVAL (--rdma_device names none of them; one log line), -ENOMEM.
 */
int devices_init(void);

/* Every endpoint and completion queue is gone. */
void devices_fini(void);

unsigned device_count(void);
struct device *device_at(unsigned number);

/* Why there is no RDMA at all ("no RDMA device on this machine", ...), static text; NULL: there is some. */
const char *devices_obstacle(void);

/* The port's state as last seen: ACTIVE. Any lcore. */
bool device_port_active(const struct device *device, uint8_t ib_port);

#endif
