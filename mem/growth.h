/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_GROWTH_H
#define MEM_GROWTH_H

/*
 * Further regions for the pools: by a thread of its own, ahead of need, off the lcores' way. Without the thread (it is
 * started when the floor is up) whoever needs a region maps it.
 */

#include <stdbool.h>

struct pool;

/* A negative errno: the pools do without the thread. */
int growth_start(void);

/* Returns when a region that is being mapped is there. Nobody waits for one. */
void growth_stop(void);

bool growth_has_thread(void);

/* ---- with the pool's lock held ---- */

/*
 * Begins to map a region; nobody does yet. Without the thread it is done on return, and the lock was given up
 * meanwhile.
 */
void growth_begin(struct pool *pool);

/* Until what somebody has begun has ended; the lock is given up meanwhile. */
void growth_wait(struct pool *pool);

/* Blocks have been taken, maybe for a cache: asks for a further region if few are left and it may be had. */
void growth_ahead(struct pool *pool, unsigned taken);

/* Somebody waits: what failed is to be tried again. */
void growth_retry(struct pool *pool);

#endif
