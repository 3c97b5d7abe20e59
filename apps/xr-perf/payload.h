/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_PAYLOAD_H
#define XR_PERF_PAYLOAD_H

/*
 * The attachments of one lcore: random bytes made once, of which every call in flight has its own slice. Slices begin
 * at different bytes, so that an answer given to the wrong call is noticed, and share their memory, so that no call
 * copies a byte.
 */

#include "own_memory.h"

enum payload_memory {
	PAYLOAD_POOL,	    /* the library's blocks */
	PAYLOAD_REGISTERED, /* memory of the program's own that RDMA devices know */
	PAYLOAD_PLAIN,	    /* such as they don't */
	PAYLOAD_MEMORIES,
};

/* As --attachment_memory calls it. */
extern const char *const g_payload_memory_names[PAYLOAD_MEMORIES];

struct payload {
	struct xr_iobuf bytes;
	struct own_memory own; /* in place of them */
	size_t slice_size;
};

/* On the lcore that will send it, whose memory it takes. -ENOMEM, and what registering gave. */
int payload_init(struct payload *payload, enum payload_memory memory, size_t slice_size, uint64_t seed);

/* -EBUSY: the library holds slices in memory of the program's own, which it ought not to any more. */
int payload_fini(struct payload *payload);

/* Appends references to the n-th slice. -ENOMEM. */
int payload_slice(struct payload *payload, unsigned n, struct xr_iobuf *to);

#endif
