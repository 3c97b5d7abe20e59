/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_WIRE_H
#define NET_RPC_WIRE_H

/* Protobuf's two encodings that a usual RpcMeta is made of: varints, and bytes behind their length. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The tag of a field below 16, which is one byte. */
#define WIRE_VARINT(field) ((field) << 3 | 0)
#define WIRE_BYTES(field)  ((field) << 3 | 2)

static inline size_t
wire_varint_size(uint64_t value)
{
	unsigned top_bit = 63u - (unsigned)__builtin_clzll(value | 1);

	return top_bit / 7 + 1;
}

static inline size_t
wire_bytes_size(size_t len)
{
	return wire_varint_size(len) + len;
}

static inline uint8_t *
wire_put_varint(uint8_t *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (uint8_t)(value | 0x80);
	*to++ = (uint8_t)value;
	return to;
}

static inline uint8_t *
wire_put_field(uint8_t *to, uint8_t tag, uint64_t value)
{
	*to++ = tag;
	return wire_put_varint(to, value);
}

static inline uint8_t *
wire_put_bytes(uint8_t *to, uint8_t tag, const void *bytes, size_t len)
{
	to = wire_put_field(to, tag, len);
	memcpy(to, bytes, len);
	return to + len;
}

/* What is still to be read. */
struct wire {
	const uint8_t *at, *end;
};

/* False: it does not end within 10 bytes, or not within the wire. */
static inline bool
wire_get_varint(struct wire *wire, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 70 && wire->at < wire->end; shift += 7) {
		uint8_t byte = *wire->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static inline bool
wire_get_bytes(struct wire *wire, struct wire *bytes)
{
	uint64_t len;

	if (!wire_get_varint(wire, &len) || len > (size_t)(wire->end - wire->at))
		return false;
	*bytes = (struct wire){wire->at, wire->at + len};
	wire->at += len;
	return true;
}

#endif
