/* SPDX-License-Identifier: Apache-2.0 */

/* Queue pairs: what they are made of, the steps between their states, and their end. */

#include "tests/unit/fakeverbs/pair.h"

#define SEND_AT 32768

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                                                      \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | \
	 IBV_QP_MIN_RNR_TIMER)
#define TO_RTS \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

/* ---- making ---- */

/* One end, with or without its queue pair. */
static void
open_end(struct end *end, bool with_qp)
{
	pair_devices();
	end_open(end, 0, &(struct pair_want){0});
	if (with_qp)
		return;
	ASSERT_EQ(ibv_destroy_qp(end->qp), 0);
	end->qp = NULL;
}

static struct ibv_qp_init_attr
init_attr(const struct end *end)
{
	return (struct ibv_qp_init_attr){
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
}

static void
assert_refused(struct end *end, struct ibv_qp_init_attr attr, int error)
{
	CU_ASSERT_PTR_NULL(ibv_create_qp(end->pd, &attr));
	ASSERT_EQ(errno, error);
}

static void
test_what_a_device_does_not_have_is_refused(void)
{
	struct ibv_qp_init_attr attr;
	struct end end;

	open_end(&end, false);
	attr = init_attr(&end);
	attr.cap.max_send_wr = 1025;
	assert_refused(&end, attr, EINVAL);
	attr = init_attr(&end);
	attr.cap.max_recv_wr = 1025;
	assert_refused(&end, attr, EINVAL);
	attr = init_attr(&end);
	attr.cap.max_send_sge = 31;
	assert_refused(&end, attr, EINVAL);
	attr = init_attr(&end);
	attr.cap.max_recv_sge = 31;
	assert_refused(&end, attr, EINVAL);
	attr = init_attr(&end);
	attr.cap.max_inline_data = 513;
	assert_refused(&end, attr, EINVAL);
	attr = init_attr(&end);
	attr.qp_type = IBV_QPT_UD;
	assert_refused(&end, attr, EOPNOTSUPP);
	attr = init_attr(&end);
	attr.recv_cq = NULL;
	assert_refused(&end, attr, EINVAL);
	CU_ASSERT(fake_forgive("without a completion queue"));
	end_close(&end);
	assert_clean();
}

static void
test_depth_and_sges_share_one_budget(void)
{
	struct fake_device device = fake_device("small", "10.0.0.3");
	struct ibv_qp_init_attr attr;
	struct end end;

	open_end(&end, false);
	end_close(&end);
	fake_reset();
	device.max_sq_sges = 40;
	device.max_qp = 1;
	fake_device_add(&device);
	end_open(&end, 0, &(struct pair_want){.depth = 8});
	attr = init_attr(&end);
	assert_refused(&end, attr, ENOMEM); /* one queue pair and no more */
	ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
	attr.cap.max_send_wr = 11;
	attr.cap.max_send_sge = 4;
	assert_refused(&end, attr, ENOMEM);
	attr.cap.max_send_wr = 10;
	end.qp = ibv_create_qp(end.pd, &attr);
	CU_ASSERT_PTR_NOT_NULL(end.qp);
	end_close(&end);
	assert_clean();
}

static void
test_empty_queues(void)
{
	struct ibv_qp_init_attr attr;
	struct end end;

	open_end(&end, false);
	attr = init_attr(&end);
	attr.cap = (struct ibv_qp_cap){0};
	end.qp = ibv_create_qp(end.pd, &attr);
	ASSERT_FATAL(end.qp != NULL);
	ASSERT_EQ(end_init(&end), 0);
	ASSERT_EQ(ibv_post_recv(end.qp, &(struct ibv_recv_wr){0}, &(struct ibv_recv_wr *){NULL}), ENOMEM);
	end_close(&end);
	assert_clean();
}

/* ---- states ---- */

static struct ibv_qp_attr
full_attr(const struct end *end, enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = end->qp->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = end->gid, .sgid_index = 2, .hop_limit = 16}},
		.timeout = 14,
		.retry_cnt = 7,
	};
}

/* Each attribute of the mask left out, then one added that does not belong. */
static void
assert_mask_is_exact(struct end *end, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = full_attr(end, state);

	for (int bit = 1; bit <= mask; bit <<= 1) {
		if (!(mask & bit) || bit == IBV_QP_STATE)
			continue;
		ASSERT_EQ(ibv_modify_qp(end->qp, &attr, mask & ~bit), EINVAL);
		CU_ASSERT(fake_forgive("attributes missing"));
	}
	ASSERT_EQ(ibv_modify_qp(end->qp, &attr, mask | IBV_QP_QKEY), EINVAL);
	CU_ASSERT(fake_forgive("not allowed 0x40"));
	ASSERT_EQ(ibv_modify_qp(end->qp, &attr, mask), 0);
	ASSERT_EQ(end->qp->state, state);
	ASSERT_EQ(fake_qp_state(end->qp->qp_num), state);
}

static void
test_each_step_wants_its_attributes(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct end end;

	open_end(&end, true);
	assert_mask_is_exact(&end, IBV_QPS_INIT, TO_INIT);
	assert_mask_is_exact(&end, IBV_QPS_RTR, TO_RTR);
	assert_mask_is_exact(&end, IBV_QPS_RTS, TO_RTS);
	ASSERT_EQ(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	CU_ASSERT(fake_forgive("from RTS to ERR"));
	ASSERT_EQ(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), 0);
	end_close(&end);
	assert_clean();
}

static void
test_steps_that_there_are_not(void)
{
	struct end end;

	open_end(&end, true);
	ASSERT_EQ(end_rts(&end, 0), EINVAL);
	CU_ASSERT(fake_forgive("can't go from RESET to RTS"));
	ASSERT_EQ(end_rtr(&end, &end, IBV_MTU_1024), EINVAL);
	CU_ASSERT(fake_forgive("can't go from RESET to RTR"));
	ASSERT_EQ(end_error(&end), 0);
	ASSERT_EQ(end_init(&end), EINVAL);
	CU_ASSERT(fake_forgive("can't go from ERR to INIT"));
	end_close(&end);
	assert_clean();
}

static void
assert_fault(struct end *end, const struct ibv_qp_attr *attr, int mask, const char *text)
{
	struct ibv_qp_attr copy = *attr;

	ASSERT_EQ(ibv_modify_qp(end->qp, &copy, mask), EINVAL);
	CU_ASSERT(fake_forgive(text));
}

static void
test_attributes_are_looked_at(void)
{
	struct ibv_qp_attr attr;
	struct end end;

	open_end(&end, true);
	attr = full_attr(&end, IBV_QPS_INIT);
	attr.port_num = 2;
	assert_fault(&end, &attr, TO_INIT, "no such port");
	attr.port_num = 1;
	attr.pkey_index = 1;
	assert_fault(&end, &attr, TO_INIT, "pkey_index");
	ASSERT_EQ(end_init(&end), 0);

	attr = full_attr(&end, IBV_QPS_RTR);
	attr.path_mtu = 0;
	assert_fault(&end, &attr, TO_RTR, "path_mtu");
	attr = full_attr(&end, IBV_QPS_RTR);
	attr.dest_qp_num = 1 << 24;
	assert_fault(&end, &attr, TO_RTR, "24 bits");
	attr = full_attr(&end, IBV_QPS_RTR);
	attr.min_rnr_timer = 32;
	assert_fault(&end, &attr, TO_RTR, "min_rnr_timer");
	attr = full_attr(&end, IBV_QPS_RTR);
	attr.max_dest_rd_atomic = 17;
	assert_fault(&end, &attr, TO_RTR, "max_dest_rd_atomic");
	attr = full_attr(&end, IBV_QPS_RTR);
	attr.ah_attr.port_num = 2;
	assert_fault(&end, &attr, TO_RTR, "another port");
	attr = full_attr(&end, IBV_QPS_RTR);
	attr.ah_attr.is_global = 0;
	assert_fault(&end, &attr, TO_RTR, "GRH");
	attr = full_attr(&end, IBV_QPS_RTR);
	attr.ah_attr.grh.sgid_index = 3;
	assert_fault(&end, &attr, TO_RTR, "sgid_index");
	ASSERT_EQ(end_rtr(&end, &end, IBV_MTU_1024), 0);

	attr = full_attr(&end, IBV_QPS_RTS);
	attr.retry_cnt = 8;
	assert_fault(&end, &attr, TO_RTS, "retry_cnt");
	attr = full_attr(&end, IBV_QPS_RTS);
	attr.sq_psn = 1 << 24;
	assert_fault(&end, &attr, TO_RTS, "sq_psn");
	attr = full_attr(&end, IBV_QPS_RTS);
	attr.max_rd_atomic = 17;
	assert_fault(&end, &attr, TO_RTS, "max_rd_atomic");
	attr = full_attr(&end, IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_INIT;
	assert_fault(&end, &attr, TO_RTS | IBV_QP_CUR_STATE, "cur_qp_state");
	end_close(&end);
	assert_clean();
}

static void
test_mtu_above_the_port(void)
{
	struct fake_device device = fake_device("narrow", "10.0.0.3");
	struct end end;

	fake_reset();
	device.ports[0].active_mtu = IBV_MTU_512;
	fake_device_add(&device);
	end_open(&end, 0, &(struct pair_want){0});
	ASSERT_EQ(end_init(&end), 0);
	ASSERT_EQ(end_rtr(&end, &end, IBV_MTU_1024), EINVAL);
	CU_ASSERT(fake_forgive("path_mtu"));
	ASSERT_EQ(end_rtr(&end, &end, IBV_MTU_512), 0);
	end_close(&end);
	assert_clean();
}

static void
test_query_tells_the_real_state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair pair;

	pair_open(&pair, NULL);
	fake_fail_qp(pair.a.qp->qp_num);
	ASSERT_EQ(pair.a.qp->state, IBV_QPS_RTS);
	ASSERT_EQ(ibv_query_qp(pair.a.qp, &attr, IBV_QP_STATE, &init), 0);
	ASSERT_EQ(attr.qp_state, IBV_QPS_ERR);
	ASSERT_EQ(attr.path_mtu, IBV_MTU_1024);
	ASSERT_EQ(attr.dest_qp_num, pair.b.qp->qp_num);
	ASSERT_EQ(attr.cap.max_send_wr, 8);
	ASSERT_EQ(init.cap.max_send_sge, 4);
	ASSERT_EQ(fake_qp_state(0x999999), IBV_QPS_UNKNOWN);
	pair_close(&pair);
}

/* ---- reset and end ---- */

static void
test_reset_forgets_and_starts_anew(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.depth = 2, .cq_depth = 8});
	recv_many(&pair.b, 2);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 1), 0);
	fake_hold(FAKE_DELIVERY, 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 2), 0);
	ASSERT_EQ(ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE), 0);
	ASSERT_EQ(fake_queued(pair.a.qp->qp_num, FAKE_SQ), 0);
	fake_let_go(FAKE_DELIVERY, 0);
	ASSERT_EQ(end_init(&pair.a), 0);
	ASSERT_EQ(end_rtr(&pair.a, &pair.b, IBV_MTU_1024), 0);
	ASSERT_EQ(end_rts(&pair.a, 0), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 3), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 1); /* of its former life, and frees nothing of this one */
	ASSERT_EQ(fake_queued(pair.a.qp->qp_num, FAKE_SQ), 1);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, NO_COMPLETION);
	pair_close(&pair);
}

static void
test_completions_outlive_the_queue_pair(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 7), 0);
	ASSERT_EQ(ibv_destroy_qp(pair.a.qp), 0);
	pair.a.qp = NULL;
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 7);
	pair_close(&pair);
}

static void
test_some_cards_drop_the_completions(void)
{
	struct fake_device device = fake_device("tidy", "10.0.0.3");
	struct pair pair;

	fake_reset();
	device.drops_completions = true;
	fake_device_add(&device);
	end_open(&pair.a, 0, &(struct pair_want){0});
	ASSERT_EQ(end_init(&pair.a), 0);
	recv_many(&pair.a, 2);
	ASSERT_EQ(end_error(&pair.a), 0);
	fake_complete(pair.a.recv_cq, &(struct ibv_wc){.wr_id = 9, .qp_num = 1}, false);
	ASSERT_EQ(fake_cq_fill(pair.a.recv_cq), 3);
	ASSERT_EQ(ibv_destroy_qp(pair.a.qp), 0);
	pair.a.qp = NULL;
	ASSERT_EQ(fake_cq_fill(pair.a.recv_cq), 1);
	ASSERT_EQ(poll_one(pair.a.recv_cq).wr_id, 9);
	end_close(&pair.a);
	assert_clean();
}

static void
test_queue_pairs_are_listed(void)
{
	struct pair pair;
	uint32_t nums[2];

	pair_open(&pair, NULL);
	ASSERT_EQ(fake_qps(nums, 2), 2);
	ASSERT_EQ(nums[0], pair.a.qp->qp_num);
	ASSERT_EQ(nums[1], pair.b.qp->qp_num);
	ASSERT_EQ(fake_qps(NULL, 0), 2);
	pair_close(&pair);
	ASSERT_EQ(fake_qps(nums, 2), 0);
}

UNIT_SUITE("fakeverbs/qp", {"what a device does not have is refused", test_what_a_device_does_not_have_is_refused},
	   {"depth and SGEs share one budget", test_depth_and_sges_share_one_budget},
	   {"empty queues", test_empty_queues}, {"each step wants its attributes", test_each_step_wants_its_attributes},
	   {"steps that there are not", test_steps_that_there_are_not},
	   {"attributes are looked at", test_attributes_are_looked_at},
	   {"an MTU above the port's", test_mtu_above_the_port},
	   {"a query tells the real state", test_query_tells_the_real_state},
	   {"a reset forgets and starts anew", test_reset_forgets_and_starts_anew},
	   {"completions outlive the queue pair", test_completions_outlive_the_queue_pair},
	   {"some cards drop the completions", test_some_cards_drop_the_completions},
	   {"queue pairs are listed", test_queue_pairs_are_listed});
