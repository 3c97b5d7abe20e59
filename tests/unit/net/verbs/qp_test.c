/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/async.h"
#include "net/verbs/qp.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

#define HANDLE 0x00070003u

static const struct qp_want g_want = {.sq_size = 128, .rq_size = 128, .inline_bytes = 220};

static struct cq *
up(const struct fake_device *card)
{
	const char *why = "";
	struct cq *cq;

	rdma_up_with(card, NULL);
	cq = cq_get(device_at(0), &why);
	ASSERT_FATAL(cq != NULL);
	return cq;
}

static void
down(struct qp *qp)
{
	ASSERT_EQ(qp_destroy(qp), 0);
	rdma_down();
}

/* The entry of the card's that is RoCE v2 at 127.0.0.1. */
static struct gid_entry
local_entry(void)
{
	struct gid_entry entry = {.device = 0, .ib_port = 1, .index = 2, .mtu = IBV_MTU_4096};

	ASSERT_EQ(ibv_query_gid(device_at(0)->context, 1, 2, &entry.gid), 0);
	return entry;
}

/* What a peer would say whose queue pair this is. */
static struct hello
hello_of(const struct qp *qp)
{
	struct hello hello = {.sq_size = qp->sq_size, .rq_size = qp->rq_size, .qp_num = qp->qp->qp_num};

	memcpy(hello.gid, local_entry().gid.raw, sizeof hello.gid);
	return hello;
}

static struct ibv_qp_attr
attr_of(const struct qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_EQ(ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr;
}

static struct ibv_qp_init_attr
init_of(const struct qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_EQ(ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init), 0);
	return init;
}

static struct qp
create(struct cq *cq, const struct qp_want *want)
{
	const char *why = "";
	struct qp qp;

	ASSERT_FATAL(qp_create(cq, want, HANDLE, &qp, &why) == 0);
	return qp;
}

/* ---- RESET ---- */

static void
test_created(void)
{
	struct cq *cq = up(NULL);
	struct qp qp = create(cq, &g_want);
	struct ibv_qp_init_attr init = init_of(&qp);

	ASSERT_EQ(init.qp_type, IBV_QPT_RC);
	ASSERT_EQ(init.sq_sig_all, 0);
	CU_ASSERT_PTR_NULL(init.srq);
	CU_ASSERT_PTR_EQUAL(init.send_cq, cq_send(cq));
	CU_ASSERT_PTR_EQUAL(init.recv_cq, cq_recv(cq));
	CU_ASSERT_PTR_EQUAL(qp.qp->pd, device_at(0)->pd);
	CU_ASSERT_PTR_EQUAL(qp.qp->qp_context, async_qp_context(0, HANDLE));
	ASSERT_EQ(init.cap.max_send_wr, 160);
	ASSERT_EQ(init.cap.max_recv_wr, 128);
	ASSERT_EQ(init.cap.max_send_sge, 30);
	ASSERT_EQ(init.cap.max_recv_sge, 1);
	ASSERT_EQ(init.cap.max_inline_data, 220);
	ASSERT_EQ(qp.sq_size, 128);
	ASSERT_EQ(qp.rq_size, 128);
	ASSERT_EQ(qp.depth, 160);
	ASSERT_EQ(qp.max_sge, 30);
	ASSERT_EQ(qp.inline_bytes, 220);
	ASSERT_EQ(fake_qp_state(qp.qp->qp_num), IBV_QPS_RESET);
	ASSERT_EQ(fake_calls("create_qp"), 1);
	down(&qp);
}

static uint16_t
depth_of(uint16_t sq_size, int max_qp_wr)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	struct qp_want want = {.sq_size = sq_size, .rq_size = 16};
	struct qp qp;
	uint16_t depth;

	card.max_qp_wr = max_qp_wr;
	qp = create(up(&card), &want);
	depth = qp.depth;
	ASSERT_EQ(qp.sq_size, sq_size);
	down(&qp);
	return depth;
}

static void
test_depth(void)
{
	ASSERT_EQ(depth_of(16, 1024), 20);
	ASSERT_EQ(depth_of(17, 1024), 21);
	ASSERT_EQ(depth_of(4096, 32768), 5120);
	ASSERT_EQ(depth_of(4096, 5000), 5000);
	ASSERT_EQ(depth_of(1024, 1024), 1024);
	ASSERT_EQ(depth_of(100, 1 << 20), 125);
}

/* Whoever asks for more than the device has is given what it has, in both directions. */
static void
test_sizes_beyond_the_device(void)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	const struct qp_want want = {.sq_size = 4096, .rq_size = 4096};
	struct qp qp;

	card.max_qp_wr = 100;
	qp = create(up(&card), &want);
	ASSERT_EQ(qp.sq_size, 100);
	ASSERT_EQ(qp.rq_size, 100);
	ASSERT_EQ(qp.depth, 100);
	ASSERT_EQ(fake_calls("create_qp"), 1);
	down(&qp);
}

static void
test_without_inline(void)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	struct qp qp;

	card.max_inline = 64;
	qp = create(up(&card), &g_want);
	ASSERT_EQ(qp.inline_bytes, 0);
	ASSERT_EQ(init_of(&qp).cap.max_inline_data, 0);
	ASSERT_EQ(qp.sq_size, 128);
	ASSERT_EQ(fake_calls("create_qp"), 2);
	down(&qp);
}

/* max_send_sge times the depth is what runs out: the size goes down, and inline data stays. */
static void
test_lowered(void)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	const struct qp_want want = {.sq_size = 512, .rq_size = 512, .inline_bytes = 220};
	struct qp qp;

	card.max_sq_sges = 30 * 200;
	qp = create(up(&card), &want);
	ASSERT_EQ(qp.sq_size, 128);
	ASSERT_EQ(qp.depth, 160);
	ASSERT_EQ(qp.max_sge, 30);
	ASSERT_EQ(qp.rq_size, 512);
	ASSERT_EQ(qp.inline_bytes, 220);
	ASSERT_EQ(init_of(&qp).cap.max_send_wr, 160);
	down(&qp);
}

static void
not_created(struct cq *cq, const struct qp_want *want, int error)
{
	const char *why = NULL;
	struct qp qp;

	ASSERT_EQ(qp_create(cq, want, HANDLE, &qp, &why), -error);
	ASSERT_STR(why, "the device gives no queue pair");
	CU_ASSERT_PTR_NULL(qp.qp);
	ASSERT_EQ(fake_alive(FAKE_QPS), 0);
	ASSERT_EQ(qp_destroy(&qp), 0);
}

static void
test_never_agrees(void)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	const struct qp_want want = {.sq_size = 512, .rq_size = 512, .inline_bytes = 220};

	card.max_sq_sges = 30 * 19; /* one less than the smallest takes */
	not_created(up(&card), &want, ENOMEM);
	ASSERT_EQ(fake_calls("create_qp"), 2 * 6); /* 512, 256, ... 16 */
	CU_ASSERT_TRUE(net_logged(
		"RDMA device fake0 gives no queue pair of 16 sends and 512 receives: Cannot allocate memory"));
	rdma_down();
}

/* A device that does not work is not asked for less. */
static void
test_other_errors(void)
{
	struct cq *cq = up(NULL);

	fake_fail_times("create_qp", 1, 2, EIO);
	not_created(cq, &g_want, EIO);
	ASSERT_EQ(fake_calls("create_qp"), 1);
	rdma_down();
}

static void
test_device_of_16(void)
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");
	struct qp qp;

	card.max_qp_wr = 16;
	qp = create(up(&card), &g_want);
	ASSERT_EQ(qp.sq_size, 16);
	ASSERT_EQ(qp.depth, 16);
	down(&qp);
}

/* ---- INIT, RTR, RTS ---- */

static void
test_init(void)
{
	struct qp qp = create(up(NULL), &g_want);
	struct ibv_qp_attr attr;
	const char *why = NULL;

	ASSERT_EQ(qp_init(&qp, 1, &why), 0);
	CU_ASSERT_PTR_NULL(why);
	attr = attr_of(&qp);
	ASSERT_EQ(attr.qp_state, IBV_QPS_INIT);
	ASSERT_EQ(attr.port_num, 1);
	ASSERT_EQ(attr.pkey_index, 0);
	ASSERT_EQ(attr.qp_access_flags, 0);
	down(&qp);
}

static void
test_init_fails(void)
{
	struct qp qp = create(up(NULL), &g_want);
	const char *why = NULL;

	fake_fail("modify_qp_init", 1, EINVAL);
	ASSERT_EQ(qp_init(&qp, 1, &why), -EINVAL);
	ASSERT_STR(why, "the queue pair did not go to INIT");
	ASSERT_EQ(fake_qp_state(qp.qp->qp_num), IBV_QPS_RESET);
	down(&qp);
}

/* As brpc's: whoever speaks to it must have the same MTU and PSN, and there must be no retry when nobody is ready. */
static void
test_connected(void)
{
	struct qp qp = create(up(NULL), &g_want);
	struct gid_entry local = local_entry();
	struct hello peer = hello_of(&qp);
	struct ibv_qp_attr attr;
	const char *why = NULL;

	peer.qp_num = 0xabcdef;
	peer.lid = 0x1234;
	ASSERT_EQ(qp_init(&qp, 1, &why), 0);
	ASSERT_EQ(qp_connect(&qp, &local, &peer, &why), 0);
	CU_ASSERT_PTR_NULL(why);
	attr = attr_of(&qp);
	ASSERT_EQ(attr.qp_state, IBV_QPS_RTS);
	ASSERT_EQ(attr.path_mtu, IBV_MTU_1024);
	ASSERT_EQ(attr.dest_qp_num, 0xabcdef);
	ASSERT_EQ(attr.rq_psn, 0);
	ASSERT_EQ(attr.sq_psn, 0);
	ASSERT_EQ(attr.max_dest_rd_atomic, 0);
	ASSERT_EQ(attr.max_rd_atomic, 0);
	ASSERT_EQ(attr.min_rnr_timer, 0);
	ASSERT_EQ(attr.timeout, 14);
	ASSERT_EQ(attr.retry_cnt, 7);
	ASSERT_EQ(attr.rnr_retry, 0);
	ASSERT_EQ(attr.qp_access_flags, 0);
	ASSERT_EQ(attr.ah_attr.is_global, 1);
	ASSERT_EQ(attr.ah_attr.dlid, 0x1234);
	ASSERT_EQ(attr.ah_attr.sl, 0);
	ASSERT_EQ(attr.ah_attr.src_path_bits, 0);
	ASSERT_EQ(attr.ah_attr.static_rate, 0);
	ASSERT_EQ(attr.ah_attr.port_num, 1);
	ASSERT_EQ(attr.ah_attr.grh.sgid_index, 2);
	ASSERT_EQ(attr.ah_attr.grh.hop_limit, 16);
	ASSERT_EQ(attr.ah_attr.grh.flow_label, 0);
	ASSERT_EQ(attr.ah_attr.grh.traffic_class, 0);
	ASSERT_EQ(memcmp(attr.ah_attr.grh.dgid.raw, peer.gid, 16), 0);
	down(&qp);
}

static void
connect_fails(const char *verb, int error, const char *expected, enum ibv_qp_state state)
{
	struct qp qp = create(up(NULL), &g_want);
	struct gid_entry local = local_entry();
	struct hello peer = hello_of(&qp);
	const char *why = NULL;

	ASSERT_EQ(qp_init(&qp, 1, &why), 0);
	fake_fail(verb, 1, error);
	ASSERT_EQ(qp_connect(&qp, &local, &peer, &why), -error);
	ASSERT_STR(why, expected);
	ASSERT_EQ(fake_qp_state(qp.qp->qp_num), state);
	down(&qp);
}

static void
test_connect_fails(void)
{
	connect_fails("modify_qp_rtr", ENETUNREACH,
		      "the queue pair did not go to RTR; is the peer's GID in the same network?", IBV_QPS_INIT);
	connect_fails("modify_qp_rts", EINVAL, "the queue pair did not go to RTS", IBV_QPS_RTR);
}

/* Two of them carry a message. */
static void
test_they_work(void)
{
	struct cq *cq = up(NULL);
	struct qp a = create(cq, &g_want), b = create(cq, &g_want);
	struct hello hello_a = hello_of(&a), hello_b = hello_of(&b);
	struct gid_entry local = local_entry();
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED, .wr_id = 5};
	struct ibv_recv_wr recv = {.wr_id = 6}, *bad_recv;
	struct ibv_send_wr *bad_send;
	const char *why = NULL;
	struct ibv_wc wc;

	ASSERT_EQ(qp_init(&a, 1, &why), 0);
	ASSERT_EQ(qp_init(&b, 1, &why), 0);
	ASSERT_EQ(ibv_post_recv(b.qp, &recv, &bad_recv), 0);
	ASSERT_EQ(qp_connect(&a, &local, &hello_b, &why), 0);
	ASSERT_EQ(qp_connect(&b, &local, &hello_a, &why), 0);
	ASSERT_EQ(ibv_post_send(a.qp, &send, &bad_send), 0);
	ASSERT_EQ(ibv_poll_cq(cq_send(cq), 1, &wc), 1);
	ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
	ASSERT_EQ(wc.wr_id, 5);
	ASSERT_EQ(ibv_poll_cq(cq_recv(cq), 1, &wc), 1);
	ASSERT_EQ(wc.wr_id, 6);
	ASSERT_EQ(qp_destroy(&a), 0);
	down(&b);
}

/* ---- its end ---- */

static void
test_fail_flushes(void)
{
	struct cq *cq = up(NULL);
	struct qp qp = create(cq, &g_want);
	struct ibv_recv_wr recv = {.wr_id = 6}, *bad;
	const char *why = NULL;
	struct ibv_wc wc;

	ASSERT_EQ(qp_init(&qp, 1, &why), 0);
	ASSERT_EQ(ibv_post_recv(qp.qp, &recv, &bad), 0);
	ASSERT_EQ(qp_fail(&qp), 0);
	ASSERT_EQ(fake_qp_state(qp.qp->qp_num), IBV_QPS_ERR);
	ASSERT_EQ(ibv_poll_cq(cq_recv(cq), 1, &wc), 1);
	ASSERT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	fake_fail("modify_qp_err", 1, EIO);
	ASSERT_EQ(qp_fail(&qp), -EIO);
	down(&qp);
}

static void
test_destroyed_once(void)
{
	struct qp qp = create(up(NULL), &g_want);

	fake_fail("destroy_qp", 1, EBUSY);
	ASSERT_EQ(qp_destroy(&qp), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(qp.qp);
	ASSERT_EQ(qp_destroy(&qp), 0);
	CU_ASSERT_PTR_NULL(qp.qp);
	ASSERT_EQ(qp_destroy(&qp), 0);
	ASSERT_EQ(fake_calls("destroy_qp"), 2);
	rdma_down();
}

/* A device that was pulled out says EIO to everything, and has nothing any more. */
static void
test_destroyed_with_its_device(void)
{
	struct qp qp = create(up(NULL), &g_want);
	struct ibv_qp *left = qp.qp;

	fake_fail_times("destroy_qp", 1, 2, EIO);
	ASSERT_EQ(qp_destroy(&qp), -EIO);
	__atomic_store_n(&device_at(0)->failed, true, __ATOMIC_RELAXED);
	ASSERT_EQ(qp_destroy(&qp), 0);
	CU_ASSERT_PTR_NULL(qp.qp);
	ASSERT_EQ(ibv_destroy_qp(left), 0);
	rdma_down();
}

UNIT_SUITE("qp", {"what it is made of", test_created},
	   {"a quarter deeper than its window, within the device's limit", test_depth},
	   {"sizes beyond the device's", test_sizes_beyond_the_device}, {"without inline data", test_without_inline},
	   {"lowered until the device agrees", test_lowered}, {"a device that never agrees", test_never_agrees},
	   {"a device that does not work", test_other_errors}, {"a device of 16 requests", test_device_of_16},
	   {"INIT lets nobody in", test_init}, {"INIT fails", test_init_fails},
	   {"RTR and RTS have brpc's attributes", test_connected}, {"RTR and RTS fail", test_connect_fails},
	   {"a message goes through", test_they_work}, {"ERR flushes", test_fail_flushes},
	   {"destroyed once", test_destroyed_once}, {"destroyed with its device", test_destroyed_with_its_device});
