/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/meta.h"
#include "net/rpc/rpc_meta.pb-c.h"
#include "net/rpc/wire.h"
#include <errno.h>

static const struct meta meta_of_nothing = {.service = "", .method = "", .error_text = ""};

int
meta_decode(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta)
{
	if (__builtin_expect(meta_scan(data, len, arena, meta), 1))
		return 0;
	return meta_unpack(data, len, arena, meta);
}

/* ---- usual metas ---- */

static bool
scan_int32(struct wire *wire, int32_t *value)
{
	uint64_t raw;
	bool got = wire_get_varint(wire, &raw);

	*value = (int32_t)(uint32_t)raw;
	return got;
}

static bool
scan_int64(struct wire *wire, int64_t *value)
{
	uint64_t raw;
	bool got = wire_get_varint(wire, &raw);

	*value = (int64_t)raw;
	return got;
}

static bool
scan_text(struct wire *wire, struct arena *arena, const char **text)
{
	struct wire bytes;
	size_t len;
	char *copy;

	if (!wire_get_bytes(wire, &bytes))
		return false;
	len = (size_t)(bytes.end - bytes.at);
	copy = arena_alloc(arena, len + 1);
	if (!copy)
		return false;
	memcpy(copy, bytes.at, len);
	copy[len] = '\0';
	*text = copy;
	return true;
}

static bool
scan_ignored(struct wire *wire)
{
	uint64_t value;

	return wire_get_varint(wire, &value);
}

static bool
scan_ignored_bytes(struct wire *wire)
{
	struct wire bytes;

	return wire_get_bytes(wire, &bytes);
}

static bool
scan_request_field(uint8_t tag, struct wire *wire, struct arena *arena, struct meta *meta)
{
	switch (tag) {
	case WIRE_BYTES(1):
		return scan_text(wire, arena, &meta->service);
	case WIRE_BYTES(2):
		return scan_text(wire, arena, &meta->method);
	case WIRE_VARINT(3):
		return scan_int64(wire, &meta->log_id);
	case WIRE_VARINT(8):
		return scan_int32(wire, &meta->timeout_ms);
	default:
		return false;
	}
}

/* Both names are required; two requests in one meta would be merged, which is not usual. */
static bool
scan_request(struct wire *wire, struct arena *arena, struct meta *meta)
{
	struct wire part;

	if (meta->has_request || !wire_get_bytes(wire, &part))
		return false;
	meta->service = meta->method = NULL;
	while (part.at < part.end) {
		uint8_t tag = *part.at++;

		if (!scan_request_field(tag, &part, arena, meta))
			return false;
	}
	meta->has_request = true;
	return meta->service && meta->method;
}

static bool
scan_response(struct wire *wire, struct arena *arena, struct meta *meta)
{
	struct wire part;

	if (!wire_get_bytes(wire, &part))
		return false;
	while (part.at < part.end) {
		uint8_t tag = *part.at++;
		bool got = tag == WIRE_VARINT(1)  ? scan_int32(&part, &meta->error_code)
			   : tag == WIRE_BYTES(2) ? scan_text(&part, arena, &meta->error_text)
						  : false;

		if (!got)
			return false;
	}
	return true;
}

static bool
scan_field(uint8_t tag, struct wire *wire, struct arena *arena, struct meta *meta)
{
	switch (tag) {
	case WIRE_BYTES(1):
		return scan_request(wire, arena, meta);
	case WIRE_BYTES(2):
		return scan_response(wire, arena, meta);
	case WIRE_VARINT(3):
		return scan_int32(wire, &meta->compress_type);
	case WIRE_VARINT(4):
		return scan_int64(wire, &meta->correlation_id);
	case WIRE_VARINT(5):
		return scan_int32(wire, &meta->attachment_size);
	case WIRE_VARINT(10): /* content_type */
	case WIRE_VARINT(11): /* checksum_type */
		return scan_ignored(wire);
	case WIRE_BYTES(12): /* checksum_value */
		return scan_ignored_bytes(wire);
	default:
		return false;
	}
}

bool
meta_scan(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta)
{
	struct wire wire = {data, data + len};

	*meta = meta_of_nothing;
	while (wire.at < wire.end) {
		uint8_t tag = *wire.at++;

		if (!scan_field(tag, &wire, arena, meta))
			return false;
	}
	return true;
}

/* ---- all metas ---- */

static void
read_request(const Rpc__RpcRequestMeta *request, struct meta *meta)
{
	meta->has_request = true;
	meta->service = request->service_name;
	meta->method = request->method_name;
	meta->log_id = request->log_id;
	meta->timeout_ms = request->timeout_ms;
}

static void
read_response(const Rpc__RpcResponseMeta *response, struct meta *meta)
{
	meta->error_code = response->error_code;
	if (response->error_text)
		meta->error_text = response->error_text;
}

int
meta_unpack(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta)
{
	const Rpc__RpcMeta *wire = rpc__rpc_meta__unpack(&arena->protobuf, len, data);

	if (!wire)
		return -EBADMSG;
	*meta = meta_of_nothing;
	meta->correlation_id = wire->correlation_id;
	meta->attachment_size = wire->attachment_size;
	meta->compress_type = wire->compress_type;
	if (wire->request)
		read_request(wire->request, meta);
	if (wire->response)
		read_response(wire->response, meta);
	return 0;
}
