/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_WORKER_H
#define NET_WORKER_H

#include <stdbool.h>

/* The worker threads from their start to their end: each sets up its lcore's memory and lists, waits, runs its loop. */

/*
 * Sets up the calling thread as the main lcore's worker, starts the others and waits until each is ready. A negative
 * errno after one log line: all have ended.
 */
int workers_start(void);

/* Lets all loops run, the main lcore's on the calling thread; returns when they have ended and the threads are gone. */
void workers_run(void);

/*
 * The same with the main lcore's loop left to the application: the other lcores run from the first call on, the second
 * ends all of them and returns when the threads are gone. workers_end() makes up for a second that was left out.
 */
void workers_embed(void);
bool workers_embedded(void);
void workers_unembed(void);

/* Takes back what workers_start() did; the loops that never ran run once to an end, so that everything on them ends. */
void workers_end(void);

#endif
