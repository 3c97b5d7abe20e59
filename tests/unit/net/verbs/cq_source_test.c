/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/cq_fixture.h"
#include <errno.h>

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

/* Its place is in use again. */
static void
test_stale_and_replaced(void)
{
	struct stub stubs[2], gone;
	const char *why = "";

	up(stubs, 2);
	gone = stubs[0];
	receive(&gone, 0, false);
	dismiss(&stubs[0]);
	ASSERT_EQ(cq_admit(g_cq, stub_endpoint(&stubs[0]), DEPTH, DEPTH, &stubs[0].handle, &why), 0);
	ASSERT_EQ(stubs[0].handle & 0xffff, gone.handle & 0xffff);
	sent(&gone, 1);
	turn();
	ASSERT_EQ(stubs[0].completions, 0);
	ASSERT_EQ(counted(CQ_STALE), 2);
	receive(&stubs[0], 0, false);
	turn();
	ASSERT_EQ(stubs[0].completions, 1);
	down(stubs, 2);
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

UNIT_SUITE("cq_source", {"a completion finds its endpoint", test_to_its_endpoint},
	   {"one of a connection that is gone is dropped", test_stale},
	   {"also when another has its place", test_stale_and_replaced}, {"errors find it too", test_errors_too},
	   {"a batch ends once for each endpoint", test_batch_ends_once},
	   {"endpoints that go at its end", test_gone_at_batch_end},
	   {"endpoints that come meanwhile", test_more_come_inside_a_poll}, {"a flood starves nobody", test_flood},
	   {"how many are taken at once", test_completions_at_once}, {"a drain takes all receives", test_drain},
	   {"a drain ends", test_drain_ends}, {"an endpoint that goes inside a drain", test_gone_inside_a_drain},
	   {"a drain of a queue that has failed", test_drain_of_a_failed_queue});
