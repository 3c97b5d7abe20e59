/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

/* ---- the kernel's calls, counted, and failing on demand ---- */

static unsigned g_waits, g_pwait2s;
static int g_pwait2_error;

int
epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
	g_waits++;
	return (int)syscall(SYS_epoll_pwait, epoll_fd, events, max, timeout_ms, NULL, 8);
}

int
epoll_pwait2(int epoll_fd, struct epoll_event *events, int max, const struct timespec *timeout, const sigset_t *mask)
{
	(void)mask;
	g_pwait2s++;
	if (g_pwait2_error) {
		errno = g_pwait2_error;
		return -1;
	}
	return (int)syscall(SYS_epoll_pwait2, epoll_fd, events, max, timeout, NULL, 8);
}

/* ---- pipes whose readers count ---- */

struct reader {
	struct xr_fd fd;
	int writer;
	unsigned calls;
	uint32_t revents;
	void (*then)(struct reader *reader);
};

static void
reader_ready(struct xr_fd *fd, uint32_t revents)
{
	struct reader *reader = (struct reader *)fd;

	reader->calls++;
	reader->revents = revents;
	if (reader->then)
		reader->then(reader);
}

static void
reader_open(struct reader *reader, void (*then)(struct reader *reader))
{
	int ends[2];

	ASSERT_FATAL(pipe2(ends, O_NONBLOCK) == 0);
	*reader = (struct reader){XR_FD_INIT(ends[0], EPOLLIN, reader_ready), ends[1], 0, 0, then};
	ASSERT_EQ(xr_fd_add(&reader->fd), 0);
}

static void
reader_fill(struct reader *reader)
{
	ASSERT_EQ(write(reader->writer, "x", 1), 1);
}

static void
reader_close(struct reader *reader)
{
	xr_fd_del(&reader->fd);
	close(reader->fd.fd);
	close(reader->writer);
}

static int
turn(void)
{
	struct source *source = &reactor_current()->fds.source;

	return source->ops->poll(source, reactor_current());
}

static void
test_level_triggered(void)
{
	struct reader reader;
	char byte;

	fixture_start(1);
	reader_open(&reader, NULL);
	ASSERT_EQ(turn(), 0);
	reader_fill(&reader);
	ASSERT_EQ(turn(), 1);
	ASSERT_EQ(turn(), 1);
	ASSERT_EQ(reader.calls, 2);
	ASSERT_EQ(reader.revents, EPOLLIN);
	ASSERT_EQ(read(reader.fd.fd, &byte, 1), 1);
	ASSERT_EQ(turn(), 0);
	reader_close(&reader);
	fixture_end();
}

static void *
add_on_no_worker(void *arg)
{
	ASSERT_EQ(xr_fd_add(arg), -EINVAL);
	return NULL;
}

static void
test_errors(void)
{
	struct xr_fd bad = XR_FD_INIT(-1, EPOLLIN, reader_ready), file = bad, twin = bad;
	struct reader reader;
	pthread_t thread;

	fixture_start(1);
	ASSERT_EQ(xr_fd_add(&bad), -EBADF);
	file.fd = open("/proc/self/exe", O_RDONLY);
	ASSERT_EQ(xr_fd_add(&file), -EPERM);
	close(file.fd);
	ASSERT_EQ(xr_fd_set_events(&bad, EPOLLIN), -ENOENT);
	xr_fd_del(&bad);
	reader_open(&reader, NULL);
	ASSERT_EQ(xr_fd_add(&reader.fd), -EALREADY);
	twin.fd = reader.fd.fd;
	ASSERT_EQ(xr_fd_add(&twin), -EEXIST);
	ASSERT_FATAL(pthread_create(&thread, NULL, add_on_no_worker, &twin) == 0);
	pthread_join(thread, NULL);
	reader_close(&reader);
	xr_fd_del(&reader.fd);
	ASSERT_EQ(reactor_current()->fds.loud, 0);
	fixture_end();
}

static void
test_events_change(void)
{
	struct reader reader;

	fixture_start(1);
	reader_open(&reader, NULL);
	reader_fill(&reader);
	ASSERT_EQ(xr_fd_set_events(&reader.fd, 0), 0);
	ASSERT_EQ(turn(), 0);
	ASSERT_EQ(xr_fd_set_events(&reader.fd, EPOLLIN), 0);
	ASSERT_EQ(xr_fd_set_events(&reader.fd, EPOLLIN), 0);
	ASSERT_EQ(turn(), 1);
	ASSERT_EQ(xr_fd_set_events(&reader.fd, 0), 0);
	close(reader.writer);
	ASSERT_EQ(turn(), 1);
	ASSERT_EQ(reader.revents, EPOLLHUP);
	reader.writer = -1;
	reader_close(&reader);
	fixture_end();
}

/* ---- deletion while a batch is dispatched ---- */

#define CROWD 10

static struct reader *g_crowd[CROWD];

static void
free_all_others(struct reader *reader)
{
	for (unsigned i = 0; i < CROWD; i++) {
		if (!g_crowd[i] || g_crowd[i] == reader)
			continue;
		reader_close(g_crowd[i]);
		memset(g_crowd[i], 0xa5, sizeof *g_crowd[i]);
		free(g_crowd[i]);
		g_crowd[i] = NULL;
	}
}

static void
free_itself(struct reader *reader)
{
	for (unsigned i = 0; i < CROWD; i++) {
		if (g_crowd[i] == reader)
			g_crowd[i] = NULL;
	}
	reader_close(reader);
	memset(reader, 0xa5, sizeof *reader);
	free(reader);
}

static void
crowd_open(void (*then)(struct reader *reader))
{
	for (unsigned i = 0; i < CROWD; i++) {
		g_crowd[i] = malloc(sizeof *g_crowd[i]);
		ASSERT_FATAL(g_crowd[i] != NULL);
		reader_open(g_crowd[i], then);
		reader_fill(g_crowd[i]);
	}
}

static void
test_callback_deletes_others(void)
{
	fixture_start(1);
	crowd_open(free_all_others);
	ASSERT_EQ(turn(), 1);
	ASSERT_EQ(reactor_current()->fds.loud, 1);
	free_all_others(NULL);
	ASSERT_EQ(turn(), 0);
	fixture_end();
}

static void
test_callback_deletes_itself(void)
{
	fixture_start(1);
	crowd_open(free_itself);
	ASSERT_EQ(turn(), CROWD);
	ASSERT_EQ(turn(), 0);
	ASSERT_EQ(reactor_current()->fds.loud, 0);
	fixture_end();
}

static void
mute_others(struct reader *reader)
{
	for (unsigned i = 0; i < CROWD; i++) {
		if (g_crowd[i] != reader)
			ASSERT_EQ(xr_fd_set_events(&g_crowd[i]->fd, 0), 0);
	}
}

static void
test_callback_mutes_others(void)
{
	fixture_start(1);
	crowd_open(mute_others);
	ASSERT_EQ(turn(), 1);
	ASSERT_EQ(turn(), 1);
	free_all_others(NULL);
	fixture_end();
}

/* Deleting and adding anew within a batch: what the kernel reported for the old one is not told to the new one. */
static void
readd_others(struct reader *reader)
{
	for (unsigned i = 0; i < CROWD; i++) {
		if (g_crowd[i] == reader)
			continue;
		xr_fd_del(&g_crowd[i]->fd);
		ASSERT_EQ(xr_fd_add(&g_crowd[i]->fd), 0);
	}
}

static void
test_callback_readds_others(void)
{
	fixture_start(1);
	crowd_open(readd_others);
	ASSERT_EQ(turn(), 1);
	ASSERT_EQ(reactor_current()->fds.loud, CROWD);
	free_all_others(NULL);
	fixture_end();
}

static void
test_more_than_a_batch(void)
{
	static struct reader readers[150];
	unsigned served = 0;

	fixture_start(1);
	for (unsigned i = 0; i < 150; i++) {
		reader_open(&readers[i], NULL);
		reader_fill(&readers[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(turn(), FD_BATCH);
	for (unsigned i = 0; i < 150; i++) {
		served += readers[i].calls > 0;
		reader_close(&readers[i]);
	}
	ASSERT_EQ(served, 150);
	fixture_end();
}

/* ---- how often the kernel is asked ---- */

static unsigned
waits_of_turns(uint64_t from_us, uint64_t to_us)
{
	struct reactor *reactor = reactor_current();

	g_waits = 0;
	for (uint64_t now_us = from_us; now_us < to_us; now_us++) {
		reactor->now_us = now_us;
		turn();
	}
	return g_waits;
}

static void
test_looks_as_often_as_needed(void)
{
	static const struct source_ops idle_ops = {0};
	struct source cq = {.name = "cq", .ops = &idle_ops, .stage = SOURCE_CQ};
	struct reader listener, reader;
	uint64_t from_us;

	fixture_start(1);
	from_us = reactor_current()->now_us;
	ASSERT_EQ(waits_of_turns(from_us, from_us + 1000), 0); /* nothing to look at */
	reader_open(&listener, NULL);
	fd_set_quiet(&listener.fd, true);
	ASSERT_EQ(waits_of_turns(from_us, from_us + 1000), 10);
	reader_open(&reader, NULL);
	ASSERT_EQ(waits_of_turns(from_us + 1000, from_us + 2000), 1000);
	source_add(reactor_current(), &cq);
	ASSERT_EQ(waits_of_turns(from_us + 2000, from_us + 3000), 250);
	fd_set_quiet(&reader.fd, true);
	ASSERT_EQ(waits_of_turns(from_us + 3000, from_us + 4000), 10);
	fd_set_quiet(&reader.fd, false);
	ASSERT_EQ(waits_of_turns(from_us + 4000, from_us + 5000), 250);
	source_del(reactor_current(), &cq);
	reader_close(&reader);
	reader_close(&listener);
	ASSERT_EQ(waits_of_turns(from_us + 5000, from_us + 6000), 0);
	fixture_end();
}

static void
answer(struct reader *reader)
{
	char byte;

	ASSERT_EQ(read(reader->fd.fd, &byte, 1), 1);
	if (reader->calls == 100)
		reactors_stop();
	else
		reader_fill(reader);
}

/* In event mode the blocking wait is the only look: one system call for each wake. */
static void
test_one_wait_per_wake(void)
{
	struct reader reader;

	fixture_start(1);
	reader_open(&reader, answer);
	reader_fill(&reader);
	g_waits = g_pwait2s = 0;
	reactor_run(reactor_current());
	ASSERT_EQ(reader.calls, 100);
	CU_ASSERT(g_waits + g_pwait2s <= 102);
	reader_close(&reader);
	fixture_end();
}

/* ---- timeouts ---- */

static void
test_timeout_rounds_up(void)
{
	ASSERT_EQ(fd_timeout_ms(0), 0);
	ASSERT_EQ(fd_timeout_ms(1), 1);
	ASSERT_EQ(fd_timeout_ms(1000), 1);
	ASSERT_EQ(fd_timeout_ms(1001), 2);
	ASSERT_EQ(fd_timeout_ms(SOURCE_NEVER - 1), INT_MAX);
	ASSERT_EQ(fd_timeout_ms((uint64_t)INT_MAX * 1000), INT_MAX);
	ASSERT_EQ(fd_timeout_ms((uint64_t)INT_MAX * 1000 + 1), INT_MAX);
	ASSERT_EQ(fd_timeout_ms(SOURCE_NEVER), -1);
}

static unsigned g_fired;

static void
fire(struct xr_timer *timer)
{
	(void)timer;
	if (++g_fired == 3)
		reactors_stop();
}

/* An old kernel is asked once, and then the older call does. */
static void
test_without_pwait2(void)
{
	struct xr_timer timer = XR_TIMER_INIT(fire);

	fixture_start(1);
	g_pwait2_error = ENOSYS;
	g_fired = g_waits = g_pwait2s = 0;
	xr_timer_arm(&timer, 1500, 1500);
	reactor_run(reactor_current());
	ASSERT_EQ(g_fired, 3);
	ASSERT_EQ(g_pwait2s, 1);
	CU_ASSERT(g_waits >= 1);
	xr_timer_cancel(&timer);
	g_pwait2_error = 0;
	fixture_end();
}

static void
test_signal_ends_a_wait(void)
{
	struct xr_timer timer = XR_TIMER_INIT(fire);

	fixture_start(1);
	g_pwait2_error = EINTR;
	g_fired = 0;
	xr_timer_arm(&timer, 500, 500);
	reactor_run(reactor_current());
	ASSERT_EQ(g_fired, 3);
	CU_ASSERT(stat_read(STAT_SLEEPS) > 0);
	ASSERT_EQ(stat_read(STAT_WAKES_FD) + stat_read(STAT_WAKES_CAP) + stat_read(STAT_WAKES_EMPTY), 0);
	xr_timer_cancel(&timer);
	g_pwait2_error = 0;
	fixture_end();
}

UNIT_SUITE("fd", {"level-triggered", test_level_triggered}, {"errors", test_errors},
	   {"events change", test_events_change}, {"a callback deletes others", test_callback_deletes_others},
	   {"a callback deletes itself", test_callback_deletes_itself},
	   {"a callback mutes others", test_callback_mutes_others},
	   {"a callback adds others anew", test_callback_readds_others}, {"more than a batch", test_more_than_a_batch},
	   {"looks as often as needed", test_looks_as_often_as_needed}, {"one wait per wake", test_one_wait_per_wake},
	   {"timeouts round up", test_timeout_rounds_up}, {"a signal ends a wait", test_signal_ends_a_wait},
	   {"without epoll_pwait2", test_without_pwait2});
