/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_DESCRIPTORS_H
#define XR_PERF_DESCRIPTORS_H

/*
 * A connection takes a descriptor. The soft limit of most systems, 1024, is there for programs that use select(), which
 * this one does not: it takes what the hard limit allows.
 */

#include <stdint.h>

void descriptors_allow_most(void);

/* 0; or -EMFILE after a line that says why so many connections are too many. */
int descriptors_check(uint64_t connections);

#endif
