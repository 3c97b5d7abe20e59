/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/device.h"
#include "mem/poison.h"
#include "tests/unit/mem/fixture.h"

/* Devices that remember what is registered with them, and fail on request. */
static struct {
	unsigned registered[MEM_DEVICES]; /* now */
	unsigned calls;
	unsigned fail_at_call; /* 0: never */
	size_t last_len;
} fake;

static int
fake_register(unsigned device, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	if (++fake.calls == fake.fail_at_call)
		return -EIO;
	fake.registered[device]++;
	fake.last_len = len;
	*handle = addr;
	*lkey = device << 16 | fake.calls;
	return 0;
}

static void
fake_unregister(unsigned device, void *handle)
{
	fake.registered[device]--;
	memory_unpoison(handle, 1);
	*(volatile char *)handle = 0; /* the memory outlives its registration */
}

static const struct mem_device_ops ops = {.register_range = fake_register, .unregister_range = fake_unregister};

static void
start(void)
{
	memset(&fake, 0, sizeof fake);
	fixture_start(4);
}

static struct region *
new_region(void)
{
	struct region *region = NULL;

	ASSERT_FATAL(fixture_region(BLOCK_DEFAULT, 0, FIXTURE_REGION_BYTES, &region) == 0);
	return region;
}

static void
test_regions_before_and_after(void)
{
	struct region *early, *late;
	uint32_t lkey_early = 0, lkey_late = 0;

	start();
	early = new_region();
	ASSERT_EQ(mem_device_add(3, &ops), 0);
	ASSERT_EQ(fake.registered[3], 1);
	ASSERT_EQ(fake.last_len, FIXTURE_REGION_BYTES);
	late = new_region();
	ASSERT_EQ(fake.registered[3], 2);
	ASSERT_EQ(mem_lkey(3, early->addr + 100, &lkey_early), 0);
	ASSERT_EQ(mem_lkey(3, late->addr + FIXTURE_REGION_BYTES - 1, &lkey_late), 0);
	ASSERT_EQ(lkey_early, 3u << 16 | 1);
	ASSERT_EQ(lkey_late, 3u << 16 | 2);
	fixture_stop();
	ASSERT_EQ(fake.registered[3], 0);
}

static void
test_each_device_its_own_key(void)
{
	struct region *region;
	uint32_t lkey[2] = {0};

	start();
	region = new_region();
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	ASSERT_EQ(mem_device_add(MEM_DEVICES - 1, &ops), 0);
	ASSERT_EQ(mem_lkey(0, region->addr, &lkey[0]), 0);
	ASSERT_EQ(mem_lkey(MEM_DEVICES - 1, region->addr, &lkey[1]), 0);
	CU_ASSERT(lkey[0] != lkey[1]);
	mem_device_del(0);
	ASSERT_EQ(mem_lkey(0, region->addr, &lkey[0]), -ENODEV);
	ASSERT_EQ(mem_lkey(MEM_DEVICES - 1, region->addr, &lkey[0]), 0);
	ASSERT_EQ(fake.registered[0], 0);
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	ASSERT_EQ(mem_lkey(0, region->addr, &lkey[0]), 0);
	fixture_stop();
}

static void
test_bad_input(void)
{
	uint32_t lkey;
	int mine;

	start();
	ASSERT_EQ(mem_device_add(MEM_DEVICES, &ops), -EINVAL);
	ASSERT_EQ(mem_device_add(0, NULL), -EINVAL);
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	ASSERT_EQ(mem_device_add(0, &ops), -EEXIST);
	mem_device_del(MEM_DEVICES);
	mem_device_del(5);
	ASSERT_EQ(mem_lkey(0, &mine, &lkey), -ERANGE);
	ASSERT_EQ(mem_lkey(1, new_region()->addr, &lkey), -ENODEV);
	ASSERT_EQ(mem_lkey(MEM_DEVICES, region_at(0)->addr, &lkey), -ENODEV);
	fixture_stop();
}

static void
test_device_that_fails_is_not_added(void)
{
	uint32_t lkey;

	start();
	new_region();
	new_region();
	fake.fail_at_call = 2;
	ASSERT_EQ(mem_device_add(0, &ops), -EIO);
	ASSERT_EQ(fake.registered[0], 0);
	ASSERT_EQ(mem_lkey(0, region_at(0)->addr, &lkey), -ENODEV);
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	ASSERT_EQ(fake.registered[0], 2);
	fixture_stop();
}

/* A region that the second of two devices refuses is no region, and the first one forgets it. */
static void
test_region_that_a_device_refuses(void)
{
	struct region *region;

	start();
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	ASSERT_EQ(mem_device_add(1, &ops), 0);
	fake.fail_at_call = 2;
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, FIXTURE_REGION_BYTES, &region), -EIO);
	ASSERT_EQ(fake.registered[0], 0);
	ASSERT_EQ(fake.registered[1], 0);
	CU_ASSERT_PTR_NULL(region_at(0));
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, FIXTURE_REGION_BYTES, &region), 0);
	ASSERT_EQ(fake.registered[0] + fake.registered[1], 2);
	fixture_stop();
}

UNIT_SUITE("device", {"regions from before and after a device came are registered", test_regions_before_and_after},
	   {"each device has its own key", test_each_device_its_own_key}, {"bad input", test_bad_input},
	   {"a device that fails is not added", test_device_that_fails_is_not_added},
	   {"a region that a device refuses is no region", test_region_that_a_device_refuses});
