/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/mem.h"
#include "core/lcore.h"
#include "core/log.h"
#include "core/option.h"
#include "mem/block_cache.h"
#include "mem/device.h"
#include "mem/growth.h"
#include "mem/pieces.h"
#include "mem/pool.h"
#include "mem/region.h"
#include "mem/tail.h"
#include "mem/user_block.h"
#include "mem/user_range.h"
#include <errno.h>
#include <numa.h>
#include <string.h>
#include <xrdma/error.h>
#include <xrdma/mem.h>

#define MIB		((size_t)1 << 20)
#define NODES_MAX	256u /* struct xr_block has 8 bits for them */
#define CACHE_LARGE_MAX 16u
#define CACHE_HUGE_MAX	2u
#define MEM_ADD_ALIGN	4096u

_Static_assert((int)XR_BLOCK_TYPES == (int)BLOCK_TYPES && (int)XR_BLOCK_HUGE == (int)BLOCK_HUGE, "one list");

static struct {
	int64_t initial_mb, increase_mb, max_regions, max_mb;
	int64_t buckets, cache_blocks;
	int64_t hugepage_1g, require_hugepages, strict_numa;
	int64_t user_memory;
	const char *block_type;
} g_values;

static int
check_block_type(const char *value, const char **why)
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++)
		if (strcmp(value, block_type_name(type)) == 0)
			return 0;
	*why = "default (8 KiB), large (64 KiB) and huge (2 MiB) are allowed";
	return -EINVAL;
}

const struct xr_option g_mem_options[] = {
	{.name = "rdma_memory_pool_initial_size_mb",
	 .type = XR_OPTION_INT,
	 .value = &g_values.initial_mb,
	 .default_value = "64",
	 .min = 32,
	 .max = 1048576,
	 .placeholder = "MB",
	 .help = "size of the first region of registered memory"},
	{.name = "rdma_memory_pool_increase_size_mb",
	 .type = XR_OPTION_INT,
	 .value = &g_values.increase_mb,
	 .default_value = "64",
	 .min = 32,
	 .max = 1048576,
	 .placeholder = "MB",
	 .help = "size of every further region"},
	{.name = "rdma_memory_pool_max_regions",
	 .type = XR_OPTION_INT,
	 .value = &g_values.max_regions,
	 .default_value = "4",
	 .min = 1,
	 .max = 16,
	 .placeholder = "N",
	 .help = "regions that one NUMA node and one block type may have"},
	{.name = "pool_max_mb",
	 .type = XR_OPTION_INT,
	 .value = &g_values.max_mb,
	 .default_value = "0",
	 .min = 0,
	 .max = 1 << 26,
	 .placeholder = "MB",
	 .help = "limit of all regions together, in whole regions; 0: none"},
	{.name = "rdma_memory_pool_buckets",
	 .type = XR_OPTION_INT,
	 .value = &g_values.buckets,
	 .default_value = "4",
	 .min = 1,
	 .max = 16,
	 .placeholder = "N",
	 .help = "accepted for brpc's sake; has no meaning here, where every lcore has caches of its own"},
	{.name = "rdma_memory_pool_tls_cache_num",
	 .type = XR_OPTION_INT,
	 .value = &g_values.cache_blocks,
	 .default_value = "128",
	 .min = 0,
	 .max = 65536,
	 .placeholder = "N",
	 .help = "free 8 KiB blocks that each lcore may keep (of large blocks 16 at most, of huge ones 2)"},
	{.name = "rdma_recv_block_type",
	 .type = XR_OPTION_STRING,
	 .value = &g_values.block_type,
	 .default_value = "default",
	 .set = check_block_type,
	 .placeholder = "TYPE",
	 .help = "blocks to receive into: default (8 KiB), large (64 KiB), huge (2 MiB)"},
	{.name = "hugepage_1g",
	 .type = XR_OPTION_BOOL,
	 .value = &g_values.hugepage_1g,
	 .default_value = "false",
	 .help = "try 1 GiB pages first; a region that gets them is a multiple of that"},
	{.name = "require_hugepages",
	 .type = XR_OPTION_BOOL,
	 .value = &g_values.require_hugepages,
	 .default_value = "false",
	 .help = "2 MiB or 1 GiB pages or an error, instead of smaller pages"},
	{.name = "strict_numa",
	 .type = XR_OPTION_BOOL,
	 .value = &g_values.strict_numa,
	 .default_value = "false",
	 .help = "memory of the lcore's own NUMA node or an error, instead of another node's"},
	{.name = "rdma_memory_pool_user_specified_memory",
	 .type = XR_OPTION_BOOL,
	 .value = &g_values.user_memory,
	 .default_value = "false",
	 .help = "map no regions: the pools have the memory that the application adds with xr_mem_pool_add()"},
	{.name = NULL},
};

int
mem_counters_add(void)
{
	int status = counter_add_table(g_hugepage_counters, HUGEPAGE_COUNTERS);

	return status != 0 ? status : counter_add_table(g_pool_counters, POOL_COUNTERS);
}

enum block_type
mem_recv_block_type(void)
{
	unsigned type = 0;

	while (g_values.block_type && type < BLOCK_HUGE && strcmp(g_values.block_type, block_type_name(type)) != 0)
		type++;
	return type;
}

static unsigned
node_count(void)
{
	unsigned count = numa_available() < 0 ? 1 : (unsigned)numa_max_node() + 1;

	return count < NODES_MAX ? count : NODES_MAX;
}

static unsigned
node_of(const struct lcore *lcore)
{
	return lcore && lcore->numa_node > 0 && (unsigned)lcore->numa_node < node_count() ? (unsigned)lcore->numa_node
											  : 0;
}

/* Whole 2 MiB pages. */
static size_t
region_bytes(int64_t mb)
{
	return (size_t)mb * MIB / HUGEPAGE_2M_BYTES * HUGEPAGE_2M_BYTES;
}

static struct pool_config
pool_config(void)
{
	return (struct pool_config){
		.nodes = node_count(),
		.initial_bytes = region_bytes(g_values.initial_mb),
		.increase_bytes = region_bytes(g_values.increase_mb),
		.first_type = mem_recv_block_type(),
		.max_regions = (unsigned)g_values.max_regions,
		.max_bytes = (size_t)g_values.max_mb * MIB,
		.lcores = lcore_count(),
		.user_memory = g_values.user_memory != 0,
	};
}

static struct region_config
region_config(const struct pool_config *pool)
{
	return (struct region_config){
		.slot_bytes = pool->initial_bytes > pool->increase_bytes ? pool->initial_bytes : pool->increase_bytes,
		.max_bytes = pool->max_bytes,
		.slots = pool->nodes * BLOCK_TYPES * pool->max_regions,
		.user_slots = pool->nodes * BLOCK_TYPES * pool->max_regions,
		.try_1g = g_values.hugepage_1g != 0,
		.require_hugepages = g_values.require_hugepages != 0,
		.strict_numa = g_values.strict_numa != 0,
	};
}

/* A cap must hold one region for receiving, and one for sending when that takes other blocks. */
static int
check_cap(const struct pool_config *config)
{
	size_t least = config->initial_bytes + (config->first_type == BLOCK_DEFAULT ? 0 : config->increase_bytes);

	if (config->max_bytes == 0 || config->max_bytes >= least)
		return 0;
	log_error(
		"--pool_max_mb: %lld is less than the regions to start with; 0 (no limit) or at least %zu are allowed",
		(long long)g_values.max_mb, least / MIB);
	return -EINVAL;
}

static int
reserve_regions(const struct pool_config *pool)
{
	struct region_config config = region_config(pool);
	int status = region_init(&config);

	if (status != 0)
		log_error("--rdma_memory_pool_max_regions, --rdma_memory_pool_initial_size_mb, "
			  "--rdma_memory_pool_increase_size_mb: no address space for %u regions of up to %zu MiB",
			  config.slots, config.slot_bytes / MIB);
	return status;
}

/* To refuse when the machine can't is what these options are for: their value is what is wrong then. */
static int
map_first_region(const struct pool_config *config)
{
	int status = config->user_memory ? 0 : pool_grow(pool_of(node_of(lcore_main()), config->first_type));

	return status == -ENOMEM && (g_values.require_hugepages || g_values.strict_numa) ? -EINVAL : status;
}

/* Without the thread whoever finds a pool empty maps its next region itself. */
static void
start_growth(const struct pool_config *config)
{
	int status = config->user_memory ? 0 : growth_start();

	if (status != 0)
		log_warning("memory: no thread to map regions ahead of need: %s", xr_strerror(status));
}

int
mem_init(void)
{
	struct pool_config config = pool_config();
	int status = check_cap(&config);

	if (status == 0)
		status = reserve_regions(&config);
	if (status == 0)
		status = pool_init(&config);
	if (status == 0)
		status = map_first_region(&config);
	if (status != 0) {
		mem_fini();
		return status;
	}
	user_ranges_init();
	start_growth(&config);
	return 0;
}

void
mem_fini(void)
{
	growth_stop();
	pool_fini();
	user_ranges_fini();
	device_fini();
	region_fini();
}

int
xr_mem_pool_add(void *addr, size_t len, enum xr_block_type type, unsigned numa_node)
{
	enum block_type block_type = (enum block_type)type;

	if (pool_count() == 0 || (unsigned)type >= BLOCK_TYPES || numa_node >= node_count())
		return -EINVAL;
	if (!addr || (uintptr_t)addr % MEM_ADD_ALIGN || len == 0 || len % block_bytes(block_type) ||
	    (uintptr_t)addr > UINTPTR_MAX - len)
		return -EINVAL;
	return pool_add(pool_of(numa_node, block_type), addr, len);
}

const char *
xr_block_type_name(enum xr_block_type type)
{
	return (unsigned)type < BLOCK_TYPES ? block_type_name((enum block_type)type) : NULL;
}

/* ---- what devices will have to pin ---- */

static size_t
mapped_bytes(void)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < pool_count(); i++) {
		struct pool_figures figures;

		pool_figures(pool_at(i), &figures);
		bytes += figures.region_bytes;
	}
	return bytes;
}

static unsigned
lcores_nodes(void)
{
	unsigned nodes = 0;

	for (unsigned node = 0; node < node_count(); node++)
		for (unsigned i = 0; i < lcore_count(); i++)
			if (node_of(lcore_at(i)) == node) {
				nodes++;
				break;
			}
	return nodes;
}

void
mem_demand(size_t *mapped, size_t *most)
{
	struct pool_config config = pool_config();
	size_t step = region_bytes_at_most(config.increase_bytes), further = step * (config.max_regions - 1);
	size_t a_node = region_bytes_at_most(config.initial_bytes) + further;

	if (config.first_type != BLOCK_DEFAULT)
		a_node += step + further;
	*mapped = mapped_bytes();
	*most = lcores_nodes() * a_node;
	if (config.max_bytes && *most > config.max_bytes)
		*most = config.max_bytes;
	if (config.user_memory || *most < *mapped)
		*most = *mapped;
}

static unsigned
at_most(int64_t value, unsigned max)
{
	return value < max ? (unsigned)value : max;
}

int
mem_lcore_init(const struct lcore *lcore)
{
	const unsigned cached[BLOCK_TYPES] = {
		[BLOCK_DEFAULT] = (unsigned)g_values.cache_blocks,
		[BLOCK_LARGE] = at_most(g_values.cache_blocks, CACHE_LARGE_MAX),
		[BLOCK_HUGE] = at_most(g_values.cache_blocks, CACHE_HUGE_MAX),
	};
	int status = block_cache_init(node_of(lcore), cached);

	if (status != 0)
		return status;
	tail_lcore_init();
	pieces_lcore_init();
	user_block_lcore_init();
	return 0;
}

void
mem_lcore_fini(void)
{
	tail_lcore_fini();
	pieces_lcore_fini();
	user_block_lcore_fini();
	block_cache_fini();
}
