/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/pool_walk.h"

#include "mem/region.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xrdma/xrdma.h>

#define WALK_S	      90	/* a walk that takes longer has hung: SIGALRM ends it */
#define PATIENCE_US   20000000u /* for blocks on their way home, and for regions being mapped */
#define ROUNDS	      4
#define BATCH	      64
#define PAGE_BYTES    ((size_t)4096)
#define PAGES_AT_ONCE 512
#define HELD_MAX      8192
#define LINES_MAX     64
#define REGION_BYTES  ((size_t)WALK_REGION_MIB << 20)

/* ---- what is wrong, and what the library has said ---- */

static const struct walk *g_walk;
static bool g_wrong;

static struct {
	enum xr_log_level level;
	char text[512];
} g_lines[LINES_MAX];
static unsigned g_line_count;

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("\n    ");
	vprintf(format, args);
	va_end(args);
	fflush(stdout);
	__atomic_store_n(&g_wrong, true, __ATOMIC_RELAXED);
}

static void
keep_line(enum xr_log_level level, const char *line, void *arg)
{
	unsigned at = __atomic_fetch_add(&g_line_count, 1, __ATOMIC_RELAXED);

	(void)arg;
	if (at >= LINES_MAX)
		return;
	g_lines[at].level = level;
	snprintf(g_lines[at].text, sizeof g_lines[at].text, "%s", line);
}

static bool
begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

static void
check_complaints(unsigned lines)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < lines; i++) {
		if (g_lines[i].level != XR_LOG_ERROR && g_lines[i].level != XR_LOG_WARNING)
			continue;
		if (g_walk->complaint && begins_with(g_lines[i].text, g_walk->complaint))
			seen++;
		else
			complain("the log should not say this");
	}
	if (g_walk->complaint && seen == 0)
		complain("no line begins with \"%s\"", g_walk->complaint);
}

/* After the last thread has ended. */
static void
check_lines(void)
{
	unsigned steps = 0, count = g_line_count < LINES_MAX ? g_line_count : LINES_MAX;

	for (unsigned i = 0; i < count; i++)
		steps += begins_with(g_lines[i].text, "memory: node ") && strstr(g_lines[i].text, " gets ");
	if (steps != g_walk->step_lines)
		complain("%u lines tell of a step down, expected %u", steps, g_walk->step_lines);
	check_complaints(count);
	for (unsigned i = 0; g_wrong && i < count; i++)
		printf("\n    log: %s", g_lines[i].text);
}

/* ---- where blocks lie ---- */

static void
check_pages(void *const *pages, unsigned count, int node)
{
	int on[PAGES_AT_ONCE];
	unsigned elsewhere = 0;

	if (move_pages(0, count, (void **)pages, NULL, on, 0) != 0) {
		complain("move_pages: %s", strerror(errno));
		return;
	}
	for (unsigned i = 0; i < count; i++)
		elsewhere += on[i] != node;
	if (elsewhere)
		complain("%u of %u pages are not on node %d", elsewhere, count, node);
}

/* Writes to every page behind the header and asks the kernel where it is. */
static void
check_blocks(struct xr_block *const *blocks, unsigned count, enum block_type type, int node)
{
	void *pages[PAGES_AT_ONCE];
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		for (size_t at = 0; at < block_bytes(type); at += PAGE_BYTES) {
			char *byte = (char *)blocks[i] + at + BLOCK_HEADER_BYTES;

			*(volatile char *)byte = (char)i;
			pages[n++] = byte;
			if (n == PAGES_AT_ONCE) {
				check_pages(pages, n, node);
				n = 0;
			}
		}
	}
	if (n)
		check_pages(pages, n, node);
}

/* ---- the walk ---- */

/* One lcore takes blocks, checks them, and the next one frees them, takes as many, checks, and frees those. */
enum phase {
	TAKE,
	EXCHANGE,
	PHASES,
};

static struct {
	struct xr_msg msg;
	int nodes[NODES_MAX];
	unsigned lcores;
	unsigned step; /* ((lcore * BLOCK_TYPES + type) * ROUNDS + round) * PHASES + phase */
	uint64_t patient_until_us;
	struct xr_block *held[HELD_MAX];
	unsigned count;
	bool freed; /* the other lcore's blocks, in this exchange */
} g;

static enum phase
phase_now(void)
{
	return g.step % PHASES;
}

static unsigned
round_now(void)
{
	return g.step / PHASES % ROUNDS;
}

static enum block_type
type_now(void)
{
	return g.step / PHASES / ROUNDS % BLOCK_TYPES;
}

/* By index in g.nodes, which is the lcore's number. */
static unsigned
lcore_now(void)
{
	return (g.step / PHASES / ROUNDS / BLOCK_TYPES + phase_now()) % g.lcores;
}

static bool
is_over(void)
{
	return g.step == g.lcores * BLOCK_TYPES * ROUNDS * PHASES;
}

/* A region and a quarter, which makes the pool grow; for a 1 GiB region a few. */
static unsigned
wanted_now(void)
{
	size_t region = REGION_BYTES / block_bytes(type_now());

	return (unsigned)(g_walk->first_region_is_1g ? region / 4 : region + region / 4);
}

static bool
take_blocks(void)
{
	unsigned wanted = wanted_now();

	while (g.count < wanted / 2) {
		struct xr_block *block = block_alloc(type_now());

		if (!block)
			return false;
		g.held[g.count++] = block;
	}
	while (g.count < wanted) {
		unsigned n = wanted - g.count < BATCH ? wanted - g.count : BATCH;
		unsigned got = block_alloc_bulk(type_now(), g.held + g.count, n);

		if (got == 0)
			return false;
		g.count += got;
	}
	return true;
}

static void
free_blocks(void)
{
	while (g.count > 0)
		block_drop(g.held[--g.count]);
}

/* Only the first and the last time round every page is looked at. */
static void
check_held(void)
{
	int node = g.nodes[lcore_now()];

	for (unsigned i = 0; i < g.count; i++) {
		if (g.held[i]->node != node) {
			complain("a block of node %u's pool on an lcore of node %d", g.held[i]->node, node);
			break;
		}
	}
	if (round_now() == 0 || round_now() == ROUNDS - 1)
		check_blocks(g.held, g.count, type_now(), g_walk->expected[node][type_now()].node);
}

/* False: try again. */
static bool
run_step(void)
{
	bool barred = g.nodes[lcore_now()] == g_walk->barred_node;

	if (phase_now() == EXCHANGE && !g.freed)
		free_blocks();
	g.freed = true;
	if (barred && take_blocks())
		complain("the lcore of node %d got blocks", g.nodes[lcore_now()]);
	if (!barred && !take_blocks()) {
		if (xr_now_us() < g.patient_until_us)
			return false;
		complain("lcore %u: %u blocks (%s) instead of %u", lcore_now(), g.count, block_type_name(type_now()),
			 wanted_now());
	}
	check_held();
	if (phase_now() == EXCHANGE)
		free_blocks();
	return true;
}

static void walk_on(struct xr_msg *msg, int status);
static bool regions_are_right(bool last);

static void
check_regions(struct xr_msg *msg, int status)
{
	if (status != 0)
		return;
	if (regions_are_right(xr_now_us() >= g.patient_until_us) || xr_post(xr_lcore_id(), msg) != 0)
		xr_stop();
}

static void
begin_step(void)
{
	g.freed = false;
	g.patient_until_us = xr_now_us() + PATIENCE_US;
	g.msg.fn = is_over() || g_wrong ? check_regions : walk_on;
	if (xr_post(is_over() ? 0 : lcore_now(), &g.msg) != 0)
		complain("xr_post failed");
}

static void
walk_on(struct xr_msg *msg, int status)
{
	if (status != 0)
		return;
	if (!run_step()) {
		xr_post(xr_lcore_id(), msg);
		return;
	}
	g.step++;
	begin_step();
}

/* ---- what the regions got, by what the library says and by what sysfs does ---- */

static long g_free_before[NODES_MAX][HUGE_SIZES];

static bool
count_regions(bool last, long used[NODES_MAX][HUGE_SIZES])
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < region_slots(); i++) {
		const struct region *region = region_at(i);
		const struct walk_pages *expected;

		if (!region)
			continue;
		expected = &g_walk->expected[region->node][region->type];
		if (region->pages.kind == PAGE_2M)
			used[region->pages.node][HUGE_2M] += (long)(region->bytes / HUGEPAGE_2M_BYTES);
		if (region->pages.kind == PAGE_1G)
			used[region->pages.node][HUGE_1G] += (long)(region->bytes / HUGEPAGE_1G_BYTES);
		if (region->pages.kind == expected->kind && region->pages.node == expected->node)
			continue;
		wrong++;
		if (last)
			complain("a region of node %d (%s): %s on node %d, expected %s on node %d", region->node,
				 block_type_name(region->type), page_kind_name(region->pages.kind), region->pages.node,
				 page_kind_name(expected->kind), expected->node);
	}
	return wrong == 0;
}

/* A region may be on its way still: false then, unless this is the last time that it is asked. */
static bool
regions_are_right(bool last)
{
	long used[NODES_MAX][HUGE_SIZES] = {{0}};
	bool right = count_regions(last, used);

	for (unsigned i = 0; i < g.lcores; i++) {
		for (unsigned size = 0; size < HUGE_SIZES; size++) {
			int node = g.nodes[i];
			long gone = g_free_before[node][size] - node_free_pages(node, size);

			right = right && gone == used[node][size];
			if (last && gone != used[node][size])
				complain("node %d has %ld free %s pages less, and its regions have %ld", node, gone,
					 size == HUGE_1G ? "1 GiB" : "2 MiB", used[node][size]);
		}
	}
	return right || last;
}

static void
note_free_pages(void)
{
	for (int node = 0; node < NODES_MAX; node++)
		for (unsigned size = 0; size < HUGE_SIZES; size++)
			g_free_before[node][size] = node_free_pages(node, size);
}

/* ---- the process ---- */

/* For every node the first processor that this process may use; of a single node the first two. */
static unsigned
choose_cpus(int nodes[NODES_MAX], unsigned cpus[NODES_MAX])
{
	unsigned count = 0, spare = 0;
	bool has_spare = false;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		return 0;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && count < NODES_MAX; cpu++) {
		int node = CPU_ISSET(cpu, &allowed) ? numa_node_of_cpu((int)cpu) : -1;
		unsigned at = 0;

		while (at < count && nodes[at] != node)
			at++;
		if (node < 0 || node >= NODES_MAX)
			continue;
		if (at == count) {
			nodes[count] = node;
			cpus[count++] = cpu;
		} else if (!has_spare) {
			spare = cpu;
			has_spare = true;
		}
	}
	if (count == 1 && has_spare) {
		nodes[count] = nodes[0];
		cpus[count++] = spare;
	}
	return count;
}

unsigned
walk_nodes(int nodes[NODES_MAX])
{
	unsigned cpus[NODES_MAX], count = choose_cpus(nodes, cpus);

	return count == 2 && nodes[0] == nodes[1] ? 1 : count;
}

#define OPTIONS_MAX 24

static int
start(void)
{
	static char lcores[16 * NODES_MAX], main_lcore[16];
	char *argv[OPTIONS_MAX] = {"numa_placement",
				   "--lcores",
				   lcores,
				   "--main-lcore",
				   main_lcore,
				   "--rdma_memory_pool_initial_size_mb",
				   "32",
				   "--rdma_memory_pool_increase_size_mb",
				   "32",
				   "--rdma_memory_pool_max_regions",
				   "2",
				   "--port",
				   "default,mode=event"};
	unsigned cpus[NODES_MAX];
	size_t len = 0;
	int argc = 13;

	_Static_assert(WALK_REGION_MIB == 32 && WALK_MAX_REGIONS == 2, "as in the options above");
	g.lcores = choose_cpus(g.nodes, cpus);
	for (unsigned i = 0; i < g.lcores; i++) {
		len += (size_t)snprintf(lcores + len, sizeof lcores - len, "%s%u@%u", i ? "," : "", i, cpus[i]);
		if (g.nodes[i] == g_walk->main_node)
			snprintf(main_lcore, sizeof main_lcore, "%u", i);
	}
	for (const char *const *option = g_walk->options; option && *option && argc < OPTIONS_MAX - 1; option++)
		argv[argc++] = (char *)*option;
	return xr_init(argc, argv);
}

static int
run_in_own_process(void)
{
	int status;

	alarm(WALK_S);
	xr_log_set_sink(keep_line, NULL);
	note_free_pages();
	status = start();
	if (status < 0) {
		complain("xr_init: %s", xr_strerror(status));
	} else {
		begin_step();
		xr_run();
		xr_fini();
		if (!is_over())
			complain("the walk ended at step %u", g.step);
	}
	check_lines();
	return g_wrong;
}

void
walk_run(const struct walk *walk)
{
	int status = -1;
	pid_t child;

	g_walk = walk;
	fflush(NULL);
	child = fork();
	ASSERT_FATAL(child >= 0);
	if (child == 0)
		exit(run_in_own_process());
	ASSERT_EQ(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status));
	ASSERT_EQ(WEXITSTATUS(status), 0);
}
