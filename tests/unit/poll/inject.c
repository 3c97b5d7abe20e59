/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/inject.h"

#include "core/clock.h"
#include "tests/unit/poll/fixture.h"
#include <errno.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <time.h>

#define LOST_AFTER_S 5	  /* then the watchdog ends the test as failed */
#define TIMER_US     2000 /* when the injected timer is due; the step is held until then */

static struct {
	const struct inject_world *world;
	enum inject_event event;
	unsigned step;
	unsigned nth; /* of the steps of that name, from 0 */
	unsigned seen;
	unsigned completions; /* polled */
	bool going_to_sleep;
	bool injected;
	bool lost;
	uint64_t timer_after_us, timer_due_us;
	int pipe[2];
	sem_t go, gone, over;
} g_case;

/* ---- the events, and what they lead to ---- */

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

void
inject_seen(void)
{
	g_case.completions++;
	reactors_stop();
}

static struct xr_msg g_msg = XR_MSG_INIT(message_ran);
static struct xr_fd g_pipe_end;
static struct xr_timer g_timer = XR_TIMER_INIT(timer_fired);

static void
inject(void)
{
	switch (g_case.event) {
	case INJECT_MESSAGE:
		ASSERT_EQ(xr_post(0, &g_msg), 0);
		break;
	case INJECT_FD:
		CU_ASSERT(write(g_case.pipe[1], "x", 1) == 1);
		break;
	case INJECT_TIMER:
		while (clock_now_us() <= g_case.timer_due_us)
			usleep(100);
		break;
	case INJECT_STOP:
		reactors_stop();
		break;
	default:
		g_case.world->complete(g_case.event);
	}
}

/* ---- threads beside the loop ---- */

static void *
injector(void *arg)
{
	(void)arg;
	sem_wait(&g_case.go);
	if (g_case.injected)
		inject();
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

/* ---- steps ---- */

static void
behind(unsigned step)
{
	if (step != g_case.step || g_case.seen++ != g_case.nth)
		return;
	g_case.injected = true;
	sem_post(&g_case.go);
	sem_wait(&g_case.gone);
}

void
inject_behind(unsigned step)
{
	if (g_case.going_to_sleep && !g_case.injected)
		behind(step);
}

static void
at_step(struct reactor *reactor, enum wait_step step, void *arg)
{
	(void)arg;
	if (g_case.injected)
		return;
	if (step == WAIT_BEGUN)
		g_case.going_to_sleep = true;
	if (step == WAIT_BEGUN && g_case.event == INJECT_TIMER && !xr_timer_armed(&g_timer)) {
		xr_timer_arm(&g_timer, g_case.timer_after_us, 0);
		g_case.timer_due_us = g_timer.due_us_;
	}
	/* What comes after the block is reached only when something has ended it. */
	if (step == WAIT_OFFLINE && g_case.step > WAIT_OFFLINE)
		mailbox_ring(&reactor->mailbox);
	behind(step);
	if (step == WAIT_DISARMED)
		g_case.going_to_sleep = false;
}

/* ---- one case ---- */

static void
case_up(bool adaptive)
{
	g_case.world->up(adaptive);
	reactor_current()->wait.hook = at_step;
	ASSERT_FATAL(pipe(g_case.pipe) == 0);
	g_pipe_end = (struct xr_fd)XR_FD_INIT(g_case.pipe[0], EPOLLIN, pipe_ready);
	ASSERT_FATAL(xr_fd_add(&g_pipe_end) == 0);
}

static void
case_down(void)
{
	xr_timer_cancel(&g_timer);
	xr_fd_del(&g_pipe_end);
	close(g_case.pipe[0]);
	close(g_case.pipe[1]);
	g_case.world->down();
}

static void
case_run(void)
{
	pthread_t threads[2];

	ASSERT_FATAL(pthread_create(&threads[0], NULL, injector, NULL) == 0);
	ASSERT_FATAL(pthread_create(&threads[1], NULL, watchdog, NULL) == 0);
	g_case.world->drive(reactor_current());
	sem_post(&g_case.over);
	sem_post(&g_case.go);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void
case_check(bool adaptive)
{
	static const char *const names[] = {"message", "fd", "timer", "stop", "receive", "send"};

	CU_ASSERT(!g_case.lost || !g_case.injected);
	if (g_case.lost && g_case.injected)
		printf("lost: %s after step %u, number %u, %s mode\n", names[g_case.event], g_case.step, g_case.nth,
		       adaptive ? "adaptive" : "event");
	ASSERT_EQ(counter_read(&g_stats[STAT_WAKES_RESCUED], NULL), 0);
	if (g_case.event >= INJECT_RECEIVE)
		ASSERT_EQ(g_case.completions, g_case.injected);
}

/* Runs one case; false when the step did not come before the timer was due. */
static bool
case_try(bool adaptive, int64_t cap_ms)
{
	sem_init(&g_case.go, 0, 0);
	sem_init(&g_case.gone, 0, 0);
	sem_init(&g_case.over, 0, 0);
	case_up(adaptive);
	g_wait_cap_ms = cap_ms;
	case_run();
	case_check(adaptive);
	case_down();
	return g_case.injected;
}

/* On a busy machine a timer may be due before the step is reached: then it is given more time. */
static void
one_case(const struct inject_world *world, bool adaptive, int64_t cap_ms, enum inject_event event, unsigned step,
	 unsigned nth)
{
	uint64_t timer_us = TIMER_US;
	bool injected = false;

	for (unsigned tries = 0; tries < 8 && !injected; tries++, timer_us *= 2) {
		memset(&g_case, 0, sizeof g_case);
		g_case.world = world;
		g_case.event = event;
		g_case.timer_after_us = timer_us;
		g_case.step = step;
		g_case.nth = nth;
		injected = case_try(adaptive, cap_ms);
	}
	if (!injected)
		printf("step %u, number %u, was not reached\n", step, nth);
	CU_ASSERT(injected);
}

void
inject_everywhere(const struct inject_world *world, bool adaptive, int64_t cap_ms)
{
	unsigned events = world->two_queues ? INJECT_EVENTS : INJECT_SEND;

	for (enum inject_event event = 0; event < events; event++)
		for (unsigned step = 0; step < INJECT_STEPS_MAX; step++)
			for (unsigned nth = 0; nth < world->times[step]; nth++)
				one_case(world, adaptive, cap_ms, event, step, nth);
}

/* ---- the source like a completion queue ---- */

static struct {
	struct source source;
	struct xr_fd channel;
	unsigned pending;
	bool notify;
	void (*found)(unsigned completions);
} g_queue;

void
queue_like_complete_quietly(void)
{
	__atomic_fetch_add(&g_queue.pending, 1, __ATOMIC_SEQ_CST);
}

void
queue_like_complete(void)
{
	const uint64_t one = 1;

	queue_like_complete_quietly();
	if (__atomic_exchange_n(&g_queue.notify, false, __ATOMIC_SEQ_CST))
		CU_ASSERT(write(g_queue.channel.fd, &one, sizeof one) == sizeof one);
}

static int
queue_poll(struct source *source, struct reactor *reactor)
{
	unsigned completions = __atomic_exchange_n(&g_queue.pending, 0, __ATOMIC_SEQ_CST);

	(void)source;
	(void)reactor;
	if (completions)
		g_queue.found(completions);
	return (int)completions;
}

static int
queue_arm(struct source *source, struct reactor *reactor)
{
	(void)source;
	(void)reactor;
	__atomic_store_n(&g_queue.notify, true, __ATOMIC_SEQ_CST);
	return 0;
}

static void
channel_ready(struct xr_fd *fd, uint32_t revents)
{
	uint64_t events;

	(void)revents;
	CU_ASSERT(read(fd->fd, &events, sizeof events) == sizeof events);
}

static const struct source_ops g_queue_ops = {.poll = queue_poll, .arm = queue_arm};

void
queue_like_start(void (*found)(unsigned completions))
{
	memset(&g_queue, 0, sizeof g_queue);
	g_queue.found = found;
	g_queue.source = (struct source){.name = "cq", .ops = &g_queue_ops, .stage = SOURCE_CQ};
	g_queue.channel = (struct xr_fd)XR_FD_INIT(eventfd(0, EFD_NONBLOCK), EPOLLIN, channel_ready);
	ASSERT_FATAL(g_queue.channel.fd >= 0);
	ASSERT_FATAL(xr_fd_add(&g_queue.channel) == 0);
	source_add(reactor_current(), &g_queue.source);
}

void
queue_like_end(void)
{
	source_del(reactor_current(), &g_queue.source);
	xr_fd_del(&g_queue.channel);
	close(g_queue.channel.fd);
}

/* ---- a world of poll/ alone ---- */

#define SPIN_US 200 /* adaptive mode */

static void
completions_seen(unsigned completions)
{
	ASSERT_EQ(completions, 1);
	inject_seen();
}

static void
world_up(bool adaptive)
{
	fixture_start(1);
	reactor_add_port(reactor_current(), "default", adaptive ? WAIT_ADAPTIVE : WAIT_EVENT, SPIN_US);
	queue_like_start(completions_seen);
}

static void
world_down(void)
{
	queue_like_end();
	fixture_end();
}

static void
world_complete(enum inject_event event)
{
	(void)event;
	queue_like_complete();
}

void
inject_into_reactor(void (*drive)(struct reactor *reactor), bool adaptive, int64_t cap_ms)
{
	const struct inject_world world = {
		.up = world_up,
		.down = world_down,
		.drive = drive,
		.complete = world_complete,
		/* mailbox, cq, sockets, pollers, timers; the sockets are not polled again, the kernel's wait does that.
		 */
		.times = {1, 1, [WAIT_ARMED_ONE] = 5, 1, [WAIT_POLLED_ONE] = 4, 1, 1, 1, 1, 1, 1, 1},
	};

	inject_everywhere(&world, adaptive, cap_ms);
}
