/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_HUGEPAGE_H
#define MEM_HUGEPAGE_H

/*
 * Pages for one region at a fixed address inside a reserved range: the largest that can be had, on the wanted node,
 * then on another one, bound and populated before anybody uses them.
 *
 *   for the wanted node, the others by distance, then wherever the kernel likes:
 *       1 GiB pages (when asked), 2 MiB pages, transparent huge pages, ordinary pages
 *
 * Each step down is counted, and logged once per process.
 */

#include "core/counter.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum page_kind {
	PAGE_1G,
	PAGE_2M,
	PAGE_TRANSPARENT,
	PAGE_ORDINARY,
	PAGE_KINDS,
};

#define NODE_ANY (-1)

#define HUGEPAGE_1G_BYTES ((size_t)1 << 30)
#define HUGEPAGE_2M_BYTES ((size_t)2 << 20)

struct hugepage_want {
	void *addr;	 /* in a range from hugepage_reserve() */
	size_t bytes;	 /* a multiple of 2 MiB */
	size_t bytes_1g; /* of 1 GiB pages, when it differs: a multiple of 1 GiB, or nothing that they are had for */
	size_t spared_bytes; /* of ordinary memory, that others shall have after it */
	int node;
	bool try_1g;
	bool quiet;		/* a failure is not logged */
	bool require_hugepages; /* 2 MiB or 1 GiB pages or an error */
	bool strict_numa;	/* on the node or an error */
};

struct hugepage_got {
	enum page_kind kind;
	int node; /* NODE_ANY: wherever the kernel put them */
	size_t bytes;
};

/* An address range without memory behind it, aligned to a power of two; NULL with errno. */
void *hugepage_reserve(size_t bytes, size_t align);
void hugepage_release(void *addr, size_t bytes);

/* -ENOMEM after one log line; the range is then as reserved as before. */
int hugepage_map(const struct hugepage_want *want, struct hugepage_got *got);

/* Gives the pages back; the range stays reserved. */
void hugepage_unmap(void *addr, size_t bytes);

const char *page_kind_name(enum page_kind kind);

enum hugepage_counter {
	HUGEPAGE_DOWN_1G,
	HUGEPAGE_DOWN_2M,
	HUGEPAGE_DOWN_TRANSPARENT,
	HUGEPAGE_DOWN_NODE,
	HUGEPAGE_DOWN_UNBOUND,
	HUGEPAGE_COUNTERS,
};

extern struct counter g_hugepage_counters[HUGEPAGE_COUNTERS];

/* What is asked of the system, replaceable by tests. */
struct hugepage_sys {
	void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
	int (*munmap)(void *addr, size_t len);
	int (*mprotect)(void *addr, size_t len, int prot);
	int (*madvise)(void *addr, size_t len, int advice);
	long (*mbind)(void *addr, unsigned long len, int mode, const unsigned long *nodes, unsigned long max_node,
		      unsigned flags);
	long (*move_pages)(int pid, unsigned long count, void **pages, const int *nodes, int *status, int flags);
	/* Nodes that have memory for this process, the wanted one first, then by distance; how many. */
	unsigned (*nodes)(int wanted, int *nodes, unsigned max);
	bool (*transparent)(void);	 /* transparent huge pages are to be had with madvise() */
	size_t (*available_bytes)(void); /* of ordinary memory, without swapping */
};

extern struct hugepage_sys g_hugepage_sys;

/* The steps that were logged already: bits of enum hugepage_counter. */
extern unsigned g_hugepage_told;

#endif
