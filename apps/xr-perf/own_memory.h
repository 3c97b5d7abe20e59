/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_OWN_MEMORY_H
#define XR_PERF_OWN_MEMORY_H

/* Memory that is not the library's: mapped, registered when so wanted, and lent to iobufs from its middle. */

#include <xrdma/iobuf.h>

struct own_memory {
	char *map; /* NULL: none */
	size_t map_bytes;
	char *bytes; /* in the middle of the map, at an odd address */
	xr_mem_key key;
	unsigned lent, returned; /* pieces; the latter on any thread */
};

/* Room for len bytes. Errors: mmap()'s, xr_mem_register()'s. */
int own_memory_map(struct own_memory *memory, size_t len, bool registered);

/* Appends a piece of it, which the library gives back when it is done with it. -ENOMEM. */
int own_memory_lend(struct own_memory *memory, size_t offset, size_t len, struct xr_iobuf *to);

/* -EBUSY: pieces have not come back, and it stays mapped. */
int own_memory_unmap(struct own_memory *memory);

#endif
