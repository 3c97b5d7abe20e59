/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <time.h>

/*
 * The heart of these tests: one event is injected after one step of the first sleep, by another thread while the loop
 * stands still, for every kind of event and every step. None may be lost.
 */

#define SPIN_US	     200  /* adaptive mode */
#define LOST_AFTER_S 5	  /* then the watchdog ends the test as failed */
#define TIMER_US     2000 /* when the injected timer is due; the step is held until then */

/* ---- a source like a completion queue: an event only for what completes while it is armed, one event per arming ----
 */

struct queue_like {
	struct source source;
	struct xr_fd channel;
	unsigned pending;
	bool notify;
	unsigned handled;
	bool goes_on; /* polling it does not end the loop */
};

static struct queue_like g_cq;

static void
cq_complete(void)
{
	const uint64_t one = 1;

	__atomic_fetch_add(&g_cq.pending, 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&g_cq.notify, false, __ATOMIC_SEQ_CST))
		CU_ASSERT(write(g_cq.channel.fd, &one, sizeof one) == sizeof one);
}

static int
cq_poll(struct source *source, struct reactor *reactor)
{
	unsigned found = __atomic_exchange_n(&g_cq.pending, 0, __ATOMIC_SEQ_CST);

	(void)source;
	(void)reactor;
	g_cq.handled += found;
	if (found && !g_cq.goes_on)
		reactors_stop();
	return (int)found;
}

static int
cq_arm(struct source *source, struct reactor *reactor)
{
	(void)source;
	(void)reactor;
	__atomic_store_n(&g_cq.notify, true, __ATOMIC_SEQ_CST);
	return 0;
}

static void
cq_channel_ready(struct xr_fd *fd, uint32_t revents)
{
	uint64_t events;

	(void)revents;
	CU_ASSERT(read(fd->fd, &events, sizeof events) == sizeof events);
}

static const struct source_ops g_cq_ops = {.poll = cq_poll, .arm = cq_arm};

static void
cq_start(void)
{
	memset(&g_cq, 0, sizeof g_cq);
	g_cq.source = (struct source){.name = "cq", .ops = &g_cq_ops, .stage = SOURCE_CQ};
	g_cq.channel = (struct xr_fd)XR_FD_INIT(eventfd(0, EFD_NONBLOCK), EPOLLIN, cq_channel_ready);
	ASSERT_FATAL(g_cq.channel.fd >= 0);
	ASSERT_FATAL(xr_fd_add(&g_cq.channel) == 0);
	source_add(reactor_current(), &g_cq.source);
}

static void
cq_end(void)
{
	source_del(reactor_current(), &g_cq.source);
	xr_fd_del(&g_cq.channel);
	close(g_cq.channel.fd);
}

/* ---- the events ---- */

enum event {
	EVENT_MESSAGE,
	EVENT_COMPLETION,
	EVENT_FD,
	EVENT_TIMER,
	EVENT_STOP,
	EVENTS,
};

static const char *const g_event_names[] = {"message", "completion", "fd", "timer", "stop"};

static struct {
	enum event event;
	enum wait_step step;
	unsigned nth; /* of the steps of that name, from 0 */
	unsigned seen;
	bool injected;
	bool lost;
	uint64_t timer_after_us, timer_due_us;
	int pipe[2];
	sem_t go, gone, over;
} g_case;

static void
message_ran(struct xr_msg *msg, int status)
{
	(void)msg;
	ASSERT_EQ(status, 0);
	reactors_stop();
}

static void
pipe_ready(struct xr_fd *fd, uint32_t revents)
{
	char byte;

	CU_ASSERT(revents & EPOLLIN);
	CU_ASSERT(read(fd->fd, &byte, 1) == 1);
	reactors_stop();
}

static void
timer_fired(struct xr_timer *timer)
{
	(void)timer;
	reactors_stop();
}

static struct xr_msg g_msg = XR_MSG_INIT(message_ran);
static struct xr_fd g_pipe_end;
static struct xr_timer g_timer = XR_TIMER_INIT(timer_fired);

static void
inject(enum event event)
{
	switch (event) {
	case EVENT_MESSAGE:
		ASSERT_EQ(xr_post(0, &g_msg), 0);
		break;
	case EVENT_COMPLETION:
		cq_complete();
		break;
	case EVENT_FD:
		CU_ASSERT(write(g_case.pipe[1], "x", 1) == 1);
		break;
	case EVENT_TIMER:
		while (clock_now_us() <= g_case.timer_due_us)
			usleep(100);
		break;
	default:
		reactors_stop();
	}
}

static void *
injector(void *arg)
{
	(void)arg;
	sem_wait(&g_case.go);
	if (g_case.injected)
		inject(g_case.event);
	sem_post(&g_case.gone);
	return NULL;
}

static void *
watchdog(void *arg)
{
	struct timespec until;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOST_AFTER_S;
	while (sem_timedwait(&g_case.over, &until) != 0) {
		if (errno == ETIMEDOUT) {
			g_case.lost = true;
			reactors_stop();
			break;
		}
	}
	return NULL;
}

static void
at_step(struct reactor *reactor, enum wait_step step, void *arg)
{
	(void)arg;
	if (g_case.injected)
		return;
	if (step == WAIT_BEGUN && g_case.event == EVENT_TIMER && !xr_timer_armed(&g_timer)) {
		xr_timer_arm(&g_timer, g_case.timer_after_us, 0);
		g_case.timer_due_us = g_timer.due_us_;
	}
	/* What comes after the block is reached only when something has ended it. */
	if (step == WAIT_OFFLINE && g_case.step > WAIT_OFFLINE)
		mailbox_ring(&reactor->mailbox);
	if (step != g_case.step || g_case.seen++ != g_case.nth)
		return;
	g_case.injected = true;
	sem_post(&g_case.go);
	sem_wait(&g_case.gone);
}

static void
case_setup(enum wait_mode mode)
{
	struct reactor *reactor;

	fixture_start(1);
	reactor = reactor_current();
	reactor_add_port(reactor, "default", mode, SPIN_US);
	reactor->wait.hook = at_step;
	cq_start();
	ASSERT_FATAL(pipe(g_case.pipe) == 0);
	g_pipe_end = (struct xr_fd)XR_FD_INIT(g_case.pipe[0], EPOLLIN, pipe_ready);
	ASSERT_FATAL(xr_fd_add(&g_pipe_end) == 0);
}

static void
case_teardown(void)
{
	xr_timer_cancel(&g_timer);
	xr_fd_del(&g_pipe_end);
	close(g_case.pipe[0]);
	close(g_case.pipe[1]);
	cq_end();
	fixture_end();
}

static void
case_run(void)
{
	pthread_t threads[2];

	ASSERT_FATAL(pthread_create(&threads[0], NULL, injector, NULL) == 0);
	ASSERT_FATAL(pthread_create(&threads[1], NULL, watchdog, NULL) == 0);
	reactor_run(reactor_current());
	sem_post(&g_case.over);
	sem_post(&g_case.go);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

/* Runs one case; false when the step did not come before the timer was due. */
static bool
try_case(enum wait_mode mode, int64_t cap_ms, enum event event, uint64_t timer_us, enum wait_step step, unsigned nth)
{
	memset(&g_case, 0, sizeof g_case);
	g_case.event = event;
	g_case.timer_after_us = timer_us;
	g_case.step = step;
	g_case.nth = nth;
	sem_init(&g_case.go, 0, 0);
	sem_init(&g_case.gone, 0, 0);
	sem_init(&g_case.over, 0, 0);
	case_setup(mode);
	g_wait_cap_ms = cap_ms;
	case_run();
	CU_ASSERT(!g_case.lost || !g_case.injected);
	if (g_case.lost && g_case.injected)
		printf("lost: %s after step %d, number %u, %s mode\n", g_event_names[event], (int)step, nth,
		       wait_mode_name(mode));
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED), 0);
	if (event == EVENT_COMPLETION)
		ASSERT_EQ(g_cq.handled, 1);
	case_teardown();
	return g_case.injected;
}

/* On a busy machine a timer may be due before the step is reached: then it is given more time. */
static void
one_case(enum wait_mode mode, int64_t cap_ms, enum event event, enum wait_step step, unsigned nth)
{
	uint64_t timer_us = TIMER_US;
	bool injected = false;

	for (unsigned tries = 0; tries < 8 && !injected; tries++, timer_us *= 2)
		injected = try_case(mode, cap_ms, event, timer_us, step, nth);
	CU_ASSERT(injected);
}

static unsigned
sources_of(enum wait_step step)
{
	/* mailbox, cq, sockets, pollers, timers; the sockets are not polled again, the kernel's wait does that. */
	return step == WAIT_ARMED_ONE ? 5 : step == WAIT_POLLED_ONE ? 4 : 1;
}

static void
every_case(enum wait_mode mode, int64_t cap_ms)
{
	for (enum event event = 0; event < EVENTS; event++) {
		for (enum wait_step step = 0; step < WAIT_STEPS; step++) {
			for (unsigned nth = 0; nth < sources_of(step); nth++)
				one_case(mode, cap_ms, event, step, nth);
		}
	}
}

static void
test_nothing_lost_event(void)
{
	every_case(WAIT_EVENT, 0);
}

static void
test_nothing_lost_adaptive(void)
{
	every_case(WAIT_ADAPTIVE, 0);
}

static void
test_nothing_rescued(void)
{
	every_case(WAIT_EVENT, 10);
	every_case(WAIT_ADAPTIVE, 10);
}

/* ---- the counters tell a lost wake-up, and an empty one ---- */

/* A completion behind the sleeper's back: no event is raised for it. */
static void
lose_completion(struct reactor *reactor, enum wait_step step, void *arg)
{
	(void)reactor;
	(void)arg;
	if (step == WAIT_OFFLINE)
		g_cq.pending = 1;
	if (step == WAIT_DISARMED && g_cq.handled)
		reactors_stop();
}

static void
test_cap_rescues(void)
{
	fixture_start(1);
	cq_start();
	g_cq.goes_on = true;
	reactor_current()->wait.hook = lose_completion;
	g_wait_cap_ms = 5;
	reactor_run(reactor_current());
	ASSERT_EQ(g_cq.handled, 1);
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED), 1);
	ASSERT_EQ(stat_read(STAT_WAKES_CAP), 1);
	cq_end();
	fixture_end();
}

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
