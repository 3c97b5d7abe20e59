/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blocks cost, for tests/bench/memory, which counts this program's instructions:
 *
 *   blocks LCORES nothing COUNT    an empty loop: what the loops below cost by themselves
 *   blocks LCORES malloc COUNT     malloc() and free() of a block's size, COUNT times
 *   blocks LCORES cache COUNT      the same with a block of the lcore's cache
 *   blocks LCORES local COUNT      batches of blocks that are allocated, then freed, on one lcore, COUNT blocks in all
 *   blocks LCORES remote COUNT     the same, but freed on another lcore
 *   blocks LCORES grow PAGES       prints the pages got, the regions that the pool has grown by, and the microseconds;
 *                                  PAGES is "any", or "ordinary" for no transparent huge pages
 */

#include "mem/block.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <xrdma/xrdma.h>

#define BATCH	   4096u
#define BLOCKS_MAX (1u << 20)

struct work {
	const char *name;
	void (*run)(void);
};

static unsigned g_lcores[2]; /* the first one allocates, the other one frees */
static const struct work *g_work;
static const char *g_argument;
static unsigned long g_left;
static struct xr_block *g_blocks[BLOCKS_MAX];

/* The compiler must believe that somebody looks at it. */
static inline void
keep(void *pointer)
{
	__asm__ volatile("" : : "r"(pointer) : "memory");
}

/* ---- one after the other ---- */

static void
nothing(void)
{
	while (g_left-- > 0)
		keep(g_blocks);
	xr_stop();
}

static void
by_malloc(void)
{
	while (g_left-- > 0) {
		void *memory = malloc(block_bytes(BLOCK_DEFAULT));

		keep(memory);
		free(memory);
	}
	xr_stop();
}

static void
by_cache(void)
{
	while (g_left-- > 0) {
		struct xr_block *block = block_alloc(BLOCK_DEFAULT);

		keep(block);
		block_drop(block);
	}
	xr_stop();
}

/* ---- batches ---- */

static void start_batch(struct xr_msg *msg, int status);
static void free_batch(struct xr_msg *msg, int status);
static struct xr_msg g_start = XR_MSG_INIT(start_batch), g_free = XR_MSG_INIT(free_batch);

static void
allocate_batch(void)
{
	for (unsigned i = 0; i < BATCH; i++)
		if (!(g_blocks[i] = block_alloc(BLOCK_DEFAULT)))
			abort();
	g_left -= g_left < BATCH ? g_left : BATCH;
}

static void
start_batch(struct xr_msg *msg, int status)
{
	(void)msg;
	if (status == 0)
		g_work->run();
}

static void
free_batch(struct xr_msg *msg, int status)
{
	(void)msg;
	(void)status;
	for (unsigned i = 0; i < BATCH; i++)
		block_drop(g_blocks[i]);
	xr_post(g_lcores[0], &g_start);
}

static void
batch_freed_on(unsigned lcore)
{
	if (g_left == 0) {
		xr_stop();
		return;
	}
	allocate_batch();
	xr_post(lcore, &g_free);
}

static void
local(void)
{
	batch_freed_on(g_lcores[0]);
}

static void
remote(void)
{
	batch_freed_on(g_lcores[1]);
}

/* ---- growth ---- */

static const char *
pages_of(const struct xr_mem_info *info)
{
	if (info->regions == info->regions_transparent)
		return "transparent";
	if (info->regions == info->regions_ordinary)
		return "ordinary";
	return info->regions == info->regions_2m ? "2MiB" : "mixed";
}

static void
grow(void)
{
	struct xr_mem_info info = {.grown = 0};
	unsigned count = 0;

	while (count < BLOCKS_MAX && xr_mem_info(0, &info) == 0 && info.grown < 3)
		if (!(g_blocks[count++] = block_alloc(BLOCK_DEFAULT)))
			abort();
	printf("%s %llu %llu\n", pages_of(&info), (unsigned long long)info.grown, (unsigned long long)info.grown_us);
	while (count > 0)
		block_drop(g_blocks[--count]);
	xr_stop();
}

/* ---- the program ---- */

static const struct work g_works[] = {
	{"nothing", nothing}, {"malloc", by_malloc}, {"cache", by_cache},
	{"local", local},     {"remote", remote},    {"grow", grow},
};

static const struct work *
find_work(const char *name)
{
	for (size_t i = 0; i < sizeof g_works / sizeof g_works[0]; i++)
		if (strcmp(g_works[i].name, name) == 0)
			return &g_works[i];
	return NULL;
}

/* An lcore that sleeps costs no instructions. */
static int
init(const char *lcores)
{
	char *argv[] = {(char *)"blocks",
			(char *)"-l",
			(char *)lcores,
			(char *)"--port",
			(char *)"default,mode=event,rdma=off",
			NULL};
	unsigned lcore, count = 0;
	int next = xr_init(5, argv);

	if (next < 0)
		return -1;
	XR_LCORE_FOREACH (lcore)
		if (count < 2)
			g_lcores[count++] = lcore;
	return count == 2 ? 0 : -1;
}

int
main(int argc, char **argv)
{
	if (argc != 4 || !(g_work = find_work(argv[2])))
		return 2;
	g_argument = argv[3];
	g_left = strtoul(g_argument, NULL, 10);
	if (g_work->run == grow && strcmp(g_argument, "ordinary") == 0)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (init(argv[1]) != 0)
		return 1;
	xr_post(g_lcores[0], &g_start);
	xr_run();
	xr_fini();
	return 0;
}
