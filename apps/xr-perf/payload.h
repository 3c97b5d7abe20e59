/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_PAYLOAD_H
#define XR_PERF_PAYLOAD_H

/*
 * The attachments of one lcore: random bytes made once, of which every call in flight has its own slice. Slices begin
 * at different bytes, so that an answer given to the wrong call is noticed, and share their blocks, so that no call
 * copies a byte.
 */

#include <xrdma/iobuf.h>

struct payload {
	struct xr_iobuf bytes;
	size_t slice_size;
};

/* On the lcore that will send it, whose memory it takes. -ENOMEM. */
int payload_init(struct payload *payload, size_t slice_size, uint64_t seed);
void payload_fini(struct payload *payload);

/* Appends references to the n-th slice. -ENOMEM. */
int payload_slice(const struct payload *payload, unsigned n, struct xr_iobuf *to);

#endif
