/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lcore.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lcore_list.h"
#include "core/log.h"
#include "core/number_set.h"
#include "core/option.h"
#include "core/processor.h"
#include "core/why.h"

#include <xrdma/error.h>

#define ALLOWED_TEXT 256

__thread struct lcore *t_lcore;

static struct lcore *g_lcores; /* by index */
static unsigned g_lcore_count;
static struct lcore *g_main_lcore;
static struct processor_mask g_old_mask; /* of the main thread before it was pinned */

static const char *g_option_cpus;
static const char *g_option_lcores;
static int64_t g_option_main = -1;

static int
check_cpus(const char *text, const char **why)
{
	struct lcore_list list = {0};
	int rc = lcore_parse_cpus(text, &list, why);

	if (rc == -EINVAL)
		*why = why_text("%s; allowed is a list such as 0-3,8", *why);
	lcore_list_free(&list);
	return rc;
}

static int
check_lcores(const char *text, const char **why)
{
	struct lcore_list list = {0};
	int rc = lcore_parse_lcores(text, &list, why);

	if (rc == -EINVAL)
		*why = why_text("%s; allowed is a list such as 0@2,(1-3)@(4-7),8", *why);
	lcore_list_free(&list);
	return rc;
}

const struct xr_option g_lcore_options[] = {
	{.name = "l",
	 .letter = 'l',
	 .type = XR_OPTION_STRING,
	 .value = &g_option_cpus,
	 .placeholder = "LIST",
	 .help = "processors to run on, lcore N on processor N: 0-3,8; without it every processor allowed",
	 .set = check_cpus},
	{.name = "lcores",
	 .type = XR_OPTION_STRING,
	 .value = &g_option_lcores,
	 .placeholder = "MAP",
	 .help = "lcores and the processors each may run on, instead of -l: 0@2,(1-3)@(4-7),8",
	 .set = check_lcores},
	{.name = "main_lcore",
	 .type = XR_OPTION_INT,
	 .value = &g_option_main,
	 .default_value = "-1",
	 .min = -1,
	 .max = NUMBER_MAX,
	 .placeholder = "ID",
	 .help = "the lcore of the thread that calls xr_run(); -1: the lowest"},
	{0},
};

/* How the user said which lcores to run, for errors. */
static const char *
list_origin(void)
{
	return g_option_lcores ? "--lcores" : "-l";
}

/* The list that the options ask for, or every allowed processor. */
static int
wanted_list(const struct number_set *allowed, struct lcore_list *list)
{
	const char *why;

	if (g_option_cpus && g_option_lcores) {
		log_error("options -l and --lcores exclude each other: give one of them");
		return -EINVAL;
	}
	if (g_option_cpus)
		return lcore_parse_cpus(g_option_cpus, list, &why);
	if (g_option_lcores)
		return lcore_parse_lcores(g_option_lcores, list, &why);
	return lcore_list_alike(allowed, list, &why);
}

static int
check_processors(const struct lcore_list *list, const struct number_set *allowed)
{
	char text[ALLOWED_TEXT];

	for (size_t i = 0; i < list->count; i++) {
		const struct lcore_spec *spec = &list->specs[i];

		for (size_t j = 0; j < spec->cpu_count; j++) {
			if (number_set_has(allowed, spec->cpus[j]))
				continue;
			number_set_format(allowed, text, sizeof text);
			log_error("option %s: processor %u of lcore %u %s; allowed are %s", list_origin(),
				  spec->cpus[j], spec->id, processor_refusal(spec->cpus[j]), text);
			return -EINVAL;
		}
	}
	return 0;
}

/* The node of the lowest processor; a set over several nodes is the user's right, but its memory is on one. */
static int
numa_node_of(const struct lcore_spec *spec)
{
	int node = processor_numa_node(spec->cpus[0]);

	for (size_t i = 1; i < spec->cpu_count; i++) {
		int other = processor_numa_node(spec->cpus[i]);

		if (other != node) {
			log_warning("lcore %u may run on NUMA nodes %d and %d; its memory will be on node %d", spec->id,
				    node, other, node);
			break;
		}
	}
	return node;
}

static int
build_lcore(struct lcore *lcore, unsigned index, const struct lcore_spec *spec)
{
	struct processor_mask mask;
	int rc = processor_mask_from(spec->cpus, spec->cpu_count, &mask);

	if (rc)
		return rc;
	lcore->id = spec->id;
	lcore->index = index;
	lcore->cpus = mask.cpus;
	lcore->cpus_size = mask.size;
	lcore->numa_node = numa_node_of(spec);
	return 0;
}

static int
build_lcores(const struct lcore_list *list)
{
	int rc = 0;

	g_lcores = calloc(list->count, sizeof *g_lcores);
	if (!g_lcores)
		return -ENOMEM;
	for (size_t i = 0; i < list->count && rc == 0; i++) {
		rc = build_lcore(&g_lcores[i], (unsigned)i, &list->specs[i]);
		if (rc == 0)
			g_lcore_count++;
	}
	return rc;
}

static void
drop_lcores(void)
{
	for (unsigned i = 0; i < g_lcore_count; i++)
		CPU_FREE(g_lcores[i].cpus);
	free(g_lcores);
	g_lcores = NULL;
	g_lcore_count = 0;
	g_main_lcore = NULL;
}

static int
create_lcores(void)
{
	struct number_set allowed = {0};
	struct lcore_list list = {0};
	int rc = processor_mask_numbers(&g_old_mask, &allowed);

	if (rc == 0)
		rc = wanted_list(&allowed, &list);
	if (rc == 0)
		rc = check_processors(&list, &allowed);
	if (rc == 0)
		rc = build_lcores(&list);
	lcore_list_free(&list);
	number_set_free(&allowed);
	return rc;
}

static void
format_ids(char *text, size_t size)
{
	struct number_set ids = {0};
	const char *why;

	for (unsigned i = 0; i < g_lcore_count; i++) {
		if (number_set_add(&ids, g_lcores[i].id, g_lcores[i].id, &why))
			break;
	}
	number_set_format(&ids, text, size);
	number_set_free(&ids);
}

static int
choose_main(void)
{
	int64_t id = option_int(&g_option_main);
	char text[ALLOWED_TEXT];

	if (id < 0)
		id = g_lcores[0].id;
	g_main_lcore = lcore_find((unsigned)id);
	if (g_main_lcore)
		return 0;
	format_ids(text, sizeof text);
	log_error("option --main-lcore: there is no lcore %lld; allowed are %s", (long long)id, text);
	return -EINVAL;
}

static int
pin_main(void)
{
	int rc = sched_setaffinity(0, g_main_lcore->cpus_size, g_main_lcore->cpus) ? -errno : 0;

	if (rc)
		log_error("lcore %u: cannot pin the main thread: %s", g_main_lcore->id, xr_strerror(rc));
	else
		t_lcore = g_main_lcore;
	return rc;
}

int
lcore_init(void)
{
	int rc = processor_mask_of_thread(&g_old_mask);

	if (rc == 0)
		rc = create_lcores();
	if (rc == 0)
		rc = choose_main();
	if (rc == 0)
		rc = pin_main();
	if (rc) {
		drop_lcores();
		processor_mask_free(&g_old_mask);
	}
	return rc;
}

void
lcore_fini(void)
{
	if (g_old_mask.cpus)
		sched_setaffinity(0, g_old_mask.size, g_old_mask.cpus);
	processor_mask_free(&g_old_mask);
	drop_lcores();
	t_lcore = NULL;
}

unsigned
lcore_count(void)
{
	return g_lcore_count;
}

struct lcore *
lcore_at(unsigned index)
{
	return &g_lcores[index];
}

static int
compare_id(const void *key, const void *element)
{
	unsigned id = *(const unsigned *)key;
	const struct lcore *lcore = element;

	return (id > lcore->id) - (id < lcore->id);
}

struct lcore *
lcore_find(unsigned id)
{
	return g_lcore_count ? bsearch(&id, g_lcores, g_lcore_count, sizeof *g_lcores, compare_id) : NULL;
}

struct lcore *
lcore_main(void)
{
	return g_main_lcore;
}

/* What a worker runs; lives until lcore_join(), as the workers read it when they start. */
static void (*g_worker_fn)(struct lcore *lcore);

static void *
worker_thread(void *arg)
{
	struct lcore *lcore = arg;
	char name[16]; /* the kernel's limit */

	snprintf(name, sizeof name, "lcore-%u", lcore->id);
	pthread_setname_np(pthread_self(), name);
	t_lcore = lcore;
	g_worker_fn(lcore);
	return NULL;
}

/* Pinned by its attributes, so that even its stack is first touched on its own processors. */
static int
launch_one(struct lcore *lcore)
{
	pthread_attr_t attr;
	int error = pthread_attr_init(&attr);

	if (error)
		return -error;
	error = pthread_attr_setaffinity_np(&attr, lcore->cpus_size, lcore->cpus);
	if (!error)
		error = pthread_create(&lcore->thread, &attr, worker_thread, lcore);
	pthread_attr_destroy(&attr);
	lcore->started = !error;
	if (error)
		log_error("lcore %u: cannot start its thread: %s", lcore->id, xr_strerror(error));
	return -error;
}

static int
launch_all(void)
{
	int rc = 0;

	for (unsigned i = 0; i < g_lcore_count && rc == 0; i++) {
		if (&g_lcores[i] != g_main_lcore)
			rc = launch_one(&g_lcores[i]);
	}
	return rc;
}

/* Signals sent to the process go to the application's threads: workers inherit a mask that leaves only faults open. */
static void
block_signals(sigset_t *old)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
	sigset_t mask;

	sigfillset(&mask);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, old);
}

int
lcore_launch(void (*fn)(struct lcore *lcore))
{
	sigset_t old;
	int rc;

	g_worker_fn = fn;
	block_signals(&old);
	rc = launch_all();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

void
lcore_join(void)
{
	for (unsigned i = 0; i < g_lcore_count; i++) {
		if (g_lcores[i].started)
			pthread_join(g_lcores[i].thread, NULL);
		g_lcores[i].started = false;
	}
}

static bool
lcore_runs_on(unsigned cpu)
{
	for (unsigned i = 0; i < g_lcore_count; i++) {
		if (CPU_ISSET_S(cpu, g_lcores[i].cpus_size, g_lcores[i].cpus))
			return true;
	}
	return false;
}

/* What the lcores leave of the process's processors; all of them where that is nothing, or there are no lcores. */
static int
helper_mask(struct processor_mask *mask)
{
	struct number_set allowed = {0}, left = {0};
	const char *why;
	int rc;

	if (!g_old_mask.cpus)
		return processor_mask_of_thread(mask);
	rc = processor_mask_numbers(&g_old_mask, &allowed);
	for (size_t i = 0; i < allowed.count && rc == 0; i++) {
		if (!lcore_runs_on(allowed.items[i]))
			rc = number_set_add(&left, allowed.items[i], allowed.items[i], &why);
	}
	if (rc == 0)
		rc = left.count ? processor_mask_from(left.items, left.count, mask)
				: processor_mask_from(allowed.items, allowed.count, mask);
	number_set_free(&allowed);
	number_set_free(&left);
	return rc;
}

static int
create_helper(void *(*fn)(void *arg), void *arg, pthread_t *thread, const struct processor_mask *mask)
{
	pthread_attr_t attr;
	int error = pthread_attr_init(&attr);

	if (error)
		return -error;
	error = pthread_attr_setaffinity_np(&attr, mask->size, mask->cpus);
	if (!error)
		error = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return -error;
}

int
lcore_start_helper(const char *name, void *(*fn)(void *arg), void *arg, pthread_t *thread)
{
	struct processor_mask mask = {0};
	int rc = helper_mask(&mask);
	sigset_t old;

	if (rc == 0) {
		block_signals(&old);
		rc = create_helper(fn, arg, thread, &mask);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	processor_mask_free(&mask);
	if (rc == 0)
		pthread_setname_np(*thread, name);
	else
		log_error("cannot start the thread %s: %s", name, xr_strerror(rc));
	return rc;
}

XR_API unsigned
xr_lcore_id(void)
{
	const struct lcore *lcore = t_lcore;

	return lcore ? lcore->id : XR_LCORE_NONE;
}

XR_API unsigned
xr_lcore_main(void)
{
	return g_main_lcore ? g_main_lcore->id : XR_LCORE_NONE;
}

XR_API unsigned
xr_lcore_count(void)
{
	return g_lcore_count;
}

XR_API int
xr_lcore_numa_node(unsigned lcore)
{
	const struct lcore *found = lcore_find(lcore);

	return found ? found->numa_node : -EINVAL;
}

XR_API unsigned
xr_lcore_next(unsigned lcore)
{
	if (lcore == XR_LCORE_NONE)
		return g_lcore_count ? g_lcores[0].id : XR_LCORE_NONE;
	for (unsigned i = 0; i < g_lcore_count; i++) {
		if (g_lcores[i].id > lcore)
			return g_lcores[i].id;
	}
	return XR_LCORE_NONE;
}
