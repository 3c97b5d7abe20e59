/* SPDX-License-Identifier: Apache-2.0 */

/* Failures by name, what was counted and logged, violations, leaks, and the reset. */

#include "tests/unit/fakeverbs/pair.h"
#include <stdlib.h>

#define SEND_AT 32768

/* ---- failures ---- */

static void
test_the_nth_call_fails(void)
{
	struct ibv_context *context;
	struct ibv_pd *pd;

	pair_devices();
	context = open_device(0);
	fake_fail("alloc_pd", 2, EPERM);
	pd = ibv_alloc_pd(context);
	ASSERT_FATAL(pd != NULL);
	CU_ASSERT_PTR_NULL(ibv_alloc_pd(context));
	ASSERT_EQ(errno, EPERM);
	ASSERT_EQ(ibv_dealloc_pd(pd), 0);
	pd = ibv_alloc_pd(context);
	CU_ASSERT_PTR_NOT_NULL(pd);
	ASSERT_EQ(fake_calls("alloc_pd"), 3);
	ASSERT_EQ(ibv_dealloc_pd(pd), 0);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

static void
test_failures_last_as_long_as_asked(void)
{
	struct ibv_device_attr attr;
	struct ibv_context *context;

	pair_devices();
	context = open_device(0);
	fake_fail_times("query_device", 2, 2, ENOMEM);
	ASSERT_EQ(ibv_query_device(context, &attr), 0);
	ASSERT_EQ(ibv_query_device(context, &attr), ENOMEM);
	ASSERT_EQ(ibv_query_device(context, &attr), ENOMEM);
	ASSERT_EQ(ibv_query_device(context, &attr), 0);
	fake_fail_times("query_device", 1, FAKE_FOREVER, EIO);
	for (unsigned i = 0; i < 10; i++)
		ASSERT_EQ(ibv_query_device(context, &attr), EIO);
	fake_fail_none();
	ASSERT_EQ(ibv_query_device(context, &attr), 0);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

static void
test_failures_that_can_not_be(void)
{
	fake_reset();
	fake_fail("make_coffee", 1, EIO);
	CU_ASSERT(fake_forgive("make_coffee"));
	fake_fail("create_cq", 0, EIO);
	CU_ASSERT(fake_forgive("call 0 of create_cq"));
	ASSERT_EQ(fake_calls("make_tea"), 0);
	CU_ASSERT(fake_forgive("make_tea"));
	CU_ASSERT_FALSE(fake_forgive("make"));
	fake_fail_recv(7, IBV_WC_GENERAL_ERR);
	fake_fail_send(7, 1, IBV_WC_GENERAL_ERR);
	fake_fail_qp(7);
	fake_hold(FAKE_ACK, 7);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT(fake_forgive("queue pair 7, which there is not"));
	fake_port_set(3, 1, IBV_PORT_DOWN);
	CU_ASSERT(fake_forgive("device 3, which there is not"));
	assert_clean();
}

static int
try_get_device_list(struct pair *pair)
{
	(void)pair;
	return ibv_get_device_list(NULL) ? 0 : errno;
}

static int
try_open_device(struct pair *pair)
{
	(void)pair;
	return open_device(0) ? 0 : errno;
}

static int
try_query_device(struct pair *pair)
{
	struct ibv_device_attr attr;

	return ibv_query_device(pair->a.context, &attr);
}

static int
try_query_port(struct pair *pair)
{
	struct ibv_port_attr attr;

	return ibv_query_port(pair->a.context, 1, &attr);
}

static int
try_query_gid(struct pair *pair)
{
	union ibv_gid gid;

	return ibv_query_gid(pair->a.context, 1, 0, &gid) == 0 ? 0 : errno;
}

static int
try_query_gid_ex(struct pair *pair)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(pair->a.context, 1, 0, &entry, 0);
}

static int
try_query_gid_table(struct pair *pair)
{
	struct ibv_gid_entry entries[8];
	ssize_t count = ibv_query_gid_table(pair->a.context, entries, 8, 0);

	return count < 0 ? (int)-count : 0;
}

static int
try_query_pkey(struct pair *pair)
{
	__be16 pkey;

	return ibv_query_pkey(pair->a.context, 1, 0, &pkey) == 0 ? 0 : errno;
}

static int
try_alloc_pd(struct pair *pair)
{
	return ibv_alloc_pd(pair->a.context) ? 0 : errno;
}

static int
try_reg_mr(struct pair *pair)
{
	return ibv_reg_mr(pair->a.pd, pair->a.memory, 1, 0) ? 0 : errno;
}

static int
try_create_comp_channel(struct pair *pair)
{
	return ibv_create_comp_channel(pair->a.context) ? 0 : errno;
}

static int
try_create_cq(struct pair *pair)
{
	return ibv_create_cq(pair->a.context, 1, NULL, NULL, 0) ? 0 : errno;
}

static int
try_resize_cq(struct pair *pair)
{
	return ibv_resize_cq(pair->a.send_cq, 9);
}

static int
try_create_qp(struct pair *pair)
{
	struct ibv_qp_init_attr attr = {.send_cq = pair->a.send_cq, .recv_cq = pair->a.recv_cq, .qp_type = IBV_QPT_RC};

	return ibv_create_qp(pair->a.pd, &attr) ? 0 : errno;
}

static int
try_query_qp(struct pair *pair)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(pair->a.qp, &attr, 0, &init);
}

static int
try_modify_qp(struct pair *pair)
{
	return end_error(&pair->a);
}

static int
try_poll_cq(struct pair *pair)
{
	struct ibv_wc wc;

	return -ibv_poll_cq(pair->a.send_cq, 1, &wc);
}

static int
try_req_notify_cq(struct pair *pair)
{
	return ibv_req_notify_cq(pair->a.send_cq, 0);
}

static int
try_get_cq_event(struct pair *pair)
{
	struct ibv_cq *cq;
	void *arg;

	return ibv_get_cq_event(pair->a.channel, &cq, &arg) == 0 ? 0 : errno;
}

static int
try_get_async_event(struct pair *pair)
{
	struct ibv_async_event event;

	return ibv_get_async_event(pair->a.context, &event) == 0 ? 0 : errno;
}

static int
try_post_send(struct pair *pair)
{
	return send_one(&pair->a, 0, 0, 0, 0);
}

static int
try_post_recv(struct pair *pair)
{
	return recv_one(&pair->a, 0, 1, 0);
}

static int
try_destroy_qp(struct pair *pair)
{
	return ibv_destroy_qp(pair->a.qp);
}

static int
try_destroy_cq(struct pair *pair)
{
	return ibv_destroy_cq(pair->a.send_cq);
}

static int
try_destroy_comp_channel(struct pair *pair)
{
	return ibv_destroy_comp_channel(pair->a.channel);
}

static int
try_dereg_mr(struct pair *pair)
{
	return ibv_dereg_mr(pair->a.mr);
}

static int
try_dealloc_pd(struct pair *pair)
{
	return ibv_dealloc_pd(pair->a.pd);
}

static int
try_close_device(struct pair *pair)
{
	return ibv_close_device(pair->a.context) == 0 ? 0 : errno;
}

/* Each verb that can fail does, by its name, and has then done nothing. */
static void
test_every_verb_can_fail(void)
{
	static const struct {
		const char *name;
		int (*call)(struct pair *pair);
	} verbs[] = {
		{"get_device_list", try_get_device_list},
		{"open_device", try_open_device},
		{"query_device", try_query_device},
		{"query_port", try_query_port},
		{"query_gid", try_query_gid},
		{"query_gid_ex", try_query_gid_ex},
		{"query_gid_table", try_query_gid_table},
		{"query_pkey", try_query_pkey},
		{"alloc_pd", try_alloc_pd},
		{"reg_mr", try_reg_mr},
		{"create_comp_channel", try_create_comp_channel},
		{"create_cq", try_create_cq},
		{"resize_cq", try_resize_cq},
		{"create_qp", try_create_qp},
		{"query_qp", try_query_qp},
		{"modify_qp", try_modify_qp},
		{"modify_qp_err", try_modify_qp},
		{"poll_cq", try_poll_cq},
		{"req_notify_cq", try_req_notify_cq},
		{"get_cq_event", try_get_cq_event},
		{"get_async_event", try_get_async_event},
		{"post_send", try_post_send},
		{"send_wr", try_post_send},
		{"post_recv", try_post_recv},
		{"recv_wr", try_post_recv},
		{"destroy_qp", try_destroy_qp},
		{"destroy_cq", try_destroy_cq},
		{"destroy_comp_channel", try_destroy_comp_channel},
		{"dereg_mr", try_dereg_mr},
		{"dealloc_pd", try_dealloc_pd},
		{"close_device", try_close_device},
	};
	struct pair pair;

	pair_open(&pair, NULL);
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		fake_fail(verbs[i].name, 1, ENOTUNIQ);
		ASSERT_EQ(verbs[i].call(&pair), ENOTUNIQ);
	}
	ASSERT_EQ(fake_qp_state(pair.a.qp->qp_num), IBV_QPS_RTS);
	pair_close(&pair);
}

static void
test_each_step_of_modify_can_fail(void)
{
	struct pair_want want = {0};
	struct end end;

	pair_devices();
	end_open(&end, 0, &want);
	fake_fail("modify_qp_init", 1, ENOMEM);
	fake_fail("modify_qp_rtr", 1, ETIMEDOUT);
	fake_fail("modify_qp_rts", 1, ENOMEM);
	ASSERT_EQ(end_init(&end), ENOMEM);
	ASSERT_EQ(end_init(&end), 0);
	ASSERT_EQ(end_rtr(&end, &end, IBV_MTU_1024), ETIMEDOUT);
	ASSERT_EQ(end_rtr(&end, &end, IBV_MTU_1024), 0);
	ASSERT_EQ(end_rts(&end, 0), ENOMEM);
	ASSERT_EQ(end_rts(&end, 0), 0);
	ASSERT_EQ(fake_calls("modify_qp"), 6);
	end_close(&end);
	assert_clean();
}

/* ---- counts and the log ---- */

static void
test_what_is_counted(void)
{
	struct pair pair;
	struct fake_counts counts;

	pair_open(&pair, &(struct pair_want){.device_b = 1, .inline_bytes = 64});
	recv_many(&pair.b, 4);
	fake_counts_clear();
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 10, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, 3), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 20, IBV_SEND_INLINE, 4), 0);
	ASSERT_EQ(send_one(&pair.a, 0, 0, IBV_SEND_SOLICITED, 5), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 3);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, NO_COMPLETION);
	counts = fake_qp_counts(pair.a.qp->qp_num);
	ASSERT_EQ(counts.post_send, 3);
	ASSERT_EQ(counts.sends, 3);
	ASSERT_EQ(counts.signaled, 1);
	ASSERT_EQ(counts.solicited, 2);
	ASSERT_EQ(counts.inlined, 1);
	ASSERT_EQ(counts.zero_length, 1);
	ASSERT_EQ(counts.credits, 12);
	ASSERT_EQ(counts.send_bytes, 30);
	counts = fake_device_counts(0);
	ASSERT_EQ(counts.sends, 3);
	ASSERT_EQ(counts.polls, 2);
	ASSERT_EQ(counts.polls_empty, 1);
	ASSERT_EQ(counts.completions, 1);
	ASSERT_EQ(fake_device_counts(1).delivered, 3);
	ASSERT_EQ(fake_device_counts(1).sends, 0);
	ASSERT_EQ(fake_qp_counts(pair.b.qp->qp_num).delivered, 3);
	pair_close(&pair);
	ASSERT_EQ(fake_qp_counts(0x999999).sends, 0);
}

static void
test_event_counts(void)
{
	struct pair pair;
	struct fake_counts counts;
	struct ibv_cq *cq;
	void *arg;

	pair_open(&pair, &(struct pair_want){.device_b = 1});
	fake_counts_clear();
	recv_many(&pair.b, 2);
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 0), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 0), 0);
	ASSERT_EQ(ibv_get_cq_event(pair.b.channel, &cq, &arg), 0);
	counts = fake_device_counts(1);
	ASSERT_EQ(counts.post_recv, 2);
	ASSERT_EQ(counts.recvs, 2);
	ASSERT_EQ(counts.notifies, 1);
	ASSERT_EQ(counts.events, 1);
	ASSERT_EQ(counts.events_got, 1);
	ASSERT_EQ(counts.events_acked, 0);
	ibv_ack_cq_events(cq, 1);
	ASSERT_EQ(fake_device_counts(1).events_acked, 1);
	pair_close(&pair);
}

static void
test_what_was_posted_is_logged(void)
{
	struct pair pair;
	struct fake_request request;
	uint32_t num;

	pair_open(&pair, NULL);
	num = pair.a.qp->qp_num;
	recv_many(&pair.b, 2);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 10, IBV_SEND_SIGNALED, 3), 0);
	ASSERT_EQ(fake_requests(num, FAKE_SQ), 1);
	CU_ASSERT(fake_request(num, FAKE_SQ, 0, &request));
	ASSERT_EQ(request.wr_id, 3);
	ASSERT_EQ(request.imm, 3);
	ASSERT_EQ(request.send_flags, IBV_SEND_SIGNALED);
	ASSERT_EQ(request.num_sge, 1);
	CU_ASSERT(request.sge[0].addr == (uintptr_t)(pair.a.memory + SEND_AT));
	ASSERT_EQ(request.sge[0].length, 10);
	ASSERT_EQ(request.bytes, 10);
	CU_ASSERT_FALSE(fake_request(num, FAKE_SQ, 1, &request));
	CU_ASSERT(fake_request(pair.b.qp->qp_num, FAKE_RQ, 1, &request));
	CU_ASSERT(request.sge[0].addr == (uintptr_t)(pair.b.memory + 1024));
	CU_ASSERT_FALSE(fake_request(0x999999, FAKE_SQ, 0, &request));
	pair_close(&pair);
}

static void
test_the_log_forgets_what_is_old(void)
{
	struct pair pair;
	struct fake_request request;
	uint32_t num;

	pair_open(&pair, NULL);
	num = pair.a.qp->qp_num;
	for (unsigned i = 0; i < FAKE_LOG + 2; i++) {
		ASSERT_EQ(recv_one(&pair.b, 0, 1, i), 0);
		ASSERT_EQ(send_one(&pair.a, 0, 0, IBV_SEND_SIGNALED, i), 0);
		ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, i);
		ASSERT_EQ(poll_one(pair.b.recv_cq).wr_id, i);
	}
	ASSERT_EQ(fake_requests(num, FAKE_SQ), FAKE_LOG + 2);
	CU_ASSERT_FALSE(fake_request(num, FAKE_SQ, 1, &request));
	CU_ASSERT(fake_request(num, FAKE_SQ, 2, &request));
	ASSERT_EQ(request.wr_id, 2);
	CU_ASSERT(fake_request(num, FAKE_SQ, FAKE_LOG + 1, &request));
	ASSERT_EQ(request.wr_id, FAKE_LOG + 1);
	pair_close(&pair);
}

/* ---- reset ---- */

static void
test_reset_clears_everything(void)
{
	struct pair pair;
	uint8_t *memory[2];

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 0), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 0), 0);
	fake_fail_qp(pair.a.qp->qp_num);
	fake_fail("post_send", 1, EIO);
	fake_hold(FAKE_DELIVERY, 0);
	ASSERT_EQ(ibv_destroy_cq(pair.a.send_cq), EBUSY);
	ASSERT_EQ(fake_alive(FAKE_QPS), 2);
	ASSERT_EQ(fake_alive(FAKE_CQS), 4);
	ASSERT_EQ(fake_alive(FAKE_CHANNELS), 2);
	ASSERT_EQ(fake_alive(FAKE_PDS), 2);
	ASSERT_EQ(fake_alive(FAKE_MRS), 2);
	ASSERT_EQ(fake_alive(FAKE_CONTEXTS), 2);
	memory[0] = pair.a.memory;
	memory[1] = pair.b.memory;
	fake_reset();
	free(memory[0]);
	free(memory[1]);
	assert_clean();
	ASSERT_EQ(fake_calls("post_send"), 0);
	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 0), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	pair_close(&pair);
}

UNIT_SUITE("fakeverbs/control", {"the nth call fails", test_the_nth_call_fails},
	   {"failures last as long as asked", test_failures_last_as_long_as_asked},
	   {"failures that can't be", test_failures_that_can_not_be}, {"every verb can fail", test_every_verb_can_fail},
	   {"each step of modify can fail", test_each_step_of_modify_can_fail},
	   {"what is counted", test_what_is_counted}, {"event counts", test_event_counts},
	   {"what was posted is logged", test_what_was_posted_is_logged},
	   {"the log forgets what is old", test_the_log_forgets_what_is_old},
	   {"a reset clears everything", test_reset_clears_everything});
