/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/call.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

static void
on_timeout(struct xr_timer *timer)
{
	(void)timer;
}

static void
end(struct call_table *table, struct call *call)
{
	call_retire(call);
	call_release(table, call);
}

static void
test_take_find_end(void)
{
	struct call_table table;
	struct call *call;
	uint64_t id;

	call_table_init(&table, NULL, on_timeout);
	CU_ASSERT(call_find(&table, 0) == NULL);
	call = call_take(&table);
	ASSERT_FATAL(call != NULL);
	id = call->id;
	CU_ASSERT(id != 0);
	CU_ASSERT((int64_t)id > 0);
	CU_ASSERT(call_find(&table, id) == call);
	CU_ASSERT(call_find(&table, id + 1) == NULL);
	CU_ASSERT(call_find(&table, id + (1u << CALL_SLOT_BITS)) == NULL);
	call_retire(call);
	CU_ASSERT(call_find(&table, id) == NULL);
	CU_ASSERT(call_find(&table, call->id) == NULL || call->id != id);
	call_release(&table, call);
	CU_ASSERT(call_find(&table, call->id) == NULL);
	call_table_fini(&table);
}

static void
test_slot_used_again_with_another_id(void)
{
	struct call_table table;
	struct call *call, *again;
	uint64_t id;

	call_table_init(&table, NULL, on_timeout);
	call = call_take(&table);
	id = call->id;
	end(&table, call);
	again = call_take(&table);
	CU_ASSERT(again == call);
	CU_ASSERT(again->id != id);
	CU_ASSERT(call_find(&table, id) == NULL);
	CU_ASSERT(call_find(&table, again->id) == again);
	end(&table, again);
	call_table_fini(&table);
}

static void
test_ids_of_strangers(void)
{
	struct call_table table;
	struct call *call;

	call_table_init(&table, NULL, on_timeout);
	call = call_take(&table);
	CU_ASSERT(call_find(&table, UINT64_MAX) == NULL);
	CU_ASSERT(call_find(&table, (1u << CALL_SLOT_BITS) - 1) == NULL);
	CU_ASSERT(call_find(&table, 1u << CALL_SLOT_BITS | 63u) == NULL);
	CU_ASSERT(call_find(&table, 1u << CALL_SLOT_BITS | 64u) == NULL);
	end(&table, call);
	call_table_fini(&table);
}

#define MANY 5000

static void
test_many(void)
{
	static struct call *calls[MANY];
	struct call_table table;
	size_t chunks;

	call_table_init(&table, NULL, on_timeout);
	for (int i = 0; i < MANY; i++) {
		calls[i] = call_take(&table);
		ASSERT_FATAL(calls[i] != NULL);
	}
	for (int i = 0; i < MANY; i++)
		CU_ASSERT(call_find(&table, calls[i]->id) == calls[i]);
	for (int i = 0; i < MANY; i += 2)
		end(&table, calls[i]);
	chunks = table.chunk_count;
	for (int i = 0; i < MANY; i += 2)
		calls[i] = call_take(&table);
	ASSERT_EQ(table.chunk_count, chunks);
	for (int i = 0; i < MANY; i++) {
		CU_ASSERT(call_find(&table, calls[i]->id) == calls[i]);
		end(&table, calls[i]);
	}
	call_table_fini(&table);
}

static void
test_no_memory(void)
{
	struct call_table table;
	struct call *call;

	if (!FAIL_ALLOC) {
		unit_skip("the sanitizer's allocator does not fail");
		return;
	}
	call_table_init(&table, NULL, on_timeout);
	g_fail_alloc_after = 0;
	CU_ASSERT(call_take(&table) == NULL);
	g_fail_alloc_after = -1;
	call = call_take(&table);
	ASSERT_FATAL(call != NULL);
	g_fail_alloc_after = 0;
	end(&table, call);
	CU_ASSERT(call_take(&table) == call);
	g_fail_alloc_after = -1;
	end(&table, call);
	call_table_fini(&table);
}

UNIT_SUITE("rpc call", {"a call is found by its id until it ends", test_take_find_end},
	   {"a slot is used again, an id never", test_slot_used_again_with_another_id},
	   {"ids that were never given find nothing", test_ids_of_strangers}, {"thousands of calls", test_many},
	   {"without memory no call is taken", test_no_memory});
