/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_LCORE_H
#define XRDMA_LCORE_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

/**
 * An lcore is a worker thread pinned to processors, numbered as in DPDK: with `-l 2,5` the lcores are 2 and 5; with
 * `--lcores '0@2,(1-3)@(4-7)'` lcore 0 runs on processor 2. Numbers may have gaps and no built-in ceiling. All calls
 * here are valid between xr_init() and xr_fini(), on any thread, and never block.
 */
#define XR_LCORE_NONE (~0u)

/** Number of the lcore that calls, or XR_LCORE_NONE on a thread that is no worker. */
XR_API unsigned xr_lcore_id(void);

/** The main lcore: the thread that called xr_init(), later the one in xr_run(). */
XR_API unsigned xr_lcore_main(void);

XR_API unsigned xr_lcore_count(void);

/** The NUMA node of the lcore's processors, 0 on a machine without NUMA; -EINVAL for a number that is no lcore. */
XR_API int xr_lcore_numa_node(unsigned lcore);

/** The next lcore by number; XR_LCORE_NONE gives the first, and is what follows the last. */
XR_API unsigned xr_lcore_next(unsigned lcore);

#define XR_LCORE_FOREACH(lcore) \
	for ((lcore) = xr_lcore_next(XR_LCORE_NONE); (lcore) != XR_LCORE_NONE; (lcore) = xr_lcore_next(lcore))

XR_END_DECLS

#endif
