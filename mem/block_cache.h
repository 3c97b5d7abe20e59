/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_BLOCK_CACHE_H
#define MEM_BLOCK_CACHE_H

/* The free blocks that each lcore keeps in front of the pools of its node. */

#include "mem/block.h"
#include <urcu/list.h>

struct pool;

/*
 * Free blocks of one type, all of the lcore's own node, as a stack of pointers. Refilled and spilled by halves, so that
 * the pool's mutex is taken once for many blocks. Written by the lcore, but for the gate; read by anybody.
 */
struct cache {
	unsigned count;
	unsigned limit; /* the gate: max, or 0 when the pool shuts it */
	unsigned node;
	unsigned max;
	struct pool *pool;
	long recv_slots;	      /* what block_recv_slots_add() came to */
	unsigned lcore_index;	      /* UINT_MAX: it can't be woken */
	struct cds_list_head in_pool; /* under the pool's lock */
	struct xr_block *blocks[];
} __attribute__((aligned(64)));

/* On the lcore's own thread; at most max blocks of each type, 0: none of that type. -ENOMEM. */
int block_cache_init(unsigned node, const unsigned max[BLOCK_TYPES]);

/* Gives everything back to the pools. */
void block_cache_fini(void);

/* Blocks of a type in the calling lcore's cache; 0 on other threads. */
unsigned block_cache_count(enum block_type type);

#endif
