/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LCORE_H
#define CORE_LCORE_H

/* The lcores: lists parsed, processors checked, threads pinned. */

#include <pthread.h>
#include <sched.h>
#include <xrdma/lcore.h>
#include <xrdma/option.h>

struct lcore {
	unsigned id;	/* the user's number */
	unsigned index; /* dense: 0..lcore_count()-1 in order of id; what arrays are indexed by */
	int numa_node;
	cpu_set_t *cpus; /* CPU_ALLOC'd, cpus_size bytes */
	size_t cpus_size;
	pthread_t thread;
	bool started; /* thread holds a worker that lcore_join() must wait for */
};

/* The lcore of the calling thread, NULL elsewhere. Initial-exec: one instruction on the hot path. */
extern __thread struct lcore *t_lcore __attribute__((tls_model("initial-exec")));

/* The rows of -l, --lcores, --main-lcore. */
extern const struct xr_option g_lcore_options[];

/* One parsed lcore: its number and the processors it may run on. */
struct lcore_spec {
	unsigned id;
	unsigned *cpus; /* malloc'd, sorted, without repeats */
	size_t cpu_count;
};

struct lcore_list {
	struct lcore_spec *specs; /* malloc'd, sorted by id */
	size_t count;
};

/*
 * Pure parsing, no look at the machine. Both return 0, or -EINVAL (-ENOMEM) with *why set (text valid until the next
 * call on this thread) and *list untouched.
 *
 * cpus:   `0-3,8`: numbers and ascending ranges, no repeats; lcore N on processor N.
 * lcores: `0@2,(1-3)@(4-7),5`: DPDK's --lcores; `A@B`, sets in parentheses, without @ the processor of that number;
 *         `(0-1)` without @ : each of the set may run on all of the set.
 */
int lcore_parse_cpus(const char *text, struct lcore_list *list, const char **why);
int lcore_parse_lcores(const char *text, struct lcore_list *list, const char **why);
void lcore_list_free(struct lcore_list *list);

/*
 * Builds the lcores from the options (default: one per processor that this thread may use), pins the calling thread as
 * the main lcore and remembers its old affinity. -EINVAL after one log line naming option, culprit and what is allowed
 * (processor offline, not in this process's affinity, two lcores alike, main lcore not in the list); -ENOMEM.
 */
int lcore_init(void);

/* Unpins the calling thread and forgets the lcores. All workers have been joined. */
void lcore_fini(void);

unsigned lcore_count(void);
struct lcore *lcore_at(unsigned index); /* index < lcore_count() */
struct lcore *lcore_find(unsigned id);	/* NULL: no such lcore */
struct lcore *lcore_main(void);

/*
 * Starts a pinned thread named "lcore-ID" for every lcore but the main one; each runs fn(lcore) with t_lcore set and
 * with the process's signals blocked, so that those reach the application's threads. After a negative errno some may
 * run already: the caller makes them end, then joins.
 */
int lcore_launch(void (*fn)(struct lcore *lcore));
void lcore_join(void);

/*
 * Starts a thread that is no lcore, which the caller joins: on the processors that the main thread had at first, less
 * those of the lcores if that leaves any, and with the process's signals blocked. A negative errno.
 */
int lcore_start_helper(const char *name, void *(*fn)(void *arg), void *arg, pthread_t *thread);

#endif
