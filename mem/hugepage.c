/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/hugepage.h"
#include "core/log.h"
#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

#define NODES_MAX	   256
#define WORD_BITS	   (8 * sizeof(unsigned long))
#define PLACEMENT_BATCH	   512
#define RESERVED_FLAGS	   (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define MEMINFO_LINE_BYTES 128
#define MEMINFO_AVAILABLE  "MemAvailable:" /* followed by KiB */

struct counter g_hugepage_counters[HUGEPAGE_COUNTERS] = {
	[HUGEPAGE_DOWN_1G] = {.name = "mem_steps_down_1g",
			      .help = "regions that asked for 1 GiB pages and got smaller ones"},
	[HUGEPAGE_DOWN_2M] = {.name = "mem_steps_down_2m", .help = "regions that got neither 1 GiB nor 2 MiB pages"},
	[HUGEPAGE_DOWN_TRANSPARENT] = {.name = "mem_steps_down_transparent",
				       .help = "regions that got ordinary pages only"},
	[HUGEPAGE_DOWN_NODE] = {.name = "mem_steps_down_node",
				.help = "regions that do not lie on their lcores' NUMA node"},
	[HUGEPAGE_DOWN_UNBOUND] = {.name = "mem_steps_down_unbound",
				   .help = "regions whose node the kernel did not let the process choose"},
};

unsigned g_hugepage_told;

/* What the attempts at one region came to. */
struct attempts {
	int error[PAGE_KINDS]; /* positive errno of the wanted node's, 0: not tried */
	int node_error;	       /* why the last try on a node of its own failed */
	bool unbound;
};

static unsigned
system_nodes(int wanted, int *nodes, unsigned max)
{
	unsigned count = 0;
	int last = numa_available() < 0 ? -1 : numa_max_node();

	if (last >= NODES_MAX)
		last = NODES_MAX - 1;
	if (last < 1) {
		nodes[0] = wanted;
		return 1;
	}
	for (int node = 0; node <= last && count < max; node++) {
		unsigned at = count;

		if (!numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)node))
			continue;
		for (; at > 0 && numa_distance(wanted, node) < numa_distance(wanted, nodes[at - 1]); at--)
			nodes[at] = nodes[at - 1];
		nodes[at] = node;
		count++;
	}
	return count;
}

/* Whoever has started this process may have switched them off for it, which madvise() does not tell. */
static bool
system_transparent(void)
{
	char mode[64] = "";
	FILE *file;

	if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
		return false;
	file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	if (!file)
		return false;
	if (!fgets(mode, sizeof mode, file))
		mode[0] = '\0';
	fclose(file);
	return strstr(mode, "[always]") || strstr(mode, "[madvise]");
}

static size_t
system_available_bytes(void)
{
	char line[MEMINFO_LINE_BYTES];
	size_t kib = SIZE_MAX / 1024;
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return SIZE_MAX;
	while (fgets(line, sizeof line, file))
		if (strncmp(line, MEMINFO_AVAILABLE, strlen(MEMINFO_AVAILABLE)) == 0)
			kib = strtoul(line + strlen(MEMINFO_AVAILABLE), NULL, 10);
	fclose(file);
	return kib * 1024;
}

struct hugepage_sys g_hugepage_sys = {
	.mmap = mmap,
	.munmap = munmap,
	.mprotect = mprotect,
	.madvise = madvise,
	.mbind = mbind,
	.move_pages = move_pages,
	.nodes = system_nodes,
	.transparent = system_transparent,
	.available_bytes = system_available_bytes,
};

const char *
page_kind_name(enum page_kind kind)
{
	static const char *const names[PAGE_KINDS] = {"1 GiB pages", "2 MiB pages", "transparent huge pages",
						      "ordinary pages"};

	return names[kind];
}

void *
hugepage_reserve(size_t bytes, size_t align)
{
	char *raw, *addr;
	size_t before;

	if (bytes > SIZE_MAX - align) {
		errno = ENOMEM;
		return NULL;
	}
	raw = g_hugepage_sys.mmap(NULL, bytes + align, PROT_NONE, RESERVED_FLAGS, -1, 0);
	if (raw == MAP_FAILED)
		return NULL;
	before = -(size_t)raw & (align - 1);
	addr = raw + before;
	if (before > 0)
		g_hugepage_sys.munmap(raw, before);
	if (before < align)
		g_hugepage_sys.munmap(addr + bytes, align - before);
	return addr;
}

void
hugepage_release(void *addr, size_t bytes)
{
	g_hugepage_sys.munmap(addr, bytes);
}

void
hugepage_unmap(void *addr, size_t bytes)
{
	if (g_hugepage_sys.mmap(addr, bytes, PROT_NONE, RESERVED_FLAGS | MAP_FIXED, -1, 0) == MAP_FAILED)
		log_error("memory: %zu MiB of address range can't be reserved again: %s", bytes >> 20, strerror(errno));
}

/*
 * A MAP_FIXED that fails may leave a hole, where another thread's mmap() could land. So the kernel is asked for the
 * pages elsewhere first, which is where it says no.
 */
static int
map_hugetlb(void *addr, size_t bytes, int page_shift)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | page_shift << MAP_HUGE_SHIFT;
	void *probe = g_hugepage_sys.mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (probe == MAP_FAILED)
		return -errno;
	g_hugepage_sys.munmap(probe, bytes);
	if (g_hugepage_sys.mmap(addr, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;
	return 0;
}

static int
map_ordinary(const struct hugepage_want *want, bool transparent)
{
	size_t available, bytes = want->bytes;
	void *addr = want->addr;

	if (transparent && !g_hugepage_sys.transparent())
		return -EOPNOTSUPP;
	/* Populating more than there is would bring the OOM killer and no error. */
	available = g_hugepage_sys.available_bytes();
	if (available < bytes || available - bytes < want->spared_bytes)
		return -ENOMEM;
	if (g_hugepage_sys.mprotect(addr, bytes, PROT_READ | PROT_WRITE) != 0)
		return -errno;
	if (transparent && g_hugepage_sys.madvise(addr, bytes, MADV_HUGEPAGE) != 0)
		return -errno;
	return 0;
}

/* A region is at least one page of the size that it gets. */
static size_t
length_in(const struct hugepage_want *want, enum page_kind kind)
{
	return kind == PAGE_1G && want->bytes_1g ? want->bytes_1g : want->bytes;
}

static int
map_kind(const struct hugepage_want *want, enum page_kind kind)
{
	size_t bytes = length_in(want, kind);

	switch (kind) {
	case PAGE_1G:
		return bytes % HUGEPAGE_1G_BYTES ? -EDQUOT : map_hugetlb(want->addr, bytes, 30);
	case PAGE_2M:
		return map_hugetlb(want->addr, bytes, 21);
	default:
		return map_ordinary(want, kind == PAGE_TRANSPARENT);
	}
}

static bool
is_hugetlb(enum page_kind kind)
{
	return kind == PAGE_1G || kind == PAGE_2M;
}

/*
 * Huge pages are bound, so that populating says when the node has too few. Ordinary ones only prefer the node: on a
 * full node a bound mapping brings the OOM killer; where they came to lie is looked up afterwards.
 */
static int
bind_to_node(void *addr, size_t bytes, enum page_kind kind, int node)
{
	unsigned long mask[NODES_MAX / WORD_BITS] = {0};
	int mode = is_hugetlb(kind) ? MPOL_BIND : MPOL_PREFERRED;

	mask[(unsigned)node / WORD_BITS] = 1ul << (unsigned)node % WORD_BITS;
	return g_hugepage_sys.mbind(addr, bytes, mode, mask, NODES_MAX + 1, 0) == 0 ? 0 : -errno;
}

static void
touch(char *addr, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < bytes; at += page)
		*(volatile char *)(addr + at) = 0;
}

/* Before Linux 5.14 pages are touched by hand; not huge ones, where a page too few is SIGBUS. */
static int
populate(void *addr, size_t bytes, enum page_kind kind)
{
	if (g_hugepage_sys.madvise(addr, bytes, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	if (is_hugetlb(kind))
		return -EOPNOTSUPP;
	touch(addr, bytes);
	return 0;
}

/* -EXDEV when a page lies elsewhere. */
static int
check_placement(char *addr, size_t bytes, int node)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = bytes / page;
	void *at[PLACEMENT_BATCH];
	int on[PLACEMENT_BATCH];

	for (size_t done = 0, n; done < pages; done += n) {
		n = pages - done < PLACEMENT_BATCH ? pages - done : PLACEMENT_BATCH;
		for (size_t i = 0; i < n; i++)
			at[i] = addr + (done + i) * page;
		if (g_hugepage_sys.move_pages(0, n, at, NULL, on, 0) != 0)
			return -errno;
		for (size_t i = 0; i < n; i++)
			if (on[i] != node)
				return -EXDEV;
	}
	return 0;
}

static bool
is_refusal(int status)
{
	return status == -EPERM || status == -ENOSYS || status == -EACCES;
}

static int
map_bound(const struct hugepage_want *want, enum page_kind kind, int node, struct attempts *attempts)
{
	size_t bytes = length_in(want, kind);
	int status = bind_to_node(want->addr, bytes, kind, node);

	attempts->unbound = is_refusal(status);
	if (status == 0)
		status = populate(want->addr, bytes, kind);
	if (status == 0 && !is_hugetlb(kind)) {
		status = check_placement(want->addr, bytes, node);
		attempts->unbound = is_refusal(status);
	}
	return status;
}

static int
map_on_node(const struct hugepage_want *want, enum page_kind kind, int node, struct attempts *attempts)
{
	size_t bytes = length_in(want, kind);
	int status = map_kind(want, kind);

	if (status == 0 && node == NODE_ANY)
		status = populate(want->addr, bytes, kind);
	else if (status == 0)
		status = map_bound(want, kind, node, attempts);
	if (status != 0)
		hugepage_unmap(want->addr, bytes);
	return status;
}

static int
try_node(const struct hugepage_want *want, int node, struct attempts *attempts, struct hugepage_got *got)
{
	enum page_kind first = want->try_1g ? PAGE_1G : PAGE_2M;
	enum page_kind last = want->require_hugepages ? PAGE_2M : PAGE_ORDINARY;
	int status = -ENOMEM;

	for (enum page_kind kind = first; kind <= last; kind++) {
		status = map_on_node(want, kind, node, attempts);
		if (status == 0) {
			*got = (struct hugepage_got){.kind = kind, .node = node, .bytes = length_in(want, kind)};
			return 0;
		}
		if (attempts->unbound && node != NODE_ANY)
			return status;
		if (!attempts->error[kind])
			attempts->error[kind] = -status;
	}
	return status;
}

/* When all memory is the wanted node's there is nothing to bind to: whatever the kernel gives lies there. */
static int
try_nodes(const struct hugepage_want *want, struct attempts *attempts, struct hugepage_got *got)
{
	int nodes[NODES_MAX];
	unsigned count = g_hugepage_sys.nodes(want->node, nodes, NODES_MAX);
	int status = -ENOMEM;

	if (want->strict_numa && nodes[0] != want->node)
		attempts->node_error = ENODEV;
	if (count == 1 && nodes[0] == want->node) {
		status = try_node(want, NODE_ANY, attempts, got);
		got->node = want->node;
		return status;
	}
	for (unsigned i = 0; i < count && !(want->strict_numa && nodes[i] != want->node); i++) {
		status = try_node(want, nodes[i], attempts, got);
		if (status == 0)
			return 0;
		attempts->node_error = -status;
		if (attempts->unbound)
			break;
	}
	return want->strict_numa ? status : try_node(want, NODE_ANY, attempts, got);
}

static unsigned
steps_taken(const struct hugepage_want *want, const struct attempts *attempts, const struct hugepage_got *got)
{
	unsigned steps = 0;

	if (want->try_1g && got->kind > PAGE_1G)
		steps |= 1u << HUGEPAGE_DOWN_1G;
	if (got->kind > PAGE_2M)
		steps |= 1u << HUGEPAGE_DOWN_2M;
	if (got->kind > PAGE_TRANSPARENT)
		steps |= 1u << HUGEPAGE_DOWN_TRANSPARENT;
	if (attempts->unbound)
		steps |= 1u << HUGEPAGE_DOWN_UNBOUND;
	else if (got->node != want->node)
		steps |= 1u << HUGEPAGE_DOWN_NODE;
	return steps;
}

/* Where the kernel's own word for it would mislead. */
static const char *
error_text(int error)
{
	switch (error) {
	case EDQUOT:
		return "--pool_max_mb leaves no room for one";
	case ENODEV:
		return "none of its memory is this process's to use";
	case EFAULT:
		return "too few are free there";
	case EXDEV:
		return "the kernel took pages of another node";
	default:
		return strerror(error);
	}
}

static const char *
placement_text(unsigned steps)
{
	if (steps & 1u << HUGEPAGE_DOWN_UNBOUND)
		return ", on a node of the kernel's choice, since binding is refused here";
	return steps & 1u << HUGEPAGE_DOWN_NODE ? ", on another node" : "";
}

static void
report_steps(const struct hugepage_want *want, const struct attempts *attempts, const struct hugepage_got *got)
{
	unsigned steps = steps_taken(want, attempts, got);
	unsigned told = __atomic_fetch_or(&g_hugepage_told, steps, __ATOMIC_RELAXED);
	enum page_kind best = want->try_1g ? PAGE_1G : PAGE_2M;
	char instead[96] = "";

	for (unsigned step = 0; step < HUGEPAGE_COUNTERS; step++)
		if (steps & 1u << step)
			counter_add(&g_hugepage_counters[step], 1);
	if (!(steps & ~told))
		return;
	if (got->kind > best)
		snprintf(instead, sizeof instead, " instead of %s (%s)", page_kind_name(best),
			 error_text(attempts->error[best]));
	log_notice("memory: node %d gets %s%s%s", want->node, page_kind_name(got->kind), instead,
		   placement_text(steps));
}

static void
report_failure(const struct hugepage_want *want, const struct attempts *attempts)
{
	static struct log_limit strict_limit, require_limit, limit;
	size_t mib = want->bytes >> 20;

	if (want->strict_numa && attempts->node_error)
		log_limited(&strict_limit, XR_LOG_ERROR, "--strict-numa: node %d can't give %zu MiB%s: %s", want->node,
			    mib, want->require_hugepages ? " of huge pages" : "", error_text(attempts->node_error));
	else if (want->require_hugepages)
		log_limited(
			&require_limit, XR_LOG_ERROR,
			"--require-hugepages: no huge pages for %zu MiB on node %d (%s); vm.nr_hugepages reserves them",
			mib, want->node, error_text(attempts->error[PAGE_2M]));
	else
		log_limited(&limit, XR_LOG_ERROR, "memory: the machine can't give %zu MiB: %s", mib,
			    strerror(attempts->error[PAGE_ORDINARY]));
}

int
hugepage_map(const struct hugepage_want *want, struct hugepage_got *got)
{
	struct attempts attempts = {.error = {0}};

	if (try_nodes(want, &attempts, got) != 0) {
		if (!want->quiet)
			report_failure(want, &attempts);
		return -ENOMEM;
	}
	report_steps(want, &attempts, got);
	return 0;
}
