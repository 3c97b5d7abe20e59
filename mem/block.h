/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_BLOCK_H
#define MEM_BLOCK_H

/*
 * A block: the piece of memory that travels. Pool blocks carry this header in their first 32 bytes, so that the
 * payload has the wire's sizes (8160, 65504, 2097120); user memory has a descriptor of its own that begins with it.
 *
 * References: a count of 1 is read with acquire and needs no read-modify-write, since nobody else can be there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum block_type {
	BLOCK_DEFAULT, /* 8 KiB */
	BLOCK_LARGE,   /* 64 KiB */
	BLOCK_HUGE,    /* 2 MiB */
	BLOCK_TYPES,
};

#define BLOCK_HEADER_BYTES 32u

struct xr_block {
	uint32_t refs;
	uint8_t type; /* enum block_type; BLOCK_TYPES for user memory */
	uint8_t node; /* NUMA node whose pool it comes from */
	uint16_t region;
	uint64_t reserved[3];
};

_Static_assert(sizeof(struct xr_block) == BLOCK_HEADER_BYTES, "the header is part of the wire's block sizes");

static inline size_t
block_bytes(enum block_type type)
{
	return (size_t)8192 << (type == BLOCK_DEFAULT ? 0 : type == BLOCK_LARGE ? 3 : 8);
}

static inline size_t
block_payload_bytes(enum block_type type)
{
	return block_bytes(type) - BLOCK_HEADER_BYTES;
}

/* As --rdma_recv_block_type calls it. */
const char *block_type_name(enum block_type type);

/* Pool blocks only. */
static inline char *
block_payload(struct xr_block *block)
{
	return (char *)block + BLOCK_HEADER_BYTES;
}

/*
 * One block with one reference from the calling thread's node. Any thread: an lcore has a cache, and takes a lock only
 * when that runs empty. When the pool does, this waits for a further region. NULL with errno ENOMEM at the pool's
 * limit, where the reserve for receives (mem/pressure.h) is left alone.
 */
struct xr_block *block_alloc(enum block_type type);

/* The same for n blocks, or fewer; how many. */
unsigned block_alloc_several(enum block_type type, struct xr_block **blocks, unsigned n);

/*
 * For receives: one block, or n or fewer and how many. They take the reserve as well, and do not wait for a region
 * unless it is the pool's first. Short of what was asked for, errno tells: EAGAIN a region is on its way, ENOMEM the
 * pool is at its limit. block_await() waits for that region; pressure_wait() tells when there are blocks again.
 */
struct xr_block *block_alloc_recv(enum block_type type);
unsigned block_alloc_bulk(enum block_type type, struct xr_block **blocks, unsigned n);
void block_await(enum block_type type);

/* The last reference is gone: to the pool, or to the user. Through block_drop(). */
void block_free(struct xr_block *block);

/*
 * At the end of an lcore's turn, and once more before it sleeps: brings home what this thread has freed of other pools,
 * and what it caches while others wait for it.
 */
void block_turn_end(void);

/* For the figures: blocks of the node's that have become receive buffers, or (negative) are none any more. */
void block_recv_slots_add(enum block_type type, int n);

struct pool;

/* The calling thread's pool: its lcore's node's, or that of the processor it happens to run on. NULL: there is none. */
struct pool *block_home(enum block_type type);

static inline void
block_hold(struct xr_block *block)
{
	__atomic_fetch_add(&block->refs, 1, __ATOMIC_RELAXED);
}

static inline void
block_drop(struct xr_block *block)
{
	if (__atomic_load_n(&block->refs, __ATOMIC_ACQUIRE) == 1 ||
	    __atomic_sub_fetch(&block->refs, 1, __ATOMIC_ACQ_REL) == 0)
		block_free(block);
}

#endif
