/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/window.h"
#include <errno.h>

static uint16_t
min_u16(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

void
window_init(struct window *window, uint16_t sq_size, uint16_t rq_size, uint16_t depth, uint16_t peer_sq_size,
	    uint16_t peer_rq_size)
{
	*window = (struct window){0};
	window->remote_capacity = min_u16(sq_size, peer_rq_size) - WINDOW_RESERVED;
	window->remote = window->remote_capacity;
	window->own_capacity = depth - WINDOW_RESERVED;
	window->own = window->own_capacity;
	window->ack_slots = WINDOW_RESERVED;
	window->peer_capacity = min_u16(rq_size, peer_sq_size) - WINDOW_RESERVED;
}

/* A completion is asked for once in so many requests: often enough that the send queue never runs dry of them. */
static uint16_t
signal_interval(const struct window *window)
{
	uint16_t quarter = min_u16(window->remote_capacity, window->own_capacity) / 4;

	return quarter > 0 ? quarter : 1;
}

/*
 * Of those that empty the queue: for the blocks that wait for it; and where it closes the peer's window, since a close
 * could send nothing more to learn that everything has arrived, and the peer's credits are the peer's to keep.
 */
static bool
decide_signaled(const struct window *window, const struct window_request *request)
{
	if (window->unsignaled + 1 >= signal_interval(window))
		return true;
	return request->last && (request->holds || window->unsignaled_holds || window->remote == 1);
}

static bool
decide_solicited(const struct window *window, const struct window_request *request)
{
	if (request->last || window->remote == 1 || window->own == 1)
		return true;
	if (window->unsolicited + 1 > window->remote_capacity / 4)
		return true;
	if (window->unsolicited_credits + request->credits > window->peer_capacity / 4)
		return true;
	return window->unsolicited_bytes + request->bytes > WINDOW_UNSOLICITED_BYTES;
}

struct window_flags
window_decide(const struct window *window, const struct window_request *request)
{
	return (struct window_flags){
		.signaled = decide_signaled(window, request),
		.solicited = decide_solicited(window, request),
		.covers = window->unsignaled + 1,
	};
}

void
window_charge(struct window *window, const struct window_request *request, struct window_flags flags)
{
	window->remote--;
	window->own--;
	if (flags.signaled) {
		window->unsignaled = 0;
		window->unsignaled_holds = false;
	} else {
		window->unsignaled++;
		window->unsignaled_holds |= request->holds;
	}
	if (flags.solicited) {
		window->unsolicited = 0;
		window->unsolicited_credits = 0;
		window->unsolicited_bytes = 0;
	} else {
		window->unsolicited++;
		window->unsolicited_credits += request->credits;
		window->unsolicited_bytes += request->bytes;
	}
}

int
window_completed(struct window *window, uint16_t covers)
{
	if (covers > window->own_capacity - window->own)
		return -EPROTO;
	window->own += covers;
	return 0;
}

int
window_credited(struct window *window, uint32_t credits)
{
	if (credits > (uint32_t)(window->remote_capacity - window->remote))
		return -EPROTO;
	window->remote += (uint16_t)credits;
	return 0;
}

bool
window_quiet(const struct window *window)
{
	return window->own == window->own_capacity || window->remote == window->remote_capacity;
}

bool
window_uncovered(const struct window *window)
{
	return window->unsignaled > 0 && window->remote < window->remote_capacity;
}
