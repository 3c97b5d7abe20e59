/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_REGION_TABLE_H
#define MEM_REGION_TABLE_H

/*
 * Which of the application's regions an address lies in: a sorted table that is replaced as a whole, so that looking up
 * takes no lock. It has a few rows, and changes as often as the application adds memory.
 */

#include <stddef.h>

/* Any thread. -ENOMEM. */
int region_table_add(const char *addr, size_t bytes, unsigned region);

/* Takes back what nobody has found yet. */
void region_table_del(unsigned region);

/* The region's number, or -1. Any thread, no lock. */
int region_table_find(const void *addr);

void region_table_clear(void);

#endif
