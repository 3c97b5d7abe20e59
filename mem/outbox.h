/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_OUTBOX_H
#define MEM_OUTBOX_H

/*
 * Blocks on their way home: what a thread frees that does not go into a cache of its own. It gathers them by pool and
 * puts many at once: when a box is full, at the end of an lcore's turn, when the thread ends, and at once while
 * somebody waits for blocks. A pool that runs empty collects from all boxes, so none hides a block.
 */

#include "mem/block.h"
#include <stdbool.h>

struct pool;

/* After the pools are there; -ENOMEM, -EAGAIN. And before they go: no thread frees any more. */
int outbox_init(void);
void outbox_fini(void);

/* A free block; remote: it was not freed by an lcore of its node. Never fails. */
void outbox_put(struct pool *pool, struct xr_block *block, bool remote);

/* Empties the calling thread's boxes. */
void outbox_flush(void);

/* Empties the boxes that any thread has for the pool, whose lock isn't held. True: there was something in them. */
bool outbox_collect(struct pool *pool);

/* Blocks in all boxes for the pool, whose lock isn't held. */
size_t outbox_count(struct pool *pool);

#endif
