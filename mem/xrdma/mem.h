/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_MEM_H
#define XRDMA_MEM_H

#include <xrdma/iobuf.h>

XR_BEGIN_DECLS

/**
 * Registered memory: the pool's own, memory that the application gives to the pool, and memory of the application's
 * that it sends from without copying. Every call here may be made on any thread between xr_init() and xr_fini(), before
 * there is a device and without one.
 */

/** The sizes of block that a pool may be cut into; the payload is 32 bytes less. */
enum xr_block_type {
	XR_BLOCK_DEFAULT, /**< 8 KiB */
	XR_BLOCK_LARGE,	  /**< 64 KiB */
	XR_BLOCK_HUGE,	  /**< 2 MiB */
	XR_BLOCK_TYPES,
};

/** As `--rdma_recv_block_type` calls it. NULL: no such type. */
XR_API const char *xr_block_type_name(enum xr_block_type type);

/* ---- memory for the pool ---- */

/**
 * Adds memory that the application has mapped to a node's pool: a region that was not the library's to map. It counts
 * towards rdma_memory_pool_max_regions and not towards pool_max_mb, is registered with every device in use before any
 * block of it is handed out, and must stay mapped, and is the library's to write to, until xr_fini() has returned. With
 * --rdma_memory_pool_user_specified_memory the pools have no other memory than this. Blocks as long as registering
 * takes: not for an lcore that serves.
 *
 * addr is aligned to 4096 bytes, len a multiple of the type's block size, numa_node one of this machine's.
 * Errors: -EINVAL (also before xr_init()), -EEXIST it overlaps memory that is the pool's already, -ENOSPC the pool has
 * rdma_memory_pool_max_regions regions, -ENOMEM, and what registering gave. After an error nothing has been taken.
 */
XR_API int xr_mem_pool_add(void *addr, size_t len, enum xr_block_type type, unsigned numa_node);

/* ---- memory to send from ---- */

/**
 * Registers memory of the application's with every device in use, and with each that comes into use later, so that
 * xr_iobuf_append_user() can send from it over RDMA. The devices only read it: it may be mapped for reading alone. It
 * stays the application's, and must stay mapped until xr_mem_deregister() has returned 0, or xr_fini() has. Ranges may
 * overlap. Blocks as long as registering takes: not for an lcore that serves.
 *
 * A device that comes later and refuses the range is used nevertheless, but what is sent from the range over it is
 * refused with -XR_ERDMAMEM; a log line says so.
 *
 * Errors (nothing is registered): -EINVAL (NULL, len 0, beyond the end of the address space, before xr_init()),
 * -ENOMEM, -ENOSPC there are 65536 ranges, and what registering gave.
 */
XR_API int xr_mem_register(void *addr, size_t len, xr_mem_key *key);

/**
 * Ends a registration; also in the free_fn of the last iobuf that referred to the range. The key must not be used by
 * another thread at the same time, and is recognised as stale from here on. Blocks as long as deregistering takes.
 * Errors: -EBUSY an iobuf or a send in flight refers to the range still (nothing has changed), -EINVAL no such key.
 */
XR_API int xr_mem_deregister(xr_mem_key key);

/**
 * The key of a registered range that holds all of [addr, addr + len); the newest of several.
 * Looks through a sorted table under a lock: not for each message.
 * Errors: -ENOENT there is none, -EINVAL len 0 or key NULL.
 */
XR_API int xr_mem_find(const void *addr, size_t len, xr_mem_key *key);

/* ---- figures ---- */

/** One pool: all blocks of one type on one NUMA node. Blocks are counted, if nothing else is said. */
struct xr_mem_info {
	unsigned numa_node;
	enum xr_block_type type;
	unsigned regions;
	unsigned regions_1g, regions_2m, regions_transparent, regions_ordinary; /**< by the pages that they got */
	unsigned regions_user;	 /**< of them, given by xr_mem_pool_add() */
	unsigned regions_remote; /**< of them, whose pages lie on another node, or anywhere */
	size_t region_bytes;
	size_t blocks;	       /**< in all */
	size_t free;	       /**< to be had by any thread; without those in caches */
	size_t cached;	       /**< free ones in the lcores' caches, or on their way home */
	size_t recv_slots;     /**< posted as receive buffers */
	size_t in_use;	       /**< in the connections' queues and in the application's hands */
	size_t in_use_peak;    /**< the most that was ever not free, receive slots and caches included */
	uint64_t remote_frees; /**< freed off the node's own lcores, and sent home */
	uint64_t grown;	       /**< regions that were mapped after the first */
	uint64_t grown_us;     /**< the time that took, in all */
	uint64_t limit_hits;   /**< times it was asked for blocks, had none and could not grow */
};

/**
 * The figures of the index-th pool that has, or had, a region; they are gathered while others go on, so that sums may
 * be a few blocks off.
 * Errors: -ENOENT there is no such pool: the end of the list.
 */
XR_API int xr_mem_info(unsigned index, struct xr_mem_info *info);

/**
 * How many of the index-th pool's blocks an lcore, named as by xr_lcore_id(), has in its cache.
 * Errors: -ENOENT there is no such pool, or no such lcore that works on the pool's node.
 */
XR_API ssize_t xr_mem_cached(unsigned index, unsigned lcore_id);

XR_END_DECLS

#endif
