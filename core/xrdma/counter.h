/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_COUNTER_H
#define XRDMA_COUNTER_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

/** One counter as it stands: its name ("reactor_sleeps"), one line of help, and the value of one lcore. */
typedef void xr_counter_fn(const char *name, const char *help, uint64_t value, void *arg);

/**
 * Calls fn for every counter of an lcore, or with XR_LCORE_NONE for the sum over all lcores and other threads. Each
 * value is read once, without stopping its writer. Any thread between xr_init() and xr_fini(); does not block.
 * Errors: -EINVAL no such lcore.
 */
XR_API int xr_counter_foreach(unsigned lcore, xr_counter_fn *fn, void *arg);

XR_END_DECLS

#endif
