/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/meta.h"
#include <errno.h>
#include <xrdma/protobuf.h>

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
meta_decode(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta)
{
	const Rpc__RpcMeta *wire = rpc__rpc_meta__unpack(&arena->protobuf, len, data);

	if (!wire)
		return -EBADMSG;

	*meta = (struct meta){
		.service = "",
		.method = "",
		.error_text = "",
		.correlation_id = wire->correlation_id,
		.attachment_size = wire->attachment_size,
		.compress_type = wire->compress_type,
	};
	if (wire->request)
		read_request(wire->request, meta);
	if (wire->response)
		read_response(wire->response, meta);
	return 0;
}

/* The fields that every frame of brpc carries, explicit zeros included. */
static void
out_begin(struct meta_out *out, int64_t correlation_id, uint32_t attachment_size)
{
	rpc__rpc_meta__init(&out->meta);
	out->meta.has_compress_type = true;
	out->meta.has_correlation_id = true;
	out->meta.correlation_id = correlation_id;
	out->meta.has_attachment_size = attachment_size != 0;
	out->meta.attachment_size = (int32_t)attachment_size;
	out->meta.has_content_type = true;
	out->meta.has_checksum_type = true;
	out->meta.has_checksum_value = true;
}

void
meta_out_request(struct meta_out *out, const char *service, const char *method, int64_t log_id, int64_t correlation_id,
		 uint32_t attachment_size)
{
	out_begin(out, correlation_id, attachment_size);
	rpc__rpc_request_meta__init(&out->request);
	out->request.service_name = (char *)service;
	out->request.method_name = (char *)method;
	out->request.has_log_id = log_id != 0;
	out->request.log_id = log_id;
	out->meta.request = &out->request;
}

void
meta_out_response(struct meta_out *out, int32_t error_code, const char *error_text, int64_t correlation_id,
		  uint32_t attachment_size)
{
	out_begin(out, correlation_id, attachment_size);
	rpc__rpc_response_meta__init(&out->response);
	out->response.has_error_code = true;
	out->response.error_code = error_code;
	out->response.error_text = (char *)error_text;
	out->meta.response = &out->response;
}

size_t
meta_out_size(const struct meta_out *out)
{
	return rpc__rpc_meta__get_packed_size(&out->meta);
}

void
meta_out_pack(const struct meta_out *out, uint8_t *to)
{
	rpc__rpc_meta__pack(&out->meta, to);
}

int
meta_out_append(const struct meta_out *out, struct xr_iobuf *to)
{
	return xr_protobuf_pack(to, &out->meta.base);
}
