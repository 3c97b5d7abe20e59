/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/range_index.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/unit.h"

static struct range_index g_index;

static const void *
at(uintptr_t addr)
{
	return (const void *)addr;
}

static void
insert(uintptr_t addr, size_t len, xr_mem_key key)
{
	ASSERT_FATAL(range_index_reserve(&g_index) == 0);
	range_index_insert(&g_index, at(addr), len, key);
}

static void
test_edges_of_a_range(void)
{
	insert(1000, 100, 1);
	ASSERT_EQ(range_index_find(&g_index, at(1000), 100), 1);
	ASSERT_EQ(range_index_find(&g_index, at(1099), 1), 1);
	ASSERT_EQ(range_index_find(&g_index, at(1050), 50), 1);
	ASSERT_EQ(range_index_find(&g_index, at(999), 1), XR_MEM_KEY_NONE);
	ASSERT_EQ(range_index_find(&g_index, at(999), 2), XR_MEM_KEY_NONE);
	ASSERT_EQ(range_index_find(&g_index, at(1099), 2), XR_MEM_KEY_NONE);
	ASSERT_EQ(range_index_find(&g_index, at(1100), 1), XR_MEM_KEY_NONE);
	range_index_remove(&g_index, at(1000), 1);
	ASSERT_EQ(range_index_find(&g_index, at(1050), 1), XR_MEM_KEY_NONE);
	range_index_fini(&g_index);
}

/* Two that touch are two: a piece that lies across them is in neither. */
static void
test_neighbours(void)
{
	insert(1000, 100, 1);
	insert(1100, 100, 2);
	ASSERT_EQ(range_index_find(&g_index, at(1099), 1), 1);
	ASSERT_EQ(range_index_find(&g_index, at(1100), 1), 2);
	ASSERT_EQ(range_index_find(&g_index, at(1099), 2), XR_MEM_KEY_NONE);
	range_index_fini(&g_index);
}

static void
test_ends_of_the_address_space(void)
{
	insert(UINTPTR_MAX - 9, 10, 1);
	insert(1, 10, 2);
	ASSERT_EQ(range_index_find(&g_index, at(UINTPTR_MAX), 1), 1);
	ASSERT_EQ(range_index_find(&g_index, at(UINTPTR_MAX), 2), XR_MEM_KEY_NONE);
	ASSERT_EQ(range_index_find(&g_index, at(UINTPTR_MAX - 9), SIZE_MAX), XR_MEM_KEY_NONE);
	ASSERT_EQ(range_index_find(&g_index, at(1), 10), 2);
	range_index_fini(&g_index);
}

/* A long one far in front of many short ones. */
static void
test_newest_of_several(void)
{
	insert(0x1000, 0x100000, 1);
	for (xr_mem_key i = 0; i < 100; i++)
		insert(0x2000 + i * 0x100, 0x80, 10 + i);
	ASSERT_EQ(range_index_find(&g_index, at(0x2000 + 99 * 0x100), 0x80), 109);
	ASSERT_EQ(range_index_find(&g_index, at(0x2000 + 99 * 0x100), 0x81), 1);
	insert(0x1000, 0x100000, 200);
	ASSERT_EQ(range_index_find(&g_index, at(0x2000), 1), 200);
	range_index_remove(&g_index, at(0x1000), 1);
	ASSERT_EQ(range_index_find(&g_index, at(0x8100), 1), 200);
	range_index_remove(&g_index, at(0x1000), 200);
	ASSERT_EQ(range_index_find(&g_index, at(0x8100), 1), 107);
	ASSERT_EQ(range_index_find(&g_index, at(0x8100), 0x81), XR_MEM_KEY_NONE);
	range_index_fini(&g_index);
}

static void
test_no_memory(void)
{
	if (!FAIL_ALLOC) {
		unit_skip("allocations can't be failed in this build");
		return;
	}
	g_fail_alloc_after = 0;
	ASSERT_EQ(range_index_reserve(&g_index), -ENOMEM);
	g_fail_alloc_after = -1;
	insert(1000, 100, 1);
	while (g_index.count < g_index.room)
		insert(2000 + g_index.count, 1, 2 + g_index.count);
	g_fail_alloc_after = 0;
	ASSERT_EQ(range_index_reserve(&g_index), -ENOMEM);
	g_fail_alloc_after = -1;
	ASSERT_EQ(range_index_find(&g_index, at(1000), 100), 1);
	range_index_fini(&g_index);
}

/* ---- against a list that is searched from end to end ---- */

#define MODEL_MAX 3000u
#define STEPS	  30000u
#define SPACE	  100000u

static struct {
	uintptr_t addr;
	size_t len;
	xr_mem_key key;
} g_model[MODEL_MAX];
static unsigned g_model_count;

static xr_mem_key
model_find(uintptr_t addr, size_t len)
{
	xr_mem_key found = XR_MEM_KEY_NONE;

	for (unsigned i = 0; i < g_model_count; i++)
		if (g_model[i].addr <= addr && addr + len <= g_model[i].addr + g_model[i].len && g_model[i].key > found)
			found = g_model[i].key;
	return found;
}

static void
add_random(xr_mem_key key)
{
	unsigned i = g_model_count++;

	g_model[i].addr = 1 + (uintptr_t)rand() % SPACE;
	g_model[i].len = 1 + (size_t)rand() % (rand() % 20 ? 50 : SPACE / 4);
	g_model[i].key = key;
	insert(g_model[i].addr, g_model[i].len, key);
}

static void
remove_random(void)
{
	unsigned i = (unsigned)rand() % g_model_count;

	range_index_remove(&g_index, at(g_model[i].addr), g_model[i].key);
	g_model[i] = g_model[--g_model_count];
}

static void
test_random(void)
{
	unsigned wrong = 0;

	srand(1);
	for (unsigned step = 0; step < STEPS; step++) {
		uintptr_t addr = 1 + (uintptr_t)rand() % SPACE;
		size_t len = 1 + (size_t)rand() % 30;

		if (g_model_count < MODEL_MAX && (g_model_count == 0 || rand() % 3))
			add_random(1 + step);
		else
			remove_random();
		wrong += range_index_find(&g_index, at(addr), len) != model_find(addr, len);
	}
	ASSERT_EQ(wrong, 0);
	while (g_model_count)
		remove_random();
	ASSERT_EQ(g_index.count, 0);
	range_index_fini(&g_index);
}

UNIT_SUITE("range_index", {"the edges of a range", test_edges_of_a_range},
	   {"a piece across two neighbours is in neither", test_neighbours},
	   {"the ends of the address space", test_ends_of_the_address_space},
	   {"the newest of several is found", test_newest_of_several}, {"no memory", test_no_memory},
	   {"thousands of overlapping ranges, against a list", test_random});
