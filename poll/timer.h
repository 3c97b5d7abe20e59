/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_TIMER_H
#define POLL_TIMER_H

/*
 * The timers of one reactor: a radix heap. Time only moves forward, so a timer need not be sorted finer than by the
 * highest bit in which its due time differs from the heap's time; it moves to a finer bucket when the heap's time
 * reaches the bucket's start. Arming and cancelling are O(1), and a timer moves at most once for each bit. A turn in
 * which no bucket starts looks at one number, however many timers are armed.
 */

#include "poll/source.h"
#include <xrdma/reactor.h>

#define TIMER_BUCKETS 64 /* 0: due at last_us; b: due time and last_us differ in bit b - 1 and in none above */

struct timer_heap {
	struct source source;
	uint64_t last_us;  /* no timer in a bucket is due before it */
	uint64_t bound_us; /* no bucket starts before it: until then there is nothing to do */
	uint64_t occupied; /* bit b: bucket b may hold a timer; bits of buckets emptied by a cancel stay a while */
	unsigned moving;   /* a bucket whose timers have all to move because last_us has reached its start, or 0 */
	bool firing;
	uint64_t moves; /* of timers to finer buckets, ever */
	uint64_t looks; /* at timers for the deadline of a sleep, ever */
	struct cds_list_head buckets[TIMER_BUCKETS];
	struct cds_list_head again; /* armed by a firing timer for at once: waits until this turn's firing is over */
};

void timer_heap_init(struct timer_heap *heap, uint64_t now_us);

void timer_heap_arm(struct timer_heap *heap, struct xr_timer *timer, uint64_t now_us, uint64_t due_us,
		    uint64_t period_us);

/* Fires what is due, in order of the due times; a bounded number, which it returns. */
int timer_heap_expire(struct timer_heap *heap, uint64_t now_us);

/* Cancels every timer. */
void timer_heap_disarm(struct timer_heap *heap);

/* A time before which nothing is due; SOURCE_NEVER without timers. */
uint64_t timer_heap_deadline(struct timer_heap *heap);

/* The heap as a source of a reactor. */
void timer_source_init(struct timer_heap *heap, uint64_t now_us);

#endif
