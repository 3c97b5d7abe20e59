/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_HANDLE_H
#define NET_VERBS_HANDLE_H

/*
 * Handles: small numbers for the endpoints of an lcore on a device, which wr_id carries. The upper half is a
 * generation, so that the handle of an endpoint that is gone leads nowhere although its place is in use again.
 */

#include <stdint.h>
#include <urcu/list.h>

struct cq;
struct endpoint;

struct handle_entry {
	struct endpoint *endpoint; /* NULL: free */
	struct cq *cq;		   /* where its completions come */
	struct cds_list_head touched;
	uint16_t generation;
	uint32_t next_free;
};

struct handles {
	struct handle_entry *entries; /* moves when it grows */
	uint32_t room;
	uint32_t first_free;
};

#define HANDLES_MAX 65535u /* so UINT32_MAX is no handle */

void handles_init(struct handles *handles);
void handles_fini(struct handles *handles);

/* -ENOMEM, also at HANDLES_MAX. Pointers to entries are no longer valid; those in a list of touched ones stay in it. */
int handles_add(struct handles *handles, struct endpoint *endpoint, uint32_t *handle);
void handles_remove(struct handles *handles, uint32_t handle);

/* NULL: it is gone. */
static inline struct handle_entry *
handles_find(const struct handles *handles, uint32_t handle)
{
	uint32_t index = handle & 0xffff;
	struct handle_entry *entry;

	if (index >= handles->room)
		return NULL;
	entry = &handles->entries[index];
	return entry->endpoint && entry->generation == handle >> 16 ? entry : NULL;
}

#endif
