/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/cq_fixture.h"
#include "tests/unit/poll/inject.h"
#include <unistd.h>

/*
 * The whole library on a card: a real lcore with real completion queues, sockets and timers goes to sleep, and after
 * each step of its way, also those inside of the verbs, something happens.
 */

enum verbs_step {
	POLL_EMPTY = WAIT_STEPS, /* a queue was found empty, and the poll has not returned yet */
	BEFORE_NOTIFY,
	AFTER_NOTIFY,
};

static struct stub g_stub;

static void
seen(struct stub *stub, const struct ibv_wc *wc)
{
	(void)stub;
	(void)wc;
	inject_seen();
}

static void
poll_empty(struct ibv_cq *cq, void *arg)
{
	(void)cq;
	(void)arg;
	inject_behind(POLL_EMPTY);
}

static void
before_notify(struct ibv_cq *cq, int solicited_only, void *arg)
{
	(void)cq;
	(void)solicited_only;
	(void)arg;
	inject_behind(BEFORE_NOTIFY);
}

static void
after_notify(struct ibv_cq *cq, int solicited_only, void *arg)
{
	(void)cq;
	(void)solicited_only;
	(void)arg;
	inject_behind(AFTER_NOTIFY);
}

static void
world_up(bool adaptive)
{
	const struct fake_hooks hooks = {
		.poll_empty = poll_empty, .before_notify = before_notify, .after_notify = after_notify};
	const char *why = "";

	rdma_up("--port", adaptive ? "default,mode=adaptive,spin_us=50" : "default,mode=event", NULL);
	g_cq = cq_get(device_at(0), &why);
	ASSERT_FATAL(g_cq != NULL);
	g_stub = (struct stub){.on_complete = seen};
	ASSERT_FATAL(cq_admit(g_cq, stub_endpoint(&g_stub), DEPTH, DEPTH, &g_stub.handle, &why) == 0);
	fake_hooks(&hooks);
}

static void
leave(struct reactor *reactor, void *arg)
{
	(void)reactor;
	(void)arg;
	fake_hooks(NULL);
	dismiss(&g_stub);
}

static void
world_down(void)
{
	rdma_down();
}

static void
run(struct reactor *reactor)
{
	reactor_on_exit(reactor, leave, NULL);
	ASSERT_EQ(xr_run(), 0);
}

static void
embed(struct reactor *reactor)
{
	struct epoll_event event = {.events = EPOLLIN};
	int outer = epoll_create1(0);
	uint64_t timeout_us;

	reactor_on_exit(reactor, leave, NULL);
	ASSERT_EQ(xr_worker_begin(), 0);
	ASSERT_FATAL(outer >= 0 && epoll_ctl(outer, EPOLL_CTL_ADD, xr_worker_fd(), &event) == 0);
	while (xr_worker_progress() != -ESHUTDOWN)
		if (xr_worker_prepare_wait(&timeout_us) == 0)
			epoll_wait(outer, &event, 1, fd_timeout_ms(timeout_us));
	close(outer);
	ASSERT_EQ(xr_worker_end(), 0);
}

static void
complete(enum inject_event event)
{
	if (event == INJECT_SEND)
		sent(&g_stub, 1);
	else
		receive(&g_stub, 1, true);
}

/* mailbox, completion queues, sockets, pollers, timers, deliver, flush; the sockets are not polled again. */
#define TIMES                                                                           \
	{                                                                               \
		1, 1, [WAIT_ARMED_ONE] = 7, 1, [WAIT_POLLED_ONE] = 6, 1, 1, 1, 1, 1, 1, \
		      1, [POLL_EMPTY] = 2, [BEFORE_NOTIFY] = 2, [AFTER_NOTIFY] = 2,     \
	}

static const struct inject_world g_run = {
	.up = world_up, .down = world_down, .drive = run, .complete = complete, .times = TIMES, .two_queues = true};
static const struct inject_world g_embed = {
	.up = world_up, .down = world_down, .drive = embed, .complete = complete, .times = TIMES, .two_queues = true};

static void
test_event_mode(void)
{
	inject_everywhere(&g_run, false, 0);
}

static void
test_adaptive_mode(void)
{
	inject_everywhere(&g_run, true, 0);
}

static void
test_embedded(void)
{
	inject_everywhere(&g_embed, false, 0);
}

static void
test_with_a_cap(void)
{
	inject_everywhere(&g_run, false, 10);
}

UNIT_SUITE("cq_inject", {"every event at every step, event mode", test_event_mode},
	   {"every event at every step, adaptive mode", test_adaptive_mode},
	   {"every event at every step, embedded", test_embedded},
	   {"every event at every step, with a cap", test_with_a_cap});
