/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_FLAGS_H
#define NET_VERBS_FLAGS_H

/* RDMA's options, by brpc's names. A port's own values win over them. */

#include "core/option.h"

extern const struct xr_option g_rdma_options[];

/* Read with option_int(), option_bool(). */
extern int64_t g_rdma_port;	 /* 0: any */
extern int64_t g_rdma_gid_index; /* -1: by address */
extern int64_t g_rdma_max_sge;	 /* 0: the device's */
extern int64_t g_rdma_sq_size, g_rdma_rq_size;
extern int64_t g_rdma_prepared_qp_size, g_rdma_prepared_qp_cnt;
extern int64_t g_rdma_recv_zerocopy, g_rdma_zerocopy_min_size;
extern int64_t g_rdma_cqe_poll_once;
extern int64_t g_rdma_trace_verbose;
extern const char *g_rdma_device; /* "": any */

#define RDMA_QUEUE_MIN	  16
#define RDMA_QUEUE_MAX	  4096
#define RDMA_CQE_POLL_MAX 256
#define RDMA_PREPARED_MAX 65536

/* What --rdma_sq_size, --rdma_rq_size and --rdma_prepared_qp_size say, clamped as brpc clamps them. */
static inline uint16_t
flags_queue_size(const int64_t *flag)
{
	int64_t size = option_int(flag);

	return (uint16_t)(size < RDMA_QUEUE_MIN ? RDMA_QUEUE_MIN : size > RDMA_QUEUE_MAX ? RDMA_QUEUE_MAX : size);
}

#endif
