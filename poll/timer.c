/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/timer.h"

#include "poll/reactor_private.h"

#define TIMER_BATCH 64	 /* timers fired in one turn */
#define TIMER_MOVES 1024 /* timers moved to finer buckets in one turn */

#define TIMER_LOOKS 16 /* timers looked at to find the exact deadline of a sleep */

#define TIMER_MAX_US INT64_MAX /* keeps the top bit clear, so that 64 buckets do */

_Static_assert(sizeof(struct cds_list_head) == sizeof(((struct xr_timer *)0)->link_), "a timer embeds a list link");

/* What bucket_ holds: 0 for a timer that is not armed, which is what XR_TIMER_INIT makes. */
enum {
	TIMER_IDLE,
	TIMER_ARMED,
};

static struct cds_list_head *
link_of(struct xr_timer *timer)
{
	return (struct cds_list_head *)timer->link_;
}

static struct xr_timer *
timer_of(struct cds_list_head *link)
{
	return (struct xr_timer *)((char *)link - offsetof(struct xr_timer, link_));
}

static unsigned
bucket_of(const struct timer_heap *heap, uint64_t due_us)
{
	return due_us == heap->last_us ? 0 : 64u - (unsigned)__builtin_clzll(due_us ^ heap->last_us);
}

/* The earliest due time that belongs into a bucket. */
static uint64_t
bucket_start(const struct timer_heap *heap, unsigned bucket)
{
	if (bucket == 0 || bucket == heap->moving)
		return heap->last_us;
	return ((heap->last_us >> (bucket - 1)) | 1) << (bucket - 1);
}

/* The lowest bucket that holds a timer, or TIMER_BUCKETS; forgets the buckets that a cancel has emptied. */
static unsigned
lowest_bucket(struct timer_heap *heap)
{
	while (heap->occupied) {
		unsigned bucket = (unsigned)__builtin_ctzll(heap->occupied);

		if (!cds_list_empty(&heap->buckets[bucket]))
			return bucket;
		heap->occupied &= heap->occupied - 1;
	}
	return TIMER_BUCKETS;
}

static void
update_bound(struct timer_heap *heap)
{
	unsigned bucket = lowest_bucket(heap);

	if (heap->moving)
		heap->bound_us = heap->last_us;
	else
		heap->bound_us = bucket == TIMER_BUCKETS ? SOURCE_NEVER : bucket_start(heap, bucket);
}

/* As long as no bucket has started, all timers are in the same buckets by the later time as well. */
static void
advance(struct timer_heap *heap, uint64_t now_us)
{
	if (now_us > heap->last_us && now_us < heap->bound_us)
		heap->last_us = now_us;
}

static void
file(struct timer_heap *heap, struct xr_timer *timer)
{
	unsigned bucket = bucket_of(heap, timer->due_us_);
	uint64_t start_us = bucket_start(heap, bucket);

	cds_list_add_tail(link_of(timer), &heap->buckets[bucket]);
	heap->occupied |= 1ull << bucket;
	if (start_us < heap->bound_us)
		heap->bound_us = start_us;
}

void
timer_heap_init(struct timer_heap *heap, uint64_t now_us)
{
	heap->last_us = now_us;
	heap->bound_us = SOURCE_NEVER;
	heap->occupied = 0;
	heap->moving = 0;
	heap->firing = false;
	heap->moves = 0;
	heap->looks = 0;
	for (unsigned bucket = 0; bucket < TIMER_BUCKETS; bucket++)
		CDS_INIT_LIST_HEAD(&heap->buckets[bucket]);
	CDS_INIT_LIST_HEAD(&heap->again);
}

void
timer_heap_arm(struct timer_heap *heap, struct xr_timer *timer, uint64_t now_us, uint64_t due_us, uint64_t period_us)
{
	xr_timer_cancel(timer);
	advance(heap, now_us);
	timer->due_us_ = due_us > heap->last_us ? due_us : heap->last_us;
	timer->period_us_ = period_us;
	timer->bucket_ = TIMER_ARMED;
	if (heap->firing && timer->due_us_ <= now_us)
		cds_list_add_tail(link_of(timer), &heap->again);
	else
		file(heap, timer);
}

static void
fire(struct timer_heap *heap, struct xr_timer *timer, uint64_t now_us)
{
	uint64_t period_us = timer->period_us_;

	xr_timer_cancel(timer);
	if (period_us) {
		uint64_t missed = (now_us - timer->due_us_) / period_us;
		uint64_t due_us;

		if (__builtin_mul_overflow(missed + 1, period_us, &due_us) ||
		    __builtin_add_overflow(due_us, timer->due_us_, &due_us) || due_us > TIMER_MAX_US)
			due_us = TIMER_MAX_US;
		timer_heap_arm(heap, timer, now_us, due_us, period_us);
	}
	CALLBACK(timer->fn, timer->fn(timer));
}

/* Moves the timers of the bucket that last_us has reached into finer ones. The number moved, at most max. */
static int
move_bucket(struct timer_heap *heap, int max)
{
	struct cds_list_head *from = &heap->buckets[heap->moving];
	int moved = 0;

	for (; moved < max && !cds_list_empty(from); moved++) {
		struct xr_timer *timer = timer_of(from->next);

		cds_list_del(link_of(timer));
		file(heap, timer);
	}
	if (cds_list_empty(from))
		heap->moving = 0;
	heap->moves += (uint64_t)moved;
	return moved;
}

/* Fires the timers that are due at last_us, at most max. */
static int
fire_bucket(struct timer_heap *heap, uint64_t now_us, int max)
{
	struct cds_list_head *due = &heap->buckets[0];
	int fired = 0;

	for (; fired < max && !cds_list_empty(due); fired++)
		fire(heap, timer_of(due->next), now_us);
	return fired;
}

static void
file_again(struct timer_heap *heap)
{
	while (!cds_list_empty(&heap->again)) {
		struct xr_timer *timer = timer_of(heap->again.next);

		cds_list_del(link_of(timer));
		if (timer->due_us_ < heap->last_us)
			timer->due_us_ = heap->last_us;
		file(heap, timer);
	}
}

/* Finds the next bucket that has started by now_us; one that is not yet sorted out begins to move. False: none. */
static bool
open_bucket(struct timer_heap *heap, uint64_t now_us)
{
	unsigned bucket = lowest_bucket(heap);

	if (bucket == TIMER_BUCKETS || bucket_start(heap, bucket) > now_us)
		return false;
	if (bucket > 0) {
		heap->last_us = bucket_start(heap, bucket);
		heap->moving = bucket;
	}
	return true;
}

int
timer_heap_expire(struct timer_heap *heap, uint64_t now_us)
{
	int fired = 0, moved = 0;

	if (now_us < heap->bound_us)
		return 0;
	heap->firing = true;
	while (fired < TIMER_BATCH && moved < TIMER_MOVES && (heap->moving || open_bucket(heap, now_us))) {
		if (heap->moving)
			moved += move_bucket(heap, TIMER_MOVES - moved);
		else
			fired += fire_bucket(heap, now_us, TIMER_BATCH - fired);
	}
	heap->firing = false;
	update_bound(heap);
	advance(heap, now_us);
	file_again(heap);
	return fired;
}

static void
disarm_all(struct cds_list_head *timers)
{
	while (!cds_list_empty(timers))
		xr_timer_cancel(timer_of(timers->next));
}

void
timer_heap_disarm(struct timer_heap *heap)
{
	for (unsigned bucket = 0; bucket < TIMER_BUCKETS; bucket++)
		disarm_all(&heap->buckets[bucket]);
	disarm_all(&heap->again);
}

/* Exact as long as the lowest bucket is small; else its start, at which its timers move into smaller ones. */
uint64_t
timer_heap_deadline(struct timer_heap *heap)
{
	unsigned bucket = lowest_bucket(heap);
	uint64_t earliest_us = SOURCE_NEVER;
	struct cds_list_head *at;
	int looked_at = 0;

	if (bucket == TIMER_BUCKETS)
		return SOURCE_NEVER;
	if (bucket == 0 || heap->moving)
		return heap->last_us;
	cds_list_for_each(at, &heap->buckets[bucket])
	{
		heap->looks++;
		if (++looked_at > TIMER_LOOKS)
			return bucket_start(heap, bucket);
		if (timer_of(at)->due_us_ < earliest_us)
			earliest_us = timer_of(at)->due_us_;
	}
	return earliest_us;
}

static struct timer_heap *
heap_of(struct source *source)
{
	return cds_list_entry(source, struct timer_heap, source);
}

static int
timers_poll(struct source *source, struct reactor *reactor)
{
	return timer_heap_expire(heap_of(source), reactor->now_us);
}

static uint64_t
timers_deadline(struct source *source, struct reactor *reactor)
{
	(void)reactor;
	return timer_heap_deadline(heap_of(source));
}

static const struct source_ops g_timer_ops = {.poll = timers_poll, .deadline = timers_deadline};

void
timer_source_init(struct timer_heap *heap, uint64_t now_us)
{
	timer_heap_init(heap, now_us);
	heap->source = (struct source){.name = "timers", .ops = &g_timer_ops, .stage = SOURCE_TIMER};
}

XR_API void
xr_timer_arm(struct xr_timer *timer, uint64_t after_us, uint64_t period_us)
{
	struct reactor *reactor = reactor_current();
	uint64_t now_us = reactor_now_us(reactor);
	uint64_t due_us = after_us < TIMER_MAX_US - now_us ? now_us + after_us : TIMER_MAX_US;

	timer_heap_arm(&reactor->timers, timer, now_us, due_us, period_us);
}

XR_API void
xr_timer_cancel(struct xr_timer *timer)
{
	if (timer->bucket_ == TIMER_IDLE)
		return;
	timer->bucket_ = TIMER_IDLE;
	cds_list_del(link_of(timer));
}

XR_API bool
xr_timer_armed(const struct xr_timer *timer)
{
	return timer->bucket_ != TIMER_IDLE;
}
