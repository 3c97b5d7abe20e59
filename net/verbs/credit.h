/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_CREDIT_H
#define NET_VERBS_CREDIT_H

/*
 * The receiving half of flow control (doc/flow.md): which of the peer's messages may be reported to it, and when a
 * report must leave by itself. Arithmetic only. A message with payload passes through
 *
 *   starved     its slot of the receive queue has no block yet
 *   unreported  its slot is posted again: one credit that the peer is owed
 *   reported    the credit has left in an immediate
 *
 * in the order of arrival. While the connection is holding, the credits of messages that the application has not fully
 * taken are held; those of fully taken ones never are. Zero-length messages are not counted at all.
 *
 * Positions are bytes of the stream since its beginning: a message ends at one, and the application has taken up to
 * one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct credit {
	uint16_t capacity; /* K = min(own rq_size, peer's sq_size) - 3: the peer's window towards us */
	uint16_t starved;  /* slots without a block: the newest messages */
	uint16_t unreported;
	uint16_t first;	   /* of the ring: the oldest unreported message */
	bool holding;	   /* the caller's to set, whenever it has looked at the input */
	uint64_t received; /* position at the end of the newest message */
	uint64_t taken;	   /* position up to which the application has taken */
	uint64_t *ends;	   /* ring of `capacity` ends, oldest unreported first, starved ones behind */
};

/* ends is room for the capacity's worth of positions, owned by the caller; credit_capacity() says how many. */
uint16_t credit_capacity(uint16_t rq_size, uint16_t peer_sq_size);
void credit_init(struct credit *credit, uint16_t capacity, uint64_t *ends);

/* A message with payload arrived. -EPROTO: the peer had no credit for it. It is starved until credit_reposted(). */
int credit_received(struct credit *credit, uint32_t bytes);

/* The oldest starved message's slot has been posted again (ibv_post_recv has returned). */
void credit_reposted(struct credit *credit);

/* The application has taken so many bytes more. */
void credit_taken(struct credit *credit, size_t bytes);

/* Messages whose credits are held: H. */
uint16_t credit_held(const struct credit *credit);

/* Credits that may be reported now: U. What a chain that leaves carries, and a pure ACK. */
uint16_t credit_reportable(const struct credit *credit);

/* n of them have been posted in an immediate, n at most credit_reportable(). */
void credit_reported(struct credit *credit, uint16_t n);

/* A pure ACK has to leave, if one of its slots is free. */
bool credit_ack_due(const struct credit *credit);

#endif
