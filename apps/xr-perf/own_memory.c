/* SPDX-License-Identifier: Apache-2.0 */
#include "own_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <xrdma/mem.h>

#define MARGIN_BYTES ((size_t)8191) /* before the bytes that are lent, and behind them at least */

int
own_memory_map(struct own_memory *memory, size_t len, bool registered)
{
	size_t bytes = len + 2 * MARGIN_BYTES;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = 0;

	if (map == MAP_FAILED)
		return -errno;
	*memory = (struct own_memory){
		.map = map,
		.map_bytes = bytes,
		.bytes = (char *)map + MARGIN_BYTES,
		.key = XR_MEM_KEY_NONE,
	};
	if (registered)
		err = xr_mem_register(map, bytes, &memory->key);
	if (err)
		own_memory_unmap(memory);
	return err;
}

static void
give_back(void *data, void *arg)
{
	struct own_memory *memory = arg;

	(void)data;
	__atomic_fetch_add(&memory->returned, 1, __ATOMIC_RELEASE);
}

int
own_memory_lend(struct own_memory *memory, size_t offset, size_t len, struct xr_iobuf *to)
{
	int err = xr_iobuf_append_user(to, memory->bytes + offset, len, memory->key, give_back, memory);

	if (!err)
		memory->lent++;
	return err;
}

int
own_memory_unmap(struct own_memory *memory)
{
	int err = 0;

	if (!memory->map)
		return 0;
	if (__atomic_load_n(&memory->returned, __ATOMIC_ACQUIRE) != memory->lent)
		return -EBUSY;
	if (memory->key != XR_MEM_KEY_NONE)
		err = xr_mem_deregister(memory->key);
	if (!err) {
		munmap(memory->map, memory->map_bytes);
		memory->map = NULL;
	}
	return err;
}
