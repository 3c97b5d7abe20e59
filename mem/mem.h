/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_MEM_H
#define MEM_MEM_H

/* The memory floor as `net/env` drives it. */

#include "mem/block.h"
#include <stddef.h>
#include <stdint.h>
#include <xrdma/option.h>

struct lcore;
extern const struct xr_option g_mem_options[];

int mem_counters_add(void);

/*
 * Reserves the address range and maps the first region of the receive block type on the main lcore's node. After the
 * options are parsed and the lcores known. -EINVAL after one log line: the flags ask for what can't be had; -ENOMEM,
 * -EAGAIN: what the system lacked.
 */
int mem_init(void);

/* Unmaps everything. All workers have been joined and no iobuf is left; blocks still out are reported in a log line. */
void mem_fini(void);

/* On each worker's own thread: sets up its caches, and gives everything in them back. */
int mem_lcore_init(const struct lcore *lcore);
void mem_lcore_fini(void);

/* What --rdma_recv_block_type says. */
enum block_type mem_recv_block_type(void);

/*
 * Bytes that a device pins: those of the regions that there are, and the most of them that there will be on the lcores'
 * nodes when the blocks to receive into and those to send from have all the regions that they may.
 */
void mem_demand(size_t *mapped, size_t *most);

/* Devices are small numbers to this floor; `net` says how to register a region with one. */
#define MEM_DEVICES 16

struct mem_device_ops {
	/* 0 with *handle and *lkey set, or a negative errno after one log line. May block; any thread. */
	int (*register_range)(unsigned device, void *addr, size_t len, void **handle, uint32_t *lkey);
	void (*unregister_range)(unsigned device, void *handle);
	/* As register_range, but for memory of the application's that is only read. */
	int (*register_user)(unsigned device, void *addr, size_t len, void **handle, uint32_t *lkey);
};

/*
 * Registers every region there is, and from now on every new one, with a device; ranges of user memory likewise, but
 * the device may refuse some. -EINVAL, -EEXIST, the op's errors.
 */
int mem_device_add(unsigned device, const struct mem_device_ops *ops);
void mem_device_del(unsigned device);

/*
 * The key of an address inside a region for a device; by arithmetic, or in a table when the memory is the application's
 * own. -ERANGE: not the pool's. -ENODEV.
 */
int mem_lkey(unsigned device, const void *addr, uint32_t *lkey);

/* The same of a block of the pool's (block->type < BLOCK_TYPES), which knows its region. -ENODEV. */
int mem_block_lkey(unsigned device, const struct xr_block *block, uint32_t *lkey);

#endif
