/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_WINDOW_H
#define NET_VERBS_WINDOW_H

/*
 * The sending half of flow control (doc/flow.md): how many SENDs may leave, and which of them ask for a completion here
 * (signaled) or an event there (solicited). Arithmetic on a few counters, no verbs: decide first with
 * window_decide(), post, then charge what was really posted with window_charge().
 *
 * Two windows, since two queues can overflow: the peer's receive queue (given back by the credits in its immediates)
 * and this side's send queue (given back by signaled completions).
 */

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_RESERVED 3u /* slots of each queue kept for pure ACKs; brpc's RESERVED_WR_NUM */

#define WINDOW_UNSOLICITED_BYTES (1u << 20)

struct window {
	uint16_t remote_capacity; /* min(own sq_size as advertised, peer's rq_size) - 3 */
	uint16_t remote;	  /* data SENDs that the peer can still take */
	uint16_t own_capacity;	  /* send queue's depth - 3 */
	uint16_t own;		  /* send queue slots not yet known to be free are missing here */
	uint16_t ack_slots;	  /* pure ACKs that may be posted, of WINDOW_RESERVED */
	uint16_t peer_capacity;	  /* the peer's window towards us: its credits are measured against this */

	uint16_t unsignaled;   /* requests posted since the last signaled one */
	bool unsignaled_holds; /* one of them holds references to blocks */

	uint16_t unsolicited; /* requests posted since the last solicited one, their credits and bytes */
	uint16_t unsolicited_credits;
	uint32_t unsolicited_bytes;
};

/*
 * sq_size and rq_size are what this side advertised and depth is what its send queue really holds; the peer's are as
 * its hello says. All at least 16 (hello_v2_negotiable), depth >= sq_size.
 */
void window_init(struct window *window, uint16_t sq_size, uint16_t rq_size, uint16_t depth, uint16_t peer_sq_size,
		 uint16_t peer_rq_size);

/* One more data SEND may be posted. */
static inline bool
window_open(const struct window *window)
{
	return window->remote > 0 && window->own > 0;
}

/* One work request about to be posted. */
struct window_request {
	uint32_t bytes;	  /* payload */
	uint16_t credits; /* what its immediate reports */
	bool last;	  /* it empties the queue */
	bool holds;	  /* its references must wait for a completion (false when the payload is inlined, or empty) */
};

struct window_flags {
	bool signaled;
	bool solicited;
	uint16_t covers; /* requests that its completion gives back, itself included; meaningful when signaled */
};

/* What this request must carry, the windows being as they are before it. */
struct window_flags window_decide(const struct window *window, const struct window_request *request);

/* The request was posted with these flags: both windows and the suppression counters move. */
void window_charge(struct window *window, const struct window_request *request, struct window_flags flags);

/* A signaled data completion: `covers` slots of the send queue are free. -EPROTO: more than were in use. */
int window_completed(struct window *window, uint16_t covers);

/* The peer reports receives. -EPROTO: more than it owed, so its accounting or ours is broken. */
int window_credited(struct window *window, uint32_t credits);

/* Every SEND so far is known to have arrived: covered by a signaled completion or by the peer's credits. */
bool window_quiet(const struct window *window);

/*
 * Of some SEND no completion will tell, and the peer has not reported it: before its end this side sends one more,
 * which asks for a completion. Never true while the peer's window is closed and the queue is empty.
 */
bool window_uncovered(const struct window *window);

#endif
