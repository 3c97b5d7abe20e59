/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <urcu/urcu-qsbr.h>

/* ---- before and after the loop ---- */

static void
test_main_thread_is_the_main_lcore(void)
{
	uint64_t before_us = xr_now_us(), now_us;

	CU_ASSERT(reactor_current() == NULL);
	fixture_start(2);
	CU_ASSERT(reactor_current() == reactor_of(lcore_main()));
	CU_ASSERT(reactor_lcore(reactor_current()) == lcore_main());
	CU_ASSERT(reactor_of(lcore_at(1)) != reactor_current());
	usleep(1000);
	now_us = xr_now_us();
	CU_ASSERT(now_us >= before_us + 1000); /* no turn holds the time still */
	fixture_end();
	CU_ASSERT(reactor_current() == NULL);
}

static void
test_stop_before_run(void)
{
	reactors_stop();
	CU_ASSERT(reactors_stopping());
	reactors_fini();
	fixture_start(1);
	CU_ASSERT(!reactors_stopping());
	reactors_stop();
	reactors_stop();
	reactor_run(reactor_current());
	ASSERT_EQ(stat_read(STAT_TURNS), 0);
	CU_ASSERT(reactor_current() != NULL);
	fixture_end();
}

static void
stop_in_handler(int number)
{
	int saved_errno = errno;

	(void)number;
	errno = 77;
	reactors_stop();
	if (errno != 77)
		abort();
	errno = saved_errno;
}

static void *
signal_later(void *arg)
{
	usleep(20000);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

static void
test_stop_in_a_signal_handler(void)
{
	struct sigaction action = {.sa_handler = stop_in_handler}, old;
	pthread_t self = pthread_self(), thread;

	fixture_start(1);
	ASSERT_FATAL(sigaction(SIGUSR1, &action, &old) == 0);
	ASSERT_FATAL(pthread_create(&thread, NULL, signal_later, &self) == 0);
	reactor_run(reactor_current());
	pthread_join(thread, NULL);
	ASSERT_EQ(stat_read(STAT_SLEEPS), 1);
	sigaction(SIGUSR1, &old, NULL);
	fixture_end();
}

static void
test_every_loop_stops(void)
{
	for (unsigned round = 0; round < 30; round++) {
		fixture_start(3);
		reactor_add_port(reactor_of(lcore_at(1)), "a", WAIT_ADAPTIVE, 30);
		ASSERT_FATAL(lcore_launch(fixture_worker) == 0);
		usleep(round * 50);
		reactors_stop();
		reactor_run(reactor_current());
		lcore_join();
		fixture_end();
	}
}

/* ---- the end of a loop ---- */

static char g_order[32];
static struct xr_msg g_late_msg;

static void
late_ran(struct xr_msg *msg, int status)
{
	ASSERT_EQ(status, -ECANCELED);
	ASSERT_EQ(xr_post(0, msg), -ESHUTDOWN);
	strcat(g_order, "m");
}

static void
first_hook(struct reactor *reactor, void *arg)
{
	CU_ASSERT(reactor == reactor_current());
	CU_ASSERT(arg == g_order);
	strcat(g_order, "1");
	ASSERT_EQ(xr_post(0, &g_late_msg), 0);
}

static void
second_hook(struct reactor *reactor, void *arg)
{
	(void)reactor;
	(void)arg;
	strcat(g_order, "2");
}

static void
test_exit_hooks(void)
{
	fixture_start(1);
	g_order[0] = '\0';
	g_late_msg = (struct xr_msg)XR_MSG_INIT(late_ran);
	reactor_on_exit(reactor_current(), first_hook, g_order);
	reactor_on_exit(reactor_current(), second_hook, NULL);
	reactors_stop();
	reactor_run(reactor_current());
	ASSERT_STR(g_order, "21m");
	fixture_end();
	ASSERT_STR(g_order, "21m");
}

/* ---- what a turn counts ---- */

static unsigned g_turns_left;
static uint64_t g_turn_us;
static unsigned g_times_changed, g_went_back;

static int
count_down(struct xr_poller *poller)
{
	uint64_t now_us = xr_now_us();

	(void)poller;
	usleep(200);
	g_times_changed += xr_now_us() != now_us;
	g_went_back += now_us < g_turn_us;
	g_turn_us = now_us;
	if (g_turns_left == 0) {
		reactors_stop();
		return 0;
	}
	g_turns_left--;
	return 1;
}

static void
test_turns_are_booked(void)
{
	struct xr_poller poller = XR_POLLER_INIT(count_down, "count down", false);

	fixture_start(1);
	g_turns_left = 10;
	g_turn_us = 0;
	g_times_changed = g_went_back = 0;
	ASSERT_EQ(xr_poller_add(&poller), 0);
	reactor_run(reactor_current());
	ASSERT_EQ(g_times_changed + g_went_back, 0);
	ASSERT_EQ(stat_read(STAT_TURNS), 11);
	ASSERT_EQ(stat_read(STAT_BUSY_TURNS), 10);
	CU_ASSERT(stat_read(STAT_BUSY_US) >= 10 * 200);
	CU_ASSERT(stat_read(STAT_IDLE_US) >= 200);
	ASSERT_EQ(stat_read(STAT_SLEEP_US), 0);
	xr_poller_del(&poller);
	fixture_end();
}

static void
work_then_stop(struct xr_timer *timer)
{
	usleep(2000);
	if (++g_turns_left == 3)
		reactors_stop();
	else
		xr_timer_arm(timer, 10000, 0);
}

/* Though a loop that is driven by events looks once more before each sleep, and finds nothing. */
static void
test_work_before_a_sleep_is_booked_as_work(void)
{
	struct xr_timer timer = XR_TIMER_INIT(work_then_stop);

	fixture_start(1);
	g_turns_left = 0;
	xr_timer_arm(&timer, 0, 0);
	reactor_run(reactor_current());
	CU_ASSERT(stat_read(STAT_SLEEPS) >= 2);
	CU_ASSERT(stat_read(STAT_BUSY_US) >= 3 * 2000);
	fixture_end();
}

static void
test_time_never_goes_back(void)
{
	struct reactor *reactor;
	uint64_t future_us;

	fixture_start(1);
	reactor = reactor_current();
	future_us = clock_now_us() + 3600000000u;
	reactor->now_us = future_us;
	reactor_read_clock(reactor);
	CU_ASSERT(reactor->now_us == future_us);
	ASSERT_EQ(stat_read(STAT_IDLE_US), 0);
	fixture_end();
}

/* ---- RCU: a reader that sleeps or parks must not hold up a grace period ---- */

static void *
synchronize(void *arg)
{
	urcu_qsbr_register_thread();
	for (unsigned i = 0; i < 20; i++)
		urcu_qsbr_synchronize_rcu();
	urcu_qsbr_unregister_thread();
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
	reactors_stop();
	return NULL;
}

static void
grace_periods_pass(enum wait_mode mode)
{
	pthread_t thread;
	bool passed = false;

	fixture_start(1);
	reactor_add_port(reactor_current(), "default", mode, 50);
	ASSERT_FATAL(pthread_create(&thread, NULL, synchronize, &passed) == 0);
	reactor_run(reactor_current());
	CU_ASSERT(__atomic_load_n(&passed, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	fixture_end();
}

static void
test_grace_periods_pass(void)
{
	grace_periods_pass(WAIT_EVENT);
	grace_periods_pass(WAIT_ADAPTIVE);
	grace_periods_pass(WAIT_POLL);
}

/* ---- what the system lacks ---- */

static unsigned
open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

/* Takes every descriptor below the limit but `room`; how many were taken. */
static unsigned
use_up_descriptors(int taken[], unsigned max, unsigned room)
{
	unsigned count = 0;
	int fd;

	while (count < max && (fd = dup(0)) >= 0)
		taken[count++] = fd;
	for (; room; room--)
		close(taken[--count]);
	return count;
}

static void
test_no_descriptors_left(void)
{
	struct rlimit old, low;
	int taken[64];

	fixture_start(2);
	reactors_drain();
	reactors_fini();
	ASSERT_FATAL(getrlimit(RLIMIT_NOFILE, &old) == 0);
	low = (struct rlimit){64, old.rlim_max};
	ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &low) == 0);
	/* Each reactor takes two: the bell and the epoll set. */
	for (unsigned room = 0; room <= 4; room++) {
		unsigned count = use_up_descriptors(taken, 64, room);

		ASSERT_EQ(reactors_init(), room < 4 ? -EMFILE : 0);
		while (count)
			close(taken[--count]);
		if (room < 4)
			CU_ASSERT(reactor_current() == NULL);
	}
	setrlimit(RLIMIT_NOFILE, &old);
	fixture_end();
}

/* A failed start leaves nothing open either. */
static void
test_descriptors_are_given_back(void)
{
	unsigned before = open_descriptors();

	for (unsigned round = 0; round < 3; round++) {
		fixture_start(2);
		ASSERT_EQ(open_descriptors(), before + 4);
		fixture_end();
	}
	test_no_descriptors_left();
	ASSERT_EQ(open_descriptors(), before);
}

static void
test_wait_cap_option(void)
{
	const char *why = NULL;

	fixture_start(1);
	ASSERT_EQ(g_wait_cap_ms, 0);
	ASSERT_EQ(xr_option_set("wait-cap-ms", "250", &why), 0);
	ASSERT_EQ(g_wait_cap_ms, 250);
	ASSERT_EQ(xr_option_set("wait_cap_ms", "-1", &why), -EINVAL);
	ASSERT_EQ(xr_option_set("wait_cap_ms", "3600001", &why), -EINVAL);
	fixture_end();
}

UNIT_SUITE("reactor", {"the main thread is the main lcore", test_main_thread_is_the_main_lcore},
	   {"stop before run", test_stop_before_run}, {"stop in a signal handler", test_stop_in_a_signal_handler},
	   {"every loop stops", test_every_loop_stops}, {"exit hooks", test_exit_hooks},
	   {"turns are booked", test_turns_are_booked},
	   {"work before a sleep is work", test_work_before_a_sleep_is_booked_as_work},
	   {"time never goes back", test_time_never_goes_back}, {"grace periods pass", test_grace_periods_pass},
	   {"no descriptors left", test_no_descriptors_left},
	   {"descriptors are given back", test_descriptors_are_given_back}, {"wait_cap_ms", test_wait_cap_option});
