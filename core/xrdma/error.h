/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_ERROR_H
#define XRDMA_ERROR_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

/**
 * Calls return 0 or a negative errno; constructors return NULL and set errno. Beside errno stand two numbers of the
 * library's own, equal to brpc's so that logs of both sides read alike.
 */
#define XR_ERDMA    3001 /**< an RDMA connection failed (a bad completion status, a queue pair in error) */
#define XR_ERDMAMEM 3002 /**< memory that no device of the connection has registered */

/**
 * Text of an error number, negative or positive: errno's, and the two above.
 *
 * Any thread; does not block. The text is static and never freed; an unknown number gives "unknown error".
 */
XR_API const char *xr_strerror(int error);

XR_END_DECLS

#endif
