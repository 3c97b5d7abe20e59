/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/user_range.h"
#include "core/log.h"
#include "mem/range_index.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xrdma/mem.h>

#define CACHE_LINE_BYTES 64u

/*
 * A key is a slot of the table and the serial number of the registration. Serials are given once in a process, so that
 * a key that has had its day finds another one in its slot, or none.
 */
#define SLOT_BITS   16u
#define SLOT_MASK   ((1u << SLOT_BITS) - 1u)
#define CHUNK_BITS  8u
#define CHUNK_SLOTS (1u << CHUNK_BITS)
#define CHUNKS	    (1u << (SLOT_BITS - CHUNK_BITS))
#define REFS_BITS   24u
#define REFS_MASK   (((uint64_t)1 << REFS_BITS) - 1)
#define SERIAL_MAX  (((uint64_t)1 << (64 - REFS_BITS)) - 1)

struct user_range {
	/* Serial and references in one word: whoever counts itself in knows whose range it is. Serial 0: nobody's. */
	uint64_t owner;
	char *addr;
	size_t len;
	struct user_range *next_free;
	unsigned slot;
	/* Registrations, a bit and an entry per device; every send reads them, so not on the count's cache line. */
	uint32_t devices __attribute__((aligned(CACHE_LINE_BYTES)));
	uint32_t lkeys[MEM_DEVICES];
	void *handles[MEM_DEVICES];
};

/* What registers and deregisters holds the lock; it may take long. What finds holds the index's, which may not. */
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_index_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	bool ready;
	const struct mem_device_ops *devices[MEM_DEVICES];
	/* Slots never move, and stay until the end: a stale key is looked up in memory that is there. */
	struct user_range *chunks[CHUNKS];
	unsigned used; /* slots that were ever taken */
	struct user_range *free;
	struct range_index index;
} g_ranges;

static uint64_t g_last_serial; /* under the lock; also of those before an earlier end */

/* ---- slots and keys ---- */

static struct user_range *
slot_at(unsigned slot)
{
	struct user_range *chunk = __atomic_load_n(&g_ranges.chunks[slot >> CHUNK_BITS], __ATOMIC_ACQUIRE);

	return chunk ? &chunk[slot & (CHUNK_SLOTS - 1)] : NULL;
}

static xr_mem_key
key_of(const struct user_range *range)
{
	return __atomic_load_n(&range->owner, __ATOMIC_RELAXED) >> REFS_BITS << SLOT_BITS | range->slot;
}

static uint64_t
serial_of(xr_mem_key key)
{
	uint64_t serial = key >> SLOT_BITS;

	return serial <= SERIAL_MAX ? serial : 0;
}

static int
add_chunk(void)
{
	size_t bytes = CHUNK_SLOTS * sizeof(struct user_range);
	struct user_range *chunk = aligned_alloc(CACHE_LINE_BYTES, bytes);

	if (!chunk)
		return -ENOMEM;
	memset(chunk, 0, bytes);
	for (unsigned i = 0; i < CHUNK_SLOTS; i++)
		chunk[i].slot = g_ranges.used + i;
	__atomic_store_n(&g_ranges.chunks[g_ranges.used >> CHUNK_BITS], chunk, __ATOMIC_RELEASE);
	return 0;
}

static int
take_slot(struct user_range **range)
{
	int status = 0;

	if (g_ranges.free) {
		*range = g_ranges.free;
		g_ranges.free = (*range)->next_free;
		return 0;
	}
	if (g_ranges.used == CHUNKS * CHUNK_SLOTS)
		return -ENOSPC;
	if (!slot_at(g_ranges.used))
		status = add_chunk();
	if (status == 0)
		*range = slot_at(g_ranges.used++);
	return status;
}

static void
give_slot_back(struct user_range *range)
{
	range->next_free = g_ranges.free;
	g_ranges.free = range;
}

/* ---- devices ---- */

static int
register_with(struct user_range *range, unsigned device)
{
	int status = g_ranges.devices[device]->register_user(device, range->addr, range->len, &range->handles[device],
							     &range->lkeys[device]);

	if (status == 0)
		__atomic_store_n(&range->devices, range->devices | 1u << device, __ATOMIC_RELEASE);
	return status;
}

static void
unregister_from(struct user_range *range, unsigned device)
{
	if (!(range->devices & 1u << device))
		return;
	__atomic_store_n(&range->devices, range->devices & ~(1u << device), __ATOMIC_RELEASE);
	g_ranges.devices[device]->unregister_range(device, range->handles[device]);
}

static void
unregister(struct user_range *range)
{
	for (unsigned device = 0; device < MEM_DEVICES; device++)
		unregister_from(range, device);
}

static int
register_with_all(struct user_range *range)
{
	int status = 0;

	for (unsigned device = 0; device < MEM_DEVICES && status == 0; device++)
		if (g_ranges.devices[device])
			status = register_with(range, device);
	if (status != 0)
		unregister(range);
	return status;
}

void
user_ranges_add_device(unsigned device, const struct mem_device_ops *ops)
{
	pthread_mutex_lock(&g_lock);
	g_ranges.devices[device] = ops;
	for (unsigned slot = 0; slot < g_ranges.used; slot++)
		if (__atomic_load_n(&slot_at(slot)->owner, __ATOMIC_RELAXED))
			(void)register_with(slot_at(slot), device);
	pthread_mutex_unlock(&g_lock);
}

void
user_ranges_del_device(unsigned device)
{
	pthread_mutex_lock(&g_lock);
	for (unsigned slot = 0; slot < g_ranges.used; slot++)
		unregister_from(slot_at(slot), device);
	g_ranges.devices[device] = NULL;
	pthread_mutex_unlock(&g_lock);
}

/* Acquire: the bit was set behind the key. */
int
user_range_lkey(const struct user_range *range, unsigned device, uint32_t *lkey)
{
	if (device >= MEM_DEVICES || !(__atomic_load_n(&range->devices, __ATOMIC_ACQUIRE) & 1u << device))
		return -ENODEV;
	*lkey = range->lkeys[device];
	return 0;
}

/* ---- references ---- */

static bool
contains(const struct user_range *range, const void *data, size_t len)
{
	size_t offset = (uintptr_t)data - (uintptr_t)range->addr;

	return offset <= range->len && len <= range->len - offset;
}

/* 0, EINVAL or ENOMEM. Acquire: address and length were written before the serial. */
static int
count_in(struct user_range *range, uint64_t serial)
{
	uint64_t owner = __atomic_load_n(&range->owner, __ATOMIC_RELAXED);

	do {
		if (owner >> REFS_BITS != serial || serial == 0)
			return EINVAL;
		if ((owner & REFS_MASK) == REFS_MASK)
			return ENOMEM;
	} while (!__atomic_compare_exchange_n(&range->owner, &owner, owner + 1, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_RELAXED));
	return 0;
}

struct user_range *
user_range_hold(xr_mem_key key, const void *data, size_t len)
{
	struct user_range *range = slot_at(key & SLOT_MASK);
	int error = range ? count_in(range, serial_of(key)) : EINVAL;

	if (error == 0 && contains(range, data, len))
		return range;
	if (error == 0)
		user_range_drop(range);
	errno = error ? error : EINVAL;
	return NULL;
}

void
user_range_drop(struct user_range *range)
{
	__atomic_fetch_sub(&range->owner, 1, __ATOMIC_RELEASE);
}

/* ---- the calls ---- */

static bool
range_possible(const void *addr, size_t len)
{
	return addr && len && (uintptr_t)addr <= UINTPTR_MAX - (len - 1);
}

/* From here on the key is good. */
static xr_mem_key
publish(struct user_range *range)
{
	xr_mem_key key;

	__atomic_store_n(&range->owner, ++g_last_serial << REFS_BITS, __ATOMIC_RELEASE);
	key = key_of(range);
	pthread_mutex_lock(&g_index_lock);
	range_index_insert(&g_ranges.index, range->addr, range->len, key);
	pthread_mutex_unlock(&g_index_lock);
	return key;
}

static int
reserve_index(void)
{
	int status;

	pthread_mutex_lock(&g_index_lock);
	status = range_index_reserve(&g_ranges.index);
	pthread_mutex_unlock(&g_index_lock);
	return status;
}

static int
register_range(void *addr, size_t len, xr_mem_key *key)
{
	struct user_range *range;
	int status = reserve_index();

	if (status == 0 && g_last_serial == SERIAL_MAX)
		status = -ENOSPC;
	if (status == 0)
		status = take_slot(&range);
	if (status != 0)
		return status;
	range->addr = addr;
	range->len = len;
	status = register_with_all(range);
	if (status == 0)
		*key = publish(range);
	else
		give_slot_back(range);
	return status;
}

int
xr_mem_register(void *addr, size_t len, xr_mem_key *key)
{
	int status = -EINVAL;

	if (!key || !range_possible(addr, len))
		return -EINVAL;
	pthread_mutex_lock(&g_lock);
	if (g_ranges.ready)
		status = register_range(addr, len, key);
	pthread_mutex_unlock(&g_lock);
	return status;
}

/* Takes the range from its key when nobody refers to it. Acquire: whatever read the memory has ended. */
static int
disown(struct user_range *range, uint64_t serial)
{
	uint64_t owner = serial << REFS_BITS;

	if (serial && __atomic_compare_exchange_n(&range->owner, &owner, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	return serial && owner >> REFS_BITS == serial ? -EBUSY : -EINVAL;
}

static void
forget(struct user_range *range, xr_mem_key key)
{
	pthread_mutex_lock(&g_lock);
	pthread_mutex_lock(&g_index_lock);
	range_index_remove(&g_ranges.index, range->addr, key);
	pthread_mutex_unlock(&g_index_lock);
	unregister(range);
	give_slot_back(range);
	pthread_mutex_unlock(&g_lock);
}

int
xr_mem_deregister(xr_mem_key key)
{
	struct user_range *range = slot_at(key & SLOT_MASK);
	int status = range ? disown(range, serial_of(key)) : -EINVAL;

	if (status == 0)
		forget(range, key);
	return status;
}

int
xr_mem_find(const void *addr, size_t len, xr_mem_key *key)
{
	xr_mem_key found;

	if (len == 0 || !key)
		return -EINVAL;
	pthread_mutex_lock(&g_index_lock);
	found = range_index_find(&g_ranges.index, addr, len);
	pthread_mutex_unlock(&g_index_lock);
	if (found == XR_MEM_KEY_NONE)
		return -ENOENT;
	*key = found;
	return 0;
}

/* ---- beginning and end ---- */

void
user_ranges_init(void)
{
	pthread_mutex_lock(&g_lock);
	g_ranges.ready = true;
	pthread_mutex_unlock(&g_lock);
}

/* Whether nobody refers to the range any more. */
static bool
end_range(struct user_range *range)
{
	unregister(range);
	return (__atomic_load_n(&range->owner, __ATOMIC_ACQUIRE) & REFS_MASK) == 0;
}

/* A chunk that somebody refers to is lost: what is dropped late must not count in another range. */
static unsigned
end_chunk(unsigned chunk)
{
	struct user_range *ranges = g_ranges.chunks[chunk];
	unsigned busy = 0;

	for (unsigned i = 0; i < CHUNK_SLOTS; i++)
		busy += !end_range(&ranges[i]);
	__atomic_store_n(&g_ranges.chunks[chunk], NULL, __ATOMIC_RELEASE);
	if (!busy)
		free(ranges);
	return busy;
}

void
user_ranges_fini(void)
{
	unsigned busy = 0;

	pthread_mutex_lock(&g_lock);
	for (unsigned chunk = 0; chunk << CHUNK_BITS < g_ranges.used; chunk++)
		busy += end_chunk(chunk);
	g_ranges.ready = false;
	g_ranges.used = 0;
	g_ranges.free = NULL;
	pthread_mutex_lock(&g_index_lock);
	range_index_fini(&g_ranges.index);
	pthread_mutex_unlock(&g_index_lock);
	pthread_mutex_unlock(&g_lock);
	if (busy)
		log_warning("ranges of user memory that iobufs still refer to: %u", busy);
}
