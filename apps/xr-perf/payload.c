/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include "random.h"

#include <errno.h>

/* Slices begin at this many different bytes, then again at the first: more calls than a connection has in flight. */
#define SLICE_STARTS 1021

static int
append_random(struct xr_iobuf *to, size_t len, uint64_t seed)
{
	uint64_t words[512];

	while (len > 0) {
		size_t part = len < sizeof words ? len : sizeof words;
		int err;

		for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
			words[i] = random_next(&seed);
		err = xr_iobuf_append(to, words, part);
		if (err)
			return err;
		len -= part;
	}
	return 0;
}

int
payload_init(struct payload *payload, size_t slice_size, uint64_t seed)
{
	int err;

	*payload = (struct payload){.bytes = XR_IOBUF_INIT, .slice_size = slice_size};
	if (slice_size == 0)
		return 0;
	err = append_random(&payload->bytes, slice_size + SLICE_STARTS - 1, seed);
	if (err)
		xr_iobuf_clear(&payload->bytes);
	return err;
}

void
payload_fini(struct payload *payload)
{
	xr_iobuf_clear(&payload->bytes);
}

int
payload_slice(const struct payload *payload, unsigned n, struct xr_iobuf *to)
{
	struct xr_iobuf rest = XR_IOBUF_INIT;
	size_t moved;
	int err;

	if (payload->slice_size == 0)
		return 0;
	err = xr_iobuf_share(&rest, &payload->bytes);
	if (err)
		return err;
	xr_iobuf_drop(&rest, n % SLICE_STARTS);
	moved = xr_iobuf_cut(&rest, payload->slice_size, to);
	xr_iobuf_clear(&rest);
	return moved == payload->slice_size ? 0 : -ENOMEM;
}
