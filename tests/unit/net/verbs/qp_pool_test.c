/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/async.h"
#include "net/verbs/cq_private.h"
#include "net/verbs/qp_pool.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

#define HANDLE	 0x00070003u
#define MESSAGES 300u /* more than any window */

static const struct qp_want g_want = {.sq_size = 128, .rq_size = 128, .inline_bytes = QP_INLINE_BYTES};

static struct cq *
queues(void)
{
	const char *why = "";
	struct cq *cq = cq_get(device_at(0), &why);

	ASSERT_FATAL(cq != NULL);
	return cq;
}

static struct qp
get(struct cq *cq, uint16_t sq_size, uint16_t rq_size)
{
	const struct qp_want want = {.sq_size = sq_size, .rq_size = rq_size, .inline_bytes = QP_INLINE_BYTES};
	const char *why = "";
	struct qp qp;

	ASSERT_FATAL(qp_pool_get(cq, &want, HANDLE, &qp, &why) == 0);
	ASSERT_EQ(qp.sq_size, sq_size);
	ASSERT_EQ(qp.rq_size, rq_size);
	CU_ASSERT_PTR_EQUAL(qp.qp->qp_context, async_qp_context(0, HANDLE));
	ASSERT_EQ(fake_qp_state(qp.qp->qp_num), IBV_QPS_RESET);
	return qp;
}

static struct ibv_qp_cap
cap_of(const struct qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_EQ(ibv_query_qp(qp->qp, &attr, IBV_QP_CAP, &init), 0);
	return init.cap;
}

/* ---- made ahead ---- */

static void
test_none_by_default(void)
{
	struct cq *cq;
	struct qp qp;

	rdma_up(NULL);
	cq = queues();
	ASSERT_EQ(fake_calls("create_qp"), 0);
	qp = get(cq, 128, 128);
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	ASSERT_EQ(fake_calls("modify_qp_reset"), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 0);
	rdma_down();
}

static void
test_made_ahead(void)
{
	uint32_t nums[4];
	struct cq *cq;

	rdma_up("--rdma_prepared_qp_cnt=3", NULL);
	ASSERT_EQ(fake_alive(FAKE_QPS), 0);
	cq = queues();
	ASSERT_EQ(fake_qps(nums, 4), 3);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(fake_qp_state(nums[i]), IBV_QPS_RESET);
	ASSERT_EQ(cq->send.used + cq->recv.used, 0);
	CU_ASSERT_PTR_EQUAL(queues(), cq);
	ASSERT_EQ(fake_calls("create_qp"), 3);
	rdma_down();
}

static void
test_making_fails(void)
{
	struct cq *cq;
	struct qp a, b;

	rdma_up("--rdma_prepared_qp_cnt=3", NULL);
	fake_fail("create_qp", 2, EPERM);
	cq = queues();
	ASSERT_EQ(fake_calls("create_qp"), 2);
	ASSERT_EQ(fake_alive(FAKE_QPS), 1);
	CU_ASSERT_TRUE(net_logged("gives no queue pair of 128 sends and 128 receives"));
	a = get(cq, 128, 128);
	b = get(cq, 128, 128);
	ASSERT_EQ(fake_calls("create_qp"), 3);
	ASSERT_EQ(qp_pool_put(cq, &a, true), 0);
	ASSERT_EQ(qp_pool_put(cq, &b, true), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 2);
	rdma_down();
}

/* A device that agrees to less only: those would not do for all that is to be served by them. */
static void
test_lowered_ones_are_not_kept(void)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	struct cq *cq;
	const char *why = "";
	struct qp qp;

	card.max_sq_sges = 30 * 100;
	rdma_up_with(&card, "--rdma_prepared_qp_cnt=3", NULL);
	cq = queues();
	ASSERT_EQ(fake_alive(FAKE_QPS), 0);
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: no queue pairs of 128 are prepared on lcore 0 beyond 0"));
	ASSERT_EQ(qp_pool_get(cq, &g_want, HANDLE, &qp, &why), 0);
	ASSERT_EQ(qp.sq_size, 64);
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 0);
	rdma_down();
}

static uint16_t
prepared_size(const char *option, int max_qp_wr)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	struct cq *cq;
	struct qp qp;
	uint16_t size;

	card.max_qp_wr = max_qp_wr;
	rdma_up_with(&card, "--rdma_prepared_qp_cnt=1", option, NULL);
	cq = queues();
	ASSERT_EQ(fake_alive(FAKE_QPS), 1);
	qp = get(cq, 16, 16);
	size = (uint16_t)cap_of(&qp).max_recv_wr;
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	ASSERT_EQ(fake_calls("create_qp"), 1);
	rdma_down();
	return size;
}

static void
test_size(void)
{
	ASSERT_EQ(prepared_size("--rdma_prepared_qp_size=1", 32768), 16);
	ASSERT_EQ(prepared_size("--rdma_prepared_qp_size=300", 32768), 300);
	ASSERT_EQ(prepared_size("--rdma_prepared_qp_size=100000", 32768), 4096);
	ASSERT_EQ(prepared_size("--rdma_prepared_qp_size=300", 100), 100);
}

/* ---- given ---- */

static void
test_handed_out_first(void)
{
	uint32_t nums[2];
	struct cq *cq;
	struct qp qps[3];

	rdma_up("--rdma_prepared_qp_cnt=2", NULL);
	cq = queues();
	ASSERT_EQ(fake_qps(nums, 2), 2);
	for (unsigned i = 0; i < 3; i++)
		qps[i] = get(cq, 128, 128);
	ASSERT_EQ(qps[0].qp->qp_num, nums[0]);
	ASSERT_EQ(qps[1].qp->qp_num, nums[1]);
	ASSERT_EQ(fake_calls("create_qp"), 3);
	for (unsigned i = 0; i < 3; i++) {
		ASSERT_EQ(qps[i].depth, 160);
		ASSERT_EQ(qps[i].max_sge, 30);
		ASSERT_EQ(qps[i].inline_bytes, QP_INLINE_BYTES);
		ASSERT_EQ(qp_pool_put(cq, &qps[i], true), 0);
		CU_ASSERT_PTR_NULL(qps[i].qp);
	}
	rdma_down();
}

/* The endpoint has arrays, and the completion queue room, for what was wanted. */
static void
test_smaller_wishes(void)
{
	struct cq *cq;
	struct qp qp;

	rdma_up("--rdma_prepared_qp_cnt=1", NULL);
	cq = queues();
	qp = get(cq, 16, 20);
	ASSERT_EQ(qp.depth, 20);
	ASSERT_EQ(cap_of(&qp).max_send_wr, 160);
	ASSERT_EQ(cap_of(&qp).max_recv_wr, 128);
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	qp = get(cq, 128, 128);
	ASSERT_EQ(qp.depth, 160);
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	ASSERT_EQ(fake_calls("create_qp"), 1);
	rdma_down();
}

static void
goes_past(struct cq *cq, uint16_t sq_size, uint16_t rq_size)
{
	unsigned made = fake_calls("create_qp");
	struct qp qp = get(cq, sq_size, rq_size);

	ASSERT_EQ(fake_calls("create_qp"), made + 1);
	ASSERT_EQ(cap_of(&qp).max_recv_wr, rq_size);
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 1);
}

static void
test_larger_wishes(void)
{
	struct cq *cq;

	rdma_up("--rdma_prepared_qp_cnt=1", NULL);
	cq = queues();
	goes_past(cq, 129, 128);
	goes_past(cq, 128, 129);
	goes_past(cq, 1024, 1024);
	rdma_down();
}

/* ---- taken back ---- */

static void
test_bounded(void)
{
	struct cq *cq;
	struct qp qps[4];

	rdma_up("--rdma_prepared_qp_cnt=2", NULL);
	cq = queues();
	for (unsigned i = 0; i < 4; i++)
		qps[i] = get(cq, 128, 128);
	for (unsigned i = 0; i < 4; i++)
		ASSERT_EQ(qp_pool_put(cq, &qps[i], true), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 2);
	ASSERT_EQ(fake_calls("modify_qp_reset"), 2);
	ASSERT_EQ(qp_pool_put(cq, &qps[0], true), 0);
	rdma_down();
}

static void
test_small_ones_are_not_kept(void)
{
	struct cq *cq;
	struct qp prepared, small;

	rdma_up("--rdma_prepared_qp_cnt=1", NULL);
	cq = queues();
	prepared = get(cq, 128, 128);
	small = get(cq, 64, 64);
	ASSERT_EQ(qp_pool_put(cq, &small, true), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 1);
	ASSERT_EQ(qp_pool_put(cq, &prepared, true), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 1);
	rdma_down();
}

static void
test_not_kept(void)
{
	struct cq *cq;
	struct qp a, b, c;

	rdma_up("--rdma_prepared_qp_cnt=3", NULL);
	cq = queues();
	a = get(cq, 128, 128);
	b = get(cq, 128, 128);
	c = get(cq, 128, 128);
	fake_fail("modify_qp_reset", 1, EIO);
	ASSERT_EQ(qp_pool_put(cq, &a, true), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 2);
	ASSERT_EQ(qp_pool_put(cq, &b, false), 0);
	ASSERT_EQ(fake_alive(FAKE_QPS), 1);
	fake_fail("modify_qp_reset", 1, EIO);
	fake_fail("destroy_qp", 1, EBUSY);
	ASSERT_EQ(qp_pool_put(cq, &c, true), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(c.qp);
	ASSERT_EQ(qp_pool_put(cq, &c, false), 0);
	rdma_down();
}

/* What the first life has left in the queue does not reach the second one, whose handle has the same place. */
static void
test_stale_completions(void)
{
	struct endpoint first = {.state = ENDPOINT_ENDED}, second = {.state = ENDPOINT_ENDED};
	uint64_t stale = counter_read(&g_cq_counters[CQ_STALE], NULL);
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad;
	const char *why = "";
	uint32_t handle, num;
	struct cq *cq;
	struct qp qp;

	rdma_up("--rdma_prepared_qp_cnt=1", NULL);
	cq = queues();
	ASSERT_EQ(cq_admit(cq, &first, 160, 128, &handle, &why), 0);
	recv.wr_id = wr_id_make(handle, WR_RECV, 0);
	ASSERT_EQ(qp_pool_get(cq, &g_want, handle, &qp, &why), 0);
	num = qp.qp->qp_num;
	ASSERT_EQ(qp_init(&qp, 1, &why), 0);
	ASSERT_EQ(ibv_post_recv(qp.qp, &recv, &bad), 0);
	ASSERT_EQ(qp_fail(&qp), 0);
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	cq_dismiss(cq, handle, 160, 128);
	ASSERT_EQ(cq->recv.used, 0);
	ASSERT_EQ(cq->recv.leaving, 128);

	ASSERT_EQ(cq_admit(cq, &second, 160, 128, &handle, &why), 0);
	ASSERT_EQ(qp_pool_get(cq, &g_want, handle, &qp, &why), 0);
	ASSERT_EQ(qp.qp->qp_num, num);
	cq_drain(cq);
	ASSERT_EQ(counter_read(&g_cq_counters[CQ_STALE], NULL), stale + 1);
	ASSERT_EQ(cq->recv.leaving, 0);
	ASSERT_EQ(cq->recv.used, 128);
	ASSERT_EQ(fake_queued(num, FAKE_RQ), 0);
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	cq_dismiss(cq, handle, 160, 128);
	rdma_down();
}

/* An event of one that rests concerns nobody. */
static void
test_context_at_rest(void)
{
	struct cq *cq;
	struct ibv_qp *left;
	struct qp qp;

	rdma_up("--rdma_prepared_qp_cnt=1", NULL);
	cq = queues();
	qp = get(cq, 128, 128);
	left = qp.qp;
	ASSERT_EQ(qp_pool_put(cq, &qp, true), 0);
	CU_ASSERT_PTR_EQUAL(left->qp_context, async_qp_context(0, ASYNC_NOBODY));
	CU_ASSERT_PTR_NULL(handles_find(cq->endpoints, ASYNC_NOBODY));
	rdma_down();
}

/* ---- connections ---- */

struct lives {
	struct probe server, client;
	struct xr_listener *listener;
};

static void
opened(struct probe *probe, struct xr_conn *conn, int status)
{
	NET_CHECK(status == 0);
	NET_CHECK(conn->endpoint != NULL);
	__atomic_store_n(&probe->bytes, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&probe->conn, conn, __ATOMIC_RELEASE);
}

static void
take(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)conn;
	__atomic_store_n(&probe->bytes, probe->bytes + take_pattern(in, probe->bytes), __ATOMIC_RELEASE);
}

static void
dial(void *arg)
{
	struct lives *lives = arg;

	probe_dial(&lives->client, xr_listener_address(lives->listener), XR_RDMA_REQUIRE);
}

static void
live_once(struct lives *lives, unsigned nth)
{
	rdma_do(dial, lives);
	NET_AWAIT(PROBE_READ(lives->client.opened) == nth + 1 && PROBE_READ(lives->server.opened) == nth + 1);
	for (unsigned i = 0; i < MESSAGES; i++) {
		NET_CHECK(rdma_send(lives->client.conn, i * 1000, 1000) == 0);
		NET_CHECK(rdma_send(lives->server.conn, i * 1000, 1000) == 0);
	}
	NET_AWAIT(PROBE_READ(lives->server.bytes) == MESSAGES * 1000);
	NET_AWAIT(PROBE_READ(lives->client.bytes) == MESSAGES * 1000);
	rdma_close(lives->client.conn);
	NET_AWAIT(PROBE_READ(lives->client.closed) == nth + 1 && PROBE_READ(lives->server.closed) == nth + 1);
}

static void
live_twice(void *arg)
{
	live_once(arg, 0);
	live_once(arg, 1);
	xr_stop();
}

static void
run_lives(void)
{
	struct probe probe = {.on_open = opened, .on_data = take};
	struct lives lives = {.server = probe, .client = probe};

	lives.listener = probe_listen(&lives.server, NULL);
	net_run(live_twice, &lives);
	ASSERT_EQ(fake_calls("create_qp"), 2);
	ASSERT_EQ(lives.client.close_reason, 0);
	ASSERT_EQ(lives.server.close_reason, 0);
	ASSERT_EQ(rdma_counted(RDMA_CONNECTIONS), 4);
	ASSERT_EQ(rdma_counted(RDMA_ERRORS), 0);
	rdma_down();
}

static void
test_connection_over_reused(void)
{
	rdma_up("--rdma_prepared_qp_cnt=2", NULL);
	run_lives();
}

/* Deeper queues than the endpoints' arrays. */
static void
test_small_connection_over_reused(void)
{
	rdma_up("--rdma_prepared_qp_cnt=2", "--rdma_sq_size=16", "--rdma_rq_size=16", NULL);
	run_lives();
}

UNIT_SUITE("qp_pool", {"none by default", test_none_by_default}, {"made ahead", test_made_ahead},
	   {"making them fails", test_making_fails},
	   {"a device that agrees to smaller ones", test_lowered_ones_are_not_kept}, {"their size", test_size},
	   {"handed out first", test_handed_out_first}, {"smaller wishes", test_smaller_wishes},
	   {"larger wishes go past them", test_larger_wishes}, {"no more are kept than told", test_bounded},
	   {"small ones are not kept", test_small_ones_are_not_kept},
	   {"what has failed, or can't be reset, is not kept", test_not_kept},
	   {"completions of an earlier life", test_stale_completions},
	   {"an event of one at rest", test_context_at_rest},
	   {"a connection over a reused one", test_connection_over_reused},
	   {"a small connection over a reused one", test_small_connection_over_reused});
