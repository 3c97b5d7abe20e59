/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/range_index.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16u

struct range_entry {
	uintptr_t first, last; /* both inside: a range may end where the address space does */
	uintptr_t reach;       /* the greatest last up to this entry: what tells a search where to stop */
	xr_mem_key key;
};

int
range_index_reserve(struct range_index *index)
{
	size_t room = index->room ? index->room * 2 : FIRST_ROOM;
	struct range_entry *entries;

	if (index->count < index->room)
		return 0;
	entries = reallocarray(index->entries, room, sizeof *entries);
	if (!entries)
		return -ENOMEM;
	index->entries = entries;
	index->room = room;
	return 0;
}

/* How many ranges begin at or below the address. */
static size_t
count_up_to(const struct range_index *index, uintptr_t addr)
{
	size_t low = 0, high = index->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries[middle].first <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uintptr_t
reach_at(const struct range_index *index, size_t at)
{
	uintptr_t before = at ? index->entries[at - 1].reach : 0, last = index->entries[at].last;

	return last > before ? last : before;
}

/* From an entry on; what lies behind one whose reach is right already is right too. */
static void
update_reach(struct range_index *index, size_t at)
{
	for (; at < index->count && index->entries[at].reach != reach_at(index, at); at++)
		index->entries[at].reach = reach_at(index, at);
}

void
range_index_insert(struct range_index *index, const void *addr, size_t len, xr_mem_key key)
{
	uintptr_t first = (uintptr_t)addr;
	size_t at = count_up_to(index, first);
	struct range_entry *entry = &index->entries[at];

	memmove(entry + 1, entry, (index->count - at) * sizeof *entry);
	*entry = (struct range_entry){.first = first, .last = first + (len - 1), .key = key};
	index->count++;
	entry->reach = reach_at(index, at);
	update_reach(index, at + 1);
}

void
range_index_remove(struct range_index *index, const void *addr, xr_mem_key key)
{
	size_t at = count_up_to(index, (uintptr_t)addr) - 1;
	struct range_entry *entry;

	while (index->entries[at].key != key)
		at--;
	entry = &index->entries[at];
	index->count--;
	memmove(entry, entry + 1, (index->count - at) * sizeof *entry);
	update_reach(index, at);
}

xr_mem_key
range_index_find(const struct range_index *index, const void *addr, size_t len)
{
	uintptr_t first = (uintptr_t)addr, last = first + (len - 1);
	xr_mem_key found = XR_MEM_KEY_NONE;

	if (last < first)
		return XR_MEM_KEY_NONE;
	for (size_t at = count_up_to(index, first); at > 0 && index->entries[at - 1].reach >= last; at--) {
		const struct range_entry *entry = &index->entries[at - 1];

		if (entry->last >= last && entry->key > found)
			found = entry->key;
	}
	return found;
}

void
range_index_fini(struct range_index *index)
{
	free(index->entries);
	*index = (struct range_index){.entries = NULL};
}
