/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_MEMLOCK_H
#define NET_VERBS_MEMLOCK_H

/*
 * Devices pin the memory that they reach, and the system limits how much a process may pin (RLIMIT_MEMLOCK), unless it
 * has CAP_IPC_LOCK in the system's own user namespace. A call that it has refused says no more than ENOMEM; this says
 * what was needed.
 */

#include <stdbool.h>
#include <stddef.h>

/* What the process's registrations pin; each device counts for itself. Any thread. */
void memlock_add(size_t bytes);
void memlock_sub(size_t bytes);

/*
 * At the start, before anything is pinned: one warning when the limit is lower than what the pool's regions need on so
 * many devices, those that are mapped and all that may be.
 */
void memlock_check(unsigned devices, size_t mapped_bytes, size_t most_bytes);

/*
 * For the log, behind the error of a call that would have pinned so many bytes more: "; this process may lock ...", or
 * "" when the limit has nothing to do with it. Valid until the thread's next why_text().
 */
const char *memlock_hint(size_t bytes, int error);

/* Whether the calling thread may lock as much as it likes; replaceable by tests. */
extern bool (*g_memlock_lifted)(void);

#endif
