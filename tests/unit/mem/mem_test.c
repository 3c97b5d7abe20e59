/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lcore.h"
#include "core/option.h"
#include "mem/iobuf.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>

#define MIB ((size_t)1 << 20)

/* Parses the flags, up to four, and brings the whole floor up. */
static int
start(const char *const *flags)
{
	char *argv[6] = {"test"};
	bool help, version;
	int argc = 1;

	for (; flags && *flags; flags++)
		argv[argc++] = (char *)*flags;
	log_capture_start();
	g_hugepage_told = 0;
	ASSERT_FATAL(option_add_table("Memory", g_mem_options) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
	if (option_parse(argc, argv, &help, &version) < 0)
		return -EINVAL;
	return mem_init();
}

static void
stop(void)
{
	mem_fini();
	option_fini();
	log_capture_stop();
}

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
test_defaults(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	const struct lcore lcore = {.numa_node = 0};

	ASSERT_EQ(start(NULL), 0);
	CU_ASSERT(log_capture_count() <= 1); /* a machine without huge pages says so once */
	for (unsigned i = 0; i < log_capture_count(); i++)
		ASSERT_EQ(log_capture_level(i), XR_LOG_NOTICE);
	ASSERT_EQ(mem_recv_block_type(), BLOCK_DEFAULT);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).blocks, 64 * MIB / 8192);
	ASSERT_EQ(fixture_figures(BLOCK_LARGE).regions, 0);
	ASSERT_EQ(mem_lcore_init(&lcore), 0);
	ASSERT_EQ(xr_iobuf_append(&buf, "hello", 5), 0);
	xr_iobuf_clear(&buf);
	ASSERT_EQ(block_cache_count(BLOCK_DEFAULT), 63); /* half of 128, less the running block */
	mem_lcore_fini();
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	stop();
}

static void
test_sizes_from_flags(void)
{
	struct xr_block *block;

	ASSERT_EQ(start(FLAGS("--rdma_memory_pool_initial_size_mb=32", "--rdma_memory_pool_increase_size_mb=35",
			      "--rdma_recv_block_type=large", "--rdma_memory_pool_buckets=16")),
		  0);
	ASSERT_EQ(mem_recv_block_type(), BLOCK_LARGE);
	ASSERT_EQ(fixture_figures(BLOCK_LARGE).blocks, 32 * MIB / 65536);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).regions, 0);
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_FATAL(block != NULL);
	ASSERT_EQ(fixture_figures(BLOCK_DEFAULT).blocks, 34 * MIB / 8192); /* whole 2 MiB pages */
	block_drop(block);
	stop();
}

static void
test_caches_from_flags(void)
{
	const struct lcore lcore = {.numa_node = 0};
	const struct {
		const char *flag;
		unsigned of_default, of_large, of_huge;
	} cases[] = {
		{"--rdma_memory_pool_tls_cache_num=0", 0, 0, 0},
		{"--rdma_memory_pool_tls_cache_num=1", 1, 1, 1},
		{"--rdma_memory_pool_tls_cache_num=10", 10, 10, 2},
		{"--rdma_memory_pool_tls_cache_num=500", 500, 16, 2},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const unsigned expected[BLOCK_TYPES] = {cases[i].of_default, cases[i].of_large, cases[i].of_huge};
		static struct xr_block *blocks[600];

		ASSERT_EQ(start(FLAGS(cases[i].flag)), 0);
		ASSERT_EQ(mem_lcore_init(&lcore), 0);
		for (unsigned type = 0; type < BLOCK_TYPES; type++) {
			unsigned n = block_alloc_bulk((enum block_type)type, blocks, type == BLOCK_DEFAULT ? 600 : 20);

			CU_ASSERT(n >= 20);
			for (unsigned at = 0; at < n && at < 1 + expected[type]; at++)
				CU_ASSERT_FATAL(blocks[at] != NULL);
			for (unsigned at = 0; at < n; at++) {
				block_drop(blocks[at]);
				CU_ASSERT(block_cache_count(type) <= expected[type]);
				if (at + 1 == expected[type])
					ASSERT_EQ(block_cache_count(type), expected[type]);
			}
			ASSERT_EQ(fixture_in_use(type), 0);
		}
		mem_lcore_fini();
		stop();
	}
}

static void
expect_refusal(const char *const *flags, const char *word)
{
	CU_ASSERT(start(flags) < 0);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_EQ(log_capture_level(0), XR_LOG_ERROR);
	if (!strstr(log_capture_last(), word)) {
		printf("\"%s\" does not say \"%s\"\n", log_capture_last(), word);
		CU_FAIL("the line names the flag");
	}
	stop();
}

static void
test_bad_flags(void)
{
	expect_refusal(FLAGS("--rdma_recv_block_type=enormous"), "large (64 KiB)");
	expect_refusal(FLAGS("--rdma_memory_pool_initial_size_mb=31"), "32");
	expect_refusal(FLAGS("--rdma_memory_pool_increase_size_mb=1048577"), "1048576");
	expect_refusal(FLAGS("--rdma_memory_pool_max_regions=0"), "16");
	expect_refusal(FLAGS("--rdma_memory_pool_max_regions=17"), "16");
	expect_refusal(FLAGS("--rdma_memory_pool_buckets=17"), "16");
	expect_refusal(FLAGS("--rdma_memory_pool_tls_cache_num=-1"), "0");
	expect_refusal(FLAGS("--pool_max_mb=63"), "--pool_max_mb");
	expect_refusal(FLAGS("--pool_max_mb=100", "--rdma_recv_block_type=large"), "128");
}

static void *
no_address_space(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	(void)addr, (void)len, (void)prot, (void)flags, (void)fd, (void)offset;
	errno = ENOMEM;
	return (void *)-1;
}

static size_t
nothing_available(void)
{
	return 0;
}

/* One line, -ENOMEM, and a floor that can be brought up again. */
static void
test_a_machine_that_is_too_small(void)
{
	struct hugepage_sys real = g_hugepage_sys;

	g_hugepage_sys.mmap = no_address_space;
	ASSERT_EQ(start(NULL), -ENOMEM);
	ASSERT_EQ(log_capture_count(), 1);
	CU_ASSERT(strstr(log_capture_last(), "--rdma_memory_pool_max_regions") != NULL);
	stop();
	g_hugepage_sys = real;
	g_hugepage_sys.available_bytes = nothing_available;
	ASSERT_EQ(start(NULL), -ENOMEM);
	ASSERT_EQ(log_capture_count(), 1);
	CU_ASSERT(strstr(log_capture_last(), "64 MiB") != NULL);
	stop();
	ASSERT_EQ(start(FLAGS("--require-hugepages")), -EINVAL);
	ASSERT_EQ(log_capture_count(), 1);
	CU_ASSERT(strstr(log_capture_last(), "--require-hugepages") != NULL);
	stop();
	g_hugepage_sys = real;
	ASSERT_EQ(start(NULL), 0);
	stop();
}

static void
test_cap_of_exactly_one_region(void)
{
	struct xr_block *block;

	ASSERT_EQ(start(FLAGS("--pool_max_mb=64")), 0);
	CU_ASSERT_PTR_NULL(block_alloc(BLOCK_HUGE));
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_FATAL(block != NULL);
	block_drop(block);
	CU_ASSERT(strstr(log_capture_last(), "--pool_max_mb") != NULL);
	stop();
}

static void
test_blocks_left_out_are_reported(void)
{
	struct xr_block *block;

	ASSERT_EQ(start(NULL), 0);
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_FATAL(block != NULL);
	mem_fini();
	CU_ASSERT(strstr(log_capture_last(), "1 blocks of 8192 bytes") != NULL);
	stop();
}

static void
test_nothing_without_init(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	uint32_t lkey;

	ASSERT_EQ(xr_iobuf_append(&buf, "x", 1), -ENOMEM);
	ASSERT_EQ(mem_lkey(0, &buf, &lkey), -ERANGE);
	mem_lcore_fini();
	mem_fini();
	mem_fini();
}

/* What a device pins at first and at most: two types when blocks to receive into are not those to send from. */
static void
test_demand(void)
{
	size_t mapped, most;

	ASSERT_EQ(lcore_init(), 0);
	ASSERT_EQ(start(NULL), 0);
	mem_demand(&mapped, &most);
	ASSERT_EQ(mapped, 64 * MIB);
	CU_ASSERT(most % (4 * 64 * MIB) == 0 && most > 0); /* for each node of the machine */
	stop();
	ASSERT_EQ(start(FLAGS("--rdma_recv_block_type=large", "--pool_max_mb=300")), 0);
	mem_demand(&mapped, &most);
	ASSERT_EQ(most, 300 * MIB);
	stop();
	ASSERT_EQ(start(FLAGS("--hugepage_1g", "--rdma_memory_pool_max_regions=2")), 0);
	mem_demand(&mapped, &most);
	CU_ASSERT(most % (2 * 1024 * MIB) == 0 && most > 0); /* of 1 GiB, if the machine has such pages */
	stop();
	ASSERT_EQ(start(FLAGS("--rdma_memory_pool_user_specified_memory")), 0);
	mem_demand(&mapped, &most);
	ASSERT_EQ(mapped, 0);
	ASSERT_EQ(most, 0);
	stop();
	lcore_fini();
}

UNIT_SUITE("mem", {"the defaults", test_defaults}, {"sizes from the flags", test_sizes_from_flags},
	   {"caches from the flags", test_caches_from_flags}, {"bad flags are one line", test_bad_flags},
	   {"what devices will have to pin", test_demand},
	   {"a machine that is too small is one line", test_a_machine_that_is_too_small},
	   {"a cap of exactly one region", test_cap_of_exactly_one_region},
	   {"blocks left out are reported", test_blocks_left_out_are_reported},
	   {"without mem_init() there is nothing", test_nothing_without_init});
