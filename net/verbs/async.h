/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_ASYNC_H
#define NET_VERBS_ASYNC_H

/*
 * The asynchronous events of devices: acknowledged at once on the main lcore, where destroying what they speak of would
 * wait for that, and passed on to the lcores that own what they concern.
 */

#include "net/verbs/device.h"

/* On the main lcore, whose loop sees the events. 0, or a negative errno. */
int async_watch(struct device *device);

/* What is not watched is left as it is. */
void async_unwatch(struct device *device);

/* What ibv_qp's qp_context says, so that an event finds its endpoint: the lcore's index and the handle of cq_admit().
 */
static inline void *
async_qp_context(unsigned lcore_index, uint32_t handle)
{
	return (void *)((uintptr_t)lcore_index << 32 | handle);
}

/* A handle that no endpoint has, though not the one that means all of them (handle.h). */
#define ASYNC_NOBODY 0xffffu

/* Another endpoint's from now on. The main lcore may be reading it. */
static inline void
async_qp_context_set(struct ibv_qp *qp, void *context)
{
	__atomic_store_n(&qp->qp_context, context, __ATOMIC_RELAXED);
}

/* What ibv_cq's cq_context says. */
static inline void *
async_cq_context(unsigned lcore_index)
{
	return (void *)(uintptr_t)lcore_index;
}

#endif
