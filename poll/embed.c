/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A reactor whose turns and waits an application's loop does. The wait is the one of wait.c with the block left out:
 * what would end it makes the epoll set readable, and the set is itself a descriptor that others can wait for.
 *
 * While the application's loop waits, the thread is offline for RCU, and stays so until the next turn: nothing that an
 * application may call between turns reads under RCU.
 */

#include "poll/reactor_private.h"
#include <errno.h>

void
reactor_embed(struct reactor *reactor)
{
	reactor_begin(reactor);
	reactor->running = false;
	reactor->lent = false;
	reactor->last_work = 1;
	reactor->embedded = true;
}

/* Ends the wait that the application's loop was given. */
static enum wake_cause
take_back(struct reactor *reactor)
{
	enum wake_cause cause = wait_take_back(reactor);

	reactor->lent = false;
	wait_finish(reactor, cause);
	return cause;
}

void
reactor_unembed(struct reactor *reactor)
{
	if (reactor->lent)
		take_back(reactor);
	reactor->embedded = false;
	reactor_end(reactor);
}

bool
reactor_in_turn(const struct reactor *reactor)
{
	return reactor->running;
}

static int
progress(struct reactor *reactor)
{
	enum wake_cause cause = reactor->lent ? take_back(reactor) : WAKE_OTHER;

	if (reactors_stopping())
		return -ESHUTDOWN;
	reactor->last_work = reactor_turn_woken(reactor, cause);
	return reactor->last_work;
}

static int
prepare_wait(struct reactor *reactor, uint64_t *timeout_us)
{
	int error;

	if (reactor->lent || !wait_wanted(reactor, reactor->last_work))
		return -EBUSY;
	error = wait_prepare(reactor);
	if (error)
		return error;
	*timeout_us = wait_lend(reactor);
	reactor->lent = true;
	return 0;
}

static struct reactor *
embedded_here(void)
{
	struct reactor *reactor = reactor_current();

	return reactor && reactor->embedded ? reactor : NULL;
}

XR_API int
xr_worker_progress(void)
{
	struct reactor *reactor = embedded_here();
	int ret;

	if (!reactor || reactor->running)
		return -EINVAL;
	reactor->running = true;
	ret = progress(reactor);
	reactor->running = false;
	return ret;
}

XR_API int
xr_worker_prepare_wait(uint64_t *timeout_us)
{
	struct reactor *reactor = embedded_here();
	int ret;

	if (!reactor || reactor->running)
		return -EINVAL;
	reactor->running = true;
	ret = prepare_wait(reactor, timeout_us);
	reactor->running = false;
	return ret;
}

XR_API int
xr_worker_fd(void)
{
	const struct reactor *reactor = embedded_here();

	return reactor ? reactor->fds.epoll_fd : -EINVAL;
}
