/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/device.h"
#include "net/verbs/gid.h"
#include <errno.h>
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

static struct gid_entry *
make_room(struct table *table, size_t more)
{
	struct gid_entry *entries = realloc(table->entries, (table->count + more) * sizeof *entries);

	if (entries)
		table->entries = entries;
	return entries;
}

static struct gid_entry
entry_of(const struct device *device, const struct ibv_gid_entry *gid)
{
	struct ibv_port_attr port = {.state = IBV_PORT_NOP};
	bool known = ibv_query_port(device->context, (uint8_t)gid->port_num, &port) == 0;

	return (struct gid_entry){
		.device = device->number,
		.ib_port = (uint8_t)gid->port_num,
		.index = (uint16_t)gid->gid_index,
		.type = gid->gid_type,
		.gid = gid->gid,
		.has_netdev = gid->ndev_ifindex != 0,
		.active = known && port.state == IBV_PORT_ACTIVE,
		.infiniband = known && port.link_layer == IBV_LINK_LAYER_INFINIBAND,
		.lid = port.lid,
		.mtu = port.active_mtu,
	};
}

static size_t
gids_of(const struct device *device)
{
	size_t count = 0;

	for (unsigned ib_port = 1; ib_port <= device->attr.phys_port_cnt; ib_port++) {
		struct ibv_port_attr port;

		if (ibv_query_port(device->context, (uint8_t)ib_port, &port) == 0)
			count += (size_t)port.gid_tbl_len;
	}
	return count;
}

/* A device that can't tell its GIDs has none. */
static int
read_device(const struct device *device, struct table *table)
{
	size_t room = gids_of(device);
	struct ibv_gid_entry *gids = calloc(room ? room : 1, sizeof *gids);
	ssize_t count;

	if (!gids)
		return -ENOMEM;
	count = ibv_query_gid_table(device->context, gids, room, 0);
	if (count > 0 && !make_room(table, (size_t)count)) {
		free(gids);
		return -ENOMEM;
	}
	for (ssize_t i = 0; i < count; i++)
		table->entries[table->count++] = entry_of(device, &gids[i]);
	free(gids);
	return 0;
}

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
	return entry ? 0 : -ENODEV;
}
