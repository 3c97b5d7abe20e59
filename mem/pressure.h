/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_PRESSURE_H
#define MEM_PRESSURE_H

/*
 * How near the calling thread's pool is to its limit, and who waits for blocks to come home.
 *
 * Of each pool that can't grow any more the last part is a reserve, which block_alloc_recv() and block_alloc_bulk() may
 * take and block_alloc() may not: what an application hoards in its sends can't starve the receives.
 */

#include "mem/block.h"
#include <stdbool.h>
#include <stddef.h>

/*
 * Bytes of all blocks of the type that the calling thread's node has or may still map under every limit. Relaxed reads,
 * no lock: may be a little old.
 */
size_t pressure_capacity_bytes(enum block_type type);

/*
 * Of those the bytes that nobody uses: free, whichever cache they are in, or not mapped yet. Takes the pool's lock: not
 * for each message. May be a little off, and more than there is for a moment.
 */
size_t pressure_available_bytes(enum block_type type);

/*
 * The calling lcore found no block of the type to receive into: once some have come home, or the pool has grown, the
 * wake function is called, once per call of this. False: there are blocks again (the reserve included), and nothing
 * will be called. On a thread that is no lcore: true, and nothing will be called either.
 */
bool pressure_wait(enum block_type type);

/*
 * What wakes an lcore; any thread calls it, also with the pool's lock held: it must only post a message. NULL: nothing.
 * It is also called for lcores that have not waited, when they keep free blocks that others wait for: the turn that it
 * causes brings these home (block_turn_end()).
 */
void pressure_set_wake(void (*wake)(unsigned lcore_index));

#endif
