/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/memlock.h"
#include "core/why.h"
#include <errno.h>
#include <sys/resource.h>

static size_t g_pinned;

void
memlock_add(size_t bytes)
{
	__atomic_fetch_add(&g_pinned, bytes, __ATOMIC_RELAXED);
}

void
memlock_sub(size_t bytes)
{
	__atomic_fetch_sub(&g_pinned, bytes, __ATOMIC_RELAXED);
}

const char *
memlock_hint(size_t bytes, int error)
{
	size_t needed = __atomic_load_n(&g_pinned, __ATOMIC_RELAXED) + bytes;
	struct rlimit limit;

	if ((error != -ENOMEM && error != -EPERM) || getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return "";
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed)
		return "";
	return why_text("; this process may lock %llu KiB of memory (ulimit -l, systemd's LimitMEMLOCK=) and needs %zu "
			"at least",
			(unsigned long long)limit.rlim_cur / 1024, (needed + 1023) / 1024);
}
