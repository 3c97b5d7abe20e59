/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/growth.h"
#include "core/clock.h"
#include "core/lcore.h"
#include "mem/pool_private.h"
#include "mem/pressure_private.h"
#include <errno.h>

#define RETRY_FIRST_US 100000u
#define RETRY_LAST_US  6400000u

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running; /* written while no other thread is there */
	bool stopping;
} g_growth = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool
growth_has_thread(void)
{
	return __atomic_load_n(&g_growth.running, __ATOMIC_RELAXED);
}

/* ---- when ---- */

/* A quarter of what a step brings; a pool that is smaller than that is no reason to map one four times as large. */
static size_t
low_water(const struct pool *pool)
{
	size_t step = pool_next_region_bytes(pool) / block_bytes(pool->type);

	return (step < pool->blocks ? step : pool->blocks) / 4;
}

/*
 * Few are left, and not only because the lcores' caches are filled: somebody holds half of them. A process that is idle
 * keeps the regions it began with, however small, and however many lcores it has.
 */
static bool
is_low(const struct pool *pool, unsigned taken)
{
	return pool->idle < low_water(pool) &&
	       pool->blocks - pool->idle >= pool->blocks / 2 + pressure_cached(pool) + taken;
}

static bool
wants_early(const struct pool *pool, unsigned taken)
{
	return pool->idle < low_water(pool) && pool_obstacle(pool) == 0 && is_low(pool, taken) &&
	       (pool->early.at_us == 0 || clock_now_us() >= pool->early.at_us);
}

static void
ask(struct pool *pool)
{
	pthread_mutex_lock(&g_growth.lock);
	pool->asked = true;
	pthread_cond_signal(&g_growth.changed);
	pthread_mutex_unlock(&g_growth.lock);
}

void
growth_ahead(struct pool *pool, unsigned taken)
{
	if (pool->growing || !growth_has_thread() || !wants_early(pool, taken))
		return;
	pool->growing = pool->ordered = pool->ahead = true;
	ask(pool);
}

/* Now, or when the machine has memory again: no limit is in the way. */
static bool
may_grow_in_time(const struct pool *pool)
{
	int obstacle = pool_obstacle(pool);

	return obstacle == 0 || obstacle == -ENOMEM;
}

void
growth_retry(struct pool *pool)
{
	if (growth_has_thread() && may_grow_in_time(pool))
		ask(pool);
}

void
growth_wait(struct pool *pool)
{
	while (pool->growing)
		pthread_cond_wait(&pool->grown, &pool->lock);
}

/* ---- mapping ---- */

static void
postpone(struct backoff *backoff)
{
	uint64_t after_us = backoff->after_us ? backoff->after_us * 2 : RETRY_FIRST_US;

	backoff->after_us = after_us < RETRY_LAST_US ? after_us : RETRY_LAST_US;
	__atomic_store_n(&backoff->at_us, clock_now_us() + backoff->after_us, __ATOMIC_RELAXED);
}

static void
forget(struct backoff *backoff)
{
	backoff->after_us = 0;
	__atomic_store_n(&backoff->at_us, 0, __ATOMIC_RELAXED);
}

static void
succeeded(struct pool *pool, const struct region *region, uint64_t us)
{
	bool first = pool->regions == 0;

	pool_add_region(pool, region);
	forget(&pool->need);
	forget(&pool->early);
	if (first)
		return;
	pool->grown_count++;
	pool->grown_us += us;
	counter_add(&g_pool_counters[POOL_GROWN], 1);
	counter_add(&g_pool_counters[POOL_GROWN_US], us);
}

/* That a cap forbids it is found out anew each time; whatever else it was may pass. */
static void
failed(struct pool *pool, int status, bool ahead)
{
	if (status == -EDQUOT)
		return;
	counter_add(&g_pool_counters[POOL_GROWTH_FAILED], 1);
	postpone(ahead ? &pool->early : &pool->need);
}

/* Why a region that is needed could not be had has been logged already. */
static void
report(const struct pool *pool, const struct region_want *want, const struct region *region)
{
	if (region)
		log_debug("memory: node %u has a further region of %s blocks: %zu MiB in %s", pool->node,
			  block_type_name(pool->type), region->bytes >> 20, page_kind_name(region->pages.kind));
	else if (want->ahead && !want->quiet)
		log_notice("memory: node %u is short of memory: no further region of %s blocks before it is needed",
			   pool->node, block_type_name(pool->type));
}

static int
map(struct pool *pool, const struct region_want *want, struct region **region)
{
	size_t blocks = region_bytes_at_most(want->bytes) / block_bytes(pool->type);
	int status = pool_make_room(pool, blocks);

	if (status == 0)
		return region_create(want, region);
	if (!want->ahead && !want->quiet)
		log_error("memory: no room to keep count of %zu further %s blocks on node %u", blocks,
			  block_type_name(pool->type), pool->node);
	return status;
}

/* Somebody has set growing, and the lock is not held. */
static void
grow(struct pool *pool)
{
	struct region_want want = {.type = pool->type, .node = pool->node};
	uint64_t began_us = clock_now_us();
	struct region *region = NULL;
	int status;

	pthread_mutex_lock(&pool->lock);
	want.bytes = pool_next_region_bytes(pool);
	want.ahead = pool->ahead && pool->waiting == 0;
	want.quiet = (want.ahead ? pool->early : pool->need).at_us != 0;
	pthread_mutex_unlock(&pool->lock);
	status = map(pool, &want, &region);
	pthread_mutex_lock(&pool->lock);
	pool->growing = pool->ahead = false;
	if (status == 0)
		succeeded(pool, region, clock_now_us() - began_us);
	else
		failed(pool, status, want.ahead);
	pthread_cond_broadcast(&pool->grown);
	pressure_review(pool);
	pthread_mutex_unlock(&pool->lock);
	report(pool, &want, status == 0 ? region : NULL);
}

void
growth_begin(struct pool *pool)
{
	pool->growing = true;
	if (growth_has_thread()) {
		pool->ordered = true;
		ask(pool);
		return;
	}
	pthread_mutex_unlock(&pool->lock);
	grow(pool);
	pthread_mutex_lock(&pool->lock);
}

/* ---- the thread ---- */

/* Whether it is the thread's to map one: somebody has begun and waits for that, or it is needed and nobody has. */
static bool
begin(struct pool *pool)
{
	bool begun;

	pthread_mutex_lock(&pool->lock);
	if (!pool->growing && (pool->waiting > 0 ? pool_obstacle(pool) == 0 : wants_early(pool, 0)))
		pool->growing = pool->ordered = pool->ahead = true;
	begun = pool->ordered;
	pool->ordered = false;
	pthread_mutex_unlock(&pool->lock);
	return begun;
}

/* Not before it may be begun: the thread would look for nothing again and again. */
static uint64_t
next_early_try(const struct pool *pool)
{
	if (pool->early.at_us == 0 || !is_low(pool, 0))
		return 0;
	return pool->early.at_us > pool->need.at_us ? pool->early.at_us : pool->need.at_us;
}

/* What failed is tried again as long as somebody needs it; when, or 0. */
static uint64_t
next_try(struct pool *pool)
{
	uint64_t at = 0;

	pthread_mutex_lock(&pool->lock);
	if (!pool->growing && may_grow_in_time(pool))
		at = pool->waiting > 0 ? pool->need.at_us : next_early_try(pool);
	pthread_mutex_unlock(&pool->lock);
	return at;
}

/* The one that is to be looked at now, no longer asked for; else NULL and when one will be. */
static struct pool *
next_pool(uint64_t *at)
{
	uint64_t now_us = clock_now_us();

	*at = UINT64_MAX;
	for (unsigned i = 0; i < pool_count(); i++) {
		struct pool *pool = pool_at(i);
		bool due = pool->due_us && pool->due_us <= now_us;

		if (pool->asked || due) {
			pool->asked = false;
			pool->due_us = 0;
			return pool;
		}
		if (pool->due_us && pool->due_us < *at)
			*at = pool->due_us;
	}
	return NULL;
}

static void
wait_until(uint64_t at)
{
	struct timespec time = {.tv_sec = (time_t)(at / 1000000u), .tv_nsec = (long)(at % 1000000u) * 1000};

	if (at == UINT64_MAX)
		pthread_cond_wait(&g_growth.changed, &g_growth.lock);
	else
		pthread_cond_timedwait(&g_growth.changed, &g_growth.lock, &time);
}

/* What a region was to take of the cap hid that from the other pools; what it did not take is theirs again. */
static void
look_at_who_waits(void)
{
	pthread_mutex_lock(&g_growth.lock);
	for (unsigned i = 0; i < pool_count(); i++)
		if (__atomic_load_n(&pool_at(i)->waiting, __ATOMIC_RELAXED) > 0)
			pool_at(i)->asked = true;
	pthread_mutex_unlock(&g_growth.lock);
}

static void
serve(struct pool *pool)
{
	uint64_t due_us;

	if (begin(pool)) {
		grow(pool);
		look_at_who_waits();
	}
	due_us = next_try(pool);
	pthread_mutex_lock(&g_growth.lock);
	pool->due_us = due_us;
	pthread_mutex_unlock(&g_growth.lock);
}

static void *
run(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&g_growth.lock);
	while (!g_growth.stopping) {
		uint64_t at;
		struct pool *pool = next_pool(&at);

		if (!pool) {
			wait_until(at);
			continue;
		}
		pthread_mutex_unlock(&g_growth.lock);
		serve(pool);
		pthread_mutex_lock(&g_growth.lock);
	}
	pthread_mutex_unlock(&g_growth.lock);
	return NULL;
}

int
growth_start(void)
{
	pthread_condattr_t attr;
	int status;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g_growth.changed, &attr);
	pthread_condattr_destroy(&attr);
	g_growth.stopping = false;
	status = lcore_start_helper("xr-memory", run, NULL, &g_growth.thread);
	if (status != 0)
		pthread_cond_destroy(&g_growth.changed);
	__atomic_store_n(&g_growth.running, status == 0, __ATOMIC_RELAXED);
	return status;
}

void
growth_stop(void)
{
	if (!growth_has_thread())
		return;
	pthread_mutex_lock(&g_growth.lock);
	g_growth.stopping = true;
	pthread_cond_signal(&g_growth.changed);
	pthread_mutex_unlock(&g_growth.lock);
	pthread_join(g_growth.thread, NULL);
	__atomic_store_n(&g_growth.running, false, __ATOMIC_RELAXED);
	pthread_cond_destroy(&g_growth.changed);
}
