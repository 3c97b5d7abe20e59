/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/node_memory.h"

#include <errno.h>
#include <limits.h>
#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HUGEPAGES "/sys/devices/system/node/node%d/hugepages/hugepages-%ldkB/%s"

static const long size_kib[HUGE_SIZES] = {[HUGE_2M] = 2048, [HUGE_1G] = 1048576};

static long g_reserved_before[NODES_MAX];
static bool g_changed[NODES_MAX];

/* ---- files of one number ---- */

static long
read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[32] = "";

	if (!file)
		return 0;
	if (!fgets(line, sizeof line, file))
		line[0] = '\0';
	fclose(file);
	return strtol(line, NULL, 10);
}

static int
write_number(const char *path, long number)
{
	FILE *file = fopen(path, "we");
	int written;

	if (!file)
		return -errno;
	written = fprintf(file, "%ld", number);
	return fclose(file) == 0 && written > 0 ? 0 : -errno;
}

static long
page_count(int node, enum huge_size size, const char *which)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, HUGEPAGES, node, size_kib[size], which);
	return read_number(path);
}

/* ---- what there is ---- */

unsigned
node_list(int nodes[NODES_MAX])
{
	unsigned count = 0;

	if (numa_available() < 0) {
		nodes[0] = 0;
		return 1;
	}
	for (int node = 0; node <= numa_max_node() && count < NODES_MAX; node++)
		if (numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)node))
			nodes[count++] = node;
	return count;
}

long
node_free_pages(int node, enum huge_size size)
{
	return page_count(node, size, "free_hugepages");
}

bool
node_has_transparent(void)
{
	char mode[64] = "";
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");

	if (!file)
		return false;
	if (!fgets(mode, sizeof mode, file))
		mode[0] = '\0';
	fclose(file);
	return strstr(mode, "[never]") == NULL && mode[0] != '\0';
}

/* ---- what is changed ---- */

static bool
may_change(void)
{
	return getenv("LAB_GUEST") != NULL && geteuid() == 0;
}

static int
set_pages(int node, long count)
{
	char path[PATH_MAX];
	int status;

	snprintf(path, sizeof path, HUGEPAGES, node, size_kib[HUGE_2M], "nr_hugepages");
	status = write_number(path, count);
	if (status == 0 && page_count(node, HUGE_2M, "nr_hugepages") != count)
		status = -ENOMEM;
	return status;
}

int
node_reserve_pages(int node, long count)
{
	long there = page_count(node, HUGE_2M, "nr_hugepages");

	if (there == count && node_free_pages(node, HUGE_2M) == count)
		return 0;
	if (!may_change() || node >= NODES_MAX)
		return -EPERM;
	if (!g_changed[node])
		g_reserved_before[node] = there;
	g_changed[node] = true;
	return set_pages(node, count);
}

void
node_restore_pages(void)
{
	for (int node = 0; node < NODES_MAX; node++) {
		if (g_changed[node])
			set_pages(node, g_reserved_before[node]);
		g_changed[node] = false;
	}
}
