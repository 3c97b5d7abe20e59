/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_FD_H
#define POLL_FD_H

/* The descriptors of one reactor and its epoll set, in which it also blocks. */

#include "poll/source.h"
#include <sys/epoll.h>
#include <xrdma/reactor.h>

#define FD_BATCH 64 /* events taken from the kernel at once */

struct fd_source {
	struct source source;
	int epoll_fd;
	unsigned loud;	/* descriptors that are watched closely */
	unsigned quiet; /* and those whose silence is normal */
	unsigned next;	/* the batch: events not yet dispatched */
	unsigned end;
	bool asked;	 /* the kernel has been asked since the last dispatch */
	uint64_t due_us; /* when a polling turn asks the kernel again */
	struct epoll_event batch[FD_BATCH];
};

/* bell: the mailbox's eventfd. 0, or -EMFILE, -ENFILE, -ENOMEM, -ENOSPC. */
int fd_source_init(struct fd_source *fds, int bell);
void fd_source_fini(struct fd_source *fds);

/*
 * Blocks until a descriptor is ready or the time has passed (SOURCE_NEVER: without end) and keeps the events for the
 * next poll, which then does not ask the kernel again. Returns their number; -EINTR after a signal.
 */
int fd_source_wait(struct fd_source *fds, uint64_t timeout_us);

/* A timeout for epoll_wait(), never shorter than the one asked for unless that is beyond its range. -1: without end. */
int fd_timeout_ms(uint64_t timeout_us);

#endif
