/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_FAULT_H
#define NET_VERBS_FAULT_H

/*
 * What went wrong with an endpoint: noted where it is found, which may be in the middle of a batch of completions, and
 * told once at its end, as one line that names peer, device, GID index, queue pair, status and a hint.
 */

#include <infiniband/verbs.h>

struct endpoint;

struct fault {
	int error;	  /* how the connection ends, a negative errno; 0: nothing is wrong */
	const char *what; /* static text; NULL: the completion's status says it */
	enum ibv_wc_status status;
	uint32_t vendor_err;
	const char *request; /* what it was the completion of */
};

/* The first one counts. */
void fault_note(struct endpoint *endpoint, int error, const char *what);

/* A completion in error. One that was only flushed gives way to what made it so, which may follow in the same batch. */
void fault_note_completion(struct endpoint *endpoint, const struct ibv_wc *wc);

/* The line. */
void fault_tell(const struct endpoint *endpoint);

/* What to look at when a completion has this status, static text. */
const char *fault_hint(enum ibv_wc_status status);

#endif
