/* SPDX-License-Identifier: Apache-2.0 */

#include "net/net.h"

int64_t g_conn_input_limit_kb;
int64_t g_conn_output_limit_kb;
int64_t g_conn_close_ms;
int64_t g_drain_ms;
int64_t g_conn_starved_ms;
int64_t g_connect_timeout_ms;
int64_t g_rdma_handshake_timeout_ms;
int64_t g_rdma_retry_after_s;

#define LIVE_INT(option, default_text, low, high, unit, text)                                                  \
	{                                                                                                      \
		.name = #option, .type = XR_OPTION_INT, .value = &g_##option, .default_value = (default_text), \
		.min = (low), .max = (high), .live = true, .placeholder = (unit), .help = (text)               \
	}

const struct xr_option g_net_options[] = {
	LIVE_INT(
		conn_input_limit_kb, "1024", 8, 1 << 20, "KB",
		"a connection whose untaken input pins more than this, or than its share of the pool, holds its peer back"),
	LIVE_INT(conn_output_limit_kb, "4096", 8, 1 << 20, "KB",
		 "a connection whose queue pins more than this, or than its share of the pool, takes no more to send"),
	LIVE_INT(conn_close_ms, "5000", 1, 3600000, "MS",
		 "how long a close may take to flush and to see the peer's end"),
	LIVE_INT(drain_ms, "5000", 0, 3600000, "MS",
		 "how long a stop waits for calls and connections in work to end; 0: not at all"),
	LIVE_INT(
		conn_starved_ms, "10000", 1, 3600000, "MS",
		"how long a peer may take for 1/16 of a message whose memory is reserved while others wait for theirs"),
	LIVE_INT(connect_timeout_ms, "3000", 1, 3600000, "MS", "how long a dial may take to connect"),
	LIVE_INT(rdma_handshake_timeout_ms, "3000", 1, 3600000, "MS",
		 "how long an RDMA handshake may take from the first byte of its hello"),
	LIVE_INT(rdma_retry_after_s, "30", 0, 86400, "S",
		 "how long a peer that answered no hello is dialled without one"),
	{.name = NULL},
};

struct counter g_net_counters[NET_COUNTERS] = {
	[NET_CONNS_OPENED] = {"conns_opened", "connections that opened", 0},
	[NET_CONNS_CLOSED] = {"conns_closed", "connections that ended after they had opened", 0},
	[NET_CONNS_FAILED] = {"conns_failed", "connections that ended before they opened", 0},
	[NET_CONNS_LIVE] = {"conns_live", "connections that exist now", 0},
	[NET_BYTES_IN] = {"conn_bytes_in", "bytes received on connections", 0},
	[NET_BYTES_OUT] = {"conn_bytes_out", "bytes sent on connections", 0},
	[NET_HANDSHAKES] = {"handshakes", "RDMA handshakes begun, in either role", 0},
	[NET_HANDSHAKES_REFUSED] = {"handshakes_refused", "handshakes that ended in plain TCP", 0},
	[NET_HANDSHAKES_FAILED] = {"handshakes_failed", "handshakes that ended their connection", 0},
	[NET_FALLBACKS] = {"fallbacks", "connections that asked for RDMA and run on TCP", 0},
	[NET_ACCEPT_ERRORS] = {"accept_errors", "accepts that the system refused, for want of descriptors or memory",
			       0},
	[NET_INPUT_HELD] = {"conn_input_held", "times that a connection held its peer back", 0},
	[NET_INPUT_COMPACTED] = {"conn_input_compacted", "times that sparse input was copied together", 0},
	[NET_OUTPUT_FULL] = {"conn_output_full", "sends refused because the connection's queue was full", 0},
	[NET_READ_STARVED] = {"conn_read_starved", "times that reading waited for a free block", 0},
	[NET_CONNS_CUT_OFF] = {"conns_cut_off", "connections that had not ended when the loops did", 0},
	[NET_RESERVATIONS] = {"conn_reservations", "messages that asked for a reservation of memory to become whole",
			      0},
	[NET_RESERVATIONS_WAITED] = {"conn_reservations_waited", "reservations that could not be granted at once", 0},
	[NET_MESSAGES_TOO_LARGE] = {"conn_messages_too_large",
				    "connections ended for a message that the pool can't hold", 0},
	[NET_GIVEN_UP] = {"conns_given_up", "connections ended since their peers kept memory that others waited for",
			  0},
};

int
net_counters_add(void)
{
	return counter_add_table(g_net_counters, NET_COUNTERS);
}
