/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_PACE_H
#define XR_PERF_PACE_H

/*
 * When a lane's calls may begin: as soon as there is room for them, or with a token each. Tokens come at a rate, or in
 * bursts: a random number of them at once, and after the last of their calls has been answered a random silence.
 */

#include <xrdma/xrdma.h>

struct pace_options {
	double calls_per_us;  /* 0: no limit */
	unsigned burst_calls; /* at most, in one burst; 0: no bursts */
	unsigned silence_us;  /* at most, after one */
	uint64_t seed;	      /* of what is random */
};

struct pace {
	struct pace_options options;
	struct xr_timer timer;
	void (*ready)(struct pace *pace);
	double tokens;
	uint64_t refilled_us;
	uint64_t random;
	unsigned burst_left; /* calls of the burst that have not ended */
};

/* ready is called whenever tokens have come, on the lcore that calls pace_begin(). */
void pace_init(struct pace *pace, const struct pace_options *options, void (*ready)(struct pace *pace));

void pace_begin(struct pace *pace);
void pace_end(struct pace *pace);

/* Takes a token; false: none is left, and ready() will be called when there are some. */
bool pace_take(struct pace *pace);

/* The call that it was taken for has not begun. */
void pace_give_back(struct pace *pace);

/* A call that began has ended, well or not. */
void pace_call_ended(struct pace *pace);

#endif
