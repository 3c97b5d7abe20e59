/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/gid.h"
#include <netinet/in.h>
#include <string.h>

/* ---- the address as a GID ---- */

static bool
gid_of_address(const struct sockaddr *address, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (address->sa_family == AF_INET6) {
		memcpy(gid->raw, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof gid->raw);
		return true;
	}
	if (address->sa_family != AF_INET)
		return false;
	memcpy(gid->raw, mapped, sizeof mapped);
	memcpy(gid->raw + sizeof mapped, &((const struct sockaddr_in *)address)->sin_addr, 4);
	return true;
}

static bool
is_loopback(const union ibv_gid *gid)
{
	static const uint8_t one[16] = {[15] = 1};
	static const uint8_t mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};

	return memcmp(gid->raw, one, sizeof one) == 0 || memcmp(gid->raw, mapped, sizeof mapped) == 0;
}

static bool
is_mapped_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, mapped, sizeof mapped) == 0;
}

static bool
is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* ---- the choice ---- */

static bool
wished(const struct gid_entry *entry, const struct gid_wish *wish)
{
	return (wish->device < 0 || (unsigned)wish->device == entry->device) &&
	       (wish->ib_port == 0 || wish->ib_port == entry->ib_port) &&
	       (wish->gid_index < 0 || wish->gid_index == entry->index);
}

/* What keeps an entry from being chosen, the least first. */
enum obstacle {
	ADDRESS_ONLY, /* nothing but, maybe, that it is another address */
	INDEX_TOO_HIGH,
	FOREIGN_NAMESPACE, /* somebody else's container */
	MTU_TOO_LOW,
	PORT_DOWN,
	NOT_WISHED,
};

static const char *const g_obstacles[] = {
	[ADDRESS_ONLY] = "no RDMA device has the connection's local address",
	[INDEX_TOO_HIGH] = "no RDMA path can name a GID index above 255",
	[FOREIGN_NAMESPACE] = "the RDMA port's network interface is not in this network namespace",
	[MTU_TOO_LOW] = "the RDMA port's MTU is below 1024 bytes",
	[PORT_DOWN] = "the RDMA port is not active",
	[NOT_WISHED] = "no GID fits the device, port and GID index that were asked for",
};

static enum obstacle
obstacle_to(const struct gid_entry *entry, const struct gid_wish *wish)
{
	if (!wished(entry, wish))
		return NOT_WISHED;
	if (!entry->active)
		return PORT_DOWN;
	if (entry->mtu < GID_MTU_MIN)
		return MTU_TOO_LOW;
	if (!entry->infiniband && !entry->has_netdev)
		return FOREIGN_NAMESPACE;
	return entry->index > GID_INDEX_MAX ? INDEX_TOO_HIGH : ADDRESS_ONLY;
}

/* Why an entry is chosen, the best last. */
enum rank {
	RANK_NONE,
	RANK_STANDIN,	 /* not this address, but allowed to stand in for it */
	RANK_INFINIBAND, /* reaches its peer by LID */
	RANK_ADDRESS,	 /* is this address */
};

static enum rank
rank_of(const struct gid_entry *entry, const union ibv_gid *local, const struct gid_wish *wish)
{
	if (memcmp(entry->gid.raw, local->raw, sizeof local->raw) == 0)
		return RANK_ADDRESS;
	if (entry->infiniband)
		return RANK_INFINIBAND;
	if (wish->device >= 0 || wish->gid_index >= 0 || is_loopback(local))
		return RANK_STANDIN;
	return RANK_NONE;
}

/* Among entries of one rank: RoCE v2 before v1, IPv4 before global IPv6 before link-local; a link-local one may not
 * work. */
static unsigned
taste(const struct gid_entry *entry)
{
	unsigned family = is_mapped_ipv4(&entry->gid) ? 2 : is_link_local(&entry->gid) ? 0 : 1;

	return (entry->type == IBV_GID_TYPE_ROCE_V2 ? 4 : 0) + family;
}

static bool
better(const struct gid_entry *entry, enum rank rank, const struct gid_entry *best, enum rank best_rank)
{
	if (!best || rank != best_rank)
		return rank > best_rank;
	return taste(entry) > taste(best);
}

/* Among the entries with this GID; NULL: any. */
static enum obstacle
least_obstacle(const struct gid_entry *entries, size_t count, const union ibv_gid *gid, const struct gid_wish *wish)
{
	enum obstacle least = NOT_WISHED;

	for (size_t i = 0; i < count; i++) {
		enum obstacle obstacle = obstacle_to(&entries[i], wish);

		if (obstacle < least && (!gid || memcmp(gid->raw, entries[i].gid.raw, sizeof gid->raw) == 0))
			least = obstacle;
	}
	return least;
}

/* The entry that has the address says why it wasn't chosen, or the one that was nearest to being chosen. */
static const char *
why_none(const struct gid_entry *entries, size_t count, const union ibv_gid *local, const struct gid_wish *wish)
{
	enum obstacle obstacle = least_obstacle(entries, count, local, wish);

	if (count == 0)
		return "no RDMA device that works has a GID";
	return g_obstacles[obstacle == NOT_WISHED ? least_obstacle(entries, count, NULL, wish) : obstacle];
}

const struct gid_entry *
gid_choose(const struct gid_entry *entries, size_t count, const struct sockaddr *local, const struct gid_wish *wish,
	   const char **why)
{
	const struct gid_entry *best = NULL;
	enum rank best_rank = RANK_NONE;
	union ibv_gid address;

	if (!gid_of_address(local, &address)) {
		*why = "the connection's local address is neither IPv4 nor IPv6";
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		const struct gid_entry *entry = &entries[i];
		enum rank rank;

		if (obstacle_to(entry, wish) != ADDRESS_ONLY)
			continue;
		rank = rank_of(entry, &address, wish);
		if (better(entry, rank, best, best_rank)) {
			best = entry;
			best_rank = rank;
		}
	}
	if (!best)
		*why = why_none(entries, count, &address, wish);
	return best;
}
