/* SPDX-License-Identifier: Apache-2.0 */

/* Completion queues of a card whose queues are small: when there are further ones, and who is in which. */

#include "tests/unit/net/verbs/endpoint_stub.h"

#include "poll/reactor_private.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

#define DEPTH 100u

/* A card with so many queues of up to so many entries. */
static void
up(int max_cq, int max_cqe)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");

	card.max_cq = max_cq;
	card.max_cqe = max_cqe;
	rdma_card(&card);
	net_up(1, NULL);
}

static struct cq *
join(struct stub *stub, unsigned depth)
{
	const char *why = "";
	struct cq *cq = cq_join(device_at(0), stub_endpoint(stub), depth, depth, &stub->handle, &why);

	if (!cq)
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "more are needed, and the device allows 250"));
	return cq;
}

static void
turn(void)
{
	reactor_poll(reactor_current(), SOURCES_ALL);
}

static void
receive(struct cq *cq, const struct stub *stub)
{
	struct ibv_wc wc = stub_wc(stub->handle, WR_RECV, 0);

	fake_complete(cq_recv(cq), &wc, true);
}

static uint64_t
counted(enum cq_counter counter)
{
	return counter_read(&g_cq_counters[counter], NULL);
}

static void
test_grows_first(void)
{
	struct stub stubs[3] = {0};
	struct cq *cqs[3];

	up(1024, 20000);
	for (int i = 0; i < 3; i++)
		cqs[i] = join(&stubs[i], 6000);
	CU_ASSERT_PTR_EQUAL(cqs[1], cqs[0]);
	CU_ASSERT_PTR_EQUAL(cqs[2], cqs[0]);
	ASSERT_EQ(fake_alive(FAKE_CQS), 2);
	ASSERT_EQ(counted(CQ_FURTHER), 0);
	for (int i = 0; i < 3; i++)
		cq_dismiss(cqs[i], stubs[i].handle, 6000, 6000);
	rdma_down();
}

/* Completions reach their endpoint from each, and nobody's handle is another's. */
static void
test_further(void)
{
	struct stub stubs[7] = {0};
	struct cq *cqs[7];

	up(1024, 250);
	for (int i = 0; i < 7; i++)
		ASSERT_FATAL((cqs[i] = join(&stubs[i], DEPTH)) != NULL);
	ASSERT_EQ(fake_alive(FAKE_CQS), 8);
	ASSERT_EQ(counted(CQ_FURTHER), 3);
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: lcore 0 has 4 pairs of completion queues now"));
	for (int i = 0; i < 7; i++) {
		CU_ASSERT_PTR_EQUAL(cqs[i], cqs[i - i % 2]);
		CU_ASSERT_TRUE(i < 2 || cqs[i] != cqs[i - 2]);
		for (int n = 0; n <= i; n++)
			receive(cqs[i], &stubs[i]);
	}
	turn();
	for (int i = 0; i < 7; i++) {
		ASSERT_EQ(stubs[i].completions, i + 1);
		ASSERT_EQ(stubs[i].batch_ends, 1);
	}
	cq_event_of(device_at(0), stubs[5].handle, IBV_EVENT_QP_FATAL);
	for (int i = 0; i < 7; i++) {
		ASSERT_EQ(stubs[i].events, i == 5);
		cq_dismiss(cqs[i], stubs[i].handle, DEPTH, DEPTH);
	}
	rdma_down();
}

/* Newcomers go where others have left, the first ones first; no queue comes and goes with them. */
static void
test_room_comes_back(void)
{
	struct stub stubs[5] = {0};
	struct cq *cqs[5];

	up(1024, 250);
	for (int i = 0; i < 4; i++)
		cqs[i] = join(&stubs[i], DEPTH);
	cq_dismiss(cqs[1], stubs[1].handle, DEPTH, DEPTH);
	cq_dismiss(cqs[3], stubs[3].handle, DEPTH, DEPTH);
	turn();
	CU_ASSERT_PTR_EQUAL(cqs[1] = join(&stubs[1], DEPTH), cqs[0]);
	cq_dismiss(cqs[2], stubs[2].handle, DEPTH, DEPTH);
	turn();
	CU_ASSERT_PTR_EQUAL(cqs[4] = join(&stubs[4], DEPTH), cqs[2]);
	ASSERT_EQ(fake_calls("create_cq"), 4);
	cq_dismiss(cqs[0], stubs[0].handle, DEPTH, DEPTH);
	cq_dismiss(cqs[1], stubs[1].handle, DEPTH, DEPTH);
	cq_dismiss(cqs[4], stubs[4].handle, DEPTH, DEPTH);
	ASSERT_EQ(fake_alive(FAKE_CQS), 4);
	rdma_down();
}

static void
test_no_further_one(void)
{
	struct stub stubs[5] = {0};
	struct cq *cqs[4];

	up(5, 250); /* the fifth queue alone is no pair */
	for (int i = 0; i < 4; i++)
		ASSERT_FATAL((cqs[i] = join(&stubs[i], DEPTH)) != NULL);
	CU_ASSERT_PTR_NULL(join(&stubs[4], DEPTH));
	ASSERT_EQ(fake_alive(FAKE_CQS), 4);
	CU_ASSERT_TRUE(net_logged("an RDMA connection goes to TCP: the completion queue of fake0 is full: 200 entries "
				  "are in use, 100 more are needed, and the device allows 250; there can be no further "
				  "one"));
	for (int i = 0; i < 4; i++)
		cq_dismiss(cqs[i], stubs[i].handle, DEPTH, DEPTH);
	rdma_down();
}

/* Who needs more than a queue can have is not helped by another one. */
static void
test_more_than_any(void)
{
	struct stub stub = {0};

	up(1024, 250);
	CU_ASSERT_PTR_NULL(join(&stub, 251));
	ASSERT_EQ(fake_calls("create_cq"), 2);
	rdma_down();
}

static void
test_no_resize(void)
{
	struct stub stubs[2] = {0};
	struct cq *cqs[2];

	up(1024, 65536);
	fake_fail_times("resize_cq", 1, FAKE_FOREVER, EOPNOTSUPP);
	for (int i = 0; i < 2; i++)
		ASSERT_FATAL((cqs[i] = join(&stubs[i], 5000)) != NULL);
	CU_ASSERT(cqs[0] != cqs[1]);
	for (int i = 0; i < 2; i++)
		cq_dismiss(cqs[i], stubs[i].handle, 5000, 5000);
	rdma_down();
}

/* One that can't be polled any more ends its own endpoints; new ones wait until these have gone. */
static void
test_one_fails(void)
{
	struct stub stubs[3] = {0};
	const char *why = NULL;
	struct cq *cqs[3];

	up(1024, 250);
	for (int i = 0; i < 3; i++)
		cqs[i] = join(&stubs[i], DEPTH);
	cq_fail(cqs[2], "a test says so");
	ASSERT_EQ(stubs[0].events + stubs[1].events, 0);
	ASSERT_EQ(stubs[2].events, 1);
	receive(cqs[0], &stubs[0]);
	turn();
	ASSERT_EQ(stubs[0].completions, 1);
	CU_ASSERT_PTR_NULL(cq_get(device_at(0), &why));
	ASSERT_STR(why, "the completion queue has failed, and its connections have not ended yet");
	for (int i = 0; i < 3; i++)
		cq_dismiss(cqs[i], stubs[i].handle, DEPTH, DEPTH);
	CU_ASSERT_PTR_NOT_NULL(cq_get(device_at(0), &why));
	ASSERT_EQ(fake_alive(FAKE_CQS), 2);
	rdma_down();
}

static void
test_device_fails(void)
{
	struct stub stubs[3] = {0};
	struct cq *cqs[3];

	up(1024, 250);
	for (int i = 0; i < 3; i++)
		cqs[i] = join(&stubs[i], DEPTH);
	cq_event(device_at(0), IBV_EVENT_DEVICE_FATAL);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(stubs[i].events, 1);
		cq_dismiss(cqs[i], stubs[i].handle, DEPTH, DEPTH);
	}
	rdma_down();
}

UNIT_SUITE("cq set", {"one pair that can grow is enough", test_grows_first}, {"further pairs", test_further},
	   {"room comes back", test_room_comes_back}, {"no further one", test_no_further_one},
	   {"more than any queue has", test_more_than_any}, {"a device that can't resize", test_no_resize},
	   {"one of them fails", test_one_fails}, {"the device fails", test_device_fails});
