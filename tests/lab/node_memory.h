/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LAB_NODE_MEMORY_H
#define TESTS_LAB_NODE_MEMORY_H

/*
 * Memory as an operator sees it and deals it out: the huge pages of each NUMA node, in sysfs. Only a guest of the lab
 * is changed.
 */

#include <stdbool.h>

#define NODES_MAX 8

enum huge_size {
	HUGE_2M,
	HUGE_1G,
	HUGE_SIZES,
};

/* Nodes with memory, in ascending order; how many. */
unsigned node_list(int nodes[NODES_MAX]);

/* Huge pages of the node that nobody uses; 0 when the kernel has none of the size. */
long node_free_pages(int node, enum huge_size size);

/* 0: the node has this many 2 MiB pages now, all of them free. -EPERM: it has not, and this machine is not to change.
 */
int node_reserve_pages(int node, long count);

/* Puts back what the node_reserve_pages() of this process have changed. */
void node_restore_pages(void);

/* Whether madvise() gets transparent huge pages. */
bool node_has_transparent(void);

#endif
