/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_DEVICE_H
#define MEM_DEVICE_H

/* The devices of mem.h: which of them each region is registered with. */

#include <stddef.h>

struct region;

/* With every device there is, or with none and the first error, logged. The region lock is held. */
int device_register_region(struct region *region, size_t bytes);

/* Takes back every registration of every device. */
void device_fini(void);

#endif
