/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_SOURCE_H
#define POLL_SOURCE_H

/*
 * A source of events: anything that a worker looks at in its turn. Mailbox, sockets, timers and application pollers
 * are sources, and so are the completion queues and the deliver and flush steps that `net` adds.
 *
 * Sleeping needs every source's consent. The loop arms all of them, polls all of them once more, and blocks only if
 * that found nothing; wait.c has the protocol.
 */

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

struct reactor;
struct source;

/* The order of one turn. Poll first, submit last. */
enum source_stage {
	SOURCE_MAILBOX,
	SOURCE_CQ,
	SOURCE_FD,
	SOURCE_POLLER,
	SOURCE_TIMER,
	SOURCE_DELIVER,
	SOURCE_FLUSH,
	SOURCE_STAGES,
};

#define SOURCE_NEVER UINT64_MAX

struct source_ops {
	/* Does a bounded amount of work; returns how much, 0 for none. */
	int (*poll)(struct source *source, struct reactor *reactor);
	/*
	 * Makes the source wake the worker from now on. 0; -EBUSY there is work already; any other error keeps the
	 * worker awake. NULL: nothing to arm (the kernel's wait covers it, or it never has work of its own).
	 */
	int (*arm)(struct source *source, struct reactor *reactor);
	/* Takes back arm() after a sleep or when another source refused. NULL: nothing to take back. */
	void (*disarm)(struct source *source, struct reactor *reactor);
	/* When it wants to be polled at the latest, in the clock's microseconds; NULL or SOURCE_NEVER: no such time. */
	uint64_t (*deadline)(struct source *source, struct reactor *reactor);
	/* The blocking wait itself is this source's last poll, so that none is needed after arming. */
	bool waits_in_kernel;
};

struct source {
	const char *name;
	const struct source_ops *ops;
	enum source_stage stage;
	bool keeps_awake; /* has no way to wake a sleeping worker: vetoes sleep, named in the log */
	bool armed;	  /* the loop's: arm() has succeeded and disarm() is due */
	struct cds_list_head link;
};

/* On the reactor's own thread, or before it runs. A source may delete itself or another one while it is polled. */
void source_add(struct reactor *reactor, struct source *source);
void source_del(struct reactor *reactor, struct source *source);

#endif
