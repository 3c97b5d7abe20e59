/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/stall.h"

#include "core/clock.h"
#include "core/option.h"
#include "poll/stat.h"
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#define WATCH_US     1000000 /* between two looks at who does not return, and what must have passed by then */
#define SYMBOL_BYTES 256

int64_t g_stall_ms;

__thread struct stall *t_stall;

/* ---- names ---- */

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void
stall_name(const void *fn, char *text, size_t size)
{
	Dl_info info;

	if (!dladdr(fn, &info) || !info.dli_fname)
		snprintf(text, size, "%p", fn);
	else if (info.dli_sname && info.dli_saddr == fn)
		snprintf(text, size, "%s", info.dli_sname);
	else
		snprintf(text, size, "%s+0x%zx", base_name(info.dli_fname),
			 (size_t)((const char *)fn - (const char *)info.dli_fbase));
}

/* ---- on the worker ---- */

/* The thread that watches must not take one callback's beginning for another one's. */
static void
note(struct stall *stall, const void *fn, uint64_t since_us)
{
	__atomic_store_n(&stall->since_us, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&stall->fn, fn, __ATOMIC_RELEASE);
	__atomic_store_n(&stall->since_us, since_us, __ATOMIC_RELEASE);
}

void
stall_begin(struct stall *stall, struct stall_frame *frame, const void *fn)
{
	frame->outer = stall->fn;
	frame->outer_since_us = stall->since_us;
	frame->told_us = stall->told_us;
	frame->begin_us = clock_now_us();
	note(stall, fn, frame->begin_us);
}

static void
tell(struct stall *stall, const void *fn, uint64_t took_us)
{
	char name[SYMBOL_BYTES];

	stall->told_us += took_us;
	stat_add(STAT_STALLS, 1);
	stat_add(STAT_STALL_US, took_us);
	stall_name(fn, name, sizeof name);
	log_limited(&stall->log, XR_LOG_WARNING, "lcore %u: callback %s took %llu.%03llu ms", stall->lcore->id, name,
		    (unsigned long long)(took_us / 1000), (unsigned long long)(took_us % 1000));
}

void
stall_end(const struct stall_frame *frame)
{
	struct stall *stall = frame->stall;
	uint64_t took_us = clock_now_us() - frame->begin_us - (stall->told_us - frame->told_us);

	if (took_us > stall->limit_us)
		tell(stall, stall->fn, took_us);
	note(stall, frame->outer, frame->outer_since_us);
}

void
stall_attach(struct stall *stall, const struct lcore *lcore)
{
	stall->lcore = lcore;
	stall->limit_us = (uint64_t)option_int(&g_stall_ms) * 1000;
	t_stall = stall->limit_us ? stall : NULL;
}

void
stall_detach(void)
{
	t_stall = NULL;
}

/* ---- the thread that watches ---- */

static struct {
	pthread_t thread;
	sem_t over;
	bool started;
	struct stall *(*next)(unsigned index);
} g_watch;

static void
look(struct stall *stall, uint64_t now_us)
{
	uint64_t since_us = __atomic_load_n(&stall->since_us, __ATOMIC_ACQUIRE);
	const void *fn = __atomic_load_n(&stall->fn, __ATOMIC_ACQUIRE);
	char name[SYMBOL_BYTES];

	if (!fn || !since_us || since_us != __atomic_load_n(&stall->since_us, __ATOMIC_ACQUIRE))
		return;
	if (since_us == stall->watched_us || now_us < since_us + WATCH_US || now_us < since_us + stall->limit_us)
		return;
	stall->watched_us = since_us;
	stall_name(fn, name, sizeof name);
	log_warning("lcore %u: callback %s has not returned for %llu ms", stall->lcore->id, name,
		    (unsigned long long)((now_us - since_us) / 1000));
}

static bool
is_over(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WATCH_US / 1000000;
	return sem_clockwait(&g_watch.over, CLOCK_MONOTONIC, &until) == 0;
}

static void *
watch(void *arg)
{
	(void)arg;
	while (!is_over()) {
		uint64_t now_us = clock_now_us();
		struct stall *stall;

		for (unsigned i = 0; (stall = g_watch.next(i)); i++)
			look(stall, now_us);
	}
	return NULL;
}

int
stall_watch_start(struct stall *(*next)(unsigned index))
{
	int error;

	if (!option_int(&g_stall_ms))
		return 0;
	g_watch.next = next;
	sem_init(&g_watch.over, 0, 0);
	error = lcore_start_helper("xr-stall", watch, NULL, &g_watch.thread);
	g_watch.started = !error;
	return error;
}

void
stall_watch_stop(void)
{
	if (!g_watch.started)
		return;
	sem_post(&g_watch.over);
	pthread_join(g_watch.thread, NULL);
	sem_destroy(&g_watch.over);
	g_watch.started = false;
}
