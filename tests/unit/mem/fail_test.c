/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The whole floor, from its start over some work to its end, with the n-th allocation or mapping failing, for n = 1, 2,
 * ... until nothing fails any more: it may refuse, but it neither crashes, hangs, nor keeps anything.
 */

#include "core/lcore.h"
#include "core/option.h"
#include "mem/iobuf.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <sys/mman.h>
#include <xrdma/mem.h>

/* ---- system calls that fail once ---- */

static struct hugepage_sys g_real;
static long g_calls, g_fail_at; /* 0: none */

static bool
fails_now(void)
{
	return __atomic_add_fetch(&g_calls, 1, __ATOMIC_RELAXED) == g_fail_at;
}

static bool g_any_page_is_huge;

/* What is reserved anew after a failure can't fail: it replaces a mapping. */
static void *
failing_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	bool again = flags & MAP_FIXED && prot == PROT_NONE;

	if (!again && fails_now()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (g_any_page_is_huge)
		flags &= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	return g_real.mmap(addr, len, prot, flags, fd, offset);
}

static int
failing_mprotect(void *addr, size_t len, int prot)
{
	if (fails_now()) {
		errno = ENOMEM;
		return -1;
	}
	return g_real.mprotect(addr, len, prot);
}

static int
failing_madvise(void *addr, size_t len, int advice)
{
	if (fails_now()) {
		errno = EFAULT;
		return -1;
	}
	return g_real.madvise(addr, len, advice);
}

static size_t
plenty(void)
{
	return SIZE_MAX;
}

/* ---- devices that refuse ---- */

static int g_registered;

static int
register_range(unsigned device, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	(void)len;
	if (fails_now())
		return -ENOMEM;
	__atomic_fetch_add(&g_registered, 1, __ATOMIC_RELAXED);
	*handle = addr;
	*lkey = device;
	return 0;
}

static void
unregister_range(unsigned device, void *handle)
{
	(void)device, (void)handle;
	__atomic_fetch_sub(&g_registered, 1, __ATOMIC_RELAXED);
}

static const struct mem_device_ops g_ops = {.register_range = register_range, .unregister_range = unregister_range};

/* ---- the work ---- */

static void
use_iobufs(void)
{
	static char bytes[100000];
	struct xr_iobuf buf = XR_IOBUF_INIT, other = XR_IOBUF_INIT;

	xr_iobuf_append(&buf, bytes, sizeof bytes);
	xr_iobuf_share(&other, &buf);
	xr_iobuf_clear(&buf);
	xr_iobuf_clear(&other);
}

static void *
use_on_a_thread(void *arg)
{
	(void)arg;
	use_iobufs();
	return NULL;
}

/* More than a region, so that the pool grows. */
static void
use_blocks(enum block_type type, unsigned count)
{
	static struct xr_block *blocks[6000];

	count = block_alloc_bulk(type, blocks, count);
	for (unsigned i = 0; i < count; i++) {
		block_payload(blocks[i])[0] = 1;
		block_drop(blocks[i]);
	}
	if ((blocks[0] = block_alloc(type)))
		block_drop(blocks[0]);
}

static char g_own[64 << 10] __attribute__((aligned(4096)));

static void
work(void)
{
	const struct lcore lcore = {.numa_node = 0};
	bool is_lcore = mem_lcore_init(&lcore) == 0;
	pthread_t thread;

	if (mem_device_add(0, &g_ops) == 0)
		mem_device_del(0);
	mem_device_add(1, &g_ops);
	use_blocks(BLOCK_DEFAULT, 6000);
	use_blocks(BLOCK_LARGE, 16);
	xr_mem_pool_add(g_own, sizeof g_own, XR_BLOCK_LARGE, 0);
	use_iobufs();
	if (pthread_create(&thread, NULL, use_on_a_thread, NULL) == 0)
		pthread_join(thread, NULL);
	if (is_lcore)
		mem_lcore_fini();
}

static void
check_nothing_is_kept(void)
{
	struct xr_mem_info info;

	for (unsigned i = 0; xr_mem_info(i, &info) == 0; i++)
		ASSERT_EQ(info.free, info.blocks);
}

static char *g_argv[] = {"test", "--rdma_memory_pool_initial_size_mb=32", "--rdma_memory_pool_increase_size_mb=32",
			 "--rdma_memory_pool_max_regions=2", "--require_hugepages=false"};
#define ARGS ((int)(sizeof g_argv / sizeof *g_argv))

static unsigned g_refused;

/* Once through, with the failures armed only where the floor is at work. */
static void
once(long fail_allocation, long fail_call)
{
	bool help, version;
	int status;

	log_capture_start();
	g_hugepage_told = ~0u;
	ASSERT_FATAL(option_add_table("Memory", g_mem_options) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
	ASSERT_FATAL(option_parse(ARGS, g_argv, &help, &version) == ARGS);
	g_calls = 0;
	g_fail_at = fail_call;
	g_fail_alloc_failed = 0;
	g_fail_alloc_after = fail_allocation;
	status = mem_init();
	if (status == 0) {
		work();
		g_fail_alloc_after = -1;
		check_nothing_is_kept();
	} else if (status == -EINVAL) {
		CU_ASSERT(log_capture_count() > 0 && log_capture_level(0) == XR_LOG_ERROR);
		g_refused++;
	}
	g_fail_alloc_after = -1;
	mem_fini();
	ASSERT_EQ(g_registered, 0);
	option_fini();
	log_capture_stop();
}

static void
start(void)
{
	g_real = g_hugepage_sys;
	g_hugepage_sys.mmap = failing_mmap;
	g_hugepage_sys.mprotect = failing_mprotect;
	g_hugepage_sys.madvise = failing_madvise;
	g_hugepage_sys.available_bytes = plenty;
}

static void
stop(void)
{
	g_hugepage_sys = g_real;
}

static void
test_system_calls(void)
{
	long n = 0;

	start();
	do
		once(-1, ++n);
	while (g_calls >= n && n < 500);
	CU_ASSERT(n > 5 && n < 500);
	stop();
}

/* From the n-th on all fail, for there is no memory. */
static void
fail_allocations(void)
{
	long n = 0, failed = 0;

	start();
	do {
		once(n++, 0);
		failed += g_fail_alloc_failed > 0;
	} while (g_fail_alloc_failed > 0 && n < 500);
	CU_ASSERT(failed > 10 && n < 500);
	stop();
}

static void
test_allocations(void)
{
	if (FAIL_ALLOC)
		fail_allocations();
	else
		unit_skip("a sanitizer has its own malloc()");
}

/* Where no step down is allowed the first region ends the start, and whatever kept it back is told. */
static void
test_allocations_for_huge_pages(void)
{
	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer has its own malloc()");
		return;
	}
	g_argv[ARGS - 1] = "--require_hugepages=true";
	g_any_page_is_huge = true;
	g_refused = 0;
	fail_allocations();
	CU_ASSERT(g_refused > 0);
	g_any_page_is_huge = false;
	g_argv[ARGS - 1] = "--require_hugepages=false";
}

UNIT_SUITE("mem_fail", {"any system call may fail", test_system_calls}, {"any allocation may fail", test_allocations},
	   {"any allocation may fail where huge pages are required", test_allocations_for_huge_pages});
