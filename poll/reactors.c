/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/reactor_private.h"

#include <errno.h>
#include <numaif.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Every lcore's reactor: made, found, stopped together, freed. */

static struct reactor **g_reactors; /* by lcore index */
static unsigned g_reactor_count;    /* read by reactors_stop() in signal handlers */
static bool g_stopping;

int64_t g_wait_cap_ms;

const struct xr_option g_reactor_options[] = {
	{
		.name = "wait_cap_ms",
		.type = XR_OPTION_INT,
		.value = &g_wait_cap_ms,
		.default_value = "0",
		.min = 0,
		.max = 3600000,
		.live = true,
		.placeholder = "MS",
		.help = "longest sleep of an idle lcore, in milliseconds; a safety net, 0: none",
	},
	{
		.name = "stall_ms",
		.type = XR_OPTION_INT,
		.value = &g_stall_ms,
		.default_value = "0",
		.min = 0,
		.max = 3600000,
		.placeholder = "MS",
		.help = "log callbacks that take longer than this, in milliseconds; 0: don't look, 10 is a good start",
	},
	{.name = NULL},
};

/* The lcore's own node is preferred, not demanded: where mbind is not allowed any memory will do. */
static struct reactor *
allocate(const struct lcore *lcore)
{
	unsigned long nodes[16] = {0};
	const unsigned bits = 8 * sizeof nodes[0], max = bits * 16, node = (unsigned)lcore->numa_node;
	void *memory = mmap(NULL, sizeof(struct reactor), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (node < max) {
		nodes[node / bits] = 1ul << (node % bits);
		(void)mbind(memory, sizeof(struct reactor), MPOL_PREFERRED, nodes, max, 0);
	}
	return memory;
}

static void
add_own_sources(struct reactor *reactor)
{
	source_add(reactor, &reactor->mailbox.source);
	source_add(reactor, &reactor->fds.source);
	source_add(reactor, &reactor->pollers.source);
	source_add(reactor, &reactor->timers.source);
}

static int
init(struct reactor *reactor, struct lcore *lcore)
{
	int error = mailbox_init(&reactor->mailbox);

	if (error)
		return error;
	error = fd_source_init(&reactor->fds, reactor->mailbox.bell);
	if (error) {
		mailbox_fini(&reactor->mailbox);
		return error;
	}
	reactor->lcore = lcore;
	reactor->now_us = clock_now_us();
	reactor->spends = STAT_IDLE_US;
	source_list_init(&reactor->sources);
	drive_init(&reactor->drive);
	poller_source_init(&reactor->pollers);
	timer_source_init(&reactor->timers, reactor->now_us);
	add_own_sources(reactor);
	return 0;
}

static int
reactor_create(struct lcore *lcore, struct reactor **created)
{
	struct reactor *reactor = allocate(lcore);
	int error;

	if (!reactor)
		return -ENOMEM;
	error = init(reactor, lcore);
	if (error)
		munmap(reactor, sizeof *reactor);
	else
		*created = reactor;
	return error;
}

static void
reactor_destroy(struct reactor *reactor)
{
	fd_source_fini(&reactor->fds);
	mailbox_fini(&reactor->mailbox);
	munmap(reactor, sizeof *reactor);
}

static void
fetch_switches(void)
{
	unsigned count = __atomic_load_n(&g_reactor_count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count; i++)
		switches_fetch(&g_reactors[i]->switches);
}

static struct stall *
stall_at(unsigned index)
{
	return index < g_reactor_count ? &g_reactors[index]->stall : NULL;
}

static int
start_watching(void)
{
	int error = stall_watch_start(stall_at);

	if (error)
		reactors_fini();
	else
		counter_on_read(fetch_switches);
	return error;
}

int
reactors_init(void)
{
	unsigned count = lcore_count();

	g_reactors = calloc(count, sizeof *g_reactors);
	if (!g_reactors)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		int error = reactor_create(lcore_at(i), &g_reactors[i]);

		if (error) {
			reactors_fini();
			return error;
		}
		__atomic_store_n(&g_reactor_count, i + 1, __ATOMIC_RELEASE);
	}
	t_reactor = reactor_of(lcore_main());
	return start_watching();
}

void
reactors_fini(void)
{
	unsigned count = g_reactor_count;

	stall_watch_stop();
	counter_on_read(NULL);
	t_reactor = NULL;
	__atomic_store_n(&g_reactor_count, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < count; i++)
		reactor_destroy(g_reactors[i]);
	free(g_reactors);
	g_reactors = NULL;
	__atomic_store_n(&g_stopping, false, __ATOMIC_RELAXED);
}

void
reactors_drain(void)
{
	for (unsigned i = 0; i < g_reactor_count; i++)
		mailbox_close(&g_reactors[i]->mailbox);
}

void
reactors_stop(void)
{
	int saved_errno = errno;
	unsigned count = __atomic_load_n(&g_reactor_count, __ATOMIC_ACQUIRE);

	__atomic_store_n(&g_stopping, true, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < count; i++)
		mailbox_ring(&g_reactors[i]->mailbox);
	errno = saved_errno;
}

bool
reactors_stopping(void)
{
	return __atomic_load_n(&g_stopping, __ATOMIC_RELAXED);
}

struct reactor *
reactor_of(const struct lcore *lcore)
{
	return g_reactors[lcore->index];
}
