/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include "tests/unit/poll/inject.h"
#include <errno.h>
#include <poll.h>

#define SPIN_US 200 /* adaptive mode */

/* ---- an application's loop ---- */

static void
up(enum wait_mode mode)
{
	fixture_start(1);
	reactor_add_port(reactor_current(), "default", mode, SPIN_US);
}

/* Has a descriptor for the reactor's among its own. */
static int
outer_set(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int outer = epoll_create1(0);

	ASSERT_FATAL(outer >= 0);
	ASSERT_FATAL(epoll_ctl(outer, EPOLL_CTL_ADD, xr_worker_fd(), &event) == 0);
	return outer;
}

static void
drive(struct reactor *reactor)
{
	struct epoll_event event;
	uint64_t timeout_us;
	int outer;

	reactor_embed(reactor);
	outer = outer_set();
	while (xr_worker_progress() != -ESHUTDOWN)
		if (xr_worker_prepare_wait(&timeout_us) == 0)
			epoll_wait(outer, &event, 1, fd_timeout_ms(timeout_us));
	close(outer);
	reactor_unembed(reactor);
}

static void
embed(enum wait_mode mode)
{
	up(mode);
	reactor_embed(reactor_current());
}

static void
unembed(void)
{
	reactor_unembed(reactor_current());
	fixture_end();
}

/* Whether the descriptor is readable now. */
static bool
readable(void)
{
	struct pollfd fd = {.fd = xr_worker_fd(), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* Turns until nothing is left and the caller may wait. */
static uint64_t
settle(void)
{
	uint64_t timeout_us = 0;
	int turns = 0;

	while (xr_worker_prepare_wait(&timeout_us) == -EBUSY && turns++ < 1000000)
		CU_ASSERT(xr_worker_progress() >= 0);
	CU_ASSERT(turns < 1000000);
	return timeout_us;
}

/* ---- every event at every step ---- */

static void
test_nothing_lost(void)
{
	inject_into_reactor(drive, false, 0);
	inject_into_reactor(drive, true, 0);
}

static void
test_nothing_rescued(void)
{
	inject_into_reactor(drive, false, 10);
}

/* ---- who may call, and when ---- */

static void
check_refused(void)
{
	uint64_t timeout_us = 77;

	ASSERT_EQ(xr_worker_progress(), -EINVAL);
	ASSERT_EQ(xr_worker_prepare_wait(&timeout_us), -EINVAL);
	ASSERT_EQ(timeout_us, 77);
}

static void *
call_elsewhere(void *arg)
{
	(void)arg;
	check_refused();
	ASSERT_EQ(xr_worker_fd(), -EINVAL);
	return NULL;
}

static unsigned g_ran;

static void
call_inside(struct xr_msg *msg, int status)
{
	(void)msg;
	ASSERT_EQ(status, 0);
	check_refused();
	CU_ASSERT(xr_worker_fd() >= 0);
	g_ran++;
}

static void
test_refused(void)
{
	struct xr_msg msg = XR_MSG_INIT(call_inside);
	pthread_t thread;

	g_ran = 0;
	check_refused();
	ASSERT_EQ(xr_worker_fd(), -EINVAL);
	up(WAIT_EVENT);
	check_refused();
	ASSERT_EQ(xr_worker_fd(), -EINVAL);
	reactor_embed(reactor_current());
	ASSERT_FATAL(pthread_create(&thread, NULL, call_elsewhere, NULL) == 0);
	pthread_join(thread, NULL);
	ASSERT_EQ(xr_post(0, &msg), 0);
	CU_ASSERT(xr_worker_progress() > 0);
	/* Also where callbacks run on the way to a wait. */
	settle();
	CU_ASSERT(xr_worker_progress() >= 0);
	ASSERT_EQ(xr_post(0, &msg), 0);
	ASSERT_EQ(xr_worker_prepare_wait(&(uint64_t){0}), -EBUSY);
	ASSERT_EQ(g_ran, 2);
	reactor_unembed(reactor_current());
	check_refused();
	fixture_end();
}

/* A wait that was granted is to be ended before the next one. */
static void
test_prepared_twice(void)
{
	uint64_t timeout_us;

	embed(WAIT_EVENT);
	CU_ASSERT(settle() == XR_WAIT_FOREVER);
	ASSERT_EQ(xr_worker_prepare_wait(&timeout_us), -EBUSY);
	ASSERT_EQ(xr_worker_progress(), 0);
	ASSERT_EQ(xr_worker_prepare_wait(&timeout_us), 0);
	unembed();
}

static void
test_stop_is_told(void)
{
	embed(WAIT_EVENT);
	settle();
	CU_ASSERT(!readable());
	reactors_stop();
	CU_ASSERT(readable());
	ASSERT_EQ(xr_worker_progress(), -ESHUTDOWN);
	ASSERT_EQ(xr_worker_progress(), -ESHUTDOWN);
	ASSERT_EQ(xr_worker_prepare_wait(&(uint64_t){0}), -EBUSY);
	unembed();
}

/* ---- what wakes ---- */

static void
count(struct xr_msg *msg, int status)
{
	(void)msg;
	(void)status;
	g_ran++;
}

static void *
post_once(void *arg)
{
	ASSERT_EQ(xr_post(0, arg), 0);
	return NULL;
}

static void
test_post_makes_readable(void)
{
	struct xr_msg msg = XR_MSG_INIT(count);
	pthread_t thread;

	g_ran = 0;
	embed(WAIT_EVENT);
	settle();
	for (unsigned i = 1; i <= 3; i++) {
		CU_ASSERT(!readable());
		ASSERT_FATAL(pthread_create(&thread, NULL, post_once, &msg) == 0);
		pthread_join(thread, NULL);
		CU_ASSERT(readable());
		CU_ASSERT(xr_worker_progress() > 0);
		ASSERT_EQ(g_ran, i);
		settle();
	}
	ASSERT_EQ(stat_read(STAT_WAKES_FD), 3);
	ASSERT_EQ(stat_read(STAT_WAKES_EMPTY), 0);
	unembed();
}

/* The application's loop went round for a reason of its own: that is no wake-up, and loses none. */
static void
test_progress_without_a_cause(void)
{
	struct xr_msg msg = XR_MSG_INIT(count);

	g_ran = 0;
	embed(WAIT_EVENT);
	for (unsigned i = 0; i < 10; i++) {
		settle();
		ASSERT_EQ(xr_worker_progress(), 0);
	}
	ASSERT_EQ(stat_read(STAT_SLEEPS), 10);
	ASSERT_EQ(stat_read(STAT_WAKES_FD) + stat_read(STAT_WAKES_TIMER) + stat_read(STAT_WAKES_CAP) +
			  stat_read(STAT_WAKES_EMPTY),
		  0);
	settle();
	ASSERT_EQ(xr_post(0, &msg), 0);
	CU_ASSERT(readable());
	unembed();
	ASSERT_EQ(g_ran, 1); /* at the end, as canceled */
}

static void
count_completions(unsigned completions)
{
	g_ran += completions;
}

/* A completion channel inside the set inside the application's. */
static void
test_channel_wakes(void)
{
	struct epoll_event event;
	int outer;

	g_ran = 0;
	embed(WAIT_EVENT);
	queue_like_start(count_completions);
	outer = outer_set();
	settle();
	ASSERT_EQ(epoll_wait(outer, &event, 1, 0), 0);
	queue_like_complete();
	ASSERT_EQ(epoll_wait(outer, &event, 1, 0), 1);
	/* It stays so until it is looked after. */
	ASSERT_EQ(epoll_wait(outer, &event, 1, 0), 1);
	ASSERT_EQ(xr_worker_progress(), 2); /* the completion and its event */
	ASSERT_EQ(g_ran, 1);
	ASSERT_EQ(epoll_wait(outer, &event, 1, 0), 0);
	close(outer);
	queue_like_end();
	unembed();
}

/* ---- time ---- */

#define LATER_US 500000u /* not over before there is a wait, on a busy machine either */

static uint64_t g_fired_us;

static void
note_time(struct xr_timer *timer)
{
	(void)timer;
	g_fired_us = xr_now_us();
}

static void
test_timeout_is_the_next_timer(void)
{
	struct xr_timer timer = XR_TIMER_INIT(note_time);
	uint64_t timeout_us, armed_us;

	embed(WAIT_EVENT);
	g_fired_us = 0;
	settle();
	CU_ASSERT(xr_worker_progress() >= 0);
	/* Between turns the clock runs: the timer counts from now, not from the last turn. */
	usleep(3000);
	armed_us = clock_now_us();
	CU_ASSERT(xr_now_us() >= armed_us);
	xr_timer_arm(&timer, LATER_US, 0);
	timeout_us = settle();
	CU_ASSERT(timeout_us <= LATER_US);
	usleep((useconds_t)timeout_us + 100);
	CU_ASSERT(!readable());
	ASSERT_EQ(xr_worker_progress(), 1);
	CU_ASSERT(g_fired_us >= armed_us + LATER_US);
	ASSERT_EQ(stat_read(STAT_WAKES_TIMER), 1);
	unembed();
}

static void
test_timeout_ends_at_the_cap(void)
{
	embed(WAIT_EVENT);
	g_wait_cap_ms = 2;
	CU_ASSERT(settle() <= 2000);
	usleep(3000);
	ASSERT_EQ(xr_worker_progress(), 0);
	ASSERT_EQ(stat_read(STAT_WAKES_CAP), 1);
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED), 0);
	unembed();
}

/* ---- modes ---- */

static void
test_poll_mode_is_always_busy(void)
{
	embed(WAIT_POLL);
	for (unsigned i = 0; i < 1000; i++) {
		ASSERT_EQ(xr_worker_progress(), 0);
		ASSERT_EQ(xr_worker_prepare_wait(&(uint64_t){0}), -EBUSY);
	}
	ASSERT_EQ(stat_read(STAT_SLEEPS), 0);
	unembed();
}

static void
test_adaptive_mode_spins_first(void)
{
	uint64_t began_us = clock_now_us();

	embed(WAIT_ADAPTIVE);
	settle();
	CU_ASSERT(clock_now_us() >= began_us + SPIN_US);
	CU_ASSERT(stat_read(STAT_TURNS) >= 1);
	unembed();
}

UNIT_SUITE("embed", {"every event at every step", test_nothing_lost},
	   {"every event at every step, with a cap", test_nothing_rescued}, {"who may call", test_refused},
	   {"prepared twice", test_prepared_twice}, {"a stop is told", test_stop_is_told},
	   {"a post makes it readable", test_post_makes_readable},
	   {"progress without a cause", test_progress_without_a_cause},
	   {"a completion channel wakes", test_channel_wakes},
	   {"the timeout is the next timer's", test_timeout_is_the_next_timer},
	   {"the timeout ends at the cap", test_timeout_ends_at_the_cap},
	   {"poll mode is always busy", test_poll_mode_is_always_busy},
	   {"adaptive mode spins first", test_adaptive_mode_spins_first});
