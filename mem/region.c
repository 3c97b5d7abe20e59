/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/region.h"
#include "core/log.h"
#include "mem/device.h"
#include "mem/poison.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
	struct region_config config;
	char *base; /* NULL: not initialised */
	size_t range_bytes;
	unsigned slot_shift;
	struct region *slots;
	size_t bytes_taken; /* by regions, also by those that are being mapped */
} g_regions;

/* Guards what is taken; g_region_lock guards devices and publishing, and is held while pages are registered. */
static pthread_mutex_t g_budget_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_region_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned
shift_of(size_t bytes)
{
	return (unsigned)(8 * sizeof(unsigned long)) - (unsigned)__builtin_clzl(bytes - 1);
}

static int
reserve_range(unsigned slots, unsigned shift, size_t align)
{
	if (slots > REGION_SLOTS_MAX || slots > (SIZE_MAX >> 1) >> shift)
		return -ENOMEM;
	g_regions.slots = calloc(slots, sizeof *g_regions.slots);
	if (!g_regions.slots)
		return -ENOMEM;
	g_regions.range_bytes = (size_t)slots << shift;
	g_regions.base = hugepage_reserve(g_regions.range_bytes, align);
	if (!g_regions.base) {
		free(g_regions.slots);
		g_regions.slots = NULL;
		return -ENOMEM;
	}
	return 0;
}

int
region_init(const struct region_config *config)
{
	unsigned shift = shift_of(config->slot_bytes);
	int status = reserve_range(config->slots, shift, config->try_1g ? HUGEPAGE_1G_BYTES : HUGEPAGE_2M_BYTES);

	if (status != 0)
		return status;
	g_regions.config = *config;
	g_regions.slot_shift = shift;
	g_regions.bytes_taken = 0;
	for (unsigned i = 0; i < config->slots; i++) {
		g_regions.slots[i].index = i;
		g_regions.slots[i].addr = g_regions.base + ((size_t)i << shift);
	}
	return 0;
}

void
region_fini(void)
{
	if (!g_regions.base)
		return;
	for (unsigned i = 0; i < g_regions.config.slots; i++)
		memory_unpoison(g_regions.slots[i].addr, g_regions.slots[i].bytes);
	hugepage_release(g_regions.base, g_regions.range_bytes);
	free(g_regions.slots);
	g_regions.slots = NULL;
	g_regions.base = NULL;
}

static int
take_slot(size_t bytes, struct region **region)
{
	const struct region_config *config = &g_regions.config;

	if (config->max_bytes && bytes > config->max_bytes - g_regions.bytes_taken)
		return -EDQUOT;
	for (unsigned i = 0; i < config->slots; i++) {
		if (g_regions.slots[i].taken)
			continue;
		g_regions.slots[i].taken = true;
		g_regions.bytes_taken += bytes;
		*region = &g_regions.slots[i];
		return 0;
	}
	return -ENOSPC;
}

static void
give_slot_back(struct region *region, size_t bytes)
{
	pthread_mutex_lock(&g_budget_lock);
	region->taken = false;
	g_regions.bytes_taken -= bytes;
	pthread_mutex_unlock(&g_budget_lock);
}

static int
map(struct region *region, size_t bytes)
{
	struct hugepage_want want = {
		.addr = region->addr,
		.bytes = bytes,
		.node = region->node,
		.try_1g = g_regions.config.try_1g,
		.require_hugepages = g_regions.config.require_hugepages,
		.strict_numa = g_regions.config.strict_numa,
	};

	return hugepage_map(&want, &region->pages);
}

/* Registered with every device, then seen: nobody meets a region that a device lacks. */
static int
publish(struct region *region, size_t bytes)
{
	int status;

	region_lock();
	status = device_register_region(region, bytes);
	if (status == 0)
		__atomic_store_n(&region->bytes, bytes, __ATOMIC_RELEASE);
	region_unlock();
	return status;
}

int
region_create(enum block_type type, int node, size_t bytes, struct region **region)
{
	struct region *slot = NULL;
	int status;

	pthread_mutex_lock(&g_budget_lock);
	status = take_slot(bytes, &slot);
	pthread_mutex_unlock(&g_budget_lock);
	if (status != 0)
		return status;
	slot->node = node;
	slot->type = type;
	status = map(slot, bytes);
	if (status == 0) {
		status = publish(slot, bytes);
		if (status != 0)
			hugepage_unmap(slot->addr, bytes);
	}
	if (status != 0) {
		give_slot_back(slot, bytes);
		return status;
	}
	memory_poison(slot->addr, bytes);
	*region = slot;
	return 0;
}

struct region *
region_at(unsigned index)
{
	struct region *region = &g_regions.slots[index];

	return __atomic_load_n(&region->bytes, __ATOMIC_ACQUIRE) ? region : NULL;
}

struct region *
region_find(const void *addr)
{
	size_t offset = (uintptr_t)addr - (uintptr_t)g_regions.base;
	struct region *region;

	if (offset >= g_regions.range_bytes || !g_regions.base)
		return NULL;
	region = region_at((unsigned)(offset >> g_regions.slot_shift));
	return region && (size_t)((const char *)addr - region->addr) < region->bytes ? region : NULL;
}

unsigned
region_slots(void)
{
	return g_regions.base ? g_regions.config.slots : 0;
}

void
region_lock(void)
{
	pthread_mutex_lock(&g_region_lock);
}

void
region_unlock(void)
{
	pthread_mutex_unlock(&g_region_lock);
}
