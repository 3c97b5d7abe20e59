/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_RANGE_INDEX_H
#define MEM_RANGE_INDEX_H

/*
 * Address ranges that may overlap, each with a key, sorted by address: which of them hold a given piece of memory? The
 * caller locks. Finding takes a binary search and a look at each range that reaches as far as the piece does.
 */

#include <stddef.h>
#include <xrdma/iobuf.h>

struct range_entry;

struct range_index {
	struct range_entry *entries;
	size_t count, room;
};

/* Room for one range more. -ENOMEM. */
int range_index_reserve(struct range_index *index);

/* Into that room. len is not 0, and the range does not wrap around. */
void range_index_insert(struct range_index *index, const void *addr, size_t len, xr_mem_key key);

/* The range was inserted with this address and key. */
void range_index_remove(struct range_index *index, const void *addr, xr_mem_key key);

/* The largest key whose range holds all of the piece; XR_MEM_KEY_NONE. */
xr_mem_key range_index_find(const struct range_index *index, const void *addr, size_t len);

void range_index_fini(struct range_index *index);

#endif
