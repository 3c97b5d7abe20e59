/* SPDX-License-Identifier: Apache-2.0 */

#include "core/counter.h"
#include "core/lcore.h"
#include "core/log.h"
#include "core/option.h"
#include "mem/mem.h"
#include "net/drain.h"
#include "net/net.h"
#include "net/port.h"
#include "net/rdma_provider.h"
#include "net/rpc/rpc.h"
#include "net/turn.h"
#ifdef XR_RDMA
#include "net/verbs/cq.h"
#include "net/verbs/figures.h"
#include "net/verbs/flags.h"
#endif
#include "net/worker.h"
#include "poll/reactor.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <xrdma/env.h>
#include <xrdma/error.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

enum env_state {
	ENV_NONE,
	ENV_READY, /* xr_init() has succeeded */
	ENV_RAN,   /* xr_run() or xr_worker_begin() has begun */
};

static enum env_state g_state;

/* ---- options ---- */

static const struct {
	const char *heading;
	const struct xr_option *table;
} g_option_tables[] = {
	{"Lcores", g_lcore_options}, {"Log", g_log_options},	{"Loop", g_reactor_options},
	{"Memory", g_mem_options},   {"Ports", g_port_options}, {"Connections", g_net_options},
#ifdef XR_RDMA
	{"RDMA", g_rdma_options},
#endif
};

static int
options_init(void)
{
	int ret = 0;

	for (size_t i = 0; i < COUNT_OF(g_option_tables) && ret == 0; i++)
		ret = option_add_table(g_option_tables[i].heading, g_option_tables[i].table);
	if (ret == -EEXIST)
		log_error("an option of the application has the name of one of the library's");
	return ret ? ret : option_set_defaults();
}

static void
options_fini(void)
{
	ports_fini();
	option_fini();
}

/* ---- counters ---- */

static int (*const g_counter_tables[])(void) = {
	reactor_counters_add, mem_counters_add, net_counters_add, rpc_counters_add,
#ifdef XR_RDMA
	cq_counters_add,      figures_add,
#endif
};

static int
counters_init(void)
{
	int ret = 0;

	for (size_t i = 0; i < COUNT_OF(g_counter_tables) && ret == 0; i++)
		ret = g_counter_tables[i]();
	if (ret == 0)
		ret = counter_init();
	if (ret)
		counter_fini();
	return ret;
}

/* ---- the floors, bottom up ---- */

static void
nothing(void)
{
}

/* Each init is undone by the fini beside it, in the opposite order, also when a later one fails. */
static const struct {
	const char *what;
	int (*init)(void);
	void (*fini)(void);
} g_floors[] = {
	{"lcores", lcore_init, lcore_fini},
	{"counters", counters_init, counter_fini},
	{"reactors", reactors_init, reactors_fini},
	{"ports", ports_init, nothing},
	{"memory", mem_init, mem_fini},
	{"RDMA", rdma_provider_init, rdma_provider_fini},
	{"connections", net_lcores_init, net_lcores_fini},
	{"workers", workers_start, workers_end},
};

static void
floors_fini(size_t count)
{
	while (count)
		g_floors[--count].fini();
}

static int
floors_init(void)
{
	for (size_t i = 0; i < COUNT_OF(g_floors); i++) {
		int ret = g_floors[i].init();

		if (ret == 0)
			continue;
		if (ret != -EINVAL)
			log_error("can't set up the %s: %s", g_floors[i].what, xr_strerror(ret));
		floors_fini(i);
		return ret;
	}
	return 0;
}

/* ---- the application's calls ---- */

/* What --help and --version ask for, if they do. */
static bool
answer(const char *program, bool asked_help, bool asked_version)
{
	if (asked_help)
		option_print_help(program);
	else if (asked_version)
		log_help("libxrdma-reactor %s", xr_version());
	return asked_help || asked_version;
}

static int
parse_and_init(int argc, char **argv)
{
	bool asked_help, asked_version;
	int first = option_parse(argc, argv, &asked_help, &asked_version);
	int ret;

	if (first < 0)
		return first;
	if (answer(argc > 0 ? argv[0] : "", asked_help, asked_version))
		return XR_INIT_EXIT;
	option_freeze(true);
	ret = floors_init();
	return ret ? ret : first;
}

int
xr_init(int argc, char **argv)
{
	int ret;

	if (g_state != ENV_NONE)
		return -EALREADY;
	ret = options_init();
	if (ret == 0)
		ret = parse_and_init(argc, argv);
	if (ret < 0)
		options_fini();
	else
		__atomic_store_n(&g_state, ENV_READY, __ATOMIC_RELEASE);
	return ret;
}

/* Once, by the thread that called xr_init(). */
static int
leave_ready(void)
{
	if (g_state == ENV_NONE || t_lcore != lcore_main())
		return -EINVAL;
	if (g_state == ENV_RAN)
		return -EALREADY;
	__atomic_store_n(&g_state, ENV_RAN, __ATOMIC_RELEASE);
	return 0;
}

int
xr_run(void)
{
	int ret = leave_ready();

	if (ret == 0)
		workers_run();
	return ret;
}

int
xr_worker_begin(void)
{
	int ret = leave_ready();

	if (ret == 0)
		workers_embed();
	return ret;
}

int
xr_worker_end(void)
{
	if (!workers_embedded() || t_lcore != lcore_main() || reactor_in_turn(reactor_current()))
		return -EINVAL;
	workers_unembed();
	return 0;
}

void
xr_stop(void)
{
	if (__atomic_load_n(&g_state, __ATOMIC_ACQUIRE) != ENV_NONE)
		drain_stop();
}

/* ---- signals ---- */

static struct {
	int number;
	bool taken;
	struct sigaction before;
} g_signals[] = {{.number = SIGINT}, {.number = SIGTERM}, {.number = SIGPIPE}};

static void
stop_on_signal(int number)
{
	(void)number;
	xr_stop();
}

static void
restore_signals(void)
{
	for (size_t i = 0; i < COUNT_OF(g_signals); i++) {
		if (g_signals[i].taken)
			sigaction(g_signals[i].number, &g_signals[i].before, NULL);
		g_signals[i].taken = false;
	}
}

int
xr_handle_signals(void)
{
	if (g_state == ENV_NONE)
		return -EINVAL;
	for (size_t i = 0; i < COUNT_OF(g_signals); i++) {
		struct sigaction action = {.sa_flags = SA_RESTART};

		if (g_signals[i].taken)
			continue;
		action.sa_handler = g_signals[i].number == SIGPIPE ? SIG_IGN : stop_on_signal;
		if (sigaction(g_signals[i].number, &action, &g_signals[i].before))
			return -errno;
		g_signals[i].taken = true;
	}
	return 0;
}

void
xr_fini(void)
{
	if (g_state == ENV_NONE)
		return;
	__atomic_store_n(&g_state, ENV_NONE, __ATOMIC_RELEASE);
	restore_signals();
	floors_fini(COUNT_OF(g_floors));
	options_fini();
}

const char *
xr_version(void)
{
	return XR_VERSION;
}
