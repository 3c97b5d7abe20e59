/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_REGION_H
#define MEM_REGION_H

/*
 * Regions: hugepage-backed slabs of one block type on one node. One address range is reserved for the process and cut
 * into slots of a power of two, so that an address leads to its region by a subtraction and a shift. A region stays
 * until the end.
 *
 * A region may also be memory that the application has mapped, anywhere: blocks tell the number of their region, and
 * an address is looked up in a table.
 */

#include "mem/block.h"
#include "mem/hugepage.h"
#include "mem/mem.h"

struct region {
	char *addr;
	size_t bytes; /* written last: 0 until the region is there */
	bool taken;   /* the slot is a region's, or will be */
	bool user;    /* the application's own memory */
	unsigned index;
	int node; /* of the pool that it serves */
	enum block_type type;
	struct hugepage_got pages;
	/* Registrations, a bit and an entry per device; see device.c. */
	uint32_t devices;
	uint32_t lkeys[MEM_DEVICES];
	void *handles[MEM_DEVICES];
};

struct region_config {
	size_t slot_bytes;   /* of the largest region there will be */
	size_t max_bytes;    /* over all regions, 0: no cap */
	unsigned slots;	     /* for regions of the library's own */
	unsigned user_slots; /* and of the application's; together at most REGION_SLOTS_MAX */
	bool try_1g;
	bool require_hugepages;
	bool strict_numa;
};

#define REGION_SLOTS_MAX 65536u /* struct xr_block numbers them with 16 bits */

/* Reserves the range. -ENOMEM: not to be had. */
int region_init(const struct region_config *config);

/* Unmaps everything but the application's own. */
void region_fini(void);

struct region_want {
	enum block_type type;
	int node;
	size_t bytes;
	bool ahead; /* of need: leaves the machine as much again, or doesn't try; the caller logs a failure */
	bool quiet; /* a failure has been logged already */
};

/*
 * Maps, binds, populates and registers a region; the pages may be another node's, and with 1 GiB pages it is as long
 * as they are. Any thread; blocks as long as that takes. -ENOSPC: no slot is left; -EDQUOT: max_bytes; -ENOMEM or a
 * registration's error after one log line.
 */
int region_create(const struct region_want *want, struct region **region);

/*
 * Registers memory that the application has mapped. -EEXIST: it overlaps a region or the reserved range; -ENOSPC,
 * -ENOMEM, a registration's error after one log line.
 */
int region_add(enum block_type type, int node, void *addr, size_t bytes, struct region **region);

/* The most bytes that a region of so many may come to have. */
size_t region_bytes_at_most(size_t bytes);

/* Bytes that may still be mapped under max_bytes; a relaxed read. */
size_t region_budget(void);

/* The region that an address lies in; NULL. Any thread. */
struct region *region_find(const void *addr);

/* By number; NULL when there is none. */
struct region *region_at(unsigned index);

/* Slots that may hold a region: what to iterate over. */
unsigned region_slots(void);

/* What region_create() and a device that comes or goes hold: a region sees every device once. */
void region_lock(void);
void region_unlock(void);

#endif
