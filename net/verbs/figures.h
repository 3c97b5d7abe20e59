/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_FIGURES_H
#define NET_VERBS_FIGURES_H

/* What the endpoints count. */

#include "core/counter.h"

enum figure {
	RDMA_CONNECTIONS,
	RDMA_SENDS,
	RDMA_SEND_POSTS,
	RDMA_SIGNALED,
	RDMA_SOLICITED,
	RDMA_INLINE,
	RDMA_PURE_ACKS,
	RDMA_SEND_WINDOW_CLOSED,
	RDMA_RETRIES_ENOMEM,
	RDMA_RECEIVES,
	RDMA_RECV_POSTS,
	RDMA_ZERO_COPY,
	RDMA_COPIED,
	RDMA_COPIED_SHORT_OF_BLOCKS,
	RDMA_STARVED,
	RDMA_EARLY,
	RDMA_ERRORS,
	RDMA_FIGURES,
};

extern struct counter g_figures[RDMA_FIGURES];

/* For counter_init(). */
int figures_add(void);

static inline void
figure_count(enum figure figure, uint64_t n)
{
	counter_add(&g_figures[figure], n);
}

#endif
