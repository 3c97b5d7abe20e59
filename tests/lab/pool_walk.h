/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LAB_POOL_WALK_H
#define TESTS_LAB_POOL_WALK_H

/*
 * The library in a process of its own, on one lcore of each NUMA node (on two of a machine's only node). The walk goes
 * from lcore to lcore: each takes blocks of every type, one by one and in batches, until the pool has grown; looks
 * where each of their pages lies; and leaves them to the next lcore, which frees them and takes as many of its own.
 * That many times over that the pool would run dry unless they went home.
 */

#include "mem/block.h"
#include "mem/hugepage.h"
#include "tests/lab/node_memory.h"

#define WALK_REGION_MIB	 32 /* what --rdma_memory_pool_initial_size_mb and increase_size_mb are set to */
#define WALK_MAX_REGIONS 2  /* of one node and type */

/* Huge pages that one node's pools may need. */
#define WALK_NODE_PAGES (BLOCK_TYPES * WALK_MAX_REGIONS * WALK_REGION_MIB / 2)

/* What a pool's memory must be. */
struct walk_pages {
	enum page_kind kind;
	int node;
};

struct walk {
	const char *const *options; /* more of them than the walk's own; NULL at the end */
	int main_node;		    /* where the main lcore is */
	int barred_node;	    /* its lcore must get no block at all; NODE_ANY: no such node */
	bool first_region_is_1g;    /* of default blocks: one region of that size, and the walk is a shorter one */
	struct walk_pages expected[NODES_MAX][BLOCK_TYPES];
	unsigned step_lines;   /* that tell of a step down in the pages or the node */
	const char *complaint; /* begins each warning and error in the log; NULL: there is none */
};

/* The nodes that have an lcore in a walk, and their number. At least one. */
unsigned walk_nodes(int nodes[NODES_MAX]);

/* Fails the running test when anything is not as it must be; what that is goes to standard output. */
void walk_run(const struct walk *walk);

#endif
