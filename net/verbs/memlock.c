/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/memlock.h"
#include "core/log.h"
#include "core/why.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CAPABILITY_IPC_LOCK 14	      /* linux/capability.h */
#define EFFECTIVE	    "CapEff:" /* followed by a hexadecimal number */
#define KIB		    ((size_t)1 << 10)
#define MIB		    ((size_t)1 << 20)

/* The three places, for who has the choice between them. */
#define WHERE_TO_RAISE \
	"ulimit -l or /etc/security/limits.conf, systemd's LimitMEMLOCK=, a container's --ulimit memlock="

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

/* ---- the limit ---- */

static bool
has_capability(void)
{
	FILE *file = fopen("/proc/thread-self/status", "re");
	unsigned long long effective = 0;
	char line[128];

	if (!file)
		return false;
	while (fgets(line, sizeof line, file))
		if (strncmp(line, EFFECTIVE, strlen(EFFECTIVE)) == 0)
			effective = strtoull(line + strlen(EFFECTIVE), NULL, 16);
	fclose(file);
	return effective >> CAPABILITY_IPC_LOCK & 1;
}

/* The kernel asks for the capability there; a container's root has it in a namespace of its own. */
static bool
is_in_first_user_namespace(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned long long inside, outside, count;
	char line[128] = "", *at = line;

	if (!file)
		return true;
	if (!fgets(line, sizeof line, file))
		line[0] = '\0';
	fclose(file);
	inside = strtoull(at, &at, 10);
	outside = strtoull(at, &at, 10);
	count = strtoull(at, &at, 10);
	return inside == 0 && outside == 0 && count == UINT32_MAX;
}

static bool
is_lifted(void)
{
	return has_capability() && is_in_first_user_namespace();
}

bool (*g_memlock_lifted)(void) = is_lifted;

/* False: there is none, or nobody can say. */
static bool
limit_of(size_t *bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || g_memlock_lifted())
		return false;
	*bytes = limit.rlim_cur;
	return true;
}

/* ---- what is said ---- */

void
memlock_check(unsigned devices, size_t mapped_bytes, size_t most_bytes)
{
	size_t limit, mapped = devices * mapped_bytes, most = devices * most_bytes;

	if (!limit_of(&limit) || limit >= most)
		return;
	log_warning("RDMA: this process may lock %zu KiB of memory; the regions of %u device%s need %zu MiB at first "
		    "and %zu MiB when the pools have grown: raise it with %s",
		    limit / KIB, devices, devices == 1 ? "" : "s", mapped / MIB, most / MIB, WHERE_TO_RAISE);
}

const char *
memlock_hint(size_t bytes, int error)
{
	size_t limit, needed = __atomic_load_n(&g_pinned, __ATOMIC_RELAXED) + bytes;

	if ((error != -ENOMEM && error != -EPERM) || !limit_of(&limit) || limit >= needed)
		return "";
	return why_text("; this process may lock %zu KiB of memory (%s) and needs %zu at least", limit / KIB,
			WHERE_TO_RAISE, (needed + KIB - 1) / KIB);
}
