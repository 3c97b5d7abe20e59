/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_SEND_H
#define NET_VERBS_SEND_H

/*
 * The sending half: cuts conn->out into SENDs while both windows are open, as chains that ring once, and keeps the
 * bytes of what was posted until completions say that the card is done with them. doc/flow.md has the rules.
 */

#include "net/verbs/window.h"
#include <xrdma/iobuf.h>

struct endpoint;

struct sender {
	struct window window;
	struct xr_iobuf in_flight; /* bytes of the posted requests in their order, but for inlined ones */
	uint32_t *carried;	   /* ring: how many of those each posted request carries */
	uint16_t room;		   /* of the ring: the depth of the send queue */
	uint16_t first, count;	   /* posted requests that no completion has covered, the oldest first */
	uint32_t message_max;	   /* bytes in one SEND: what fits into the peer's blocks */
	uint64_t refused_us;	   /* since when the device has had no memory for a request; 0: it has */
	struct xr_iobuf copied;	   /* what send_adopt() has copied, until the first flush */
};

/* carried is room for `depth` requests. */
void send_init(struct sender *send, uint32_t *carried, uint16_t depth);

/* The device has no use for any of its memory any more. */
void send_clear(struct sender *send);

/*
 * Fits bytes for sending: the pool's own and registered user memory go as they are, what the receiving half had to copy
 * to ordinary memory is copied into the pool. -XR_ERDMAMEM: user memory that the device does not know; -ENOMEM. out is
 * as it was then.
 */
int send_accept(const struct endpoint *endpoint, struct xr_iobuf *out);

/*
 * Fits conn->out, which was filled before the transport was known: whatever the device can't read is copied into the
 * pool. Its users are told with the first flush and not here, in the middle of a handshake. -ENOMEM: it is as it was.
 */
int send_adopt(struct endpoint *endpoint);

/*
 * Posts what conn->out and the windows allow, the farewell and the pure ACK that are due. 0, also when something is
 * left for later; a negative errno: the connection has failed, see fault.c.
 */
int send_flush(struct endpoint *endpoint);

/* A completion of `covers` requests. A negative errno: it can't be. */
int send_completed(struct sender *send, uint16_t covers);

/* Something can leave now that could not when the last flush ended. */
bool send_due(const struct endpoint *endpoint);

#endif
