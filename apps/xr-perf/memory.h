/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_MEMORY_H
#define XR_PERF_MEMORY_H

#include <cjson/cJSON.h>

/* What the library's pools have, to standard output. */
void memory_print(void);

/* The same as a list "memory" in the tree. */
void memory_add(cJSON *tree);

#endif
