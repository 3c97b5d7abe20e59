/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/device.h"
#include "core/log.h"
#include "net/verbs/async.h"
#include "net/verbs/flags.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct {
	struct device devices[MEM_DEVICES];
	unsigned count;
	const char *obstacle;
} g_devices = {.obstacle = "RDMA is not set up"};

/* ---- the pool's registrations ---- */

static int
register_range(unsigned number, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	const struct device *device = &g_devices.devices[number];
	struct ibv_mr *mr;

	/* Only receives write here, and their completions order the bytes: the card may reorder its writes. */
	mr = ibv_reg_mr(device->pd, addr, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	if (!mr)
		return -errno;
	*handle = mr;
	*lkey = mr->lkey;
	return 0;
}

static void
unregister_range(unsigned number, void *handle)
{
	int error = ibv_dereg_mr(handle);

	if (error)
		log_error("RDMA device %s: deregistering memory: %s", g_devices.devices[number].name, strerror(error));
}

static const struct mem_device_ops g_mem_ops = {register_range, unregister_range};

/* ---- one device ---- */

static uint32_t
send_sge_limit(const struct ibv_device_attr *attr)
{
	uint32_t limit = (uint32_t)attr->max_sge, flag = (uint32_t)option_int(&g_rdma_max_sge);

	return flag && flag < limit ? flag : limit;
}

/* Each step undoes the ones before it when it fails. *step: what failed. */
static int
set_up(struct device *device, const char **step)
{
	int ret;

	*step = "query";
	ret = -ibv_query_device(device->context, &device->attr);
	if (ret)
		return ret;
	*step = "protection domain";
	device->pd = ibv_alloc_pd(device->context);
	if (!device->pd)
		return -errno;
	*step = "registering the memory pool";
	ret = mem_device_add(device->number, &g_mem_ops);
	if (ret)
		goto dealloc;
	*step = "asynchronous events";
	ret = async_watch(device);
	if (ret)
		goto unregister;
	device->max_sge = send_sge_limit(&device->attr);
	return 0;

unregister:
	mem_device_del(device->number);
dealloc:
	ibv_dealloc_pd(device->pd);
	return ret;
}

static void
tear_down(struct device *device)
{
	int error;

	async_unwatch(device);
	mem_device_del(device->number);
	error = ibv_dealloc_pd(device->pd);
	if (error)
		log_error("RDMA device %s: freeing its protection domain: %s", device->name, strerror(error));
	ibv_close_device(device->context);
}

static bool
open_device(struct ibv_device *found)
{
	struct device *device = &g_devices.devices[g_devices.count];
	const char *step = "open";
	int ret = -ENODEV;

	*device = (struct device){.number = g_devices.count, .context = ibv_open_device(found)};
	snprintf(device->name, sizeof device->name, "%s", ibv_get_device_name(found));
	if (device->context) {
		ret = set_up(device, &step);
		if (ret == 0) {
			g_devices.count++;
			return true;
		}
		ibv_close_device(device->context);
	}
	log_warning("RDMA device %s is not used: %s: %s", device->name, step, strerror(-ret));
	return false;
}

/* ---- all of them ---- */

static bool
allowed(struct ibv_device *device)
{
	return !*g_rdma_device || strcmp(g_rdma_device, ibv_get_device_name(device)) == 0;
}

static int
open_list(struct ibv_device **list, int count)
{
	bool named = false;

	for (int i = 0; i < count && g_devices.count < MEM_DEVICES; i++) {
		if (!allowed(list[i]))
			continue;
		named = true;
		open_device(list[i]);
	}
	if (named || !*g_rdma_device)
		return 0;
	log_error("--rdma_device=%s: no such device on this machine, which has %d", g_rdma_device, count);
	return -EINVAL;
}

static const char *
obstacle_of(int found)
{
	if (g_devices.count)
		return NULL;
	return found ? "no RDMA device could be used" : "no RDMA device on this machine";
}

int
devices_init(void)
{
	int found = 0, ret;
	struct ibv_device **list = ibv_get_device_list(&found);

	g_devices.count = 0;
	ret = open_list(list, list ? found : 0);
	if (list)
		ibv_free_device_list(list);
	if (ret == 0)
		ret = gid_table_refresh();
	if (ret)
		devices_fini();
	else
		g_devices.obstacle = obstacle_of(list ? found : 0);
	return ret;
}

void
devices_fini(void)
{
	while (g_devices.count)
		tear_down(&g_devices.devices[--g_devices.count]);
	gid_table_fini();
	g_devices.obstacle = "RDMA is not set up";
}

unsigned
device_count(void)
{
	return g_devices.count;
}

struct device *
device_at(unsigned number)
{
	return &g_devices.devices[number];
}

struct device *
device_find(const char *name)
{
	for (unsigned i = 0; i < g_devices.count; i++)
		if (strcmp(g_devices.devices[i].name, name) == 0)
			return &g_devices.devices[i];
	return NULL;
}

const char *
devices_obstacle(void)
{
	return g_devices.obstacle;
}
