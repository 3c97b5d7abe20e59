/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_BLOCK_H
#define MEM_BLOCK_H

/*
 * A block: the piece of memory that travels. Pool blocks carry this header in their first 32 bytes, so that the
 * payload has the wire's sizes (8160, 65504, 2097120); user memory has a descriptor of its own that begins with it.
 *
 * References: a count of 1 is read with acquire and needs no read-modify-write, since nobody else can be there.
 */

#include "mem/poison.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/list.h>

enum block_type {
	BLOCK_DEFAULT, /* 8 KiB */
	BLOCK_LARGE,   /* 64 KiB */
	BLOCK_HUGE,    /* 2 MiB */
	BLOCK_TYPES,
};

#define BLOCK_HEADER_BYTES 32u

struct pool;

struct xr_block {
	union {
		struct {
			uint32_t refs;
			uint8_t type; /* enum block_type; BLOCK_TYPES for user memory */
			uint8_t node; /* NUMA node whose pool it comes from */
			uint16_t zero;
		};
		uint64_t sole; /* all of that in one look: struct cache has what it is when one reference is left */
	};
	uint16_t region;
	uint16_t reserved[11];
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

/* ---- the lcores' caches ---- */

/*
 * An lcore's free blocks of one type, all of its own node, as a stack of pointers. Refilled and spilled by halves, so
 * that the pool's mutex is taken once for many blocks. Written by the lcore, but for the gate; read by anybody.
 */
struct cache {
	unsigned count;
	unsigned limit; /* the gate: max, or 0 when the pool shuts it */
	uint64_t sole;	/* of a block that belongs here and has one reference left */
	unsigned max;
	unsigned lcore_index; /* UINT_MAX: it can't be woken */
	struct pool *pool;
	long recv_slots;	      /* what block_recv_slots_add() came to */
	struct cds_list_head in_pool; /* under the pool's lock */
	struct xr_block *blocks[];
} __attribute__((aligned(64)));

/* By type. A thread that is no lcore, and user memory, have one that is empty and full at once. */
extern __thread struct cache *t_caches[BLOCK_TYPES + 1] __attribute__((tls_model("initial-exec")));

/* ---- taking ---- */

struct xr_block *block_alloc_uncached(enum block_type type);

/*
 * One block with one reference from the calling thread's node. Any thread: an lcore has a cache, and takes a lock only
 * when that runs empty. When the pool does, this waits for a further region. NULL with errno ENOMEM at the pool's
 * limit, where the reserve for receives (mem/pressure.h) is left alone.
 */
static inline struct xr_block *
block_alloc(enum block_type type)
{
	struct cache *cache = t_caches[type];
	unsigned count = cache->count;
	struct xr_block *block;

	if (__builtin_expect(count == 0, 0))
		return block_alloc_uncached(type);
	block = cache->blocks[--count];
	__atomic_store_n(&cache->count, count, __ATOMIC_RELAXED);
	memory_unpoison(block, block_bytes(type));
	return block;
}

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

/*
 * At the end of an lcore's turn, and once more before it sleeps: brings home what this thread has freed of other pools,
 * and what it caches while others wait for it.
 */
void block_turn_end(void);

/* For the figures: blocks of the node's that have become receive buffers, or (negative) are none any more. */
void block_recv_slots_add(enum block_type type, int n);

/* The calling thread's pool: its lcore's node's, or that of the processor it happens to run on. NULL: there is none. */
struct pool *block_home(enum block_type type);

/* ---- references ---- */

static inline void
block_hold(struct xr_block *block)
{
	__atomic_fetch_add(&block->refs, 1, __ATOMIC_RELAXED);
}

/* One of several references, or the last one of a block that this lcore's cache doesn't take. */
void block_drop_uncached(struct xr_block *block);

/* With the last reference the block goes to the pool, or back to the user. */
static inline void
block_drop(struct xr_block *block)
{
	struct cache *cache = t_caches[block->type];
	unsigned count = cache->count;

	if (__builtin_expect(__atomic_load_n(&block->sole, __ATOMIC_ACQUIRE) != cache->sole ||
				     count >= __atomic_load_n(&cache->limit, __ATOMIC_RELAXED),
			     0)) {
		block_drop_uncached(block);
		return;
	}
	memory_poison(block, block_bytes(block->type));
	cache->blocks[count] = block;
	__atomic_store_n(&cache->count, count + 1, __ATOMIC_RELAXED);
}

#endif
