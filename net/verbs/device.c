/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/device.h"
#include "core/log.h"
#include "net/port.h"
#include "net/verbs/async.h"
#include "net/verbs/flags.h"
#include "net/verbs/memlock.h"
#include <stdio.h>
#include <string.h>

static struct {
	struct device devices[MEM_DEVICES];
	unsigned count;
	const char *obstacle;
} g_devices = {.obstacle = "RDMA is not set up"};

void
device_undone(const struct device *device, const char *what, int error)
{
	if (error)
		log_at(device_usable(device) ? XR_LOG_ERROR : XR_LOG_DEBUG, "RDMA device %s: %s: %s", device->name,
		       what, strerror(error));
}

/* ---- registrations ---- */

static void
log_refused(unsigned number, size_t len, int error)
{
	const char *name = g_devices.devices[number].name, *hint = memlock_hint(len, error);
	bool in_use = number < g_devices.count;

	log_at(in_use ? XR_LOG_ERROR : XR_LOG_WARNING, "RDMA device %s%s: registering %zu MiB of memory: %s%s", name,
	       in_use ? "" : " is not used", len >> 20, strerror(-error), hint);
}

static void
log_user_refused(unsigned number, const void *addr, size_t len, int error)
{
	const char *hint = memlock_hint(len, error);

	log_warning("RDMA device %s can't send from user memory, %zu KiB at %p: %s%s", g_devices.devices[number].name,
		    (len + 1023) >> 10, addr, strerror(-error), hint);
}

static int
pin(const struct device *device, void *addr, size_t len, unsigned access, struct ibv_mr **mr)
{
	*mr = ibv_reg_mr(device->pd, addr, len, access);
	if (!*mr)
		return verbs_error();
	memlock_add(len);
	return 0;
}

/*
 * A device that has failed takes no memory and needs none any more: it must not keep the pool from growing for the
 * others, so it is said to have it.
 */
static int
pin_if_usable(unsigned number, void *addr, size_t len, unsigned access, void **handle, uint32_t *lkey)
{
	const struct device *device = &g_devices.devices[number];
	struct ibv_mr *mr = NULL;
	int ret = device_usable(device) ? pin(device, addr, len, access, &mr) : 0;

	*handle = mr;
	*lkey = mr ? mr->lkey : 0;
	return ret;
}

/* Only receives write there, and their completions order the bytes: the card may reorder its writes. */
static int
register_range(unsigned number, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	int ret = pin_if_usable(number, addr, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, handle, lkey);

	if (ret)
		log_refused(number, len, ret);
	return ret;
}

/* Without a right to write: the application may have mapped it for reading alone. */
static int
register_user(unsigned number, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	int ret = pin_if_usable(number, addr, len, 0, handle, lkey);

	if (ret)
		log_user_refused(number, addr, len, ret);
	return ret;
}

static void
unregister_range(unsigned number, void *handle)
{
	struct ibv_mr *mr = handle;

	if (!mr)
		return;
	memlock_sub(mr->length);
	device_undone(&g_devices.devices[number], "deregistering memory", ibv_dereg_mr(mr));
}

static const struct mem_device_ops g_mem_ops = {register_range, unregister_range, register_user};

/* ---- one device ---- */

static void
log_unused(const char *name, const char *why)
{
	log_warning("RDMA device %s is not used: %s", name, why);
}

/* A negative errno that step has ended with. */
static int
refuse(const char *name, const char *step, int error)
{
	log_warning("RDMA device %s is not used: %s: %s", name, step, strerror(-error));
	return error;
}

static uint32_t
send_sge_limit(const struct ibv_device_attr *attr)
{
	uint32_t limit = (uint32_t)attr->max_sge, flag = (uint32_t)option_int(&g_rdma_max_sge);

	return flag && flag < limit ? flag : limit;
}

static int
query(struct device *device)
{
	int error = ibv_query_device(device->context, &device->attr);

	if (error)
		return refuse(device->name, "querying it", -error);
	device->max_sge = send_sge_limit(&device->attr);
	return 0;
}

static int
alloc_pd(struct device *device)
{
	device->pd = ibv_alloc_pd(device->context);
	return device->pd ? 0 : refuse(device->name, "allocating a protection domain", verbs_error());
}

static void
dealloc_pd(struct device *device)
{
	device_undone(device, "freeing its protection domain", ibv_dealloc_pd(device->pd));
}

static int
register_pool(struct device *device)
{
	return mem_device_add(device->number, &g_mem_ops);
}

static void
unregister_pool(struct device *device)
{
	mem_device_del(device->number);
}

static int
watch(struct device *device)
{
	int ret = async_watch(device);

	return ret ? refuse(device->name, "watching its events", ret) : 0;
}

static void
close_context(struct device *device)
{
	device_undone(device, "closing it", ibv_close_device(device->context) ? errno : 0);
}

/* What a device in use has, in order; each init that fails has logged why. */
static const struct {
	int (*init)(struct device *device);
	void (*fini)(struct device *device);
} g_steps[] = {
	{query, NULL},
	{alloc_pd, dealloc_pd},
	{register_pool, unregister_pool},
	{watch, async_unwatch},
};

#define STEPS (sizeof g_steps / sizeof g_steps[0])

static void
tear_down(struct device *device, size_t steps)
{
	while (steps-- > 0)
		if (g_steps[steps].fini)
			g_steps[steps].fini(device);
	close_context(device);
}

static bool
set_up(struct device *device)
{
	for (size_t i = 0; i < STEPS; i++) {
		if (g_steps[i].init(device) == 0)
			continue;
		tear_down(device, i);
		return false;
	}
	return true;
}

static void
open_device(struct ibv_device *found)
{
	struct device *device = &g_devices.devices[g_devices.count];
	const char *name = ibv_get_device_name(found);

	/* iWARP and others have no queue pairs that a GID and a number suffice to connect. */
	if (found->transport_type != IBV_TRANSPORT_IB) {
		log_unused(name, "it is neither InfiniBand nor RoCE");
		return;
	}
	*device = (struct device){.number = g_devices.count, .context = ibv_open_device(found)};
	if (!device->context) {
		refuse(name, "opening it", verbs_error());
		return;
	}
	snprintf(device->name, sizeof device->name, "%s", name);
	if (!set_up(device))
		return;
	log_info("RDMA device %s: %u ports, %u pieces in a send", name, device->attr.phys_port_cnt, device->max_sge);
	g_devices.count++;
}

/* ---- all of them ---- */

/* What the port asks for; "" for any. */
static const char *
wanted_by(const struct xr_port *port)
{
	return *port->verbs.device ? port->verbs.device : g_rdma_device;
}

static bool
wanted(const char *name)
{
	for (const struct xr_port *port = port_next(NULL); port; port = port_next(port))
		if (port->rdma != PORT_RDMA_OFF && (!*wanted_by(port) || strcmp(wanted_by(port), name) == 0))
			return true;
	return false;
}

static unsigned
count_wanted(struct ibv_device **list, int count)
{
	unsigned wanted_count = 0;

	for (int i = 0; i < count; i++)
		wanted_count += wanted(ibv_get_device_name(list[i]));
	return wanted_count < MEM_DEVICES ? wanted_count : MEM_DEVICES;
}

static void
check_memlock(unsigned count)
{
	size_t mapped, most;

	mem_demand(&mapped, &most);
	memlock_check(count, mapped, most);
}

static void
open_wanted(struct ibv_device **list, int count)
{
	for (int i = 0; i < count; i++) {
		const char *name = ibv_get_device_name(list[i]);

		if (!wanted(name))
			continue;
		if (g_devices.count < MEM_DEVICES)
			open_device(list[i]);
		else
			log_unused(name, "it is one too many");
	}
}

static bool
listed(struct ibv_device **list, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			return true;
	return false;
}

/* "mlx5_0, mlx5_1" or "none" */
static const char *
names_of(struct ibv_device **list, int count, char *text, size_t size)
{
	size_t used = 0;

	snprintf(text, size, "none");
	for (int i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", ibv_get_device_name(list[i]));
	return text;
}

static int
check_name(struct ibv_device **list, int count, const struct xr_port *port)
{
	const char *name = wanted_by(port);
	char names[256];

	if (port->rdma == PORT_RDMA_OFF || !*name || listed(list, count, name))
		return 0;
	names_of(list, count, names, sizeof names);
	if (*port->verbs.device)
		log_error("--port %s: dev=%s: no such RDMA device; this machine has %s", port->name, name, names);
	else
		log_error("--rdma_device=%s: no such RDMA device; this machine has %s", name, names);
	return -EINVAL;
}

static int
check_names(struct ibv_device **list, int count)
{
	int ret = 0;

	for (const struct xr_port *port = port_next(NULL); port && ret == 0; port = port_next(port))
		ret = check_name(list, count, port);
	return ret;
}

static const char *
obstacle_of(int found)
{
	if (g_devices.count)
		return NULL;
	return found ? "no RDMA device could be used" : "no RDMA device on this machine";
}

static int
open_list(struct ibv_device **list, int count)
{
	int ret = check_names(list, count);

	if (ret)
		return ret;
	check_memlock(count_wanted(list, count));
	open_wanted(list, count);
	g_devices.obstacle = obstacle_of(count);
	return gid_table_refresh();
}

/* ENOSYS: a kernel without RDMA. */
static struct ibv_device **
list_devices(int *count)
{
	struct ibv_device **list = ibv_get_device_list(count);

	if (list)
		return list;
	if (errno != ENOSYS)
		log_warning("RDMA devices can't be listed: %s", strerror(errno));
	*count = 0;
	return NULL;
}

static bool
rdma_is_off(void)
{
	for (const struct xr_port *port = port_next(NULL); port; port = port_next(port))
		if (port->rdma != PORT_RDMA_OFF)
			return false;
	return true;
}

int
devices_init(void)
{
	struct ibv_device **list;
	int count, ret;

	if (rdma_is_off()) {
		g_devices.obstacle = "every port has rdma=off";
		return 0;
	}
	list = list_devices(&count);
	ret = open_list(list, count);
	if (list)
		ibv_free_device_list(list);
	if (ret)
		devices_fini();
	return ret;
}

void
devices_fini(void)
{
	while (g_devices.count)
		tear_down(&g_devices.devices[--g_devices.count], STEPS);
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
