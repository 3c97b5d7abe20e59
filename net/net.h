/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_NET_H
#define NET_NET_H

/* What the whole floor shares: its options and its counters. */

#include "core/counter.h"
#include "core/option.h"

extern const struct xr_option g_net_options[];

/* The values of g_net_options, read with option_int(). */
extern int64_t g_conn_input_limit_kb;
extern int64_t g_conn_output_limit_kb;
extern int64_t g_conn_close_ms;
extern int64_t g_drain_ms;
extern int64_t g_conn_starved_ms;
extern int64_t g_connect_timeout_ms;
extern int64_t g_rdma_handshake_timeout_ms;
extern int64_t g_rdma_retry_after_s;

/* The floor's counters; NET_X is g_net_counters[NET_X]. */
enum net_counter {
	NET_CONNS_OPENED,
	NET_CONNS_CLOSED,
	NET_CONNS_FAILED,
	NET_CONNS_LIVE,
	NET_BYTES_IN,
	NET_BYTES_OUT,
	NET_HANDSHAKES,
	NET_HANDSHAKES_REFUSED,
	NET_HANDSHAKES_FAILED,
	NET_FALLBACKS,
	NET_ACCEPT_ERRORS,
	NET_INPUT_HELD,
	NET_INPUT_COMPACTED,
	NET_OUTPUT_FULL,
	NET_READ_STARVED,
	NET_RESERVATIONS,
	NET_RESERVATIONS_WAITED,
	NET_MESSAGES_TOO_LARGE,
	NET_GIVEN_UP,
	NET_CONNS_CUT_OFF,
	NET_COUNTERS,
};

extern struct counter g_net_counters[NET_COUNTERS];

int net_counters_add(void);

static inline void
net_count(enum net_counter counter, uint64_t n)
{
	counter_add(&g_net_counters[counter], n);
}

#endif
