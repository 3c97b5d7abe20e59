/* SPDX-License-Identifier: Apache-2.0 */

/* The figures of the pools, and the application's own memory in them. */

#include "core/lcore.h"
#include "core/option.h"
#include "mem/poison.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <xrdma/mem.h>

#define MIB ((size_t)1 << 20)

static void
start(const char *flag, const char *another)
{
	char *argv[] = {"test", (char *)flag, (char *)another};
	int argc = flag ? (another ? 3 : 2) : 1;
	bool help, version;

	log_capture_start();
	g_hugepage_told = ~0u;
	ASSERT_FATAL(option_add_table("Memory", g_mem_options) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
	ASSERT_FATAL(option_parse(argc, argv, &help, &version) == argc);
	ASSERT_FATAL(mem_init() == 0);
}

static void
stop(void)
{
	mem_fini();
	option_fini();
	log_capture_stop();
}

static struct xr_mem_info
info_of(enum xr_block_type type)
{
	struct xr_mem_info info;

	for (unsigned i = 0; xr_mem_info(i, &info) == 0; i++)
		if (info.type == type && info.numa_node == 0)
			return info;
	return (struct xr_mem_info){.type = XR_BLOCK_TYPES};
}

static unsigned
count_pools(void)
{
	struct xr_mem_info info;
	unsigned count = 0;

	while (xr_mem_info(count, &info) == 0)
		count++;
	return count;
}

/* ---- figures ---- */

static void
test_nothing_before(void)
{
	struct xr_mem_info info;

	ASSERT_EQ(xr_mem_info(0, &info), -ENOENT);
}

static void
test_where_the_blocks_are(void)
{
	const struct lcore lcore = {.numa_node = 0};
	struct xr_block *blocks[100];
	struct xr_mem_info info;

	start(NULL, NULL);
	ASSERT_EQ(mem_lcore_init(&lcore), 0);
	ASSERT_EQ(count_pools(), 1);
	info = info_of(XR_BLOCK_DEFAULT);
	ASSERT_EQ(info.regions, 1);
	ASSERT_EQ(info.region_bytes, 64 * MIB);
	ASSERT_EQ(info.regions_1g + info.regions_2m + info.regions_transparent + info.regions_ordinary, 1);
	ASSERT_EQ(info.blocks, 8192);
	ASSERT_EQ(info.free, 8192);
	ASSERT_EQ(info.cached + info.in_use + info.recv_slots + info.in_use_peak, 0);
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, blocks, 100), 100);
	block_recv_slots_add(BLOCK_DEFAULT, 60);
	info = info_of(XR_BLOCK_DEFAULT);
	ASSERT_EQ(info.free, 8092);
	ASSERT_EQ(info.recv_slots, 60);
	ASSERT_EQ(info.in_use, 40);
	ASSERT_EQ(info.in_use_peak, 100);
	for (int i = 0; i < 50; i++)
		block_drop(blocks[i]);
	block_recv_slots_add(BLOCK_DEFAULT, -50);
	info = info_of(XR_BLOCK_DEFAULT);
	ASSERT_EQ(info.cached, 50);
	ASSERT_EQ(info.recv_slots, 10);
	ASSERT_EQ(info.in_use, 40);
	block_recv_slots_add(BLOCK_DEFAULT, -10);
	for (int i = 50; i < 100; i++)
		block_drop(blocks[i]);
	mem_lcore_fini();
	info = info_of(XR_BLOCK_DEFAULT);
	ASSERT_EQ(info.free, 8192);
	ASSERT_EQ(info.in_use_peak, 100);
	ASSERT_EQ(info.remote_frees, 0);
	stop();
}

static void
test_whose_cache_they_are_in(void)
{
	struct xr_block *blocks[30];
	unsigned id;

	ASSERT_EQ(xr_mem_cached(0, 0), -ENOENT);
	ASSERT_EQ(lcore_init(), 0);
	id = t_lcore->id;
	start(NULL, NULL);
	ASSERT_EQ(xr_mem_cached(0, id), -ENOENT); /* it does not work yet */
	ASSERT_EQ(mem_lcore_init(t_lcore), 0);
	ASSERT_EQ(xr_mem_cached(0, id), 0);
	ASSERT_EQ(block_alloc_bulk(BLOCK_DEFAULT, blocks, 30), 30);
	for (int i = 0; i < 30; i++)
		block_drop(blocks[i]);
	ASSERT_EQ(xr_mem_cached(0, id), 30);
	ASSERT_EQ(info_of(XR_BLOCK_DEFAULT).cached, 30);
	ASSERT_EQ(xr_mem_cached(0, XR_LCORE_NONE), -ENOENT);
	ASSERT_EQ(xr_mem_cached(1, id), -ENOENT);
	mem_lcore_fini();
	ASSERT_EQ(xr_mem_cached(0, id), -ENOENT);
	stop();
	lcore_fini();
}

static void
test_growth_is_counted(void)
{
	struct xr_block *block;
	struct xr_mem_info info;

	start("--rdma_memory_pool_max_regions=1", NULL);
	block = block_alloc(BLOCK_HUGE);
	CU_ASSERT_FATAL(block != NULL);
	block_drop(block);
	ASSERT_EQ(count_pools(), 2);
	info = info_of(XR_BLOCK_HUGE);
	ASSERT_EQ(info.blocks, 32);
	ASSERT_EQ(info.grown, 0); /* its first */
	ASSERT_EQ(info.remote_frees, 1);
	ASSERT_EQ(info.limit_hits, 0);
	stop();
}

static void
test_names(void)
{
	ASSERT_STR(xr_block_type_name(XR_BLOCK_DEFAULT), "default");
	ASSERT_STR(xr_block_type_name(XR_BLOCK_HUGE), "huge");
	CU_ASSERT_PTR_NULL(xr_block_type_name(XR_BLOCK_TYPES));
}

/* ---- memory of the application's ---- */

static char *
map_own(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_FATAL(addr != MAP_FAILED);
	return addr;
}

#define ONLY_OWN "--rdma_memory_pool_user_specified_memory"

/* A pool without memory is there, and says what it waits for. */
static void
test_none_added(void)
{
	start(ONLY_OWN, NULL);
	ASSERT_EQ(count_pools(), 0);
	ASSERT_EQ(log_capture_count(), 0);
	CU_ASSERT_PTR_NULL(block_alloc(BLOCK_DEFAULT));
	ASSERT_EQ(errno, ENOMEM);
	CU_ASSERT_PTR_NULL(block_alloc_recv(BLOCK_DEFAULT));
	ASSERT_EQ(errno, ENOMEM);
	ASSERT_EQ(log_capture_count(), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(log_capture_last(), "xr_mem_pool_add()"));
	CU_ASSERT_PTR_NOT_NULL(strstr(log_capture_last(), ONLY_OWN));
	stop();
}

static void
test_only_what_is_added(void)
{
	struct xr_block *blocks[300];
	struct xr_mem_info info;
	char *own = map_own(2 * MIB);
	unsigned count;

	start(ONLY_OWN, NULL);
	ASSERT_EQ(xr_mem_pool_add(own, 2 * MIB, XR_BLOCK_DEFAULT, 0), 0);
	info = info_of(XR_BLOCK_DEFAULT);
	ASSERT_EQ(info.blocks, 256);
	ASSERT_EQ(info.regions_user, 1);
	ASSERT_EQ(info.regions, 1);
	count = block_alloc_bulk(BLOCK_DEFAULT, blocks, 300);
	ASSERT_EQ(count, 256);
	while (count-- > 0) {
		CU_ASSERT((char *)blocks[count] >= own && (char *)blocks[count] < own + 2 * MIB);
		memset(block_payload(blocks[count]), 1, block_payload_bytes(BLOCK_DEFAULT));
		block_drop(blocks[count]);
	}
	stop();
	munmap(own, 2 * MIB);
}

static void *
take_as_soon_as_there_is(void *arg)
{
	struct xr_block *block;

	(void)arg;
	while (!(block = block_alloc(BLOCK_DEFAULT)))
		sched_yield();
	block_drop(block);
	return NULL;
}

static bool g_logged, g_added;

/* Relaxed: what the thread that logs has read must be safe by itself. */
static void
await_addition(enum xr_log_level level, const char *line, void *arg)
{
	(void)level, (void)line, (void)arg;
	__atomic_store_n(&g_logged, true, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&g_added, __ATOMIC_RELAXED))
		sched_yield();
}

/* What the pool says of its limit is read while the limit moves. */
static void
test_added_meanwhile(void)
{
	char *own = map_own(4 * MIB);
	pthread_t thread;

	start(ONLY_OWN, NULL);
	xr_log_set_sink(await_addition, NULL);
	ASSERT_FATAL(pthread_create(&thread, NULL, take_as_soon_as_there_is, NULL) == 0);
	while (!__atomic_load_n(&g_logged, __ATOMIC_RELAXED))
		sched_yield();
	ASSERT_EQ(xr_mem_pool_add(own, 2 * MIB, XR_BLOCK_DEFAULT, 0), 0);
	ASSERT_EQ(xr_mem_pool_add(own + 2 * MIB, 2 * MIB, XR_BLOCK_DEFAULT, 0), 0);
	__atomic_store_n(&g_added, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	ASSERT_EQ(info_of(XR_BLOCK_DEFAULT).free, 512);
	CU_ASSERT(info_of(XR_BLOCK_DEFAULT).limit_hits > 0);
	stop();
	munmap(own, 4 * MIB);
}

static void
test_beside_the_librarys(void)
{
	struct xr_mem_info info;
	char *own = map_own(4 * MIB);

	start("--rdma_memory_pool_max_regions=3", NULL);
	ASSERT_EQ(xr_mem_pool_add(own, 4 * MIB, XR_BLOCK_DEFAULT, 0), 0);
	info = info_of(XR_BLOCK_DEFAULT);
	ASSERT_EQ(info.regions, 2);
	ASSERT_EQ(info.regions_user, 1);
	ASSERT_EQ(info.blocks, 8192 + 512);
	ASSERT_EQ(info.region_bytes, 68 * MIB);
	stop();
	memset(own, 1, 4 * MIB); /* it is the application's again */
	munmap(own, 4 * MIB);
}

static void
test_bad_memory(void)
{
	char *own = map_own(8 * MIB);

	ASSERT_EQ(xr_mem_pool_add(own, 2 * MIB, XR_BLOCK_DEFAULT, 0), -EINVAL); /* before xr_init() */
	start("--rdma_memory_pool_max_regions=2", NULL);
	ASSERT_EQ(xr_mem_pool_add(NULL, 2 * MIB, XR_BLOCK_DEFAULT, 0), -EINVAL);
	ASSERT_EQ(xr_mem_pool_add(own + 8, 2 * MIB, XR_BLOCK_DEFAULT, 0), -EINVAL);
	ASSERT_EQ(xr_mem_pool_add(own, 0, XR_BLOCK_DEFAULT, 0), -EINVAL);
	ASSERT_EQ(xr_mem_pool_add(own, 8193, XR_BLOCK_DEFAULT, 0), -EINVAL);
	ASSERT_EQ(xr_mem_pool_add(own, MIB, XR_BLOCK_HUGE, 0), -EINVAL);
	ASSERT_EQ(xr_mem_pool_add(own, 2 * MIB, XR_BLOCK_TYPES, 0), -EINVAL);
	ASSERT_EQ(xr_mem_pool_add(own, 2 * MIB, XR_BLOCK_DEFAULT, 256), -EINVAL);
	ASSERT_EQ(xr_mem_pool_add(region_at(0)->addr, 2 * MIB, XR_BLOCK_DEFAULT, 0), -EEXIST);
	ASSERT_EQ(xr_mem_pool_add(own + 2 * MIB, 2 * MIB, XR_BLOCK_LARGE, 0), 0);
	ASSERT_EQ(xr_mem_pool_add(own, 4 * MIB, XR_BLOCK_DEFAULT, 0), -EEXIST);
	ASSERT_EQ(xr_mem_pool_add(own + 3 * MIB, 2 * MIB, XR_BLOCK_LARGE, 0), -EEXIST);
	ASSERT_EQ(xr_mem_pool_add(own, 2 * MIB, XR_BLOCK_LARGE, 0), 0);
	ASSERT_EQ(xr_mem_pool_add(own + 4 * MIB, 2 * MIB, XR_BLOCK_LARGE, 0), -ENOSPC);
	ASSERT_EQ(info_of(XR_BLOCK_LARGE).blocks, 64);
	stop();
	munmap(own, 8 * MIB);
}

/* ---- and its keys ---- */

static unsigned g_registered;
static bool g_refuse;

static int
fake_register(unsigned device, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	(void)len;
	if (g_refuse)
		return -EIO;
	g_registered++;
	*handle = addr;
	*lkey = device << 16 | g_registered;
	return 0;
}

static void
fake_unregister(unsigned device, void *handle)
{
	(void)device, (void)handle;
	g_registered--;
}

static const struct mem_device_ops ops = {.register_range = fake_register, .unregister_range = fake_unregister};

/* Both ways lead to the same key, from the block and from any address in it. */
static void
test_keys(void)
{
	struct xr_block *block;
	uint32_t by_block = 0, by_address = 1;
	char *own = map_own(6 * MIB);

	g_refuse = false;
	start(ONLY_OWN, NULL);
	ASSERT_EQ(xr_mem_pool_add(own + 4 * MIB, 2 * MIB, XR_BLOCK_HUGE, 0), 0);
	ASSERT_EQ(mem_device_add(2, &ops), 0);
	ASSERT_EQ(xr_mem_pool_add(own, 2 * MIB, XR_BLOCK_HUGE, 0), 0);
	ASSERT_EQ(g_registered, 2);
	for (int i = 0; i < 2; i++) {
		block = fixture_any_block(BLOCK_HUGE);
		CU_ASSERT_FATAL(block != NULL);
		ASSERT_EQ(mem_block_lkey(2, block, &by_block), 0);
		ASSERT_EQ(mem_lkey(2, block_payload(block) + 12345, &by_address), 0);
		ASSERT_EQ(by_block, by_address);
		ASSERT_EQ(mem_block_lkey(1, block, &by_block), -ENODEV);
		block_drop(block);
	}
	ASSERT_EQ(mem_lkey(2, own + 2 * MIB, &by_address), -ERANGE);
	ASSERT_EQ(mem_lkey(2, own + 4 * MIB - 1, &by_address), -ERANGE);
	ASSERT_EQ(mem_lkey(2, own - 1, &by_address), -ERANGE);
	g_refuse = true;
	ASSERT_EQ(xr_mem_pool_add(own + 2 * MIB, 2 * MIB, XR_BLOCK_HUGE, 0), -EIO);
	ASSERT_EQ(mem_lkey(2, own + 2 * MIB, &by_address), -ERANGE);
	g_refuse = false;
	ASSERT_EQ(xr_mem_pool_add(own + 2 * MIB, 2 * MIB, XR_BLOCK_HUGE, 0), 0);
	ASSERT_EQ(mem_lkey(2, own + 2 * MIB, &by_address), 0);
	ASSERT_EQ(g_registered, 3);
	stop();
	ASSERT_EQ(g_registered, 0);
	munmap(own, 6 * MIB);
}

UNIT_SUITE("mem_info", {"before xr_init() there are none", test_nothing_before},
	   {"where the blocks are", test_where_the_blocks_are},
	   {"whose cache they are in", test_whose_cache_they_are_in}, {"growth is counted", test_growth_is_counted},
	   {"types have names", test_names}, {"own memory only, and none added", test_none_added},
	   {"own memory only", test_only_what_is_added},
	   {"own memory comes while it is asked for", test_added_meanwhile},
	   {"own memory beside the library's", test_beside_the_librarys},
	   {"memory that can't be used", test_bad_memory}, {"keys of own memory", test_keys});
