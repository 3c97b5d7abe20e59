/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_USER_BLOCK_H
#define MEM_USER_BLOCK_H

/* The descriptor that stands for user memory where the pool's blocks have their header. */

#include "mem/block.h"
#include <xrdma/iobuf.h>

struct user_block {
	struct xr_block block; /* of type BLOCK_TYPES */
	void *data;
	xr_mem_key key;
	xr_free_fn *free_fn; /* NULL: static memory */
	union {
		void *arg;
		struct user_block *next; /* while it is free */
	};
};

/* With one reference; NULL with errno ENOMEM. */
struct user_block *user_block_create(void *data, xr_mem_key key, xr_free_fn *free_fn, void *arg);

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

/* Each lcore keeps freed descriptors for reuse; other threads don't. */
void user_block_lcore_init(void);
void user_block_lcore_fini(void);

#endif
