/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/device.h"
#include "net/verbs/gid.h"
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>

/* The GIDs of all devices. A handshake looks here, nothing hotter, so a mutex will do. */
static struct {
	pthread_mutex_t lock;
	struct gid_entry *entries;
	size_t count;
} g_table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct table {
	struct gid_entry *entries;
	size_t count;
};

/* ---- one port ---- */

/* Its number counts from 1. One that can't be asked is down. */
static struct ibv_port_attr
ask_port(const struct device *device, unsigned number)
{
	struct ibv_port_attr port;

	if (ibv_query_port(device->context, (uint8_t)number, &port) == 0)
		return port;
	return (struct ibv_port_attr){.state = IBV_PORT_NOP};
}

/* The index is that of the interface's own network namespace: one that is unknown here is certainly elsewhere. */
static bool
netdev_is_here(uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	return ifindex != 0 && if_indextoname(ifindex, name) != NULL;
}

static struct gid_entry
entry_of(const struct device *device, const struct ibv_port_attr *port, const struct ibv_gid_entry *gid)
{
	return (struct gid_entry){
		.device = device->number,
		.ib_port = (uint8_t)gid->port_num,
		.index = (uint16_t)gid->gid_index,
		.type = gid->gid_type,
		.gid = gid->gid,
		.has_netdev = netdev_is_here(gid->ndev_ifindex),
		.active = port->state == IBV_PORT_ACTIVE,
		.infiniband = port->link_layer == IBV_LINK_LAYER_INFINIBAND,
		.lid = port->lid,
		.mtu = port->active_mtu,
	};
}

/* ---- one device ---- */

static int
add_gids(const struct device *device, const struct ibv_port_attr *ports, const struct ibv_gid_entry *gids, size_t count,
	 struct table *table)
{
	struct gid_entry *entries = realloc(table->entries, (table->count + count) * sizeof *entries);

	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	for (size_t i = 0; i < count; i++)
		entries[table->count++] = entry_of(device, &ports[gids[i].port_num - 1], &gids[i]);
	return 0;
}

/* A device that can't tell its GIDs has none. */
static int
read_gids(const struct device *device, const struct ibv_port_attr *ports, size_t room, struct table *table)
{
	struct ibv_gid_entry *gids = calloc(room, sizeof *gids);
	ssize_t count;
	int ret;

	if (!gids)
		return -ENOMEM;
	count = ibv_query_gid_table(device->context, gids, room, 0);
	ret = count > 0 ? add_gids(device, ports, gids, (size_t)count, table) : 0;
	free(gids);
	return ret;
}

static int
read_device(const struct device *device, struct table *table)
{
	struct ibv_port_attr ports[UINT8_MAX];
	unsigned port_count = device->attr.phys_port_cnt;
	size_t room = 0;

	for (unsigned i = 0; i < port_count; i++) {
		ports[i] = ask_port(device, i + 1);
		room += (size_t)ports[i].gid_tbl_len;
	}
	return room ? read_gids(device, ports, room, table) : 0;
}

/* ---- the table ---- */

static void
replace(struct table table)
{
	struct gid_entry *old;

	pthread_mutex_lock(&g_table.lock);
	old = g_table.entries;
	g_table.entries = table.entries;
	g_table.count = table.count;
	pthread_mutex_unlock(&g_table.lock);
	free(old);
}

int
gid_table_refresh(void)
{
	struct table table = {NULL, 0};

	for (unsigned i = 0; i < device_count(); i++) {
		const struct device *device = device_at(i);
		int ret = device_usable(device) ? read_device(device, &table) : 0;

		if (ret) {
			free(table.entries);
			return ret;
		}
	}
	replace(table);
	return 0;
}

void
gid_table_fini(void)
{
	replace((struct table){NULL, 0});
}

int
gid_find(const struct sockaddr *local, const struct gid_wish *wish, struct gid_entry *found, const char **why)
{
	const struct gid_entry *entry;

	pthread_mutex_lock(&g_table.lock);
	entry = gid_choose(g_table.entries, g_table.count, local, wish, why);
	if (entry)
		*found = *entry;
	pthread_mutex_unlock(&g_table.lock);
	if (!entry)
		return -ENODEV;
	/* It may have failed a moment ago. */
	if (!device_usable(device_at(found->device))) {
		*why = "the RDMA device has failed";
		return -ENODEV;
	}
	return 0;
}
