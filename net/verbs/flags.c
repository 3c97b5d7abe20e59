/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/flags.h"
#include "net/verbs/gid.h"
#include <limits.h>

int64_t g_rdma_port, g_rdma_gid_index, g_rdma_max_sge;
int64_t g_rdma_sq_size, g_rdma_rq_size;
int64_t g_rdma_prepared_qp_size, g_rdma_prepared_qp_cnt;
int64_t g_rdma_recv_zerocopy, g_rdma_zerocopy_min_size;
int64_t g_rdma_cqe_poll_once;
int64_t g_rdma_trace_verbose;
const char *g_rdma_device;

#define INT(option, is_live, default_text, low, high, unit, text)                                              \
	{                                                                                                      \
		.name = #option, .type = XR_OPTION_INT, .value = &g_##option, .default_value = (default_text), \
		.min = (low), .max = (high), .live = (is_live), .placeholder = (unit), .help = (text)          \
	}

#define BOOL(option, is_live, default_text, text)                                                               \
	{                                                                                                       \
		.name = #option, .type = XR_OPTION_BOOL, .value = &g_##option, .default_value = (default_text), \
		.live = (is_live), .help = (text)                                                               \
	}

const struct xr_option g_rdma_options[] = {
	{
		.name = "rdma_device",
		.type = XR_OPTION_STRING,
		.value = &g_rdma_device,
		.default_value = "",
		.placeholder = "NAME",
		.help = "the RDMA device of ports without dev=, such as mlx5_0; empty: chosen by address",
	},
	INT(rdma_port, false, "0", 0, 255, "N",
	    "the device's port, counted from 1, of ports without ibport=; 0: chosen by address"),
	INT(rdma_gid_index, false, "-1", -1, GID_INDEX_MAX, "N",
	    "the GID index of ports without gid=; -1: chosen by address"),
	INT(rdma_max_sge, false, "0", 0, 64, "N",
	    "pieces of memory in one send, at most; 0: as many as the device takes"),
	INT(rdma_sq_size, true, "128", INT_MIN, INT_MAX, "N",
	    "sends in the queue of a new connection, clamped to 16..4096; a port's sq= wins"),
	INT(rdma_rq_size, true, "128", INT_MIN, INT_MAX, "N",
	    "receives in the queue of a new connection, clamped to 16..4096; a port's rq= wins, and huge blocks make it 16"),
	INT(rdma_prepared_qp_size, false, "128", INT_MIN, INT_MAX, "N",
	    "sends and receives in the queues of a prepared queue pair, clamped to 16..4096; larger wishes go past it"),
	INT(rdma_prepared_qp_cnt, false, "0", 0, RDMA_PREPARED_MAX, "N",
	    "queue pairs that an lcore keeps for a device, made ahead and reused; 0: none"),
	BOOL(rdma_recv_zerocopy, true, "true", "hand receive blocks over to the application instead of copying"),
	INT(rdma_zerocopy_min_size, true, "512", 0, INT_MAX, "BYTES",
	    "a message shorter than this is copied out of its receive block"),
	INT(rdma_cqe_poll_once, true, "32", 1, RDMA_CQE_POLL_MAX, "N",
	    "completions taken from a queue at once, up to 8 times a turn"),
	BOOL(rdma_trace_verbose, true, "false", "log every step of RDMA handshakes"),
	{.name = NULL},
};
