/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/handle.h"
#include <errno.h>
#include <stdbool.h>
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

/* One after the other: each takes its place in its list, whether its neighbours there have moved already or not. */
static void
move_entries(struct handle_entry *to, struct handle_entry *from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool touched = !cds_list_empty(&from[i].touched);

		to[i] = from[i];
		CDS_INIT_LIST_HEAD(&to[i].touched);
		if (touched)
			cds_list_replace(&from[i].touched, &to[i].touched);
	}
}

static void
make_free(struct handles *handles, uint32_t index)
{
	handles->entries[index] = (struct handle_entry){.next_free = handles->first_free};
	CDS_INIT_LIST_HEAD(&handles->entries[index].touched);
	handles->first_free = index;
}

static int
grow(struct handles *handles)
{
	uint32_t old_room = handles->room, room = old_room ? old_room * 2 : ROOM_AT_FIRST;
	struct handle_entry *entries;

	if (old_room == HANDLES_MAX)
		return -ENOMEM;
	if (room > HANDLES_MAX)
		room = HANDLES_MAX;
	entries = malloc(room * sizeof *entries);
	if (!entries)
		return -ENOMEM;
	move_entries(entries, handles->entries, old_room);
	free(handles->entries);
	handles->entries = entries;
	handles->room = room;
	for (uint32_t i = room; i-- > old_room;)
		make_free(handles, i);
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
