/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_GID_H
#define NET_VERBS_GID_H

/*
 * Which device, port and GID a connection uses: one search over the GID tables of all devices for the local address of
 * the handshake's socket. The choice is a pure function over a table of entries, so that every machine can be tested.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct gid_entry {
	unsigned device; /* its number */
	uint8_t ib_port;
	uint16_t index;
	uint32_t type; /* enum ibv_gid_type_sysfs / ibv_gid_type: IB, RoCE v1, RoCE v2 */
	union ibv_gid gid;
	bool has_netdev; /* its network interface may be in this network namespace */
	bool active;	 /* the port is */
	bool infiniband; /* link layer */
	uint16_t lid;
	enum ibv_mtu mtu; /* active */
};

#define GID_INDEX_MAX UINT8_MAX	   /* a path names no higher one */
#define GID_MTU_MIN   IBV_MTU_1024 /* what brpc's paths have */

/* What flags and the port's own values ask for. */
struct gid_wish {
	int device;    /* number; -1: any */
	int ib_port;   /* 0: any */
	int gid_index; /* -1: by address */
};

/*
 * The best entry, NULL with *why (static text) when there is none: an entry whose GID is the address (IPv4 mapped),
 * RoCE v2 before v1, entries without a network interface here skipped; else an InfiniBand port, or the device that was
 * asked for by name; a RoCE port that does not match only for a loopback address. Never a port that is not active or
 * has an MTU below GID_MTU_MIN, nor an index above GID_INDEX_MAX.
 */
const struct gid_entry *gid_choose(const struct gid_entry *entries, size_t count, const struct sockaddr *local,
				   const struct gid_wish *wish, const char **why);

/*
 * The table of all usable devices, read anew: at start and after a GID, LID or port event. Main lcore; asks the kernel.
 * -ENOMEM: the old one stays.
 */
int gid_table_refresh(void);
void gid_table_fini(void);

/* gid_choose() over the table, copied out. Any lcore. 0, or -ENODEV with *why. */
int gid_find(const struct sockaddr *local, const struct gid_wish *wish, struct gid_entry *found, const char **why);

#endif
