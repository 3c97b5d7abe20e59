/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/endpoint_stub.h"

#include "net/verbs/flags.h"
#include "poll/reactor_private.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

#define DEPTH 1024u

static struct cq *g_cq;

/* The library up, its loop driven by hand, and so many endpoints in the queues of the one lcore. */
static void
up(struct stub *stubs, unsigned count)
{
	const char *why = "";

	rdma_up(NULL);
	g_cq = cq_get(device_at(0), &why);
	ASSERT_FATAL(g_cq != NULL);
	for (unsigned i = 0; i < count; i++) {
		memset(&stubs[i], 0, sizeof stubs[i]);
		ASSERT_FATAL(cq_admit(g_cq, stub_endpoint(&stubs[i]), DEPTH, DEPTH, &stubs[i].handle, &why) == 0);
	}
}

static void
dismiss(struct stub *stub)
{
	cq_dismiss(g_cq, stub->handle, DEPTH, DEPTH);
}

static void
down(struct stub *stubs, unsigned count)
{
	fake_hooks(NULL);
	for (unsigned i = 0; i < count; i++)
		dismiss(&stubs[i]);
	rdma_down();
}

static int
turn(void)
{
	return reactor_poll(reactor_current(), SOURCES_ALL);
}

static void
receive(const struct stub *stub, uint16_t slot, bool solicited)
{
	struct ibv_wc wc = stub_wc(stub->handle, WR_RECV, slot);

	fake_complete(cq_recv(g_cq), &wc, solicited);
}

static void
sent(const struct stub *stub, uint16_t count)
{
	struct ibv_wc wc = stub_wc(stub->handle, WR_SEND, count);

	fake_complete(cq_send(g_cq), &wc, false);
}

static uint64_t
counted(enum cq_counter counter)
{
	return counter_read(&g_cq_counters[counter], NULL);
}

static struct fake_counts
card(void)
{
	return fake_device_counts(0);
}

/* ---- dispatch ---- */

static void
test_to_its_endpoint(void)
{
	struct stub stubs[3];

	up(stubs, 3);
	receive(&stubs[1], 7, false);
	sent(&stubs[2], 9);
	ASSERT_EQ(turn(), 2);
	ASSERT_EQ(stubs[0].completions, 0);
	ASSERT_EQ(stubs[1].completions, 1);
	ASSERT_EQ(wr_id_kind(stubs[1].last.wr_id), WR_RECV);
	ASSERT_EQ(wr_id_value(stubs[1].last.wr_id), 7);
	ASSERT_EQ(wr_id_kind(stubs[2].last.wr_id), WR_SEND);
	ASSERT_EQ(wr_id_value(stubs[2].last.wr_id), 9);
	ASSERT_EQ(counted(CQ_COMPLETIONS), 2);
	ASSERT_EQ(turn(), 0);
	down(stubs, 3);
}

static void
test_stale(void)
{
	struct stub stubs[2], gone;

	up(stubs, 2);
	gone = stubs[0];
	dismiss(&stubs[0]);
	receive(&gone, 0, false);
	sent(&gone, 1);
	gone.handle = 4711;
	receive(&gone, 0, false);
	gone.handle = UINT32_MAX;
	receive(&gone, 0, false);
	ASSERT_EQ(turn(), 4);
	ASSERT_EQ(counted(CQ_STALE), 4);
	ASSERT_EQ(stubs[0].completions + stubs[1].completions + stubs[0].batch_ends, 0);
	down(&stubs[1], 1);
}

/* A completion in error has no opcode, but its wr_id. */
static void
test_errors_too(void)
{
	struct stub stub;
	struct ibv_wc wc;

	up(&stub, 1);
	wc = stub_wc(stub.handle, WR_SEND, 3);
	wc.status = IBV_WC_RETRY_EXC_ERR;
	wc.opcode = 77;
	fake_complete(cq_send(g_cq), &wc, false);
	turn();
	ASSERT_EQ(stub.completions, 1);
	ASSERT_EQ(stub.last.status, IBV_WC_RETRY_EXC_ERR);
	ASSERT_EQ(stub.batch_ends, 1);
	down(&stub, 1);
}

static void
test_batch_ends_once(void)
{
	struct stub stubs[2];

	up(stubs, 2);
	for (uint16_t i = 0; i < 100; i++) {
		receive(&stubs[0], i, false);
		sent(&stubs[0], 1);
		receive(&stubs[1], i, false);
	}
	turn();
	ASSERT_EQ(stubs[0].completions, 200);
	ASSERT_EQ(stubs[1].completions, 100);
	ASSERT_EQ(stubs[0].batch_ends, 1);
	ASSERT_EQ(stubs[1].batch_ends, 1);
	turn();
	ASSERT_EQ(stubs[0].batch_ends, 1);
	receive(&stubs[0], 0, false);
	turn();
	ASSERT_EQ(stubs[0].batch_ends, 2);
	down(stubs, 2);
}

/* ---- who goes, and who comes, in the middle of it ---- */

static void
dismiss_other(struct stub *stub)
{
	if (stub->arg)
		dismiss(stub->arg);
	stub->arg = NULL;
}

static void
dismiss_self(struct stub *stub)
{
	dismiss(stub);
}

static void
test_gone_at_batch_end(void)
{
	struct stub stubs[3];

	up(stubs, 3);
	stubs[0].on_batch_end = dismiss_other;
	stubs[0].arg = &stubs[1];
	stubs[2].on_batch_end = dismiss_self;
	for (int i = 0; i < 3; i++)
		receive(&stubs[i], 0, false);
	turn();
	ASSERT_EQ(stubs[0].batch_ends, 1);
	ASSERT_EQ(stubs[1].batch_ends, 0);
	ASSERT_EQ(stubs[2].batch_ends, 1);
	ASSERT_EQ(g_cq->members, 1);
	down(stubs, 1);
}

/* Handles move as more come, while endpoints wait for the end of their batch. */
static void
admit_many(struct stub *stub, const struct ibv_wc *wc)
{
	struct stub *more = stub->arg;
	const char *why = "";

	(void)wc;
	for (int i = 0; i < 200; i++)
		NET_CHECK(cq_admit(g_cq, stub_endpoint(&more[i]), 16, 16, &more[i].handle, &why) == 0);
	stub->on_complete = NULL;
}

static void
test_more_come_inside_a_poll(void)
{
	static struct stub more[200];
	struct stub stubs[3];

	up(stubs, 3);
	memset(more, 0, sizeof more);
	stubs[1].on_complete = admit_many;
	stubs[1].arg = more;
	for (int i = 0; i < 3; i++)
		receive(&stubs[i], 0, false);
	turn();
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(stubs[i].completions, 1);
		ASSERT_EQ(stubs[i].batch_ends, 1);
	}
	for (int i = 0; i < 200; i++)
		cq_dismiss(g_cq, more[i].handle, 16, 16);
	down(stubs, 3);
}

/* ---- bounds ---- */

struct other {
	struct xr_poller poller;
	unsigned turns;
};

static int
count_turn(struct xr_poller *poller)
{
	caa_container_of(poller, struct other, poller)->turns++;
	return 0;
}

static void
complete_another(struct stub *stub, const struct ibv_wc *wc)
{
	fake_complete(stub->arg, wc, false);
}

/* A queue that is filled as fast as it is polled: the loop goes on, and so do the other queue and the other sources. */
static void
test_flood(void)
{
	struct other other = {XR_POLLER_INIT(count_turn, "other", true), 0};
	struct stub stubs[2];

	up(stubs, 2);
	ASSERT_EQ(xr_poller_add(&other.poller), 0);
	stubs[0].on_complete = complete_another;
	stubs[0].arg = cq_recv(g_cq);
	for (int i = 0; i < 300; i++)
		receive(&stubs[0], 0, false);
	sent(&stubs[1], 1);
	ASSERT_EQ(turn(), 256 + 1);
	ASSERT_EQ(stubs[0].completions, 256);
	ASSERT_EQ(stubs[0].batch_ends, 1);
	ASSERT_EQ(stubs[1].completions, 1);
	ASSERT_EQ(other.turns, 1);
	turn();
	ASSERT_EQ(stubs[0].completions, 512);
	ASSERT_EQ(other.turns, 2);
	xr_poller_del(&other.poller);
	down(stubs, 2);
}

static void
in_a_turn(const char *once, unsigned queued, unsigned taken, unsigned polls)
{
	struct stub stub;
	uint64_t before;

	up(&stub, 1);
	ASSERT_EQ(xr_option_set("rdma_cqe_poll_once", once, NULL), 0);
	for (unsigned i = 0; i < queued; i++)
		receive(&stub, 0, false);
	before = card().polls;
	turn();
	ASSERT_EQ(stub.completions, taken);
	ASSERT_EQ(card().polls - before, polls + 1);
	ASSERT_EQ(counted(CQ_POLLS), polls + 1);
	down(&stub, 1);
}

static void
test_completions_at_once(void)
{
	in_a_turn("1", 100, 8, 8);
	in_a_turn("32", 31, 31, 1);
	in_a_turn("32", 32, 32, 2);
	in_a_turn("32", 400, 256, 8);
	in_a_turn("256", 1000, 1000, 4);
	in_a_turn("256", 0, 0, 1);
}

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

/* ---- what came before the peer's end ---- */

static void
test_drain(void)
{
	struct stub stubs[2];

	up(stubs, 2);
	for (int i = 0; i < 700; i++)
		receive(&stubs[i % 2], 0, false);
	sent(&stubs[0], 1);
	cq_drain(g_cq);
	ASSERT_EQ(stubs[0].completions, 350);
	ASSERT_EQ(stubs[1].completions, 350);
	CU_ASSERT(stubs[0].batch_ends > 0 && stubs[1].batch_ends > 0);
	ASSERT_EQ(fake_cq_fill(cq_recv(g_cq)), 0);
	ASSERT_EQ(fake_cq_fill(cq_send(g_cq)), 1);
	cq_drain(g_cq);
	down(stubs, 2);
}

static void
test_drain_ends(void)
{
	struct stub stub;

	up(&stub, 1);
	stub.on_complete = complete_another;
	stub.arg = cq_recv(g_cq);
	for (int i = 0; i < 300; i++)
		receive(&stub, 0, false);
	cq_drain(g_cq);
	CU_ASSERT(stub.completions >= 300);
	CU_ASSERT(stub.completions < 300 + 8192 + 256);
	down(&stub, 1);
}

static void
test_gone_inside_a_drain(void)
{
	struct stub stubs[2];

	up(stubs, 2);
	stubs[0].on_batch_end = dismiss_self;
	for (int i = 0; i < 300; i++)
		receive(&stubs[0], 0, false);
	receive(&stubs[1], 0, false);
	cq_drain(g_cq);
	ASSERT_EQ(stubs[0].completions, 256);
	ASSERT_EQ(stubs[0].batch_ends, 1);
	ASSERT_EQ(counted(CQ_STALE), 44);
	ASSERT_EQ(stubs[1].completions, 1);
	down(&stubs[1], 1);
}

static void
test_drain_of_a_failed_queue(void)
{
	struct stub stub;

	up(&stub, 1);
	receive(&stub, 0, false);
	fake_fail_times("poll_cq", 1, FAKE_FOREVER, EIO);
	cq_drain(g_cq);
	ASSERT_EQ(stub.events, 1);
	cq_drain(g_cq);
	ASSERT_EQ(fake_calls("poll_cq"), 1);
	fake_fail_none();
	down(&stub, 1);
}

UNIT_SUITE("verbs cq source", {"a completion finds its endpoint", test_to_its_endpoint},
	   {"one of a connection that is gone is dropped", test_stale}, {"errors find it too", test_errors_too},
	   {"a batch ends once for each endpoint", test_batch_ends_once},
	   {"endpoints that go at its end", test_gone_at_batch_end},
	   {"endpoints that come meanwhile", test_more_come_inside_a_poll}, {"a flood starves nobody", test_flood},
	   {"how many are taken at once", test_completions_at_once},
	   {"receives solicited only, sends always", test_what_is_armed},
	   {"what wakes and what does not", test_what_wakes},
	   {"a completion between poll and arm", test_between_poll_and_arm},
	   {"an event while awake does not end the next sleep", test_event_while_awake},
	   {"a completion behind the last poll wakes", test_after_the_last_poll},
	   {"arming that fails keeps awake", test_arming_fails},
	   {"events are acknowledged 64 at a time", test_acknowledged_in_batches},
	   {"a channel that is gone", test_channel_gone}, {"the loop in event mode", test_event_mode},
	   {"the loop in adaptive mode", test_adaptive_mode}, {"poll mode never arms", test_poll_mode_never_arms},
	   {"a drain takes all receives", test_drain}, {"a drain ends", test_drain_ends},
	   {"an endpoint that goes inside a drain", test_gone_inside_a_drain},
	   {"a drain of a queue that has failed", test_drain_of_a_failed_queue});
