/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/device.h"
#include "mem/mem.h"
#include "mem/region.h"
#include "mem/user_range.h"
#include <errno.h>

static const struct mem_device_ops *g_devices[MEM_DEVICES]; /* under the region lock */

static int
register_with(struct region *region, size_t bytes, unsigned device)
{
	int status = g_devices[device]->register_range(device, region->addr, bytes, &region->handles[device],
						       &region->lkeys[device]);

	if (status != 0)
		return status;
	__atomic_store_n(&region->devices, region->devices | 1u << device, __ATOMIC_RELEASE);
	return 0;
}

static void
unregister_from(struct region *region, unsigned device)
{
	if (!(region->devices & 1u << device))
		return;
	__atomic_store_n(&region->devices, region->devices & ~(1u << device), __ATOMIC_RELEASE);
	g_devices[device]->unregister_range(device, region->handles[device]);
}

int
device_register_region(struct region *region, size_t bytes)
{
	for (unsigned device = 0; device < MEM_DEVICES; device++) {
		int status = g_devices[device] ? register_with(region, bytes, device) : 0;

		if (status == 0)
			continue;
		while (device-- > 0)
			unregister_from(region, device);
		return status;
	}
	return 0;
}

static void
forget(unsigned device)
{
	for (unsigned i = 0; i < region_slots(); i++)
		if (region_at(i))
			unregister_from(region_at(i), device);
	g_devices[device] = NULL;
}

static int
add(unsigned device, const struct mem_device_ops *ops)
{
	if (g_devices[device])
		return -EEXIST;
	g_devices[device] = ops;
	for (unsigned i = 0; i < region_slots(); i++) {
		struct region *region = region_at(i);
		int status = region ? register_with(region, region->bytes, device) : 0;

		if (status != 0) {
			forget(device);
			return status;
		}
	}
	return 0;
}

int
mem_device_add(unsigned device, const struct mem_device_ops *ops)
{
	int status;

	if (device >= MEM_DEVICES || !ops)
		return -EINVAL;
	region_lock();
	status = add(device, ops);
	region_unlock();
	if (status == 0)
		user_ranges_add_device(device, ops);
	return status;
}

void
mem_device_del(unsigned device)
{
	if (device >= MEM_DEVICES)
		return;
	user_ranges_del_device(device);
	region_lock();
	if (g_devices[device])
		forget(device);
	region_unlock();
}

static int
lkey_of(const struct region *region, unsigned device, uint32_t *lkey)
{
	if (device >= MEM_DEVICES || !(__atomic_load_n(&region->devices, __ATOMIC_ACQUIRE) & 1u << device))
		return -ENODEV;
	*lkey = region->lkeys[device];
	return 0;
}

int
mem_lkey(unsigned device, const void *addr, uint32_t *lkey)
{
	const struct region *region = region_find(addr);

	return region ? lkey_of(region, device, lkey) : -ERANGE;
}

int
mem_block_lkey(unsigned device, const struct xr_block *block, uint32_t *lkey)
{
	return lkey_of(region_at(block->region), device, lkey);
}

void
device_fini(void)
{
	for (unsigned device = 0; device < MEM_DEVICES; device++)
		mem_device_del(device);
}
