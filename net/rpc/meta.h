/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_META_H
#define NET_RPC_META_H

/* RpcMeta, the protobuf in front of each message, as it arrives. Pure. */

#include "net/rpc/arena.h"
#include <stdbool.h>
#include <stdint.h>

/* Texts stand in the arena; the fields of an absent part are 0 or "". */
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
 *
 * It is two decoders. meta_scan() knows the fields that usual metas are made of and reads them in a fifth of the time;
 * what it does not take is left to protobuf-c's generated code, meta_unpack(), which knows them all. They agree on
 * everything that the first one takes.
 */
int meta_decode(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta);

/* False: not a usual one. */
bool meta_scan(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta);

int meta_unpack(const uint8_t *data, size_t len, struct arena *arena, struct meta *meta);

#endif
