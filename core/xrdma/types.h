/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_TYPES_H
#define XRDMA_TYPES_H

/** What every public header needs: visibility, C++ linkage, and the marks of the constants. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define XR_BEGIN_DECLS extern "C" {
#define XR_END_DECLS   }
#else
#define XR_BEGIN_DECLS
#define XR_END_DECLS
#endif

#define XR_API __attribute__((visibility("default")))

#define XR_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

#endif
