/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/hugepage.h"
#include "mem/mem.h"
#include "tests/unit/core/log_capture.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MIB	  ((size_t)1 << 20)
#define BYTES	  (4 * MIB)
#define POPULATE  23
#define MAX_NODES 4

/*
 * A machine of the test's making under hugepage.c: memory is real and ordinary, but what is to be had of which pages on
 * which node, and what the kernel allows, is said here.
 */
static struct {
	unsigned nodes;
	bool huge_1g[MAX_NODES], huge_2m[MAX_NODES]; /* enough of them on the node */
	bool reserved_1g, reserved_2m;		     /* enough of them somewhere: mmap() succeeds */
	bool transparent;
	bool forbidden[MAX_NODES]; /* by the process's cpuset */
	bool full[MAX_NODES];	   /* of ordinary memory: what prefers the node lands on the next one */
	int mbind_error, move_pages_error, populate_error;
	size_t available;
	/* What happened. */
	int kind; /* of what is mapped now: 1 << 30, 1 << 21 or 0 */
	int bound;
	unsigned populates, binds, mprotects;
} fake;

static struct hugepage_sys real;

static void *
fake_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_HUGETLB) {
		int shift = flags >> 26 & 63;

		if (!(shift == 30 ? fake.reserved_1g : fake.reserved_2m)) {
			errno = ENOMEM;
			return MAP_FAILED;
		}
		fake.kind = shift;
		flags &= (1 << 26) - 1 - MAP_HUGETLB;
	} else {
		fake.kind = 0;
	}
	fake.bound = NODE_ANY;
	return mmap(addr, len, prot, flags | MAP_NORESERVE, fd, offset);
}

static int
fake_mprotect(void *addr, size_t len, int prot)
{
	fake.mprotects++;
	return mprotect(addr, len, prot);
}

static bool
has_huge(void)
{
	const bool *on = fake.kind == 30 ? fake.huge_1g : fake.huge_2m;

	if (fake.bound != NODE_ANY)
		return on[fake.bound];
	for (unsigned node = 0; node < MAX_NODES; node++)
		if (on[node])
			return true;
	return false;
}

static int
fake_madvise(void *addr, size_t len, int advice)
{
	(void)addr;
	(void)len;
	if (advice != POPULATE)
		return 0;
	fake.populates++;
	if (fake.populate_error) {
		errno = fake.populate_error;
		return -1;
	}
	if (fake.kind && !has_huge()) {
		errno = EFAULT;
		return -1;
	}
	return 0;
}

static long
fake_mbind(void *addr, unsigned long len, int mode, const unsigned long *nodes, unsigned long max_node, unsigned flags)
{
	(void)addr, (void)len, (void)mode, (void)max_node, (void)flags;
	fake.binds++;
	if (fake.mbind_error) {
		errno = fake.mbind_error;
		return -1;
	}
	fake.bound = __builtin_ctzl(nodes[0]);
	return 0;
}

static long
fake_move_pages(int pid, unsigned long count, void **pages, const int *nodes, int *status, int flags)
{
	(void)pid, (void)pages, (void)nodes, (void)flags;
	if (fake.move_pages_error) {
		errno = fake.move_pages_error;
		return -1;
	}
	for (unsigned long i = 0; i < count; i++)
		status[i] = fake.full[fake.bound] ? (fake.bound + 1) % MAX_NODES : fake.bound;
	return 0;
}

static unsigned
fake_nodes(int wanted, int *nodes, unsigned max)
{
	unsigned count = 0;

	if (!fake.forbidden[wanted])
		nodes[count++] = wanted;
	for (int node = 0; node < (int)fake.nodes && count < max; node++)
		if (node != wanted && !fake.forbidden[node])
			nodes[count++] = node;
	return count;
}

static bool
fake_transparent(void)
{
	return fake.transparent;
}

static size_t
fake_available(void)
{
	return fake.available;
}

static char *range;

static void
machine(unsigned nodes)
{
	memset(&fake, 0, sizeof fake);
	fake.nodes = nodes;
	fake.transparent = true;
	fake.available = (size_t)1 << 40;
	g_hugepage_told = 0;
	(void)mem_counters_add(); /* once for all tests */
	real = g_hugepage_sys;
	g_hugepage_sys = (struct hugepage_sys){
		.mmap = fake_mmap,
		.munmap = munmap,
		.mprotect = fake_mprotect,
		.madvise = fake_madvise,
		.mbind = fake_mbind,
		.move_pages = fake_move_pages,
		.nodes = fake_nodes,
		.transparent = fake_transparent,
		.available_bytes = fake_available,
	};
	log_capture_start();
	range = hugepage_reserve(BYTES, HUGEPAGE_2M_BYTES);
	ASSERT_FATAL(range != NULL);
}

static void
machine_off(void)
{
	hugepage_release(range, BYTES);
	log_capture_stop();
	g_hugepage_sys = real;
}

static struct hugepage_want
want(int node)
{
	return (struct hugepage_want){.addr = range, .bytes = BYTES, .node = node};
}

/* True when memory is there and may be written from end to end. */
static bool
is_usable(void)
{
	memset(range, 0x5a, BYTES);
	return range[0] == 0x5a && range[BYTES - 1] == 0x5a;
}

/* True when the range is as empty as it was: the kernel refuses to read it. */
static bool
is_only_reserved(void)
{
	unsigned char resident[BYTES / 4096];
	int pipes[2];
	bool refused;

	if (mincore(range, BYTES, resident) != 0 || pipe(pipes) != 0)
		return false;
	refused = write(pipes[1], range, 1) == -1 && errno == EFAULT;
	close(pipes[0]);
	close(pipes[1]);
	return refused;
}

static uint64_t
count_of(enum hugepage_counter step)
{
	return counter_read(&g_hugepage_counters[step], NULL);
}

static void
test_reserve_is_aligned(void)
{
	const size_t aligns[] = {4096, HUGEPAGE_2M_BYTES, HUGEPAGE_1G_BYTES};

	for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
		char *addr = hugepage_reserve(3 * MIB, aligns[i]);

		ASSERT_FATAL(addr != NULL);
		ASSERT_EQ((uintptr_t)addr % aligns[i], 0);
		hugepage_release(addr, 3 * MIB);
	}
	CU_ASSERT_PTR_NULL(hugepage_reserve(SIZE_MAX, 4096));
	ASSERT_EQ(errno, ENOMEM);
	CU_ASSERT_PTR_NULL(hugepage_reserve((size_t)1 << 62, 4096));
}

static void
test_best_pages_need_no_step(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(2);
	fake.reserved_2m = fake.huge_2m[1] = true;
	wanted = want(1);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.kind, PAGE_2M);
	ASSERT_EQ(got.node, 1);
	ASSERT_EQ(fake.bound, 1);
	ASSERT_EQ(log_capture_count(), 0);
	CU_ASSERT(is_usable());
	hugepage_unmap(range, BYTES);
	CU_ASSERT(is_only_reserved());
	machine_off();
}

static void
test_1g_only_when_it_fits(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;
	uint64_t before = count_of(HUGEPAGE_DOWN_1G);

	machine(1);
	fake.reserved_1g = fake.huge_1g[0] = fake.reserved_2m = fake.huge_2m[0] = true;
	wanted = want(0);
	wanted.try_1g = true;
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.kind, PAGE_2M);
	ASSERT_EQ(count_of(HUGEPAGE_DOWN_1G), before + 1);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_STR(log_capture_last(),
		   "memory: node 0 gets 2 MiB pages instead of 1 GiB pages (--pool_max_mb leaves no room for one)");
	machine_off();
}

static void
test_1g_pages(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;
	char *gib;

	machine(1);
	fake.reserved_1g = fake.huge_1g[0] = true;
	gib = hugepage_reserve(HUGEPAGE_1G_BYTES, HUGEPAGE_1G_BYTES);
	ASSERT_FATAL(gib != NULL);
	wanted = (struct hugepage_want){.addr = gib, .bytes = HUGEPAGE_1G_BYTES, .try_1g = true};
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.kind, PAGE_1G);
	ASSERT_EQ(log_capture_count(), 0);
	hugepage_release(gib, HUGEPAGE_1G_BYTES);
	machine_off();
}

static void
test_no_huge_pages_is_one_line(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;
	uint64_t before = count_of(HUGEPAGE_DOWN_2M);

	machine(1);
	wanted = want(0);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(hugepage_map(&wanted, &got), 0);
		ASSERT_EQ(got.kind, PAGE_TRANSPARENT);
		ASSERT_EQ(got.node, 0);
		CU_ASSERT(is_usable());
		hugepage_unmap(range, BYTES);
	}
	ASSERT_EQ(fake.binds, 0); /* one node: nothing to choose */
	ASSERT_EQ(count_of(HUGEPAGE_DOWN_2M), before + 3);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_EQ(log_capture_level(0), XR_LOG_NOTICE);
	ASSERT_STR(log_capture_last(),
		   "memory: node 0 gets transparent huge pages instead of 2 MiB pages (Cannot allocate memory)");
	machine_off();
}

static void
test_too_few_huge_pages_show_when_populated(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(2);
	fake.reserved_2m = fake.huge_2m[1] = true; /* mmap() succeeds, node 0 has none */
	fake.transparent = false;
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.kind, PAGE_ORDINARY); /* the own node comes before the better pages */
	ASSERT_EQ(got.node, 0);
	ASSERT_EQ(log_capture_count(), 1);
	CU_ASSERT(is_usable());
	machine_off();
}

static void
test_full_node_goes_to_another(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;
	uint64_t before = count_of(HUGEPAGE_DOWN_NODE);

	machine(2);
	fake.full[0] = true;
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.node, 1);
	ASSERT_EQ(got.kind, PAGE_TRANSPARENT);
	ASSERT_EQ(count_of(HUGEPAGE_DOWN_NODE), before + 1);
	CU_ASSERT(strstr(log_capture_last(), "on another node") != NULL);
	machine_off();
}

static void
test_all_nodes_full_takes_what_comes(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(2);
	fake.full[0] = fake.full[1] = true;
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.node, NODE_ANY);
	CU_ASSERT(is_usable());
	machine_off();
}

static void
test_refused_binding_is_a_step(void)
{
	const int errors[] = {EPERM, ENOSYS, EACCES};

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		struct hugepage_want wanted;
		struct hugepage_got got;
		uint64_t before = count_of(HUGEPAGE_DOWN_UNBOUND);

		machine(2);
		fake.mbind_error = errors[i];
		wanted = want(0);
		ASSERT_EQ(hugepage_map(&wanted, &got), 0);
		ASSERT_EQ(got.node, NODE_ANY);
		ASSERT_EQ(got.kind, PAGE_TRANSPARENT);
		ASSERT_EQ(fake.binds, 1);
		ASSERT_EQ(count_of(HUGEPAGE_DOWN_UNBOUND), before + 1);
		ASSERT_EQ(log_capture_count(), 1);
		CU_ASSERT(strstr(log_capture_last(), "binding is refused") != NULL);
		machine_off();
	}
}

static void
test_refused_move_pages_is_a_step(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(2);
	fake.move_pages_error = EPERM;
	wanted = want(1);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.node, NODE_ANY);
	CU_ASSERT(is_usable());
	machine_off();
}

static void
test_old_kernel_is_touched_by_hand(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;
	unsigned char resident[BYTES / 4096];
	size_t count = 0;

	machine(1);
	fake.populate_error = EINVAL;
	fake.reserved_2m = fake.huge_2m[0] = true; /* not to be trusted without populating: SIGBUS */
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.kind, PAGE_TRANSPARENT);
	ASSERT_EQ(mincore(range, BYTES, resident), 0);
	for (size_t i = 0; i < sizeof resident; i++)
		count += resident[i] & 1;
	ASSERT_EQ(count, sizeof resident);
	machine_off();
}

static void
test_nothing_left_is_an_error(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(2);
	fake.populate_error = ENOMEM;
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), -ENOMEM);
	CU_ASSERT(is_only_reserved());
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_EQ(log_capture_level(0), XR_LOG_ERROR);
	machine_off();
}

static void
test_more_than_there_is_is_not_populated(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(1);
	fake.available = BYTES - 1;
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), -ENOMEM);
	ASSERT_EQ(fake.populates, 0);
	ASSERT_EQ(fake.mprotects, 0);
	CU_ASSERT(is_only_reserved());
	machine_off();
}

static void
test_require_hugepages(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(2);
	wanted = want(0);
	wanted.require_hugepages = true;
	ASSERT_EQ(hugepage_map(&wanted, &got), -ENOMEM);
	ASSERT_EQ(fake.mprotects, 0);
	fake.reserved_2m = fake.huge_2m[1] = true;
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.kind, PAGE_2M);
	ASSERT_EQ(got.node, 1);
	machine_off();
}

static void
test_strict_numa(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(2);
	fake.full[0] = true;
	fake.reserved_2m = fake.huge_2m[1] = true;
	wanted = want(0);
	wanted.strict_numa = true;
	ASSERT_EQ(hugepage_map(&wanted, &got), -ENOMEM);
	CU_ASSERT(is_only_reserved());
	ASSERT_EQ(fake.bound, NODE_ANY);
	fake.full[0] = false;
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.node, 0);
	hugepage_unmap(range, BYTES);
	fake.mbind_error = EPERM;
	ASSERT_EQ(hugepage_map(&wanted, &got), -ENOMEM);
	machine_off();
}

/* A cpuset may leave one node's memory to a process, and not that of its processors. */
static void
test_the_only_memory_is_another_nodes(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;
	uint64_t before = count_of(HUGEPAGE_DOWN_NODE);

	machine(2);
	fake.forbidden[0] = true;
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.node, 1);
	ASSERT_EQ(fake.bound, 1);
	ASSERT_EQ(count_of(HUGEPAGE_DOWN_NODE), before + 1);
	CU_ASSERT(strstr(log_capture_last(), "on another node") != NULL);
	hugepage_unmap(range, BYTES);
	wanted.strict_numa = true;
	ASSERT_EQ(hugepage_map(&wanted, &got), -ENOMEM);
	CU_ASSERT(is_only_reserved());
	ASSERT_EQ(log_capture_count(), 2);
	ASSERT_STR(log_capture_last(),
		   "--strict-numa: node 0 can't give 4 MiB: none of its memory is this process's to use");
	machine_off();
}

static void
test_switched_off_for_the_process(void)
{
	ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	CU_ASSERT(!g_hugepage_sys.transparent());
	ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

/* Whatever this machine has: it must work, and be where it says. */
static void
test_this_machine(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	log_capture_start();
	g_hugepage_told = 0;
	range = hugepage_reserve(BYTES, HUGEPAGE_2M_BYTES);
	ASSERT_FATAL(range != NULL);
	CU_ASSERT(is_only_reserved());
	wanted = want(0);
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	CU_ASSERT(is_usable());
	CU_ASSERT(log_capture_count() <= 1);
	hugepage_unmap(range, BYTES);
	CU_ASSERT(is_only_reserved());
	hugepage_release(range, BYTES);
	log_capture_stop();
}

/* Ahead of need: the machine keeps some, and who asks has its own words for it. */
static void
test_spares_the_machine_quietly(void)
{
	struct hugepage_want wanted;
	struct hugepage_got got;

	machine(1);
	fake.available = 3 * BYTES - 1;
	wanted = want(0);
	wanted.spared_bytes = 2 * BYTES;
	wanted.quiet = true;
	ASSERT_EQ(hugepage_map(&wanted, &got), -ENOMEM);
	ASSERT_EQ(fake.mprotects, 0);
	ASSERT_EQ(log_capture_count(), 0);
	fake.available = 3 * BYTES;
	ASSERT_EQ(hugepage_map(&wanted, &got), 0);
	ASSERT_EQ(got.bytes, BYTES);
	machine_off();
}

UNIT_SUITE("hugepage", {"a reserved range is aligned, and absurd ones are refused", test_reserve_is_aligned},
	   {"the best pages need no step down", test_best_pages_need_no_step},
	   {"1 GiB pages need a region of as much", test_1g_only_when_it_fits},
	   {"1 GiB pages are taken", test_1g_pages},
	   {"no huge pages are one line and work", test_no_huge_pages_is_one_line},
	   {"too few huge pages show when populated", test_too_few_huge_pages_show_when_populated},
	   {"a full node goes to another", test_full_node_goes_to_another},
	   {"all nodes full takes what comes", test_all_nodes_full_takes_what_comes},
	   {"a refused binding is a step down", test_refused_binding_is_a_step},
	   {"a refused look at the pages is a step down", test_refused_move_pages_is_a_step},
	   {"before Linux 5.14 pages are touched by hand", test_old_kernel_is_touched_by_hand},
	   {"nothing left is an error", test_nothing_left_is_an_error},
	   {"more than there is is not populated", test_more_than_there_is_is_not_populated},
	   {"the only memory is another node's", test_the_only_memory_is_another_nodes},
	   {"--require-hugepages", test_require_hugepages}, {"--strict-numa", test_strict_numa},
	   {"transparent pages switched off for the process", test_switched_off_for_the_process},
	   {"ahead of need the machine is spared", test_spares_the_machine_quietly},
	   {"this machine gives memory", test_this_machine});
