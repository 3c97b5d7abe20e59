/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include "tests/unit/poll/inject.h"
#include <errno.h>

#define SPIN_US 200 /* adaptive mode */

/* ---- every event at every step ---- */

static void
test_nothing_lost_event(void)
{
	inject_into_reactor(reactor_run, false, 0);
}

static void
test_nothing_lost_adaptive(void)
{
	inject_into_reactor(reactor_run, true, 0);
}

static void
test_nothing_rescued(void)
{
	inject_into_reactor(reactor_run, false, 10);
	inject_into_reactor(reactor_run, true, 10);
}

/* ---- the counters tell a lost wake-up, and an empty one ---- */

static unsigned g_handled;

static void
handle(unsigned completions)
{
	g_handled += completions;
}

/* A completion behind the sleeper's back: no event is raised for it. */
static void
lose_completion(struct reactor *reactor, enum wait_step step, void *arg)
{
	(void)reactor;
	(void)arg;
	if (step == WAIT_OFFLINE)
		queue_like_complete_quietly();
	if (step == WAIT_DISARMED && g_handled)
		reactors_stop();
}

static void
test_cap_rescues(void)
{
	fixture_start(1);
	queue_like_start(handle);
	g_handled = 0;
	reactor_current()->wait.hook = lose_completion;
	g_wait_cap_ms = 5;
	reactor_run(reactor_current());
	ASSERT_EQ(g_handled, 1);
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED), 1);
	ASSERT_EQ(stat_read(STAT_WAKES_CAP), 1);
	queue_like_end();
	fixture_end();
}

static void
message_ran(struct xr_msg *msg, int status)
{
	(void)msg;
	ASSERT_EQ(status, 0);
	reactors_stop();
}

static struct xr_msg g_msg = XR_MSG_INIT(message_ran);

/* A message that its producer did not ring for: as if it had looked at sleeping before it pushed. */
static void
lose_message(struct reactor *reactor, enum wait_step step, void *arg)
{
	struct mailbox *mailbox = &reactor->mailbox;

	(void)arg;
	if (step == WAIT_OFFLINE && !g_msg.queued_) {
		mailbox_set_sleeping(mailbox, false);
		ASSERT_EQ(xr_post(0, &g_msg), 0);
		mailbox_set_sleeping(mailbox, true);
	}
}

static void
test_cap_rescues_message(void)
{
	fixture_start(1);
	reactor_current()->wait.hook = lose_message;
	g_wait_cap_ms = 5;
	reactor_run(reactor_current());
	ASSERT_EQ(stat_read(STAT_MESSAGES), 1);
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED), 1);
	fixture_end();
}

static void
ring_once(struct reactor *reactor, enum wait_step step, void *arg)
{
	bool *rung = arg;

	if (step == WAIT_OFFLINE && !*rung)
		mailbox_ring(&reactor->mailbox);
	*rung |= step == WAIT_OFFLINE;
}

static void
test_empty_wake_is_counted(void)
{
	bool rung = false;

	fixture_start(1);
	reactor_current()->wait.hook = ring_once;
	reactor_current()->wait.hook_arg = &rung;
	fixture_run_for(50);
	ASSERT_EQ(stat_read(STAT_WAKES_FD), 2); /* this one and the stop's */
	ASSERT_EQ(stat_read(STAT_WAKES_EMPTY), 1);
	ASSERT_EQ(stat_read(STAT_SLEEPS), 2);
	fixture_end();
}

/* ---- idle ---- */

static void
idle(enum wait_mode mode, unsigned ms)
{
	fixture_start(1);
	reactor_add_port(reactor_current(), "default", mode, SPIN_US);
	fixture_run_for(ms);
}

static void
check_slept_through(void)
{
	ASSERT_EQ(stat_read(STAT_SLEEPS), 1);
	ASSERT_EQ(stat_read(STAT_WAKES_FD), 1); /* the stop */
	ASSERT_EQ(stat_read(STAT_WAKES_TIMER) + stat_read(STAT_WAKES_CAP) + stat_read(STAT_WAKES_EMPTY), 0);
	ASSERT_EQ(stat_read(STAT_BUSY_TURNS), 0);
	CU_ASSERT(stat_read(STAT_SLEEP_US) > 0);
}

static void
test_idle_event(void)
{
	idle(WAIT_EVENT, 300);
	check_slept_through();
	CU_ASSERT(stat_read(STAT_TURNS) <= 2);
	fixture_end();
}

static void
test_idle_adaptive(void)
{
	idle(WAIT_ADAPTIVE, 300);
	check_slept_through();
	CU_ASSERT(stat_read(STAT_TURNS) >= 2);
	CU_ASSERT(stat_read(STAT_IDLE_US) >= SPIN_US);
	fixture_end();
}

static void
test_idle_poll(void)
{
	idle(WAIT_POLL, 100);
	ASSERT_EQ(stat_read(STAT_SLEEPS), 0);
	ASSERT_EQ(stat_read(STAT_SLEEP_US), 0);
	ASSERT_EQ(stat_read(STAT_BUSY_TURNS), 0);
	CU_ASSERT(stat_read(STAT_TURNS) > 100);
	fixture_end();
}

static void
test_cap_ends_sleeps(void)
{
	fixture_start(1);
	g_wait_cap_ms = 5;
	fixture_run_for(100);
	CU_ASSERT(stat_read(STAT_WAKES_CAP) >= 1);
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED) + stat_read(STAT_WAKES_TIMER), 0);
	fixture_end();
}

static unsigned g_ticks;

static void
tick(struct xr_timer *timer)
{
	(void)timer;
	if (++g_ticks == 5)
		reactors_stop();
}

static void
test_timer_wakes(void)
{
	struct xr_timer timer = XR_TIMER_INIT(tick);

	fixture_start(1);
	g_ticks = 0;
	xr_timer_arm(&timer, 5000, 5000);
	reactor_run(reactor_current());
	ASSERT_EQ(g_ticks, 5);
	CU_ASSERT(stat_read(STAT_WAKES_TIMER) >= 1);
	ASSERT_EQ(stat_read(STAT_WAKES_FD) + stat_read(STAT_WAKES_CAP), 0);
	xr_timer_cancel(&timer);
	fixture_end();
}

/* ---- sources that refuse ---- */

static int g_refusal;
static unsigned g_arms, g_disarms;

static int
refusing_poll(struct source *source, struct reactor *reactor)
{
	(void)source;
	(void)reactor;
	return 0;
}

static int
refusing_arm(struct source *source, struct reactor *reactor)
{
	(void)source;
	(void)reactor;
	g_arms++;
	return g_refusal;
}

static void
refusing_disarm(struct source *source, struct reactor *reactor)
{
	(void)source;
	(void)reactor;
	g_disarms++;
}

static const struct source_ops g_refusing_ops = {.poll = refusing_poll, .arm = refusing_arm, .disarm = refusing_disarm};

static void
run_with_refusal(int refusal)
{
	struct source source = {.name = "refusing", .ops = &g_refusing_ops, .stage = SOURCE_CQ};

	fixture_start(1);
	xr_log_set_level(XR_LOG_ERROR);
	g_refusal = refusal;
	g_arms = g_disarms = 0;
	source_add(reactor_current(), &source);
	fixture_run_for(30);
	source_del(reactor_current(), &source);
}

static void
test_refusal_keeps_awake(void)
{
	const int refusals[] = {-EBUSY, -EIO};

	for (unsigned i = 0; i < 2; i++) {
		run_with_refusal(refusals[i]);
		CU_ASSERT(g_arms > 1);
		ASSERT_EQ(g_disarms, 0);
		ASSERT_EQ(stat_read(STAT_SLEEPS), 0);
		fixture_end();
	}
}

static void
test_arms_are_taken_back(void)
{
	run_with_refusal(0);
	ASSERT_EQ(g_arms, 1);
	ASSERT_EQ(g_disarms, 1);
	ASSERT_EQ(stat_read(STAT_SLEEPS), 1);
	fixture_end();
}

UNIT_SUITE("wait", {"every event at every step, event mode", test_nothing_lost_event},
	   {"every event at every step, adaptive mode", test_nothing_lost_adaptive},
	   {"every event at every step, with a cap", test_nothing_rescued},
	   {"the cap rescues a completion", test_cap_rescues}, {"the cap rescues a message", test_cap_rescues_message},
	   {"an empty wake is counted", test_empty_wake_is_counted},
	   {"idle in event mode: one sleep, no wake", test_idle_event},
	   {"idle in adaptive mode: spins, one sleep, no wake", test_idle_adaptive},
	   {"poll mode never sleeps", test_idle_poll}, {"the cap ends sleeps", test_cap_ends_sleeps},
	   {"a timer wakes", test_timer_wakes}, {"a source that cannot be armed keeps awake", test_refusal_keeps_awake},
	   {"arms are taken back", test_arms_are_taken_back});
