/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks lie on the NUMA node of the lcore that they are handed to, in the largest pages that the node has, whatever
 * huge pages there are on which node. Meant for a guest with two nodes (LAB_NUMA=2), where huge pages are reserved and
 * released as each test wants them; elsewhere what the machine can't show is skipped.
 */

#include "tests/lab/pool_walk.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdlib.h>

static int g_nodes[NODES_MAX];
static unsigned g_node_count;

static void
find_nodes(void)
{
	g_node_count = walk_nodes(g_nodes);
	atexit(node_restore_pages);
}

/* Every pool's memory is its own node's, of this kind. */
static void
expect_everywhere(struct walk *walk, enum page_kind kind)
{
	for (int node = 0; node < NODES_MAX; node++)
		for (unsigned type = 0; type < BLOCK_TYPES; type++)
			walk->expected[node][type] = (struct walk_pages){.kind = kind, .node = node};
}

static void
expect_on_node(struct walk *walk, int pool_node, enum page_kind kind, int node)
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++)
		walk->expected[pool_node][type] = (struct walk_pages){.kind = kind, .node = node};
}

/* What there is without reserving anything. */
static enum page_kind
small_kind(void)
{
	return node_has_transparent() ? PAGE_TRANSPARENT : PAGE_ORDINARY;
}

/* So many 2 MiB pages on the nodes of the walk, the last number being for all further ones. False: skipped. */
static bool
reserve(long on_first, long on_others)
{
	if (g_node_count == 0)
		find_nodes();
	for (unsigned i = 0; i < g_node_count; i++) {
		long count = i == 0 ? on_first : on_others;
		int status = node_reserve_pages(g_nodes[i], count);

		if (status == 0)
			continue;
		if (status == -EPERM) {
			unit_skip("needs other reservations of huge pages, and only a guest of the lab is changed");
			return false;
		}
		printf("%ld huge pages can't be reserved on node %d\n", count, g_nodes[i]);
		CU_FAIL_FATAL("no huge pages");
	}
	return true;
}

static bool
has_two_nodes(void)
{
	if (g_node_count == 0)
		find_nodes();
	if (g_node_count >= 2)
		return true;
	unit_skip("needs processors on two NUMA nodes");
	return false;
}

static struct walk
walk_of(enum page_kind kind)
{
	struct walk walk = {.main_node = g_nodes[0], .barred_node = NODE_ANY};

	expect_everywhere(&walk, kind);
	return walk;
}

static void
run(const struct walk *walk)
{
	walk_run(walk);
	node_restore_pages();
}

static void
test_without_huge_pages(void)
{
	struct walk walk;

	if (!reserve(0, 0))
		return;
	walk = walk_of(small_kind());
	walk.step_lines = 1;
	run(&walk);
}

static void
test_huge_pages_on_every_node(void)
{
	struct walk walk;

	if (!reserve(WALK_NODE_PAGES, WALK_NODE_PAGES))
		return;
	walk = walk_of(PAGE_2M);
	run(&walk);
}

/* The own node comes before the better pages. */
static void
test_huge_pages_on_one_node(void)
{
	for (unsigned with = 0; with < 2; with++) {
		struct walk walk;

		if (!has_two_nodes() || !reserve(with == 0 ? WALK_NODE_PAGES : 0, with == 1 ? WALK_NODE_PAGES : 0))
			return;
		walk = walk_of(small_kind());
		expect_on_node(&walk, g_nodes[with], PAGE_2M, g_nodes[with]);
		walk.step_lines = 1;
		run(&walk);
	}
}

static void
test_required_huge_pages_on_the_other_node(void)
{
	static const char *const options[] = {"--require-hugepages", NULL};
	struct walk walk;

	if (!has_two_nodes() || !reserve(0, 2 * WALK_NODE_PAGES))
		return;
	walk = walk_of(PAGE_2M);
	expect_on_node(&walk, g_nodes[0], PAGE_2M, g_nodes[1]);
	walk.options = options;
	walk.step_lines = 1;
	run(&walk);
}

/* The lcore whose node has none is refused, and the others go on. */
static void
test_strict_about_the_node(void)
{
	static const char *const options[] = {"--require-hugepages", "--strict-numa", NULL};
	struct walk walk;

	if (!has_two_nodes() || !reserve(WALK_NODE_PAGES, 0))
		return;
	walk = walk_of(PAGE_2M);
	walk.options = options;
	walk.barred_node = g_nodes[1];
	walk.complaint = "--strict-numa: node ";
	run(&walk);
}

static void
test_one_page_of_1g(void)
{
	static const char *const options[] = {"--hugepage_1g", "--rdma_memory_pool_initial_size_mb=1024",
					      "--rdma_memory_pool_max_regions=1", NULL};
	unsigned at = 0;
	struct walk walk;

	if (!reserve(0, 0))
		return;
	while (at < g_node_count && node_free_pages(g_nodes[at], HUGE_1G) == 0)
		at++;
	if (at == g_node_count) {
		unit_skip("needs a free page of 1 GiB (hugepagesz=1G hugepages=1 on the kernel's command line)");
		return;
	}
	walk = walk_of(small_kind());
	walk.expected[g_nodes[at]][BLOCK_DEFAULT].kind = PAGE_1G;
	walk.main_node = g_nodes[at];
	walk.options = options;
	walk.first_region_is_1g = true;
	walk.step_lines = 1;
	run(&walk);
}

UNIT_SUITE("numa_placement", {"without huge pages", test_without_huge_pages},
	   {"huge pages on every node", test_huge_pages_on_every_node},
	   {"huge pages on one node", test_huge_pages_on_one_node},
	   {"required huge pages on the other node", test_required_huge_pages_on_the_other_node},
	   {"strict about the node", test_strict_about_the_node}, {"one page of 1 GiB", test_one_page_of_1g});
