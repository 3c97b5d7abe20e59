/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A fixed run of every call (tests/unit/mem/iobuf_model.h) with the n-th allocation failing, for n = 1, 2, ... until a
 * run has none to fail: piece lists and descriptors, by malloc(), and blocks, by the pool.
 */

#include "tests/unit/fail_alloc.h"
#include "tests/unit/mem/iobuf_fixture.h"
#include "tests/unit/mem/iobuf_model.h"

#define STEPS	 (FAIL_ALLOC ? 2000u : 800u) /* fewer under a sanitizer, where only blocks can fail */
#define RUNS_MAX 5000

struct xr_block *__real_block_alloc_uncached(enum block_type type);
struct xr_block *__wrap_block_alloc_uncached(enum block_type type);
unsigned __wrap_block_alloc_several(enum block_type type, struct xr_block **blocks, unsigned n);

static uint64_t g_random;

static size_t
model_choose(struct model *m, size_t below)
{
	(void)m;
	g_random = g_random * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(g_random >> 33) % below;
}

struct xr_block *
__wrap_block_alloc_uncached(enum block_type type)
{
	if (g_fail_alloc_after < 0 || g_fail_alloc_after-- > 0)
		return __real_block_alloc_uncached(type);
	g_fail_alloc_after = 0;
	errno = ENOMEM;
	return NULL;
}

/* Fewer than n when one of them fails. */
unsigned
__wrap_block_alloc_several(enum block_type type, struct xr_block **blocks, unsigned n)
{
	unsigned count = 0;

	while (count < n && (blocks[count] = block_alloc(type)))
		count++;
	return count;
}

static struct model g_model;

/* After n allocations none succeeds until a call has been refused. False: there were no more than n. */
static bool
run_with_failing(long n, bool on_lcore)
{
	bool failed;

	if (on_lcore)
		fixture_lcore_start(FAIL_ALLOC ? 16 : 0); /* a cached block is no allocation */
	model_start(&g_model, NULL);
	g_random = 1;
	g_fail_alloc_after = n;
	while (g_model.step < STEPS && !g_model.fault) {
		model_step(&g_model);
		if (g_model.refused > 0)
			g_fail_alloc_after = -1;
	}
	failed = g_model.refused > 0 || g_fail_alloc_after == 0;
	g_fail_alloc_after = -1;
	model_end(&g_model);
	if (g_model.fault)
		printf("after %ld allocations, step %zu, line %d: not so: %s\n", n, g_model.step, g_model.fault_line,
		       g_model.fault);
	CU_ASSERT_FATAL(!g_model.fault);
	ASSERT_EQ(g_model.user_freed, g_model.user_made);
	if (on_lcore)
		fixture_lcore_stop();
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	return failed;
}

static void
fail_each(bool on_lcore)
{
	size_t refused = 0;
	long n;

	start(1);
	fixture_lcore_stop();
	for (n = 0; n < RUNS_MAX && run_with_failing(n, on_lcore); n++)
		refused += g_model.refused;
	CU_ASSERT(n > 20 && n < RUNS_MAX);
	CU_ASSERT(refused > (size_t)n / 2);
	fixture_stop();
}

static void
test_on_an_lcore(void)
{
	fail_each(true);
}

/* Without the lcore's caches every list and every descriptor is an allocation. */
static void
test_elsewhere(void)
{
	fail_each(false);
}

UNIT_SUITE("iobuf_alloc", {"any allocation may fail, on an lcore", test_on_an_lcore},
	   {"any allocation may fail, elsewhere", test_elsewhere});
