/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/region.h"
#include "core/log.h"
#include "mem/device.h"
#include "mem/poison.h"
#include "mem/region_table.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
	struct region_config config;
	char *base; /* NULL: not initialised */
	size_t range_bytes;
	unsigned slot_shift;
	struct region *slots; /* the application's regions behind the others */
	size_t bytes_taken;   /* by regions, also by those that are being mapped; read without the lock too */
} g_regions;

/* Guards what is taken; g_region_lock guards devices and publishing, and is held while pages are registered. */
static pthread_mutex_t g_budget_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_region_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned
shift_of(size_t bytes)
{
	return (unsigned)(8 * sizeof(unsigned long)) - (unsigned)__builtin_clzl(bytes - 1);
}

static unsigned
all_slots(const struct region_config *config)
{
	return config->slots + config->user_slots;
}

static int
reserve_range(const struct region_config *config, unsigned shift, size_t align)
{
	if (all_slots(config) > REGION_SLOTS_MAX || config->slots > (SIZE_MAX >> 1) >> shift)
		return -ENOMEM;
	g_regions.slots = calloc(all_slots(config), sizeof *g_regions.slots);
	if (!g_regions.slots)
		return -ENOMEM;
	g_regions.range_bytes = (size_t)config->slots << shift;
	g_regions.base = hugepage_reserve(g_regions.range_bytes, align);
	if (!g_regions.base) {
		free(g_regions.slots);
		g_regions.slots = NULL;
		return -ENOMEM;
	}
	return 0;
}

static size_t
rounded_up(size_t bytes, size_t page)
{
	return (bytes + page - 1) / page * page;
}

int
region_init(const struct region_config *config)
{
	bool try_1g = config->try_1g;
	size_t longest = try_1g ? rounded_up(config->slot_bytes, HUGEPAGE_1G_BYTES) : config->slot_bytes;
	unsigned shift = shift_of(longest);
	int status = reserve_range(config, shift, try_1g ? HUGEPAGE_1G_BYTES : HUGEPAGE_2M_BYTES);

	if (status != 0)
		return status;
	g_regions.config = *config;
	g_regions.slot_shift = shift;
	g_regions.bytes_taken = 0;
	for (unsigned i = 0; i < all_slots(config); i++) {
		g_regions.slots[i].index = i;
		g_regions.slots[i].user = i >= config->slots;
		g_regions.slots[i].addr = i < config->slots ? g_regions.base + ((size_t)i << shift) : NULL;
	}
	return 0;
}

void
region_fini(void)
{
	if (!g_regions.base)
		return;
	for (unsigned i = 0; i < all_slots(&g_regions.config); i++)
		memory_unpoison(g_regions.slots[i].addr, g_regions.slots[i].bytes);
	hugepage_release(g_regions.base, g_regions.range_bytes);
	region_table_clear();
	free(g_regions.slots);
	g_regions.slots = NULL;
	g_regions.base = NULL;
}

/* ---- what is taken: under the budget lock ---- */

static void
charge(size_t bytes)
{
	__atomic_store_n(&g_regions.bytes_taken, g_regions.bytes_taken + bytes, __ATOMIC_RELAXED);
}

static void
refund(size_t bytes)
{
	__atomic_store_n(&g_regions.bytes_taken, g_regions.bytes_taken - bytes, __ATOMIC_RELAXED);
}

size_t
region_budget(void)
{
	size_t max = g_regions.config.max_bytes;
	size_t taken = __atomic_load_n(&g_regions.bytes_taken, __ATOMIC_RELAXED);

	return max ? max - taken : SIZE_MAX;
}

size_t
region_bytes_at_most(size_t bytes)
{
	return g_regions.config.try_1g ? rounded_up(bytes, HUGEPAGE_1G_BYTES) : bytes;
}

static struct region *
free_slot(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		if (!g_regions.slots[i].taken)
			return &g_regions.slots[i];
	return NULL;
}

/* *bytes: at first those that are wanted, then those that are taken. */
static int
take_slot(size_t *bytes, struct region **region)
{
	struct region *slot = free_slot(0, g_regions.config.slots);
	size_t most = region_bytes_at_most(*bytes);

	if (*bytes > region_budget())
		return -EDQUOT;
	if (!slot)
		return -ENOSPC;
	if (most <= region_budget())
		*bytes = most;
	slot->taken = true;
	charge(*bytes);
	*region = slot;
	return 0;
}

static void
give_slot_back(struct region *region, size_t bytes)
{
	pthread_mutex_lock(&g_budget_lock);
	region->taken = false;
	refund(bytes);
	pthread_mutex_unlock(&g_budget_lock);
}

static void
give_bytes_back(size_t bytes)
{
	pthread_mutex_lock(&g_budget_lock);
	refund(bytes);
	pthread_mutex_unlock(&g_budget_lock);
}

/* ---- a region of the library's own ---- */

static int
map(struct region *region, const struct region_want *want, size_t bytes_1g)
{
	struct hugepage_want pages = {
		.addr = region->addr,
		.bytes = want->bytes,
		.bytes_1g = bytes_1g,
		.spared_bytes = want->ahead ? want->bytes : 0,
		.node = want->node,
		.try_1g = g_regions.config.try_1g,
		.require_hugepages = g_regions.config.require_hugepages,
		.strict_numa = g_regions.config.strict_numa,
		.quiet = want->quiet || want->ahead,
	};

	return hugepage_map(&pages, &region->pages);
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

static int
map_and_publish(struct region *region, const struct region_want *want, size_t bytes_1g)
{
	int status = map(region, want, bytes_1g);

	if (status != 0)
		return status;
	status = publish(region, region->pages.bytes);
	if (status != 0)
		hugepage_unmap(region->addr, region->pages.bytes);
	return status;
}

int
region_create(const struct region_want *want, struct region **region)
{
	size_t taken = want->bytes;
	struct region *slot = NULL;
	int status;

	pthread_mutex_lock(&g_budget_lock);
	status = take_slot(&taken, &slot);
	pthread_mutex_unlock(&g_budget_lock);
	if (status != 0)
		return status;
	slot->node = want->node;
	slot->type = want->type;
	status = map_and_publish(slot, want, taken);
	if (status != 0) {
		give_slot_back(slot, taken);
		return status;
	}
	give_bytes_back(taken - slot->bytes);
	memory_poison(slot->addr, slot->bytes);
	*region = slot;
	return 0;
}

/* ---- the application's ---- */

static bool
is_in_range(const char *addr, size_t bytes)
{
	return addr < g_regions.base + g_regions.range_bytes && addr + bytes > g_regions.base;
}

static int
take_user_slot(char *addr, size_t bytes, struct region **region)
{
	const struct region_config *config = &g_regions.config;
	struct region *slot = free_slot(config->slots, all_slots(config));

	if (is_in_range(addr, bytes))
		return -EEXIST;
	for (unsigned i = config->slots; i < all_slots(config); i++)
		if (g_regions.slots[i].taken && addr < g_regions.slots[i].addr + g_regions.slots[i].pages.bytes &&
		    addr + bytes > g_regions.slots[i].addr)
			return -EEXIST;
	if (!slot)
		return -ENOSPC;
	slot->taken = true;
	slot->addr = addr;
	slot->pages = (struct hugepage_got){.kind = PAGE_KINDS, .node = NODE_ANY, .bytes = bytes};
	*region = slot;
	return 0;
}

/* In the table before a block of it is handed out. */
static int
publish_user(struct region *region, size_t bytes)
{
	int status = region_table_add(region->addr, bytes, region->index);

	if (status != 0)
		return status;
	status = publish(region, bytes);
	if (status != 0)
		region_table_del(region->index);
	return status;
}

int
region_add(enum block_type type, int node, void *addr, size_t bytes, struct region **region)
{
	struct region *slot = NULL;
	int status;

	pthread_mutex_lock(&g_budget_lock);
	status = take_user_slot(addr, bytes, &slot);
	pthread_mutex_unlock(&g_budget_lock);
	if (status != 0)
		return status;
	slot->node = node;
	slot->type = type;
	status = publish_user(slot, bytes);
	if (status != 0) {
		give_slot_back(slot, 0);
		return status;
	}
	memory_poison(addr, bytes);
	*region = slot;
	return 0;
}

/* ---- looking up ---- */

struct region *
region_at(unsigned index)
{
	struct region *region = &g_regions.slots[index];

	return __atomic_load_n(&region->bytes, __ATOMIC_ACQUIRE) ? region : NULL;
}

/* Slots begin at multiples of their length, so what is behind a region's end is nobody's. */
struct region *
region_find(const void *addr)
{
	size_t offset = (uintptr_t)addr - (uintptr_t)g_regions.base;
	struct region *region;
	int user;

	if (!g_regions.base)
		return NULL;
	if (__builtin_expect(offset >= g_regions.range_bytes, 0)) {
		user = region_table_find(addr);
		return user < 0 ? NULL : region_at((unsigned)user);
	}
	region = region_at((unsigned)(offset >> g_regions.slot_shift));
	return region && (size_t)((const char *)addr - region->addr) < region->bytes ? region : NULL;
}

unsigned
region_slots(void)
{
	return g_regions.base ? all_slots(&g_regions.config) : 0;
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
