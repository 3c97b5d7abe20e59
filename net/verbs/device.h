/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_DEVICE_H
#define NET_VERBS_DEVICE_H

/*
 * The RDMA devices of this machine: opened at start, their protection domain, the pool's registrations with them, and
 * their asynchronous events. Numbered as `mem` numbers them.
 */

#include "mem/mem.h"
#include "net/verbs/gid.h"
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <xrdma/reactor.h>

struct device {
	unsigned number; /* < MEM_DEVICES; what mem_block_lkey() wants */
	char name[IBV_SYSFS_NAME_MAX];
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	uint32_t max_sge;    /* of a send: min(device's, --rdma_max_sge) */
	bool failed;	     /* fatal: no new connection; see device_usable() */
	struct xr_fd events; /* asynchronous ones, on the main lcore */
};

/*
 * Opens the devices that some port may use (rdma=off: none), allocates their protection domains, registers the pool
 * with them and reads their GID tables. After the ports and the pool are there, on the main lcore before it runs;
 * blocks while memory is pinned. A device that can't be used costs one log line, none at all is no error. 0, or -EINVAL
 * after one log line: --rdma_device or a port's dev= names none of this machine's; -ENOMEM.
 */
int devices_init(void);

/* Every endpoint and completion queue is gone. */
void devices_fini(void);

unsigned device_count(void);
struct device *device_at(unsigned number); /* number < device_count() */

/* By name; NULL when there is none. */
struct device *device_find(const char *name);

/* Why there is no RDMA at all ("no RDMA device on this machine", ...), static text; NULL: there is some. Any thread. */
const char *devices_obstacle(void);

/* Until it reports a fatal event. Any thread. */
static inline bool
device_usable(const struct device *device)
{
	return !__atomic_load_n(&device->failed, __ATOMIC_RELAXED);
}

/* Logs that something of the device's could not be undone; error: a positive errno, 0 is fine. One that has failed may.
 */
void device_undone(const struct device *device, const char *what, int error);

/* What a verb that gave NULL has left in errno, negative; some providers forget to. */
static inline int
verbs_error(void)
{
	return errno > 0 ? -errno : -EIO;
}

#endif
