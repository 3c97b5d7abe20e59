/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_POLL_FIXTURE_H
#define TESTS_POLL_FIXTURE_H

/*
 * Reactors without the rest of the library: lcores 0..n-1, all of them allowed on every processor of the process, and
 * the calling thread as the main one.
 */

#include "core/counter.h"
#include "core/log.h"
#include "core/option.h"
#include "poll/reactor_private.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* The processors of this process as a list of --lcores. */
static inline void
fixture_processors(char *text, size_t size)
{
	cpu_set_t cpus;
	size_t used = 0;

	CPU_ZERO(&cpus);
	ASSERT_FATAL(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < size; cpu++) {
		if (CPU_ISSET(cpu, &cpus))
			used += (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", cpu);
	}
}

/* With one further option, NULL: none. */
static inline void
fixture_start_lcores(unsigned lcores, const char *option, const char *value)
{
	char processors[256], list[320], *argv[] = {"test", "--lcores", list, (char *)option, (char *)value, NULL};
	int argc = option ? 5 : 3;
	bool asked_help, asked_version;

	fixture_processors(processors, sizeof processors);
	if (lcores == 1)
		snprintf(list, sizeof list, "0@(%s)", processors);
	else
		snprintf(list, sizeof list, "(0-%u)@(%s)", lcores - 1, processors);
	xr_log_set_level(XR_LOG_WARNING);
	ASSERT_FATAL(option_add_table("lcores", g_lcore_options) == 0);
	ASSERT_FATAL(option_add_table("reactor", g_reactor_options) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
	ASSERT_FATAL(option_parse(argc, argv, &asked_help, &asked_version) == argc);
	ASSERT_FATAL(lcore_init() == 0);
	ASSERT_FATAL(reactor_counters_add() == 0);
	ASSERT_FATAL(counter_init() == 0);
	ASSERT_FATAL(reactors_init() == 0);
}

static inline void
fixture_start(unsigned lcores)
{
	fixture_start_lcores(lcores, NULL, NULL);
}

static inline void
fixture_start_with(const char *option, const char *value)
{
	fixture_start_lcores(1, option, value);
}

static inline void
fixture_end(void)
{
	reactors_drain();
	reactors_fini();
	counter_fini();
	lcore_fini();
	option_fini();
}

static inline uint64_t
stat_read(enum reactor_stat which)
{
	return counter_read(&g_stats[which], NULL);
}

/* Ends the reactors from outside of them: a timer would keep an idle one from sleeping for good. */
struct fixture_stopper {
	pthread_t thread;
	unsigned after_ms;
};

static inline void *
fixture_stop_later(void *arg)
{
	const struct fixture_stopper *stopper = arg;

	/* On a busy machine the time may be over before the loop has begun. */
	for (unsigned i = 0; i < 5000 && !(stat_read(STAT_TURNS) + stat_read(STAT_SLEEPS)); i++)
		usleep(1000);
	usleep(stopper->after_ms * 1000);
	reactors_stop();
	return NULL;
}

/* Runs the calling thread's reactor for a time. */
static inline void
fixture_run_for(unsigned ms)
{
	struct fixture_stopper stopper = {.after_ms = ms};

	ASSERT_FATAL(pthread_create(&stopper.thread, NULL, fixture_stop_later, &stopper) == 0);
	reactor_run(reactor_current());
	pthread_join(stopper.thread, NULL);
}

/* The loops of the lcores that are not the main one. */
static inline void
fixture_worker(struct lcore *lcore)
{
	reactor_run(reactor_of(lcore));
}

#endif
