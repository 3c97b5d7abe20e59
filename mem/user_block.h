/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_USER_BLOCK_H
#define MEM_USER_BLOCK_H

/* The descriptor that stands for user memory where the pool's blocks have their header. */

#include "mem/block.h"
#include "mem/mem.h"
#include "mem/user_range.h"

struct user_block {
	struct xr_block block; /* of type BLOCK_TYPES */
	void *data;
	struct user_range *range; /* held; NULL: memory without a key */
	xr_free_fn *free_fn;	  /* NULL: static memory */
	union {
		void *arg;
		struct user_block *next; /* while it is free */
	};
};

/*
 * With one reference; NULL with errno ENOMEM, or EINVAL: the key is of no range that holds all of the memory. The range
 * is in use up to the last drop, which gives it up before it tells the user.
 */
struct user_block *user_block_create(void *data, size_t len, xr_mem_key key, xr_free_fn *free_fn, void *arg);

/* The last reference is gone: tells the user, on this thread. */
void user_block_free(struct user_block *user);

static inline bool
block_is_user(const struct xr_block *block)
{
	return block->type == BLOCK_TYPES;
}

static inline struct user_block *
user_block_of(struct xr_block *block)
{
	return (struct user_block *)block;
}

/*
 * The memory's key for a device: its range's, or the pool's when it lies in one. -ENODEV, -ERANGE: the device does not
 * know it.
 */
static inline int
user_block_lkey(const struct user_block *user, unsigned device, uint32_t *lkey)
{
	return user->range ? user_range_lkey(user->range, device, lkey) : mem_lkey(device, user->data, lkey);
}

/* Each lcore keeps freed descriptors for reuse; other threads don't. */
void user_block_lcore_init(void);
void user_block_lcore_fini(void);

#endif
