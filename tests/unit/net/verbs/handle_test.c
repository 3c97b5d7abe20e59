/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/handle.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/unit.h"

/* Endpoints are only pointers here. */
static char g_endpoints[70000];

static struct endpoint *
endpoint(unsigned i)
{
	return (struct endpoint *)(g_endpoints + i);
}

static uint32_t
add(struct handles *handles, unsigned i)
{
	uint32_t handle = 0;

	ASSERT_FATAL(handles_add(handles, endpoint(i), &handle) == 0);
	return handle;
}

static struct endpoint *
find(const struct handles *handles, uint32_t handle)
{
	const struct handle_entry *entry = handles_find(handles, handle);

	return entry ? entry->endpoint : NULL;
}

static void
test_empty(void)
{
	struct handles handles;

	handles_init(&handles);
	CU_ASSERT_PTR_NULL(find(&handles, 0));
	CU_ASSERT_PTR_NULL(find(&handles, UINT32_MAX));
	handles_fini(&handles);
}

static void
test_found(void)
{
	struct handles handles;
	uint32_t a, b;

	handles_init(&handles);
	a = add(&handles, 0);
	b = add(&handles, 1);
	CU_ASSERT(a != b);
	CU_ASSERT_PTR_EQUAL(find(&handles, a), endpoint(0));
	CU_ASSERT_PTR_EQUAL(find(&handles, b), endpoint(1));
	CU_ASSERT_PTR_NULL(find(&handles, 2));
	CU_ASSERT_PTR_NULL(find(&handles, 63));
	CU_ASSERT_PTR_NULL(find(&handles, 64));
	CU_ASSERT_PTR_NULL(find(&handles, 0xffff));
	handles_fini(&handles);
}

/* A place in use again has another handle, and the old one leads nowhere; also after the generations have wrapped. */
static void
test_generations(void)
{
	struct handles handles;
	uint32_t first, before, now;

	handles_init(&handles);
	first = before = add(&handles, 0);
	for (unsigned i = 0; i < 65535; i++) {
		handles_remove(&handles, before);
		now = add(&handles, 1);
		if ((now & 0xffff) != (first & 0xffff) || find(&handles, before) ||
		    find(&handles, now) != endpoint(1) || now == first) {
			CU_FAIL("a handle that is gone leads somewhere");
			break;
		}
		before = now;
	}
	handles_remove(&handles, before);
	ASSERT_EQ(add(&handles, 2), first);
	handles_fini(&handles);
}

static void
test_as_many_as_there_can_be(void)
{
	struct handles handles;
	uint32_t handle = 0, wrong = 0;

	handles_init(&handles);
	for (unsigned i = 0; i < HANDLES_MAX; i++)
		add(&handles, i);
	ASSERT_EQ(handles_add(&handles, endpoint(0), &handle), -ENOMEM);
	for (unsigned i = 0; i < HANDLES_MAX; i++)
		wrong += find(&handles, i) != endpoint(i);
	ASSERT_EQ(wrong, 0);
	CU_ASSERT_PTR_NULL(find(&handles, UINT32_MAX));
	handles_remove(&handles, 4711);
	handle = add(&handles, 1);
	ASSERT_EQ(handle & 0xffff, 4711);
	handles_fini(&handles);
}

static void
test_no_memory(void)
{
	struct handles handles;
	uint32_t handle = 0;

	if (!FAIL_ALLOC) {
		unit_skip("allocations can't fail under a sanitizer");
		return;
	}
	handles_init(&handles);
	g_fail_alloc_after = 0;
	ASSERT_EQ(handles_add(&handles, endpoint(0), &handle), -ENOMEM);
	g_fail_alloc_after = -1;
	for (unsigned i = 0; i < 64; i++)
		add(&handles, i);
	g_fail_alloc_after = 0;
	ASSERT_EQ(handles_add(&handles, endpoint(64), &handle), -ENOMEM);
	g_fail_alloc_after = -1;
	CU_ASSERT_PTR_EQUAL(find(&handles, 63), endpoint(63));
	add(&handles, 64);
	handles_fini(&handles);
}

/* ---- the list of those that were touched ---- */

static void
touch(struct handles *handles, uint32_t handle, struct cds_list_head *touched)
{
	cds_list_add_tail(&handles_find(handles, handle)->touched, touched);
}

/* The endpoints in the list are these, in this order. */
static void
assert_touched(struct cds_list_head *touched, const unsigned *expected, unsigned count)
{
	struct handle_entry *entry;
	unsigned n = 0;

	cds_list_for_each_entry (entry, touched, touched) {
		ASSERT_FATAL(n < count);
		CU_ASSERT_PTR_EQUAL(entry->endpoint, endpoint(expected[n]));
		n++;
	}
	ASSERT_EQ(n, count);
	n = 0;
	for (struct cds_list_head *at = touched->prev; at != touched; at = at->prev)
		n++;
	ASSERT_EQ(n, count);
}

static void
test_growth_while_touched(void)
{
	static const unsigned order[] = {5, 6, 63, 0, 7};
	CDS_LIST_HEAD(touched);
	struct handles handles;
	uint32_t handle[64];

	handles_init(&handles);
	for (unsigned i = 0; i < 64; i++)
		handle[i] = add(&handles, i);
	for (unsigned i = 0; i < 5; i++)
		touch(&handles, handle[order[i]], &touched);
	add(&handles, 64);
	ASSERT_EQ(handles.room, 128);
	assert_touched(&touched, order, 5);
	for (unsigned i = 65; i < 129; i++)
		add(&handles, i);
	assert_touched(&touched, order, 5);
	handles_remove(&handles, handle[63]);
	assert_touched(&touched, (const unsigned[]){5, 6, 0, 7}, 4);
	CU_ASSERT_TRUE(cds_list_empty(&handles_find(&handles, handle[1])->touched));
	handles_fini(&handles);
}

static void
test_removed_while_touched(void)
{
	CDS_LIST_HEAD(touched);
	struct handles handles;
	uint32_t handle;

	handles_init(&handles);
	handle = add(&handles, 0);
	touch(&handles, handle, &touched);
	handles_remove(&handles, handle);
	CU_ASSERT_TRUE(cds_list_empty(&touched));
	handle = add(&handles, 1);
	CU_ASSERT_TRUE(cds_list_empty(&handles_find(&handles, handle)->touched));
	handles_fini(&handles);
}

UNIT_SUITE("handle", {"nothing in it", test_empty}, {"a handle finds its endpoint", test_found},
	   {"a handle of before finds nothing", test_generations},
	   {"as many as there can be", test_as_many_as_there_can_be}, {"no memory", test_no_memory},
	   {"growth keeps the list of touched ones", test_growth_while_touched},
	   {"who is removed leaves the list", test_removed_while_touched});
