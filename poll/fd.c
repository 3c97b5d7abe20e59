/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/fd.h"

#include "poll/reactor_private.h"
#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#define LOUD_INTERVAL_US  4 /* between two looks at sockets while completion queues are polled as well */
#define QUIET_INTERVAL_US 100

/* What xr_fd.state_ holds. */
enum {
	FD_ADDED = 1,
	FD_QUIET = 2,
};

/* epoll's mark of the bell, which no xr_fd stands behind; also of an event whose xr_fd was deleted. */
#define NO_FD NULL

static bool g_has_pwait2 = true; /* until the kernel says otherwise */

static struct fd_source *
fds_here(void)
{
	struct reactor *reactor = reactor_current();

	return reactor ? &reactor->fds : NULL;
}

static unsigned *
count_of(struct fd_source *fds, const struct xr_fd *fd)
{
	return fd->state_ & FD_QUIET ? &fds->quiet : &fds->loud;
}

static int
control(struct fd_source *fds, int op, int descriptor, uint32_t events, struct xr_fd *fd)
{
	struct epoll_event event = {.events = events, .data.ptr = fd};

	return epoll_ctl(fds->epoll_fd, op, descriptor, &event) == 0 ? 0 : -errno;
}

XR_API int
xr_fd_add(struct xr_fd *fd)
{
	struct fd_source *fds = fds_here();
	int error;

	if (!fds)
		return -EINVAL;
	if (fd->state_ & FD_ADDED)
		return -EALREADY;
	error = control(fds, EPOLL_CTL_ADD, fd->fd, fd->events, fd);
	if (error)
		return error;
	fd->state_ = FD_ADDED;
	fds->loud++;
	return 0;
}

XR_API int
xr_fd_set_events(struct xr_fd *fd, uint32_t events)
{
	int error;

	if (!(fd->state_ & FD_ADDED))
		return -ENOENT;
	if (events == fd->events)
		return 0;
	error = control(fds_here(), EPOLL_CTL_MOD, fd->fd, events, fd);
	if (!error)
		fd->events = events;
	return error;
}

/* Takes back what the kernel has reported already, so that the object may be freed. */
static void
forget_events(struct fd_source *fds, const struct xr_fd *fd)
{
	for (unsigned i = fds->next; i < fds->end; i++) {
		if (fds->batch[i].data.ptr == fd)
			fds->batch[i].data.ptr = NO_FD;
	}
}

XR_API void
xr_fd_del(struct xr_fd *fd)
{
	struct fd_source *fds = fds_here();

	if (!(fd->state_ & FD_ADDED))
		return;
	control(fds, EPOLL_CTL_DEL, fd->fd, 0, NO_FD);
	forget_events(fds, fd);
	(*count_of(fds, fd))--;
	fd->state_ = 0;
}

void
fd_set_quiet(struct xr_fd *fd, bool quiet)
{
	struct fd_source *fds = fds_here();

	(*count_of(fds, fd))--;
	fd->state_ = FD_ADDED | (quiet ? FD_QUIET : 0);
	(*count_of(fds, fd))++;
}

/* Whether a polling turn asks the kernel. It is a system call, so the less can be expected the rarer it is. */
static bool
look_due(struct fd_source *fds, const struct reactor *reactor)
{
	if (fds->loud && !reactor->sources.cq_count)
		return true;
	if (!fds->loud && !fds->quiet)
		return false;
	if (reactor->now_us < fds->due_us)
		return false;
	fds->due_us = reactor->now_us + (fds->loud ? LOUD_INTERVAL_US : QUIET_INTERVAL_US);
	return true;
}

static int
dispatch(struct fd_source *fds)
{
	int count = 0;

	while (fds->next < fds->end) {
		const struct epoll_event *event = &fds->batch[fds->next++];
		struct xr_fd *fd = event->data.ptr;
		uint32_t revents;

		if (fd == NO_FD)
			continue;
		/* An earlier callback of this batch may have changed what is watched for. */
		revents = event->events & (fd->events | EPOLLERR | EPOLLHUP);
		if (!revents)
			continue;
		CALLBACK(fd->fn, fd->fn(fd, revents));
		count++;
	}
	return count;
}

static int
fds_poll(struct source *source, struct reactor *reactor)
{
	struct fd_source *fds = cds_list_entry(source, struct fd_source, source);

	if (!fds->asked && look_due(fds, reactor))
		fd_source_wait(fds, 0);
	fds->asked = false;
	return dispatch(fds);
}

int
fd_timeout_ms(uint64_t timeout_us)
{
	if (timeout_us == SOURCE_NEVER)
		return -1;
	if (timeout_us > (uint64_t)INT_MAX * 1000)
		return INT_MAX;
	return (int)((timeout_us + 999) / 1000);
}

static int
wait_us(struct fd_source *fds, uint64_t timeout_us)
{
	if (timeout_us && timeout_us != SOURCE_NEVER && __atomic_load_n(&g_has_pwait2, __ATOMIC_RELAXED)) {
		struct timespec timeout = {.tv_sec = (time_t)(timeout_us / 1000000),
					   .tv_nsec = (long)(timeout_us % 1000000) * 1000};
		int ready = epoll_pwait2(fds->epoll_fd, fds->batch, FD_BATCH, &timeout, NULL);

		if (ready >= 0 || errno != ENOSYS)
			return ready;
		__atomic_store_n(&g_has_pwait2, false, __ATOMIC_RELAXED);
	}
	return epoll_wait(fds->epoll_fd, fds->batch, FD_BATCH, fd_timeout_ms(timeout_us));
}

int
fd_source_wait(struct fd_source *fds, uint64_t timeout_us)
{
	int ready = wait_us(fds, timeout_us);

	fds->asked = true;
	fds->next = 0;
	fds->end = ready > 0 ? (unsigned)ready : 0;
	return ready < 0 ? -errno : ready;
}

static const struct source_ops g_fd_ops = {.poll = fds_poll, .waits_in_kernel = true};

int
fd_source_init(struct fd_source *fds, int bell)
{
	int error;

	*fds = (struct fd_source){.source = {.name = "sockets", .ops = &g_fd_ops, .stage = SOURCE_FD}};
	fds->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (fds->epoll_fd < 0)
		return -errno;
	/*
	 * Edge-triggered and never read: each write to an eventfd is an edge of its own, whatever its count, and epoll
	 * reports an edge once. So a wake-up costs the sleeper no read(), and none can be left over as a level.
	 */
	error = control(fds, EPOLL_CTL_ADD, bell, EPOLLIN | EPOLLET, NO_FD);
	if (error)
		close(fds->epoll_fd);
	return error;
}

void
fd_source_fini(struct fd_source *fds)
{
	close(fds->epoll_fd);
}
