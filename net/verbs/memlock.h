/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_MEMLOCK_H
#define NET_VERBS_MEMLOCK_H

/*
 * Devices pin the memory that they reach, and the system limits how much a process may pin. A call that it has refused
 * says no more than ENOMEM; this says what was needed.
 */

#include <stddef.h>

/* What the process's registrations pin; each device counts for itself. Any thread. */
void memlock_add(size_t bytes);
void memlock_sub(size_t bytes);

/*
 * For the log, behind the error of a call that would have pinned so many bytes more: "; this process may lock ...", or
 * "" when the limit has nothing to do with it. Valid until the thread's next why_text().
 */
const char *memlock_hint(size_t bytes, int error);

#endif
