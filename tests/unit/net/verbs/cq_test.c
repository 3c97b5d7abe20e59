/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/endpoint_stub.h"

#include "poll/reactor_private.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

static struct cq *
get(void)
{
	const char *why = NULL;
	struct cq *cq = cq_get(device_at(0), &why);

	ASSERT_FATAL(cq != NULL);
	return cq;
}

static uint32_t
admit(struct cq *cq, struct stub *stub, unsigned send_depth, unsigned recv_depth)
{
	const char *why = "";

	if (cq_admit(cq, stub_endpoint(stub), send_depth, recv_depth, &stub->handle, &why))
		printf("%s\n", why);
	ASSERT_FATAL(cq_device(cq) == device_at(0) && cq->members > 0);
	return stub->handle;
}

static uint64_t
counted(enum cq_counter counter)
{
	return counter_read(&g_cq_counters[counter], NULL);
}

static void
turn(void)
{
	reactor_poll(reactor_current(), SOURCES_ALL);
}

/* A card whose completion queues hold so many. */
static void
small_card(int max_cqe)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");

	card.max_cqe = max_cqe;
	rdma_card(&card);
	net_up(1, NULL);
}

/* ---- making them ---- */

static void
test_made_once(void)
{
	struct cq *cq;

	rdma_up(NULL);
	ASSERT_EQ(fake_alive(FAKE_CQS), 0);
	ASSERT_EQ(fake_alive(FAKE_CHANNELS), 0);
	cq = get();
	ASSERT_EQ(fake_alive(FAKE_CQS), 2);
	ASSERT_EQ(fake_alive(FAKE_CHANNELS), 1);
	CU_ASSERT_PTR_EQUAL(get(), cq);
	CU_ASSERT_PTR_EQUAL(cq_device(cq), device_at(0));
	ASSERT_EQ(cq_lcore_index(cq), 0);
	CU_ASSERT(cq_send(cq) != cq_recv(cq));
	CU_ASSERT_PTR_EQUAL(cq_send(cq)->channel, cq_recv(cq)->channel);
	ASSERT_EQ(cq_send(cq)->cqe, 8192);
	ASSERT_EQ(cq_recv(cq)->cqe, 8192);
	rdma_down();
}

/* One that never was: the lcore leaves without. */
static void
test_never_made(void)
{
	rdma_up(NULL);
	ASSERT_EQ(fake_calls("create_cq"), 0);
	rdma_down();
}

static void
not_made(const char *verb, unsigned nth)
{
	const char *why = NULL;

	rdma_up(NULL);
	fake_fail(verb, nth, ENOMEM);
	CU_ASSERT_PTR_NULL(cq_get(device_at(0), &why));
	ASSERT_STR(why, "the device gives no completion queue");
	ASSERT_EQ(fake_alive(FAKE_CQS) + fake_alive(FAKE_CHANNELS), 0);
	get();
	rdma_down();
}

/* The line has a limit of one a second. */
static void
test_line_for_no_queues(void)
{
	const char *why = NULL;

	rdma_up(NULL);
	fake_fail("create_cq", 1, ENOMEM);
	CU_ASSERT_PTR_NULL(cq_get(device_at(0), &why));
	CU_ASSERT_TRUE(net_logged("RDMA device fake0 gives lcore 0 no completion queues: Cannot allocate memory"));
	rdma_down();
}

static void
test_steps_that_fail(void)
{
	not_made("create_comp_channel", 1);
	not_made("create_cq", 1);
	not_made("create_cq", 2);
}

static void
test_no_memory(void)
{
	const char *why = NULL;

	if (!FAIL_ALLOC) {
		unit_skip("allocations can't fail under a sanitizer");
		return;
	}
	rdma_up(NULL);
	g_fail_alloc_after = 0;
	CU_ASSERT_PTR_NULL(cq_get(device_at(0), &why));
	g_fail_alloc_after = -1;
	ASSERT_STR(why, "no memory");
	rdma_down();
}

static void
test_failed_device(void)
{
	const char *why = NULL;

	rdma_up(NULL);
	__atomic_store_n(&device_at(0)->failed, true, __ATOMIC_RELAXED);
	CU_ASSERT_PTR_NULL(cq_get(device_at(0), &why));
	ASSERT_STR(why, "the RDMA device has failed");
	rdma_down();
}

/* ---- room ---- */

static void
test_room(void)
{
	struct stub a = {0}, b = {0};
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &a, 160, 128);
	admit(cq, &b, 20, 16);
	ASSERT_EQ(cq->send.used, 180);
	ASSERT_EQ(cq->recv.used, 144);
	ASSERT_EQ(fake_calls("resize_cq"), 0);
	cq_dismiss(cq, a.handle, 160, 128);
	cq_dismiss(cq, b.handle, 20, 16);
	ASSERT_EQ(cq->send.used + cq->recv.used, 0);
	rdma_down();
}

static void
test_growth(void)
{
	struct stub stubs[3] = {0};
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &stubs[0], 8192, 8192);
	ASSERT_EQ(counted(CQ_GROWN), 0);
	admit(cq, &stubs[1], 1, 1);
	ASSERT_EQ(counted(CQ_GROWN), 2);
	ASSERT_EQ(cq_send(cq)->cqe, 16384);
	ASSERT_EQ(cq_recv(cq)->cqe, 16384);
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: a completion queue of lcore 0 has 16384 entries now"));
	admit(cq, &stubs[2], 30000, 16);
	ASSERT_EQ(cq_send(cq)->cqe, 38193);
	ASSERT_EQ(cq_recv(cq)->cqe, 16384);
	cq_dismiss(cq, stubs[0].handle, 8192, 8192);
	cq_dismiss(cq, stubs[1].handle, 1, 1);
	cq_dismiss(cq, stubs[2].handle, 30000, 16);
	rdma_down();
}

/* What is in them stays in them. */
static void
test_growth_keeps_completions(void)
{
	struct stub a = {0}, b = {0};
	struct ibv_wc wc;
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &a, 16, 16);
	wc = stub_wc(a.handle, WR_RECV, 3);
	fake_complete(cq_recv(cq), &wc, true);
	fake_complete(cq_recv(cq), &wc, true);
	admit(cq, &b, 16, 9000);
	turn();
	ASSERT_EQ(a.completions, 2);
	ASSERT_EQ(wr_id_value(a.last.wr_id), 3);
	cq_dismiss(cq, a.handle, 16, 16);
	cq_dismiss(cq, b.handle, 16, 9000);
	rdma_down();
}

static int
refused(struct cq *cq, unsigned send_depth, unsigned recv_depth, const char *expected)
{
	struct stub stub = {0};
	const char *why = "";
	int ret = cq_admit(cq, stub_endpoint(&stub), send_depth, recv_depth, &stub.handle, &why);

	if (expected)
		ASSERT_STR(why, expected);
	return ret;
}

static void
test_limit(void)
{
	struct stub a = {0};
	struct cq *cq;

	small_card(10000);
	cq = get();
	admit(cq, &a, 9000, 8000);
	ASSERT_EQ(cq_send(cq)->cqe, 10000);
	ASSERT_EQ(refused(cq, 1001, 16,
			  "the completion queue of fake0 is full: 9000 entries are in use, 1001 more are needed, and "
			  "the device allows 10000"),
		  -ENOSPC);
	ASSERT_EQ(refused(cq, 16, 2001,
			  "the completion queue of fake0 is full: 8000 entries are in use, 2001 more are needed, and "
			  "the device allows 10000"),
		  -ENOSPC);
	ASSERT_EQ(cq->members, 1);
	ASSERT_EQ(cq->send.used, 9000);
	cq_dismiss(cq, a.handle, 9000, 8000);
	rdma_down();
}

/* The whole queue has less than one endpoint needs. */
static void
test_tiny_limit(void)
{
	struct stub a = {0};
	struct cq *cq;

	small_card(100);
	cq = get();
	ASSERT_EQ(cq_send(cq)->cqe, 100);
	ASSERT_EQ(refused(cq, 160, 128,
			  "the completion queue of fake0 is full: 0 entries are in use, 160 more are needed, and the "
			  "device allows 100"),
		  -ENOSPC);
	admit(cq, &a, 100, 100);
	cq_dismiss(cq, a.handle, 100, 100);
	rdma_down();
}

static void
test_no_resize(void)
{
	struct stub a = {0}, b = {0};
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &a, 8192, 16);
	fake_fail_times("resize_cq", 1, FAKE_FOREVER, EOPNOTSUPP);
	ASSERT_EQ(refused(cq, 20, 16,
			  "the completion queue of fake0 is full: 8192 of 8192 entries are in use, 20 more are needed, "
			  "and it can't grow: Operation not supported"),
		  -ENOSPC);
	fake_fail_none();
	fake_fail_times("resize_cq", 1, FAKE_FOREVER, ENOSYS);
	ASSERT_EQ(refused(cq, 20, 16, NULL), -ENOSPC);
	ASSERT_EQ(counted(CQ_GROWN), 0);
	ASSERT_EQ(cq->members, 1);
	admit(cq, &b, 0, 8176); /* what fits needs no resize */
	cq_dismiss(cq, a.handle, 8192, 16);
	cq_dismiss(cq, b.handle, 0, 8176);
	rdma_down();
}

/* Where there is not twice the room there may be just enough. */
static void
test_growth_by_less(void)
{
	struct stub a = {0}, b = {0};
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &a, 8192, 16);
	fake_fail("resize_cq", 1, ENOMEM);
	admit(cq, &b, 100, 16);
	ASSERT_EQ(cq_send(cq)->cqe, 8292);
	cq_dismiss(cq, a.handle, 8192, 16);
	cq_dismiss(cq, b.handle, 100, 16);
	rdma_down();
}

static void
test_no_memory_for_a_handle(void)
{
	struct stub a = {0};
	const char *why = NULL;
	struct cq *cq;

	if (!FAIL_ALLOC) {
		unit_skip("allocations can't fail under a sanitizer");
		return;
	}
	rdma_up(NULL);
	cq = get();
	g_fail_alloc_after = 0;
	ASSERT_EQ(cq_admit(cq, stub_endpoint(&a), 16, 16, &a.handle, &why), -ENOMEM);
	g_fail_alloc_after = -1;
	ASSERT_STR(why, "no memory");
	ASSERT_EQ(cq->send.used + cq->recv.used + cq->members, 0);
	rdma_down();
}

/* What a connection leaves in the queue takes room there until it was polled. */
static void
test_room_of_who_has_left(void)
{
	struct stub a = {0}, b = {0};
	struct ibv_wc wc;
	struct cq *cq;

	small_card(200);
	cq = get();
	admit(cq, &a, 128, 128);
	wc = stub_wc(a.handle, WR_RECV, 0);
	for (int i = 0; i < 100; i++)
		fake_complete(cq_recv(cq), &wc, false);
	cq_dismiss(cq, a.handle, 128, 128);
	ASSERT_EQ(refused(cq, 128, 128, NULL), -ENOSPC);
	turn();
	ASSERT_EQ(counted(CQ_STALE), 100);
	admit(cq, &b, 128, 128);
	ASSERT_EQ(b.completions, 0);
	cq_dismiss(cq, b.handle, 128, 128);
	rdma_down();
}

/* A poll that has not come to the end of the queue says nothing about what is behind it. */
static void
test_room_is_not_free_too_early(void)
{
	struct stub a = {0};
	struct ibv_wc wc;
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &a, 1024, 1024);
	wc = stub_wc(a.handle, WR_RECV, 0);
	for (int i = 0; i < 1000; i++)
		fake_complete(cq_recv(cq), &wc, false);
	cq_dismiss(cq, a.handle, 1024, 1024);
	turn();
	ASSERT_EQ(fake_cq_fill(cq_recv(cq)), 1000 - 256);
	ASSERT_EQ(cq->recv.leaving, 1024);
	ASSERT_EQ(cq->send.leaving, 0);
	for (int i = 0; i < 3; i++)
		turn();
	ASSERT_EQ(fake_cq_fill(cq_recv(cq)), 0);
	ASSERT_EQ(cq->recv.leaving, 0);
	rdma_down();
}

/* It leaves while what was polled before is looked at: its last completions have come after that. */
static void
leave_now(struct stub *stub, const struct ibv_wc *wc)
{
	struct cq *cq = stub->arg;

	fake_complete(cq_recv(cq), wc, false);
	cq_dismiss(cq, stub->handle, 16, 16);
	stub->on_complete = NULL;
}

static void
test_left_inside_a_poll(void)
{
	struct stub a = {.on_complete = leave_now};
	struct ibv_wc wc;
	struct cq *cq;

	rdma_up(NULL);
	a.arg = cq = get();
	admit(cq, &a, 16, 16);
	wc = stub_wc(a.handle, WR_RECV, 0);
	fake_complete(cq_recv(cq), &wc, false);
	turn();
	ASSERT_EQ(a.completions, 1);
	ASSERT_EQ(a.batch_ends, 0);
	ASSERT_EQ(cq->recv.leaving, 16);
	turn();
	ASSERT_EQ(counted(CQ_STALE), 1);
	ASSERT_EQ(cq->recv.leaving, 0);
	rdma_down();
}

/* ---- failures ---- */

static void
test_failed_and_made_anew(void)
{
	struct stub a = {0}, b = {0};
	const char *why = NULL;
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &a, 16, 16);
	admit(cq, &b, 16, 16);
	cq_event(device_at(0), IBV_EVENT_CQ_ERR);
	ASSERT_EQ(a.events, 1);
	ASSERT_EQ(b.events, 1);
	ASSERT_EQ(a.event, IBV_EVENT_CQ_ERR);
	CU_ASSERT_PTR_NULL(cq_get(device_at(0), &why));
	ASSERT_STR(why, "the completion queue has failed, and its connections have not ended yet");
	cq_dismiss(cq, a.handle, 16, 16);
	CU_ASSERT_PTR_NULL(cq_get(device_at(0), &why));
	cq_dismiss(cq, b.handle, 16, 16);
	cq = get();
	CU_ASSERT_FALSE(cq->failed);
	ASSERT_EQ(fake_calls("create_cq"), 4);
	ASSERT_EQ(fake_alive(FAKE_CQS), 2);
	rdma_down();
}

static void
test_event_of_one(void)
{
	struct stub a = {0}, b = {0};
	struct cq *cq;
	uint32_t old;

	rdma_up(NULL);
	cq_event(device_at(0), IBV_EVENT_DEVICE_FATAL);
	cq_event_of(device_at(0), 0, IBV_EVENT_QP_FATAL);
	cq = get();
	old = admit(cq, &a, 16, 16);
	admit(cq, &b, 16, 16);
	cq_event_of(device_at(0), b.handle, IBV_EVENT_QP_FATAL);
	ASSERT_EQ(a.events, 0);
	ASSERT_EQ(b.events, 1);
	ASSERT_EQ(b.event, IBV_EVENT_QP_FATAL);
	cq_dismiss(cq, a.handle, 16, 16);
	admit(cq, &a, 16, 16);
	cq_event_of(device_at(0), old, IBV_EVENT_QP_FATAL);
	ASSERT_EQ(a.events, 0);
	cq_dismiss(cq, a.handle, 16, 16);
	cq_dismiss(cq, b.handle, 16, 16);
	rdma_down();
}

/* Endpoints may go while they are told. */
static void
leave_at_event(struct stub *stub)
{
	cq_dismiss(stub->arg, stub->handle, 16, 16);
}

static void
test_gone_while_told(void)
{
	struct stub stubs[70];
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	for (int i = 0; i < 70; i++) {
		stubs[i] = (struct stub){.on_event = leave_at_event, .arg = cq};
		admit(cq, &stubs[i], 16, 16);
	}
	cq_event(device_at(0), IBV_EVENT_DEVICE_FATAL);
	for (int i = 0; i < 70; i++)
		ASSERT_EQ(stubs[i].events, 1);
	ASSERT_EQ(cq->members, 0);
	rdma_down();
}

static void
test_poll_that_fails(void)
{
	struct stub a = {0};
	unsigned polls;
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	admit(cq, &a, 16, 16);
	fake_fail_times("poll_cq", 1, FAKE_FOREVER, EIO);
	turn();
	ASSERT_EQ(a.events, 1);
	ASSERT_EQ(a.event, IBV_EVENT_CQ_ERR);
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: a completion queue of lcore 0 has failed: it can't be polled"));
	polls = fake_calls("poll_cq");
	turn();
	ASSERT_EQ(fake_calls("poll_cq"), polls);
	ASSERT_EQ(a.events, 1);
	cq_dismiss(cq, a.handle, 16, 16);
	rdma_down();
}

/* ---- the end ---- */

static void
test_order_of_the_end(void)
{
	struct ibv_wc wc = stub_wc(0, WR_RECV, 0);
	struct cq *cq;

	rdma_up(NULL);
	cq = get();
	/* Events that nobody has read, and some that nobody has acknowledged. */
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(ibv_req_notify_cq(cq_recv(cq), 0), 0);
		fake_complete(cq_recv(cq), &wc, true);
	}
	ASSERT_EQ(ibv_req_notify_cq(cq_send(cq), 0), 0);
	fake_complete(cq_send(cq), &wc, true);
	rdma_down();
}

static void
test_what_can_not_be_destroyed(void)
{
	rdma_up(NULL);
	get();
	fake_fail("destroy_cq", 1, EBUSY);
	xr_fini();
	xr_log_set_sink(NULL, NULL);
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: destroying a completion queue: Device or resource busy"));
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: destroying a completion channel: Device or resource busy"));
	ASSERT_EQ(fake_alive(FAKE_CQS), 1);
	fake_reset();
}

UNIT_SUITE("cq", {"queues and channel are made once", test_made_once},
	   {"without a connection there are none", test_never_made},
	   {"no queues, and the line that says so", test_line_for_no_queues},
	   {"each step that fails takes back the others", test_steps_that_fail}, {"no memory", test_no_memory},
	   {"a failed device gives none", test_failed_device}, {"room for every completion", test_room},
	   {"they grow", test_growth}, {"growth keeps what is in them", test_growth_keeps_completions},
	   {"at the device's limit the figures are said", test_limit},
	   {"a limit below what one connection needs", test_tiny_limit}, {"a device that can't resize", test_no_resize},
	   {"growth by what is needed", test_growth_by_less}, {"no memory for a handle", test_no_memory_for_a_handle},
	   {"what has left takes room until it was polled", test_room_of_who_has_left},
	   {"and is not forgotten too early", test_room_is_not_free_too_early},
	   {"nor when it leaves inside a poll", test_left_inside_a_poll},
	   {"a failed queue is made anew", test_failed_and_made_anew},
	   {"an event finds its endpoint, a stale one nobody", test_event_of_one},
	   {"endpoints that go while they are told", test_gone_while_told},
	   {"a poll that fails ends everybody once", test_poll_that_fails},
	   {"events are acknowledged before the end", test_order_of_the_end},
	   {"what can't be destroyed is said", test_what_can_not_be_destroyed});
