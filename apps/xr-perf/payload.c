/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include "random.h"

#include <errno.h>
#include <string.h>

/* Slices begin at this many different bytes, then again at the first: more calls than a connection has in flight. */
#define SLICE_STARTS 1021

const char *const g_payload_memory_names[PAYLOAD_MEMORIES] = {
	[PAYLOAD_POOL] = "pool",
	[PAYLOAD_REGISTERED] = "registered",
	[PAYLOAD_PLAIN] = "plain",
};

static void
fill_random(void *to, size_t len, uint64_t *seed)
{
	for (size_t done = 0; done < len; done += sizeof(uint64_t)) {
		uint64_t word = random_next(seed);

		memcpy((char *)to + done, &word, len - done < sizeof word ? len - done : sizeof word);
	}
}

static int
append_random(struct xr_iobuf *to, size_t len, uint64_t seed)
{
	char bytes[4096];

	while (len > 0) {
		size_t part = len < sizeof bytes ? len : sizeof bytes;
		int err;

		fill_random(bytes, part, &seed);
		err = xr_iobuf_append(to, bytes, part);
		if (err)
			return err;
		len -= part;
	}
	return 0;
}

static int
fill_pool(struct payload *payload, size_t len, uint64_t seed)
{
	int err = append_random(&payload->bytes, len, seed);

	if (err)
		xr_iobuf_clear(&payload->bytes);
	return err;
}

static int
fill_own(struct payload *payload, size_t len, bool registered, uint64_t seed)
{
	int err = own_memory_map(&payload->own, len, registered);

	if (!err)
		fill_random(payload->own.bytes, len, &seed);
	return err;
}

int
payload_init(struct payload *payload, enum payload_memory memory, size_t slice_size, uint64_t seed)
{
	size_t len = slice_size + SLICE_STARTS - 1;

	*payload = (struct payload){.bytes = XR_IOBUF_INIT, .slice_size = slice_size};
	if (slice_size == 0)
		return 0;
	if (memory == PAYLOAD_POOL)
		return fill_pool(payload, len, seed);
	return fill_own(payload, len, memory == PAYLOAD_REGISTERED, seed);
}

int
payload_fini(struct payload *payload)
{
	xr_iobuf_clear(&payload->bytes);
	return own_memory_unmap(&payload->own);
}

static int
share_slice(const struct payload *payload, size_t begin, struct xr_iobuf *to)
{
	struct xr_iobuf rest = XR_IOBUF_INIT;
	int err = xr_iobuf_share(&rest, &payload->bytes);
	size_t moved;

	if (err)
		return err;
	xr_iobuf_drop(&rest, begin);
	moved = xr_iobuf_cut(&rest, payload->slice_size, to);
	xr_iobuf_clear(&rest);
	return moved == payload->slice_size ? 0 : -ENOMEM;
}

int
payload_slice(struct payload *payload, unsigned n, struct xr_iobuf *to)
{
	size_t begin = n % SLICE_STARTS;

	if (payload->slice_size == 0)
		return 0;
	if (payload->own.map)
		return own_memory_lend(&payload->own, begin, payload->slice_size, to);
	return share_slice(payload, begin, to);
}
