/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_META_OUT_H
#define NET_RPC_META_OUT_H

/*
 * RpcMeta as it leaves: the fields that brpc sends, in their order, explicit zeros included. A handful of fields at
 * known places is written by hand; protobuf-c takes six times as long for the same bytes. Pure.
 */

#include <stddef.h>
#include <stdint.h>

/* Filled by one of the two calls below; the texts are the caller's and must last until it is packed. */
struct meta_out {
	const char *service, *method; /* NULL: a response */
	const char *error_text;	      /* NULL: not sent */
	size_t service_len, method_len, error_text_len;
	size_t part_size; /* of the request or the response within the meta */
	size_t size;
	int64_t log_id, correlation_id;
	int32_t error_code;
	uint32_t attachment_size;
};

/* log_id 0 is not sent, nor is an attachment_size of 0, as with brpc. */
void meta_out_request(struct meta_out *out, const char *service, const char *method, int64_t log_id,
		      int64_t correlation_id, uint32_t attachment_size);

void meta_out_response(struct meta_out *out, int32_t error_code, const char *error_text, int64_t correlation_id,
		       uint32_t attachment_size);

/* Writes out->size bytes. */
void meta_out_pack(const struct meta_out *out, uint8_t *to);

#endif
