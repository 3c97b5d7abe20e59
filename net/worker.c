/* SPDX-License-Identifier: Apache-2.0 */

#include "net/worker.h"
#include "core/counter.h"
#include "core/lcore.h"
#include "core/log.h"
#include "mem/mem.h"
#include "net/turn.h"
#include "poll/reactor.h"
#include <pthread.h>
#include <stdbool.h>
#include <xrdma/error.h>

/* Where threads wait for each other: before the loops, never while they run. */
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_changed = PTHREAD_COND_INITIALIZER;
static unsigned g_arrived; /* threads that have set up their lcore, or failed to */
static int g_error;	   /* of the first that failed */
static bool g_released;

static bool g_ran;
static bool g_embedded;

static int
enter(struct lcore *lcore)
{
	int ret;

	counter_attach(lcore);
	ret = mem_lcore_init(lcore);
	if (ret) {
		log_error("lcore %u: no memory for its caches: %s", lcore->id, xr_strerror(ret));
		return ret;
	}
	net_lcore_enter(lcore);
	return 0;
}

static void
leave(void)
{
	net_lcore_leave();
	mem_lcore_fini();
}

static void
report_and_park(int error)
{
	pthread_mutex_lock(&g_lock);
	g_arrived++;
	if (error && !g_error)
		g_error = error;
	pthread_cond_broadcast(&g_changed);
	while (!g_released)
		pthread_cond_wait(&g_changed, &g_lock);
	pthread_mutex_unlock(&g_lock);
}

static void
release(void)
{
	pthread_mutex_lock(&g_lock);
	g_released = true;
	pthread_cond_broadcast(&g_changed);
	pthread_mutex_unlock(&g_lock);
}

static int
await_arrivals(unsigned count)
{
	int error;

	pthread_mutex_lock(&g_lock);
	while (g_arrived < count)
		pthread_cond_wait(&g_changed, &g_lock);
	error = g_error;
	pthread_mutex_unlock(&g_lock);
	return error;
}

static void
worker(struct lcore *lcore)
{
	int ret = enter(lcore);

	report_and_park(ret);
	if (ret)
		return;
	reactor_run(reactor_of(lcore));
	leave();
}

int
workers_start(void)
{
	int ret = enter(lcore_main());

	if (ret)
		return ret;
	g_arrived = 0;
	g_error = 0;
	g_released = false;
	g_ran = false;
	g_embedded = false;
	ret = lcore_launch(worker);
	if (ret == 0)
		ret = await_arrivals(lcore_count() - 1);
	if (ret)
		workers_end();
	return ret;
}

void
workers_run(void)
{
	g_ran = true;
	release();
	reactor_run(reactor_of(lcore_main()));
	lcore_join();
	reactors_drain();
}

void
workers_embed(void)
{
	g_ran = true;
	g_embedded = true;
	reactor_embed(reactor_of(lcore_main()));
	release();
}

bool
workers_embedded(void)
{
	return g_embedded;
}

void
workers_unembed(void)
{
	g_embedded = false;
	reactors_stop();
	reactor_unembed(reactor_of(lcore_main()));
	lcore_join();
	reactors_drain();
}

void
workers_end(void)
{
	if (g_embedded)
		workers_unembed();
	if (!g_ran) {
		reactors_stop();
		workers_run();
	}
	leave();
}
