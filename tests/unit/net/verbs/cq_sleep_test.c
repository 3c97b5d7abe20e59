/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/cq_fixture.h"
#include <errno.h>

/* How completion queues take part in the sleep protocol of poll/wait.c. */

/* ---- going to sleep ---- */

struct armed {
	int recv, send; /* solicited_only of the last arming; -1: not armed */
};

static void
note_arming(struct ibv_cq *cq, int solicited_only, void *arg)
{
	struct armed *armed = arg;

	*(cq == cq_recv(g_cq) ? &armed->recv : &armed->send) = solicited_only;
}

static bool
event_waits(void)
{
	struct reactor *reactor = reactor_current();
	int ready = fd_source_wait(&reactor->fds, 0);

	reactor_poll(reactor, SOURCES_ALL);
	return ready > 0;
}

static void
test_what_is_armed(void)
{
	struct armed armed = {-1, -1};
	const struct fake_hooks hooks = {.after_notify = note_arming, .arg = &armed};
	struct stub stub;

	up(&stub, 1);
	fake_hooks(&hooks);
	turn();
	ASSERT_EQ(card().notifies, 0);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	ASSERT_EQ(armed.recv, 1);
	ASSERT_EQ(armed.send, 0);
	CU_ASSERT_FALSE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	down(&stub, 1);
}

/* The queues wake for what the peer wants us to wake for, and for each send that asked for a completion. */
static void
test_what_wakes(void)
{
	struct stub stub;

	up(&stub, 1);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	receive(&stub, 1, false);
	CU_ASSERT_FALSE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	receive(&stub, 2, true);
	CU_ASSERT_TRUE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	sent(&stub, 1);
	CU_ASSERT_TRUE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	ASSERT_EQ(stub.completions, 3);
	ASSERT_EQ(counted(CQ_EVENTS), 2);
	down(&stub, 1);
}

struct late {
	struct stub *stub;
	bool send, solicited;
	unsigned times;
};

static void
complete_late(struct ibv_cq *cq, int solicited_only, void *arg)
{
	struct late *late = arg;

	(void)solicited_only;
	if (cq != (late->send ? cq_send(g_cq) : cq_recv(g_cq)) || late->times == 0)
		return;
	late->times--;
	if (late->send)
		sent(late->stub, 1);
	else
		receive(late->stub, 1, late->solicited);
}

/* A completion comes after the last poll and before, or after, the arming of its queue: it is found by the next poll.
 */
static void
comes_late(bool send, bool solicited, bool after)
{
	struct stub stub;
	struct late late = {&stub, send, solicited, 1};
	const struct fake_hooks hooks = {.before_notify = after ? NULL : complete_late,
					 .after_notify = after ? complete_late : NULL,
					 .arg = &late};

	up(&stub, 1);
	turn();
	fake_hooks(&hooks);
	ASSERT_EQ(wait_prepare(reactor_current()), -EBUSY);
	ASSERT_EQ(stub.completions, 1);
	ASSERT_EQ(stub.batch_ends, 1);
	/* And the event that it may have caused does not end the next sleep. */
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	CU_ASSERT_FALSE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	ASSERT_EQ(stub.completions, 1);
	down(&stub, 1);
}

static void
test_between_poll_and_arm(void)
{
	for (int i = 0; i < 8; i++)
		comes_late(i & 1, i & 2, i & 4);
}

/* Armed still since the last sleep: what comes while the loop is awake raises an event that nobody waits for. */
static void
test_event_while_awake(void)
{
	struct stub stub;

	up(&stub, 1);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	wait_finish(reactor_current(), WAKE_FD);
	receive(&stub, 1, true);
	sent(&stub, 1);
	reactor_poll(reactor_current(), SOURCES_BEFORE_WAIT);
	ASSERT_EQ(stub.completions, 2);
	ASSERT_EQ(card().events, 2);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	ASSERT_EQ(card().events_got, 2);
	CU_ASSERT_FALSE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	down(&stub, 1);
}

static void
complete_when_empty(struct ibv_cq *cq, void *arg)
{
	struct late *late = arg;

	if (cq == cq_recv(g_cq) && late->times > 0 && --late->times == 0)
		receive(late->stub, 1, late->solicited);
}

/* Behind the last look at the queue the event wakes. */
static void
test_after_the_last_poll(void)
{
	struct stub stub;
	struct late late = {&stub, false, true, 1};
	const struct fake_hooks hooks = {.poll_empty = complete_when_empty, .arg = &late};

	up(&stub, 1);
	turn();
	fake_hooks(&hooks);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	ASSERT_EQ(stub.completions, 0);
	CU_ASSERT_TRUE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	ASSERT_EQ(stub.completions, 1);
	down(&stub, 1);
}

static void
test_arming_fails(void)
{
	struct stub stub;

	up(&stub, 1);
	fake_fail_times("req_notify_cq", 2, 2, EIO);
	ASSERT_EQ(wait_prepare(reactor_current()), -EBUSY);
	CU_ASSERT_TRUE(net_logged("lcore 0 stays awake: completion queues cannot be armed: Input/output error"));
	ASSERT_EQ(wait_prepare(reactor_current()), -EBUSY);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	wait_finish(reactor_current(), WAKE_FD);
	down(&stub, 1);
}

/* ---- events ---- */

static void
sleep_and_wake(struct stub *stub, bool by_send)
{
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	if (by_send)
		sent(stub, 1);
	else
		receive(stub, 1, true);
	CU_ASSERT_TRUE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
}

static void
test_acknowledged_in_batches(void)
{
	struct stub stub;

	up(&stub, 1);
	for (int i = 0; i < 63; i++) {
		sleep_and_wake(&stub, false);
		sleep_and_wake(&stub, true);
	}
	ASSERT_EQ(card().events_got, 126);
	ASSERT_EQ(card().events_acked, 0);
	ASSERT_EQ(fake_cq_unacked(cq_recv(g_cq)), 63);
	sleep_and_wake(&stub, false);
	ASSERT_EQ(card().events_acked, 64);
	ASSERT_EQ(fake_calls("ack_cq_events"), 1);
	ASSERT_EQ(fake_cq_unacked(cq_recv(g_cq)), 0);
	ASSERT_EQ(fake_cq_unacked(cq_send(g_cq)), 63);
	sleep_and_wake(&stub, true);
	ASSERT_EQ(fake_calls("ack_cq_events"), 2);
	sleep_and_wake(&stub, true);
	ASSERT_EQ(counted(CQ_EVENTS), 129);
	down(&stub, 1);
}

/* A device that was pulled out: its channel is ready for ever and gives nothing. The lcore must not spin for it. */
static void
test_channel_gone(void)
{
	struct stub stub;
	unsigned calls;

	up(&stub, 1);
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	fake_fail_times("get_cq_event", 1, FAKE_FOREVER, EIO);
	receive(&stub, 1, true);
	CU_ASSERT_TRUE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	ASSERT_EQ(stub.events, 1);
	ASSERT_EQ(stub.event, IBV_EVENT_CQ_ERR);
	CU_ASSERT_TRUE(net_logged("a completion queue of lcore 0 has failed: its channel is gone"));
	calls = fake_calls("get_cq_event");
	ASSERT_EQ(wait_prepare(reactor_current()), 0);
	CU_ASSERT_FALSE(event_waits());
	wait_finish(reactor_current(), WAKE_FD);
	ASSERT_EQ(fake_calls("get_cq_event"), calls);
	fake_fail_none();
	down(&stub, 1);
}

/* ---- the real loop ---- */

struct run {
	struct stub stub;
	unsigned completions;
	uint64_t wakes;
};

static void
prepare(void *arg)
{
	struct run *run = arg;
	const char *why = "";

	g_cq = cq_get(device_at(0), &why);
	NET_CHECK(g_cq && cq_admit(g_cq, stub_endpoint(&run->stub), DEPTH, DEPTH, &run->stub.handle, &why) == 0);
}

static void
finish(void *arg)
{
	dismiss(&((struct run *)arg)->stub);
}

static uint64_t
stat(enum reactor_stat which)
{
	return counter_read(&g_stats[which], NULL);
}

/* One message after the other, each of which has to be seen before the next comes. */
static void
one_by_one(void *arg)
{
	struct run *run = arg;

	rdma_do(prepare, run);
	run->wakes = stat(STAT_WAKES_FD);
	for (unsigned i = 1; i <= run->completions; i++) {
		if (i % 2)
			receive(&run->stub, 1, true);
		else
			sent(&run->stub, 1);
		NET_AWAIT(PROBE_READ(run->stub.batch_ends) == i);
	}
	run->wakes = stat(STAT_WAKES_FD) - run->wakes;
	rdma_do(finish, run);
	xr_stop();
}

static void
loop(struct run *run, const char *port)
{
	rdma_up("--port", port, NULL);
	net_run(one_by_one, run);
	ASSERT_EQ(run->stub.completions, run->completions);
	ASSERT_EQ(stat(STAT_WAKES_RESCUED), 0);
}

static void
test_event_mode(void)
{
	struct run run = {.completions = 200};

	loop(&run, "default,mode=event");
	CU_ASSERT(card().notifies > 0);
	CU_ASSERT(run.wakes > 0);
	/* Each wakes once, and nothing else does but the few messages that the test itself posts. */
	CU_ASSERT(run.wakes <= run.completions + 4);
	ASSERT_EQ(stat(STAT_WAKES_EMPTY), 0);
	rdma_down();
}

static void
test_adaptive_mode(void)
{
	struct run run = {.completions = 200};

	loop(&run, "default,mode=adaptive,spin_us=20");
	CU_ASSERT(run.wakes <= run.completions + 4);
	rdma_down();
}

static void
test_poll_mode_never_arms(void)
{
	struct run run = {.completions = 50};

	loop(&run, "default,mode=poll");
	ASSERT_EQ(card().notifies, 0);
	ASSERT_EQ(card().events, 0);
	ASSERT_EQ(stat(STAT_SLEEPS), 0);
	rdma_down();
}

UNIT_SUITE("cq_sleep", {"receives solicited only, sends always", test_what_is_armed},
	   {"what wakes and what does not", test_what_wakes},
	   {"a completion between poll and arm", test_between_poll_and_arm},
	   {"an event while awake does not end the next sleep", test_event_while_awake},
	   {"a completion behind the last poll wakes", test_after_the_last_poll},
	   {"arming that fails keeps awake", test_arming_fails},
	   {"events are acknowledged 64 at a time", test_acknowledged_in_batches},
	   {"a channel that is gone", test_channel_gone}, {"the loop in event mode", test_event_mode},
	   {"the loop in adaptive mode", test_adaptive_mode}, {"poll mode never arms", test_poll_mode_never_arms});
