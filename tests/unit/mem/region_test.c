/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mem/fixture.h"
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

static void
start(size_t slot_bytes, size_t max_bytes, unsigned slots)
{
	struct region_config config = {.slot_bytes = slot_bytes, .max_bytes = max_bytes, .slots = slots};

	g_hugepage_told = ~0u;
	log_capture_start();
	ASSERT_FATAL(region_init(&config) == 0);
}

static void
stop(void)
{
	region_fini();
	log_capture_stop();
}

static void
test_address_leads_to_region(void)
{
	struct region *regions[3];

	start(4 * MIB, 0, 3);
	for (unsigned i = 0; i < 3; i++) {
		ASSERT_FATAL(fixture_region((enum block_type)i, 0, 4 * MIB, &regions[i]) == 0);
		ASSERT_EQ(regions[i]->index, i);
		ASSERT_EQ(regions[i]->type, i);
		ASSERT_EQ((uintptr_t)regions[i]->addr % HUGEPAGE_2M_BYTES, 0);
		CU_ASSERT(region_at(i) == regions[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT(region_find(regions[i]->addr) == regions[i]);
		CU_ASSERT(region_find(regions[i]->addr + 2 * MIB + 1) == regions[i]);
		CU_ASSERT(region_find(regions[i]->addr + 4 * MIB - 1) == regions[i]);
	}
	CU_ASSERT_PTR_NULL(region_find(regions[0]->addr - 1));
	CU_ASSERT_PTR_NULL(region_find(regions[2]->addr + 4 * MIB));
	CU_ASSERT_PTR_NULL(region_find(NULL));
	CU_ASSERT_PTR_NULL(region_find(regions));
	stop();
}

/* A slot is a power of two: what a shorter region leaves of it is nobody's, and so is a slot without a region. */
static void
test_gaps_are_nobodys(void)
{
	struct region *first, *second;

	start(6 * MIB, 0, 4);
	ASSERT_FATAL(fixture_region(BLOCK_DEFAULT, 0, 6 * MIB, &first) == 0);
	ASSERT_FATAL(fixture_region(BLOCK_DEFAULT, 0, 2 * MIB, &second) == 0);
	ASSERT_EQ(second->addr - first->addr, 8 * MIB);
	CU_ASSERT(region_find(first->addr + 6 * MIB - 1) == first);
	CU_ASSERT_PTR_NULL(region_find(first->addr + 6 * MIB));
	CU_ASSERT_PTR_NULL(region_find(second->addr + 2 * MIB));
	CU_ASSERT_PTR_NULL(region_find(second->addr + 8 * MIB));
	CU_ASSERT_PTR_NULL(region_at(2));
	ASSERT_EQ(region_slots(), 4);
	stop();
	ASSERT_EQ(region_slots(), 0);
	CU_ASSERT_PTR_NULL(region_find(&first));
}

static void
test_slots_run_out(void)
{
	struct region *region;

	start(2 * MIB, 0, 2);
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 2 * MIB, &region), 0);
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 2 * MIB, &region), 0);
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 2 * MIB, &region), -ENOSPC);
	stop();
}

static void
test_cap_over_all(void)
{
	struct region *region;

	start(4 * MIB, 7 * MIB, 8);
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 4 * MIB, &region), 0);
	ASSERT_EQ(fixture_region(BLOCK_LARGE, 0, 4 * MIB, &region), -EDQUOT);
	ASSERT_EQ(fixture_region(BLOCK_LARGE, 0, 2 * MIB, &region), 0);
	ASSERT_EQ(fixture_region(BLOCK_HUGE, 0, 2 * MIB, &region), -EDQUOT);
	stop();
}

static size_t
nothing_available(void)
{
	return 0;
}

/* Neither the slot nor its share of the cap is lost. */
static void
test_failed_mapping_gives_all_back(void)
{
	struct hugepage_sys real = g_hugepage_sys;
	struct region *region;

	start(4 * MIB, 4 * MIB, 1);
	g_hugepage_sys.available_bytes = nothing_available;
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 4 * MIB, &region), -ENOMEM);
	CU_ASSERT_PTR_NULL(region_at(0));
	g_hugepage_sys = real;
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 4 * MIB, &region), 0);
	stop();
}

static void
test_absurd_ranges_are_refused(void)
{
	struct region_config config = {.slot_bytes = (size_t)1 << 40, .slots = 12288};

	ASSERT_EQ(region_init(&config), -ENOMEM);
	config = (struct region_config){.slot_bytes = 2 * MIB, .slots = REGION_SLOTS_MAX + 1};
	ASSERT_EQ(region_init(&config), -ENOMEM);
	config = (struct region_config){.slot_bytes = (size_t)1 << 62, .slots = 4};
	ASSERT_EQ(region_init(&config), -ENOMEM);
	ASSERT_EQ(region_slots(), 0);
	region_fini();
}

/* ---- 1 GiB pages ---- */

static bool g_has_1g;

/* Nothing is populated, and huge pages are ordinary ones that nobody touches. */
static void *
map_1g(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	int shift = flags >> 26 & 63;

	if (flags & MAP_HUGETLB && !(shift == 30 && g_has_1g)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (flags & MAP_HUGETLB)
		flags &= (1 << 26) - 1 - MAP_HUGETLB;
	return mmap(addr, len, prot, flags | MAP_NORESERVE, fd, offset);
}

static int
advise_nothing(void *addr, size_t len, int advice)
{
	(void)addr, (void)len, (void)advice;
	return 0;
}

static void
start_1g(size_t max_bytes, bool has_1g)
{
	struct region_config config = {.slot_bytes = 64 * MIB, .max_bytes = max_bytes, .slots = 2, .try_1g = true};

	g_has_1g = has_1g;
	g_hugepage_sys.mmap = map_1g;
	g_hugepage_sys.madvise = advise_nothing;
	g_hugepage_told = ~0u;
	log_capture_start();
	ASSERT_FATAL(region_init(&config) == 0);
}

/* A region is at least one page of the size that it gets: longer than asked for, or as long, and is counted as it is.
 */
static void
test_1g_pages(void)
{
	struct hugepage_sys real = g_hugepage_sys;
	struct region *region;

	start_1g(3 * HUGEPAGE_1G_BYTES / 2, true);
	ASSERT_EQ(region_bytes_at_most(64 * MIB), HUGEPAGE_1G_BYTES);
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 64 * MIB, &region), 0);
	ASSERT_EQ(region->bytes, HUGEPAGE_1G_BYTES);
	ASSERT_EQ(region->pages.kind, PAGE_1G);
	ASSERT_EQ((uintptr_t)region->addr % HUGEPAGE_1G_BYTES, 0);
	ASSERT_EQ(region_budget(), HUGEPAGE_1G_BYTES / 2);
	CU_ASSERT(region_find(region->addr + HUGEPAGE_1G_BYTES - 1) == region);
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 64 * MIB, &region), 0); /* the cap has no room for a page */
	ASSERT_EQ(region->bytes, 64 * MIB);
	ASSERT_EQ((uintptr_t)region->addr % HUGEPAGE_1G_BYTES, 0);
	ASSERT_EQ(region_budget(), HUGEPAGE_1G_BYTES / 2 - 64 * MIB);
	stop();
	start_1g(2 * HUGEPAGE_1G_BYTES, false);
	ASSERT_EQ(fixture_region(BLOCK_DEFAULT, 0, 64 * MIB, &region), 0);
	ASSERT_EQ(region->bytes, 64 * MIB);
	CU_ASSERT(region->pages.kind > PAGE_1G);
	ASSERT_EQ(region_budget(), 2 * HUGEPAGE_1G_BYTES - 64 * MIB);
	stop();
	g_hugepage_sys = real;
}

UNIT_SUITE("region", {"an address leads to its region", test_address_leads_to_region},
	   {"gaps are nobody's", test_gaps_are_nobodys}, {"slots run out", test_slots_run_out},
	   {"a cap holds over all regions", test_cap_over_all},
	   {"a mapping that fails gives everything back", test_failed_mapping_gives_all_back},
	   {"absurd ranges are refused", test_absurd_ranges_are_refused},
	   {"1 GiB pages make longer regions", test_1g_pages});
