/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_BLOCK_CACHE_H
#define MEM_BLOCK_CACHE_H

/* The free blocks that each lcore keeps in front of the pools of its node. */

#include "mem/block.h"

/* On the lcore's own thread; at most max blocks of each type, 0: none of that type. -ENOMEM. */
int block_cache_init(unsigned node, const unsigned max[BLOCK_TYPES]);

/* Gives everything back to the pools. */
void block_cache_fini(void);

/* Blocks of a type in the calling lcore's cache; 0 on other threads. */
unsigned block_cache_count(enum block_type type);

#endif
