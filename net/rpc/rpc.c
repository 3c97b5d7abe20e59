/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/rpc.h"

struct counter g_rpc_counters[RPC_COUNTERS] = {
	[RPC_REQUESTS] = {"rpc_requests", "requests that a server took", 0},
	[RPC_REQUESTS_FAILED] = {"rpc_requests_failed", "requests answered with an error", 0},
	[RPC_ANSWERS_DROPPED] = {"rpc_answers_dropped", "answers whose connection had ended", 0},
	[RPC_ANSWERS_HELD_BACK] = {"rpc_answers_held_back", "answers that waited for a full connection", 0},
	[RPC_CALLS] = {"rpc_calls", "calls that a client made", 0},
	[RPC_CALLS_FAILED] = {"rpc_calls_failed", "calls that ended with an error", 0},
	[RPC_CALLS_TIMED_OUT] = {"rpc_calls_timed_out", "calls that ended by their timeout", 0},
	[RPC_RESPONSES_DROPPED] = {"rpc_responses_dropped", "responses that no call waited for", 0},
	[RPC_FRAMES_REFUSED] = {"rpc_frames_refused", "connections closed for what they sent", 0},
};

int
rpc_counters_add(void)
{
	return counter_add_table(g_rpc_counters, RPC_COUNTERS);
}
