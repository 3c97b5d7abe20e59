/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_USER_RANGE_H
#define MEM_USER_RANGE_H

/*
 * Ranges of the application's memory that devices may read: the table behind xr_mem_register().
 *
 * A descriptor of user memory (mem/user_block.h) holds its range from its creation to its end, so that sending looks
 * up nothing: it has the range, and the range has a key for each device. Holding and dropping are one atomic each.
 */

#include "mem/mem.h"
#include <stddef.h>
#include <stdint.h>
#include <xrdma/iobuf.h>

struct user_range;

/* Ranges can be registered from here on. */
void user_ranges_init(void);

/* Ends all registrations that the application has left; those that are still referred to are told in a log line. */
void user_ranges_fini(void);

/*
 * One reference to the key's range. NULL with errno EINVAL: the key is of no range (any more), or [data, data + len)
 * does not lie in it; ENOMEM: the range has as many as can be counted. Any thread, no lock.
 */
struct user_range *user_range_hold(xr_mem_key key, const void *data, size_t len);

/* Gives a reference back. Any thread, no lock. */
void user_range_drop(struct user_range *range);

/* A held range's key for a device. -ENODEV: the device lacks it. Any thread, no lock. */
int user_range_lkey(const struct user_range *range, unsigned device, uint32_t *lkey);

/*
 * A device comes: every range is registered with it; it lacks those that it refuses, as its ops have logged. It goes:
 * none is any more. Both block as long as that takes.
 */
void user_ranges_add_device(unsigned device, const struct mem_device_ops *ops);
void user_ranges_del_device(unsigned device);

#endif
