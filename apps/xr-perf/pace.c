/* SPDX-License-Identifier: Apache-2.0 */
#include "pace.h"

#include "random.h"

#define container_of(member_ptr, type, member) ((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))

/* At a rate tokens come in steps of this length, and unused ones of the last tenth of a second may be spent later. */
#define REFILL_US 1000
#define SPARE_US  100000.0

/* From 0 to max, each about as likely. */
static unsigned
random_up_to(struct pace *pace, unsigned max)
{
	return (unsigned)((random_next(&pace->random) >> 32) % ((uint64_t)max + 1));
}

static void
refill(struct pace *pace)
{
	double most = 1 + pace->options.calls_per_us * SPARE_US;
	uint64_t now_us = xr_now_us();

	pace->tokens += pace->options.calls_per_us * (double)(now_us - pace->refilled_us);
	if (pace->tokens > most)
		pace->tokens = most;
	pace->refilled_us = now_us;
}

static void
begin_burst(struct pace *pace)
{
	pace->burst_left = 1 + random_up_to(pace, pace->options.burst_calls - 1);
	pace->tokens = pace->burst_left;
}

static void
bring_tokens(struct xr_timer *timer)
{
	struct pace *pace = container_of(timer, struct pace, timer);

	if (pace->options.burst_calls)
		begin_burst(pace);
	else
		refill(pace);
	pace->ready(pace);
}

void
pace_init(struct pace *pace, const struct pace_options *options, void (*ready)(struct pace *pace))
{
	*pace = (struct pace){
		.options = *options,
		.timer = XR_TIMER_INIT(bring_tokens),
		.ready = ready,
		.random = options->seed,
	};
}

void
pace_begin(struct pace *pace)
{
	pace->refilled_us = xr_now_us();
	if (pace->options.burst_calls)
		xr_timer_arm(&pace->timer, 0, 0);
	else if (pace->options.calls_per_us > 0)
		xr_timer_arm(&pace->timer, REFILL_US, REFILL_US);
}

void
pace_end(struct pace *pace)
{
	xr_timer_cancel(&pace->timer);
	pace->burst_left = 0;
}

static bool
is_limited(const struct pace *pace)
{
	return pace->options.calls_per_us > 0 || pace->options.burst_calls;
}

bool
pace_take(struct pace *pace)
{
	if (!is_limited(pace))
		return true;
	if (pace->tokens < 1)
		return false;
	pace->tokens--;
	return true;
}

void
pace_give_back(struct pace *pace)
{
	if (is_limited(pace))
		pace->tokens++;
}

void
pace_call_ended(struct pace *pace)
{
	if (pace->burst_left && --pace->burst_left == 0)
		xr_timer_arm(&pace->timer, random_up_to(pace, pace->options.silence_us), 0);
}
