/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fail_alloc.h"
#include "tests/unit/mem/iobuf_fixture.h"

static void
test_append_of_any_size(void)
{
	const size_t sizes[] = {0, 1, 2, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 2 * PAYLOAD + 1, 64 * 1024};

	start(4);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct xr_iobuf buf = XR_IOBUF_INIT;

		ASSERT_EQ(xr_iobuf_append(&buf, pattern, sizes[i]), 0);
		CU_ASSERT(holds(&buf, pattern, sizes[i]));
		xr_iobuf_clear(&buf);
		ASSERT_EQ(xr_iobuf_size(&buf), 0);
	}
	stop();
}

static void
test_append_at_the_limit_changes_nothing(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;
	size_t size;

	start(1);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 100), 0);
	while (xr_iobuf_append(&hog, pattern, sizeof pattern) == 0)
		;
	size = xr_iobuf_size(&hog);
	ASSERT_EQ(size % sizeof pattern, 0);
	while (xr_iobuf_append(&buf, pattern, PAYLOAD) == 0)
		;
	ASSERT_EQ((xr_iobuf_size(&buf) - 100) % PAYLOAD, 0);
	size = xr_iobuf_size(&buf);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, sizeof pattern), -ENOMEM);
	ASSERT_EQ(xr_iobuf_size(&buf), size);
	xr_iobuf_clear(&hog);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 10), 0);
	xr_iobuf_drop(&buf, size);
	CU_ASSERT(holds(&buf, pattern, 10));
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_reserve_at_the_limit(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;
	size_t got;

	start(1);
	while (xr_iobuf_append(&hog, pattern, PAYLOAD) == 0)
		;
	CU_ASSERT_PTR_NULL(xr_iobuf_reserve(&buf, 1, &got));
	ASSERT_EQ(errno, ENOMEM);
	CU_ASSERT_PTR_NULL(buf.pieces_);
	xr_iobuf_clear(&hog);
	CU_ASSERT(xr_iobuf_reserve(&buf, 1, &got) != NULL);
	xr_iobuf_commit(&buf, 1);
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_user_memory_is_freed_once(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT, c = XR_IOBUF_INIT;
	char mine[100];

	start(1);
	memcpy(mine, pattern, sizeof mine);
	g_frees = 0;
	ASSERT_EQ(xr_iobuf_append_user(&a, mine, 100, XR_MEM_KEY_NONE, count_free, NULL), 0);
	CU_ASSERT(pieces_first(&a)->data == mine);
	ASSERT_EQ(xr_iobuf_share(&b, &a), 0);
	ASSERT_EQ(xr_iobuf_cut(&b, 30, &c), 30);
	xr_iobuf_clear(&a);
	ASSERT_EQ(g_frees, 0);
	ASSERT_EQ(xr_iobuf_drop(&b, 70), 70);
	ASSERT_EQ(g_frees, 0);
	CU_ASSERT(holds(&c, pattern, 30));
	ASSERT_EQ(xr_iobuf_drop(&c, 29), 29);
	ASSERT_EQ(g_frees, 0);
	ASSERT_EQ(xr_iobuf_drop(&c, 100), 1);
	ASSERT_EQ(g_frees, 1);
	stop();
}

static void
test_user_memory_refused_is_not_freed(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	start(1);
	g_frees = 0;
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 0, 0, count_free, NULL), -EINVAL);
	ASSERT_EQ(xr_iobuf_append_user(&buf, NULL, 5, 0, count_free, NULL), -EINVAL);
	if (FAIL_ALLOC) {
		g_fail_alloc_after = 0;
		ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 5, 0, count_free, NULL), -ENOMEM);
		g_fail_alloc_after = -1;
	}
	ASSERT_EQ(g_frees, 0);
	ASSERT_EQ(xr_iobuf_size(&buf), 0);
	stop();
}

static struct xr_iobuf g_again;

static void
append_again(void *data, void *arg)
{
	(void)arg;
	CU_ASSERT(xr_iobuf_append_user(&g_again, data, 5, 0, count_free, NULL) == 0);
}

static void
test_free_may_use_the_iobuf(void)
{
	start(1);
	g_frees = 0;
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(xr_iobuf_append_user(&g_again, pattern, 5, 0, append_again, NULL), 0);
	xr_iobuf_clear(&g_again);
	CU_ASSERT(xr_iobuf_size(&g_again) == 50);
	xr_iobuf_clear(&g_again);
	ASSERT_EQ(g_frees, 10);
	stop();
}

static void
clear_again(void *data, void *arg)
{
	(void)data, (void)arg;
	g_frees++;
	xr_iobuf_clear(&g_again);
}

/* Whoever gets its memory back may be done with all of it. */
static void
test_free_may_clear_the_iobuf(void)
{
	start(1);
	for (int from_behind = 0; from_behind < 2; from_behind++) {
		g_frees = 0;
		for (int i = 0; i < 10; i++)
			ASSERT_EQ(xr_iobuf_append_user(&g_again, pattern, 5, 0, clear_again, NULL), 0);
		ASSERT_EQ((from_behind ? xr_iobuf_drop_back : xr_iobuf_drop)(&g_again, 27), 27);
		ASSERT_EQ(g_frees, 10);
		ASSERT_EQ(xr_iobuf_size(&g_again), 0);
		ASSERT_EQ(xr_iobuf_append(&g_again, "hello", 5), 0);
		CU_ASSERT_TRUE(holds(&g_again, "hello", 5));
		xr_iobuf_clear(&g_again);
	}
	stop();
}

static void
test_append_block(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	struct xr_block *block;

	start(1);
	block = block_alloc(BLOCK_LARGE);
	ASSERT_FATAL(block != NULL);
	memcpy(block_payload(block), pattern, 3000);
	block_hold(block);
	block_hold(block);
	ASSERT_EQ(iobuf_append_block(&buf, block, block_payload(block), 1000), 0);
	ASSERT_EQ(iobuf_append_block(&buf, block, block_payload(block) + 1000, 1000), 0);
	ASSERT_EQ(buf.count_, 1);
	ASSERT_EQ(block->refs, 2);
	ASSERT_EQ(iobuf_append_block(&buf, block, block_payload(block) + 2001, 999), 0);
	ASSERT_EQ(buf.count_, 2);
	ASSERT_EQ(xr_iobuf_size(&buf), 2999);
	ASSERT_EQ(iobuf_pinned_bytes(&buf), 2 * 65536);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 77, 0, NULL, NULL), 0);
	ASSERT_EQ(iobuf_pinned_bytes(&buf), 2 * 65536 + 77);
	ASSERT_EQ(iobuf_pinned_at_most(&buf, BLOCK_LARGE), 3 * 65536);
	ASSERT_EQ(iobuf_pool_bytes(&buf), 2 * 65536);
	xr_iobuf_clear(&buf);
	ASSERT_EQ(iobuf_pinned_bytes(&buf), 0);
	stop();
}

/* A long-lived buffer that once was large keeps no array when it runs empty. */
static void
test_empty_keeps_nothing(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, to = XR_IOBUF_INIT;

	start(1);
	for (int way = 0; way < 3; way++) {
		for (int i = 0; i < 200; i++)
			ASSERT_FATAL(xr_iobuf_append_user(&buf, pattern, 1, 0, NULL, NULL) == 0);
		CU_ASSERT(buf.pieces_ != NULL);
		if (way == 0)
			ASSERT_EQ(xr_iobuf_drop(&buf, 200), 200);
		else if (way == 1)
			xr_iobuf_clear(&buf);
		else
			ASSERT_EQ(xr_iobuf_cut(&buf, 199, &to) + xr_iobuf_cut(&buf, 1, &to), 200);
		CU_ASSERT_PTR_NULL(buf.pieces_);
		ASSERT_EQ(buf.count_, 0);
	}
	xr_iobuf_clear(&to);
	stop();
}

/* The warm path of an lcore calls malloc() never. */
static void
test_warm_path_needs_no_malloc(void)
{
	start(1);
	for (int round = 0; round < 50; round++) {
		struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;

		g_fail_alloc_after = round == 0 ? -1 : 0;
		for (int i = 0; i < 100; i++) {
			ASSERT_FATAL(xr_iobuf_append(&a, pattern, 500) == 0);
			ASSERT_FATAL(xr_iobuf_append_user(&a, pattern, 500, 0, NULL, NULL) == 0);
		}
		for (size_t i = 0; i < 10; i++) {
			ASSERT_FATAL(xr_iobuf_prepend(&a, pattern, 50) == 0);
			ASSERT_FATAL(xr_iobuf_share_part(&b, &a, i, 100) == 100);
		}
		ASSERT_EQ(xr_iobuf_drop_back(&b, SIZE_MAX), 1000);
		ASSERT_FATAL(xr_iobuf_share(&b, &a) == 0);
		while (xr_iobuf_size(&a) > 0)
			ASSERT_FATAL(xr_iobuf_cut(&a, 777, &b) > 0);
		xr_iobuf_clear(&b);
	}
	g_fail_alloc_after = -1;
	stop();
}

static void
test_prepend_of_any_size(void)
{
	const size_t sizes[] = {0, 1, 2, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 2 * PAYLOAD + 1, 40000};

	start(4);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct xr_iobuf buf = XR_IOBUF_INIT;

		ASSERT_EQ(xr_iobuf_prepend(&buf, pattern + 10000, sizes[i]), 0);
		CU_ASSERT(holds(&buf, pattern + 10000, sizes[i]));
		ASSERT_EQ(xr_iobuf_prepend(&buf, pattern, 10000), 0);
		CU_ASSERT(holds(&buf, pattern, 10000 + sizes[i]));
		xr_iobuf_clear(&buf);
	}
	stop();
}

/* Headers in front of headers: the list of pieces grows at its front as it does at its end. */
static void
test_prepend_many_times(void)
{
	enum {
		MANY = 3000
	};
	struct xr_iobuf buf = XR_IOBUF_INIT;

	start(4);
	for (size_t at = MANY; at > 0; at--)
		ASSERT_FATAL(xr_iobuf_prepend(&buf, pattern + at - 1, 1) == 0);
	CU_ASSERT(holds(&buf, pattern, MANY));
	CU_ASSERT(pieces_cap(&buf) <= 4 * MANY);
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_prepend_at_the_limit_changes_nothing(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 100), 0);
	while (xr_iobuf_append(&hog, pattern, PAYLOAD) == 0)
		;
	ASSERT_EQ(xr_iobuf_prepend(&buf, pattern, sizeof pattern), -ENOMEM);
	CU_ASSERT(holds(&buf, pattern, 100));
	xr_iobuf_clear(&hog);
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_drop_back(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_drop_back(&buf, 1), 0);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 30000), 0);
	ASSERT_EQ(xr_iobuf_drop_back(&buf, 0), 0);
	ASSERT_EQ(xr_iobuf_drop_back(&buf, 1), 1);
	CU_ASSERT(holds(&buf, pattern, 29999));
	ASSERT_EQ(xr_iobuf_drop_back(&buf, 29999 - PAYLOAD), 29999 - PAYLOAD);
	CU_ASSERT(holds(&buf, pattern, PAYLOAD));
	ASSERT_EQ(buf.count_, 1);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern + PAYLOAD, 10), 0);
	CU_ASSERT(holds(&buf, pattern, PAYLOAD + 10));
	ASSERT_EQ(xr_iobuf_drop_back(&buf, SIZE_MAX), PAYLOAD + 10);
	ASSERT_EQ(xr_iobuf_size(&buf), 0);
	CU_ASSERT_PTR_NULL(buf.pieces_);
	stop();
}

static void
test_drop_back_frees_user_memory(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	start(1);
	g_frees = 0;
	for (size_t i = 0; i < 3; i++)
		ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 100 * i, 100, 0, count_free, NULL), 0);
	ASSERT_EQ(xr_iobuf_drop_back(&buf, 99), 99);
	ASSERT_EQ(g_frees, 0);
	ASSERT_EQ(xr_iobuf_drop_back(&buf, 2), 2);
	ASSERT_EQ(g_frees, 1);
	CU_ASSERT(holds(&buf, pattern, 199));
	ASSERT_EQ(xr_iobuf_drop_back(&buf, 199), 199);
	ASSERT_EQ(g_frees, 3);
	stop();
}

/* What was dropped at the end may be another's too: it must not be written over. */
static void
test_append_after_drop_back_spares_the_others(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, copy = XR_IOBUF_INIT;

	start(1);
	for (int on_lcore = 1; on_lcore >= 0; on_lcore--) {
		if (!on_lcore)
			fixture_lcore_stop();
		ASSERT_EQ(xr_iobuf_append(&buf, pattern, 100), 0);
		ASSERT_EQ(xr_iobuf_share(&copy, &buf), 0);
		ASSERT_EQ(xr_iobuf_drop_back(&buf, 50), 50);
		ASSERT_EQ(xr_iobuf_append(&buf, pattern, 50), 0);
		CU_ASSERT(holds(&copy, pattern, 100));
		CU_ASSERT(xr_iobuf_equal_bytes(&buf, pattern, 50) == false && xr_iobuf_size(&buf) == 100);
		xr_iobuf_clear(&buf);
		xr_iobuf_clear(&copy);
	}
	fixture_stop();
}

static void
test_cut_out(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	char seen[30000];

	start(1);
	ASSERT_EQ(xr_iobuf_cut_out(&buf, seen, sizeof seen), 0);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 30000), 0);
	ASSERT_EQ(xr_iobuf_cut_out(&buf, seen, 0), 0);
	ASSERT_EQ(xr_iobuf_cut_out(&buf, seen, 12345), 12345);
	CU_ASSERT(memcmp(seen, pattern, 12345) == 0);
	CU_ASSERT(holds(&buf, pattern + 12345, 30000 - 12345));
	ASSERT_EQ(xr_iobuf_cut_out(&buf, seen, sizeof seen), 30000 - 12345);
	CU_ASSERT(memcmp(seen, pattern + 12345, 30000 - 12345) == 0);
	ASSERT_EQ(xr_iobuf_size(&buf), 0);
	stop();
}

UNIT_SUITE("iobuf", {"append of any size", test_append_of_any_size},
	   {"an append at the pool's limit changes nothing", test_append_at_the_limit_changes_nothing},
	   {"a reserve at the pool's limit", test_reserve_at_the_limit},
	   {"user memory is freed once", test_user_memory_is_freed_once},
	   {"user memory that is refused is not freed", test_user_memory_refused_is_not_freed},
	   {"a free_fn may use the iobuf", test_free_may_use_the_iobuf},
	   {"a free_fn may clear the iobuf", test_free_may_clear_the_iobuf}, {"appending blocks", test_append_block},
	   {"an empty iobuf keeps nothing", test_empty_keeps_nothing},
	   {"the warm path needs no malloc", test_warm_path_needs_no_malloc},
	   {"prepend of any size", test_prepend_of_any_size}, {"prepend many times", test_prepend_many_times},
	   {"a prepend at the pool's limit changes nothing", test_prepend_at_the_limit_changes_nothing},
	   {"drop at the end", test_drop_back}, {"drop at the end frees user memory", test_drop_back_frees_user_memory},
	   {"an append after a drop at the end spares the others", test_append_after_drop_back_spares_the_others},
	   {"cut into plain memory", test_cut_out});
