/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_META_H
#define NET_RPC_META_H

/* RpcMeta, the protobuf in front of each message: what this library reads of it and what it writes. Pure. */

#include "net/rpc/arena.h"
#include "net/rpc/rpc_meta.pb-c.h"
#include <stdbool.h>
#include <stdint.h>
#include <xrdma/iobuf.h>

/* What arrived. Texts stand in the arena; the fields of an absent part are 0 or "". */
struct meta {
	bool has_request;
	const char *service, *method;
	int64_t log_id;
	int32_t timeout_ms;

	int32_t error_code;
	const char *error_text;

	int64_t correlation_id;
	int32_t attachment_size;
	int32_t compress_type;
};

/*
 * Decodes into the arena; unknown fields are skipped. -EBADMSG: no RpcMeta (cut short, a required field missing, or no
 * memory left to decode it).
 */
int meta_decode(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta);

/*
 * What leaves: filled by meta_out_request() or meta_out_response(), then packed. The texts are the caller's and must
 * last until then. Must not move in between: protobuf's parts point to each other.
 */
struct meta_out {
	Rpc__RpcMeta meta;
	union {
		Rpc__RpcRequestMeta request;
		Rpc__RpcResponseMeta response;
	};
};

/* log_id 0 is not sent, nor is an attachment_size of 0, as with brpc. */
void meta_out_request(struct meta_out *out, const char *service, const char *method, int64_t log_id,
		      int64_t correlation_id, uint32_t attachment_size);

/* error_text NULL: not sent. */
void meta_out_response(struct meta_out *out, int32_t error_code, const char *error_text, int64_t correlation_id,
		       uint32_t attachment_size);

size_t meta_out_size(const struct meta_out *out);

/* Writes meta_out_size() bytes. */
void meta_out_pack(const struct meta_out *out, uint8_t *to);

/* Packs to the end of an iobuf, in as many pieces as it takes. -ENOMEM: nothing has been appended. */
int meta_out_append(const struct meta_out *out, struct xr_iobuf *to);

#endif
