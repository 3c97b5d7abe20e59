/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/handle.h"
#include <errno.h>
#include <stdlib.h>

#define ROOM_AT_FIRST 64u
#define NONE	      UINT32_MAX

void
handles_init(struct handles *handles)
{
	*handles = (struct handles){.first_free = NONE};
}

void
handles_fini(struct handles *handles)
{
	free(handles->entries);
	handles_init(handles);
}

static int
grow(struct handles *handles)
{
	uint32_t room = handles->room ? handles->room * 2 : ROOM_AT_FIRST;
	struct handle_entry *entries;

	if (room > HANDLES_MAX)
		return -ENOMEM;
	entries = realloc(handles->entries, room * sizeof *entries);
	if (!entries)
		return -ENOMEM;
	handles->entries = entries;
	for (uint32_t i = 0; i < handles->room; i++)
		CDS_INIT_LIST_HEAD(&entries[i].touched);
	for (uint32_t i = room; i-- > handles->room;) {
		entries[i] = (struct handle_entry){.next_free = handles->first_free};
		CDS_INIT_LIST_HEAD(&entries[i].touched);
		handles->first_free = i;
	}
	handles->room = room;
	return 0;
}

int
handles_add(struct handles *handles, struct endpoint *endpoint, uint32_t *handle)
{
	struct handle_entry *entry;

	if (handles->first_free == NONE && grow(handles))
		return -ENOMEM;
	*handle = handles->first_free;
	entry = &handles->entries[*handle];
	handles->first_free = entry->next_free;
	entry->endpoint = endpoint;
	*handle |= (uint32_t)entry->generation << 16;
	return 0;
}

void
handles_remove(struct handles *handles, uint32_t handle)
{
	uint32_t index = handle & 0xffff;
	struct handle_entry *entry = &handles->entries[index];

	cds_list_del_init(&entry->touched);
	entry->endpoint = NULL;
	entry->generation++;
	entry->next_free = handles->first_free;
	handles->first_free = index;
}
