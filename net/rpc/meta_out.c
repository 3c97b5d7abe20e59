/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/meta_out.h"
#include "net/rpc/wire.h"

/* What follows the attachment's size in every meta: content_type, checksum_type and checksum_value, all nothing. */
static const uint8_t trailer[] = {WIRE_VARINT(10), 0, WIRE_VARINT(11), 0, WIRE_BYTES(12), 0};

/* compress_type, always none. */
static const uint8_t compress[] = {WIRE_VARINT(3), 0};

/* An int32 below 0 is sign-extended to 64 bits. */
static uint64_t
of_int32(int32_t value)
{
	return (uint64_t)(int64_t)value;
}

static size_t
field_size(uint64_t value)
{
	return 1 + wire_varint_size(value);
}

static size_t
text_size(size_t len)
{
	return 1 + wire_bytes_size(len);
}

static void
set_size(struct meta_out *out)
{
	out->size = text_size(out->part_size) + sizeof compress + field_size((uint64_t)out->correlation_id) +
		    sizeof trailer;
	if (out->attachment_size)
		out->size += field_size(out->attachment_size);
}

void
meta_out_request(struct meta_out *out, const char *service, const char *method, int64_t log_id, int64_t correlation_id,
		 uint32_t attachment_size)
{
	*out = (struct meta_out){
		.service = service,
		.method = method,
		.service_len = strlen(service),
		.method_len = strlen(method),
		.log_id = log_id,
		.correlation_id = correlation_id,
		.attachment_size = attachment_size,
	};
	out->part_size = text_size(out->service_len) + text_size(out->method_len);
	if (log_id)
		out->part_size += field_size((uint64_t)log_id);
	set_size(out);
}

void
meta_out_response(struct meta_out *out, int32_t error_code, const char *error_text, int64_t correlation_id,
		  uint32_t attachment_size)
{
	*out = (struct meta_out){
		.error_code = error_code,
		.error_text = error_text,
		.error_text_len = error_text ? strlen(error_text) : 0,
		.correlation_id = correlation_id,
		.attachment_size = attachment_size,
	};
	out->part_size = field_size(of_int32(error_code));
	if (error_text)
		out->part_size += text_size(out->error_text_len);
	set_size(out);
}

static uint8_t *
put_request(const struct meta_out *out, uint8_t *to)
{
	to = wire_put_field(to, WIRE_BYTES(1), out->part_size);
	to = wire_put_bytes(to, WIRE_BYTES(1), out->service, out->service_len);
	to = wire_put_bytes(to, WIRE_BYTES(2), out->method, out->method_len);
	return out->log_id ? wire_put_field(to, WIRE_VARINT(3), (uint64_t)out->log_id) : to;
}

static uint8_t *
put_response(const struct meta_out *out, uint8_t *to)
{
	to = wire_put_field(to, WIRE_BYTES(2), out->part_size);
	to = wire_put_field(to, WIRE_VARINT(1), of_int32(out->error_code));
	return out->error_text ? wire_put_bytes(to, WIRE_BYTES(2), out->error_text, out->error_text_len) : to;
}

void
meta_out_pack(const struct meta_out *out, uint8_t *to)
{
	to = out->service ? put_request(out, to) : put_response(out, to);
	memcpy(to, compress, sizeof compress);
	to = wire_put_field(to + sizeof compress, WIRE_VARINT(4), (uint64_t)out->correlation_id);
	if (out->attachment_size)
		to = wire_put_field(to, WIRE_VARINT(5), out->attachment_size);
	memcpy(to, trailer, sizeof trailer);
}
