/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_RPC_H
#define NET_RPC_RPC_H

/* What both sides of RPC share: their counters, and option structs of any age. */

#include "core/counter.h"
#include <errno.h>
#include <string.h>

/* RPC_X counts in g_rpc_counters[RPC_X]. */
enum rpc_counter {
	RPC_REQUESTS,
	RPC_REQUESTS_FAILED,
	RPC_ANSWERS_DROPPED,
	RPC_ANSWERS_HELD_BACK,
	RPC_CALLS,
	RPC_CALLS_FAILED,
	RPC_CALLS_TIMED_OUT,
	RPC_RESPONSES_DROPPED,
	RPC_FRAMES_REFUSED,
	RPC_COUNTERS,
};

extern struct counter g_rpc_counters[RPC_COUNTERS];

/* For net/env, before counter_init(). */
int rpc_counters_add(void);

static inline void
rpc_count(enum rpc_counter counter)
{
	counter_add(&g_rpc_counters[counter], 1);
}

/*
 * Takes over an option struct that begins with its size: a smaller one, of a program built against an older library,
 * leaves the rest 0. -EINVAL: larger than ours, or not even its size field.
 */
static inline int
opts_copy(void *own, size_t own_size, const void *given, size_t given_size)
{
	if (given_size < sizeof(size_t) || given_size > own_size)
		return -EINVAL;
	memset(own, 0, own_size);
	memcpy(own, given, given_size);
	return 0;
}

#endif
