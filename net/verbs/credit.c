/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/credit.h"
#include "net/verbs/window.h"
#include <errno.h>

uint16_t
credit_capacity(uint16_t rq_size, uint16_t peer_sq_size)
{
	return (rq_size < peer_sq_size ? rq_size : peer_sq_size) - WINDOW_RESERVED;
}

void
credit_init(struct credit *credit, uint16_t capacity, uint64_t *ends)
{
	*credit = (struct credit){.capacity = capacity};
	credit->ends = ends;
}

/* Where the ring's nth place from the oldest unreported message is, n at most the capacity; no division for a message.
 */
static uint16_t
place(const struct credit *credit, uint16_t nth)
{
	unsigned at = (unsigned)credit->first + nth;

	return (uint16_t)(at < credit->capacity ? at : at - credit->capacity);
}

static uint64_t *
end_of(const struct credit *credit, uint16_t nth)
{
	return &credit->ends[place(credit, nth)];
}

int
credit_received(struct credit *credit, uint32_t bytes)
{
	uint16_t open = credit->unreported + credit->starved;

	if (open == credit->capacity)
		return -EPROTO;
	credit->received += bytes;
	*end_of(credit, open) = credit->received;
	credit->starved++;
	return 0;
}

void
credit_reposted(struct credit *credit)
{
	credit->starved--;
	credit->unreported++;
}

void
credit_taken(struct credit *credit, size_t bytes)
{
	credit->taken += bytes;
}

/* Untaken messages are the newest ones, so the ends that lie beyond what was taken are found from the back. */
uint16_t
credit_held(const struct credit *credit)
{
	uint16_t low = 0, high = credit->unreported;

	if (!credit->holding)
		return 0;
	while (low < high) {
		uint16_t middle = low + (high - low) / 2;

		if (*end_of(credit, middle) <= credit->taken)
			low = middle + 1;
		else
			high = middle;
	}
	return credit->unreported - low;
}

uint16_t
credit_reportable(const struct credit *credit)
{
	return credit->unreported - credit_held(credit);
}

void
credit_reported(struct credit *credit, uint16_t n)
{
	credit->first = place(credit, n);
	credit->unreported -= n;
}

/*
 * More than half of the peer's window is owed; or all of it is accounted for on this side, so that the peer can send
 * nothing more and would wait for ever for what it is owed.
 */
bool
credit_ack_due(const struct credit *credit)
{
	uint16_t reportable = credit_reportable(credit);

	if (reportable > credit->capacity / 2)
		return true;
	return reportable > 0 && credit->unreported + credit->starved == credit->capacity;
}
