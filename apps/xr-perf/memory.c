/* SPDX-License-Identifier: Apache-2.0 */
/* The library's memory: a table for people and a list for programs. */

#include "memory.h"

#include <stdio.h>
#include <xrdma/xrdma.h>

#define MIB (1024.0 * 1024.0)

/* "2 x 2 MiB, 1 x ordinary": the pages that a pool's regions have. */
static void
format_pages(const struct xr_mem_info *info, char *text, size_t size)
{
	const struct {
		unsigned regions;
		const char *name;
	} kinds[] = {
		{info->regions_1g, "1 GiB"},
		{info->regions_2m, "2 MiB"},
		{info->regions_transparent, "transparent"},
		{info->regions_ordinary, "ordinary"},
		{info->regions_user, "own"},
	};
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && used < size; i++)
		if (kinds[i].regions > 0)
			used += (size_t)snprintf(text + used, size - used, "%s%u x %s", used > 0 ? ", " : "",
						 kinds[i].regions, kinds[i].name);
}

/* "12 by lcore 0, 7 by lcore 3": who has the index-th pool's cached blocks. */
static void
print_cached(unsigned index)
{
	const char *before = "            cached: ";
	unsigned lcore;

	XR_LCORE_FOREACH (lcore) {
		ssize_t count = xr_mem_cached(index, lcore);

		if (count <= 0)
			continue;
		printf("%s%zd by lcore %u", before, count, lcore);
		before = ", ";
	}
	if (before[0] == ',')
		printf("\n");
}

static void
print_pool(const struct xr_mem_info *info)
{
	char pages[96];

	format_pages(info, pages, sizeof pages);
	printf("memory      node %u, %s blocks: %.0f MiB (%s)\n", info->numa_node, xr_block_type_name(info->type),
	       (double)info->region_bytes / MIB, pages);
	printf("            %zu blocks: %zu free, %zu cached, %zu in receive slots, %zu in use; %zu out at most\n",
	       info->blocks, info->free, info->cached, info->recv_slots, info->in_use, info->in_use_peak);
	printf("            %llu freed elsewhere, grown %llu times in %.1f ms, %llu times at the limit\n",
	       (unsigned long long)info->remote_frees, (unsigned long long)info->grown, (double)info->grown_us / 1e3,
	       (unsigned long long)info->limit_hits);
}

void
memory_print(void)
{
	struct xr_mem_info info;

	for (unsigned i = 0; xr_mem_info(i, &info) == 0; i++) {
		print_pool(&info);
		print_cached(i);
	}
	fflush(stdout);
}

static void
add_cached(cJSON *pool, unsigned index)
{
	cJSON *by_lcore = cJSON_AddObjectToObject(pool, "cached_by_lcore");
	unsigned lcore;

	XR_LCORE_FOREACH (lcore) {
		ssize_t count = xr_mem_cached(index, lcore);
		char name[16];

		if (count < 0)
			continue;
		snprintf(name, sizeof name, "%u", lcore);
		cJSON_AddNumberToObject(by_lcore, name, (double)count);
	}
}

static cJSON *
add_pool(cJSON *list, const struct xr_mem_info *info)
{
	const struct {
		const char *name;
		double value;
	} numbers[] = {
		{"numa_node", info->numa_node},
		{"regions", info->regions},
		{"regions_1g", info->regions_1g},
		{"regions_2m", info->regions_2m},
		{"regions_transparent", info->regions_transparent},
		{"regions_ordinary", info->regions_ordinary},
		{"regions_user", info->regions_user},
		{"regions_remote", info->regions_remote},
		{"region_bytes", (double)info->region_bytes},
		{"blocks", (double)info->blocks},
		{"free", (double)info->free},
		{"cached", (double)info->cached},
		{"recv_slots", (double)info->recv_slots},
		{"in_use", (double)info->in_use},
		{"in_use_peak", (double)info->in_use_peak},
		{"remote_frees", (double)info->remote_frees},
		{"grown", (double)info->grown},
		{"grown_us", (double)info->grown_us},
		{"limit_hits", (double)info->limit_hits},
	};
	cJSON *pool = cJSON_CreateObject();

	cJSON_AddStringToObject(pool, "type", xr_block_type_name(info->type));
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		cJSON_AddNumberToObject(pool, numbers[i].name, numbers[i].value);
	cJSON_AddItemToArray(list, pool);
	return pool;
}

void
memory_add(cJSON *tree)
{
	cJSON *list = cJSON_AddArrayToObject(tree, "memory");
	struct xr_mem_info info;

	for (unsigned i = 0; xr_mem_info(i, &info) == 0; i++)
		add_cached(add_pool(list, &info), i);
}
