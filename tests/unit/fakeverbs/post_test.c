/* SPDX-License-Identifier: Apache-2.0 */

/* What may be posted, which slots it takes and when they are free again, and what happens to its memory. */

#include "tests/unit/fakeverbs/pair.h"
#include <arpa/inet.h>

#define SEND_AT 32768

/* ---- slots ---- */

static void
test_send_slots_need_a_polled_completion(void)
{
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.depth = 4, .cq_depth = 8});
	recv_many(&pair.b, 4);
	for (unsigned i = 0; i < 4; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, i == 2 ? IBV_SEND_SIGNALED : 0, i), 0);
	ASSERT_EQ(fake_queued(pair.a.qp->qp_num, FAKE_SQ), 4);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 4), ENOMEM); /* arrived, signaled, but not polled */
	ASSERT_EQ(fake_qp_counts(pair.a.qp->qp_num).send_refused, 1);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 2);
	ASSERT_EQ(fake_queued(pair.a.qp->qp_num, FAKE_SQ), 1); /* that behind the signaled one */
	pair_close(&pair);
}

static void
test_unsignaled_sends_fill_the_queue_for_good(void)
{
	struct pair pair;
	struct ibv_wc wc;

	pair_open(&pair, &(struct pair_want){.depth = 4});
	recv_many(&pair.b, 4);
	for (unsigned i = 0; i < 4; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	ASSERT_EQ(ibv_poll_cq(pair.a.send_cq, 1, &wc), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 4), ENOMEM);
	pair_close(&pair);
}

static void
test_receive_slots_need_a_polled_completion(void)
{
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.depth = 2});
	recv_many(&pair.b, 2);
	ASSERT_EQ(recv_one(&pair.b, 4096, 8, 1), ENOMEM);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(recv_one(&pair.b, 4096, 8, 1), ENOMEM);
	ASSERT_EQ(poll_one(pair.b.recv_cq).wr_id, 100);
	ASSERT_EQ(recv_one(&pair.b, 4096, 8, 1), 0);
	ASSERT_EQ(fake_queued(pair.b.qp->qp_num, FAKE_RQ), 2);
	pair_close(&pair);
}

static void
test_all_sends_can_be_signaled(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_recv_sge = 1}};
	struct pair pair;

	pair_open(&pair, NULL);
	ASSERT_EQ(ibv_destroy_qp(pair.a.qp), 0);
	init.send_cq = pair.a.send_cq;
	init.recv_cq = pair.a.recv_cq;
	pair.a.qp = ibv_create_qp(pair.a.pd, &init);
	ASSERT_FATAL(pair.a.qp != NULL);
	ASSERT_EQ(end_init(&pair.a), 0);
	ASSERT_EQ(end_rtr(&pair.a, &pair.a, IBV_MTU_1024), 0); /* a loop of one queue pair */
	ASSERT_EQ(end_rts(&pair.a, 0), 0);
	recv_many(&pair.a, 1);
	ASSERT_EQ(send_one(&pair.a, 0, 0, 0, 5), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 5);
	ASSERT_EQ(poll_one(pair.a.recv_cq).wr_id, 100);
	ASSERT_EQ(fake_qp_counts(pair.a.qp->qp_num).signaled, 1);
	pair_close(&pair);
}

/* ---- chains ---- */

static void
test_full_queue_in_the_middle_of_a_chain(void)
{
	struct pair pair;
	struct ibv_send_wr wrs[5] = {0}, *bad = NULL;

	pair_open(&pair, &(struct pair_want){.depth = 3, .cq_depth = 8});
	recv_many(&pair.b, 3);
	for (unsigned i = 0; i < 5; i++) {
		wrs[i].opcode = IBV_WR_SEND_WITH_IMM;
		wrs[i].next = i < 4 ? &wrs[i + 1] : NULL;
	}
	ASSERT_EQ(ibv_post_send(pair.a.qp, wrs, &bad), ENOMEM);
	CU_ASSERT(bad == &wrs[3]);
	ASSERT_EQ(fake_qp_counts(pair.a.qp->qp_num).post_send, 1);
	ASSERT_EQ(fake_qp_counts(pair.a.qp->qp_num).sends, 3);
	ASSERT_EQ(fake_cq_fill(pair.b.recv_cq), 3);
	pair_close(&pair);
}

static void
test_any_request_of_a_chain_can_fail(void)
{
	struct pair pair;
	struct ibv_send_wr wrs[3] = {0}, *bad_send = NULL;
	struct ibv_recv_wr recvs[3] = {0}, *bad_recv = NULL;

	pair_open(&pair, NULL);
	for (unsigned i = 0; i < 3; i++) {
		wrs[i].opcode = IBV_WR_SEND_WITH_IMM;
		wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
		recvs[i].next = i < 2 ? &recvs[i + 1] : NULL;
	}
	fake_fail("recv_wr", 2, ENOMEM);
	ASSERT_EQ(ibv_post_recv(pair.b.qp, recvs, &bad_recv), ENOMEM);
	CU_ASSERT(bad_recv == &recvs[1]);
	ASSERT_EQ(ibv_post_recv(pair.b.qp, bad_recv, &bad_recv), 0);
	fake_fail("send_wr", 3, EIO);
	ASSERT_EQ(ibv_post_send(pair.a.qp, wrs, &bad_send), EIO);
	CU_ASSERT(bad_send == &wrs[2]);
	ASSERT_EQ(ibv_post_send(pair.a.qp, bad_send, &bad_send), 0);
	fake_fail("post_send", 1, ENOMEM);
	ASSERT_EQ(ibv_post_send(pair.a.qp, wrs, &bad_send), ENOMEM);
	CU_ASSERT(bad_send == &wrs[0]);
	ASSERT_EQ(fake_cq_fill(pair.b.recv_cq), 3);
	pair_close(&pair);
}

static unsigned g_chain_length;

static void
measure_chain(struct ibv_qp *qp, const struct ibv_send_wr *chain, void *arg)
{
	CU_ASSERT(qp == arg);
	for (g_chain_length = 0; chain; chain = chain->next)
		g_chain_length++;
}

static void
measure_recv_chain(struct ibv_qp *qp, const struct ibv_recv_wr *chain, void *arg)
{
	(void)qp;
	(void)arg;
	for (g_chain_length = 0; chain; chain = chain->next)
		g_chain_length++;
}

static void
test_hooks_see_whole_chains(void)
{
	struct pair pair;
	struct ibv_send_wr wrs[2] = {{.opcode = IBV_WR_SEND, .next = &wrs[1]}, {.opcode = IBV_WR_SEND}}, *bad_send;
	struct ibv_recv_wr recvs[3] = {{.next = &recvs[1]}, {.next = &recvs[2]}, {0}}, *bad_recv;
	struct fake_hooks hooks = {.post_send = measure_chain, .post_recv = measure_recv_chain};

	pair_open(&pair, NULL);
	hooks.arg = pair.a.qp;
	fake_hooks(&hooks);
	ASSERT_EQ(ibv_post_recv(pair.b.qp, recvs, &bad_recv), 0);
	ASSERT_EQ(g_chain_length, 3);
	ASSERT_EQ(ibv_post_send(pair.a.qp, wrs, &bad_send), 0);
	ASSERT_EQ(g_chain_length, 2);
	pair_close(&pair);
}

/* ---- states ---- */

static void
test_posts_in_wrong_states(void)
{
	struct pair_want want = {0};
	struct pair pair;

	pair_devices();
	end_open(&pair.a, 0, &want);
	end_open(&pair.b, 1, &want);
	ASSERT_EQ(recv_one(&pair.a, 0, 8, 1), EINVAL);
	CU_ASSERT(fake_forgive("is in RESET"));
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), EINVAL);
	CU_ASSERT(fake_forgive("neither in RTS nor in ERR"));
	ASSERT_EQ(end_init(&pair.a), 0);
	ASSERT_EQ(recv_one(&pair.a, 0, 8, 1), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), EINVAL);
	CU_ASSERT(fake_forgive("neither in RTS nor in ERR"));
	ASSERT_EQ(end_rtr(&pair.a, &pair.b, IBV_MTU_1024), 0);
	ASSERT_EQ(recv_one(&pair.a, 64, 8, 1), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), EINVAL);
	CU_ASSERT(fake_forgive("neither in RTS nor in ERR"));
	pair_close(&pair);
}

static void
test_requests_that_ask_for_too_much(void)
{
	struct pair pair;
	struct ibv_sge sges[5] = {0};
	struct ibv_send_wr send = {.sg_list = sges, .num_sge = 5, .opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.sg_list = sges, .num_sge = 3}, *bad_recv;

	pair_open(&pair, &(struct pair_want){.inline_bytes = 64});
	ASSERT_EQ(ibv_post_send(pair.a.qp, &send, &bad_send), EINVAL);
	CU_ASSERT(fake_forgive("max_send_sge"));
	ASSERT_EQ(ibv_post_recv(pair.a.qp, &recv, &bad_recv), EINVAL);
	CU_ASSERT(fake_forgive("max_recv_sge"));
	send.num_sge = 0;
	send.opcode = IBV_WR_RDMA_WRITE;
	ASSERT_EQ(ibv_post_send(pair.a.qp, &send, &bad_send), EINVAL);
	CU_ASSERT(fake_forgive("opcode"));
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 65, IBV_SEND_INLINE, 1), EINVAL);
	CU_ASSERT(fake_forgive("max_inline_data"));
	pair_close(&pair);
}

static void
test_shared_receive_queues_are_not_supported(void)
{
	struct pair pair;
	struct ibv_recv_wr wr = {0}, *bad = NULL;
	struct ibv_srq srq;

	pair_open(&pair, NULL);
	srq.context = pair.a.context;
	ASSERT_EQ(ibv_post_srq_recv(&srq, &wr, &bad), EOPNOTSUPP);
	CU_ASSERT(bad == &wr);
	pair_close(&pair);
}

/* ---- memory ---- */

static void
test_inlined_payload_is_copied_at_post(void)
{
	struct pair pair;
	char text[] = "not registered";
	struct ibv_sge sges[2] = {{.addr = (uintptr_t)text, .length = 4}, {.addr = (uintptr_t)text + 4, .length = 10}};
	struct ibv_send_wr wr = {.sg_list = sges,
				 .num_sge = 2,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	pair_open(&pair, &(struct pair_want){.inline_bytes = 64});
	recv_many(&pair.b, 1);
	fake_hold(FAKE_DELIVERY, 0);
	ASSERT_EQ(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	memset(text, 'x', sizeof text);
	ASSERT_EQ(fake_deliver(1), 1);
	ASSERT_EQ(poll_one(pair.b.recv_cq).byte_len, 14);
	ASSERT_EQ(memcmp(pair.b.memory, "not registered", 14), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_SUCCESS);
	pair_close(&pair);
}

static void
test_sent_memory_stays_as_it_is(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 2);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 9, 0, 1), 0); /* covered by the next one's completion */
	ASSERT_EQ(send_one(&pair.a, SEND_AT + 64, 9, IBV_SEND_SIGNALED, 2), 0);
	pair.a.memory[SEND_AT + 8] = 1; /* arrived long ago, but the card may have to send it again */
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 2);
	CU_ASSERT(fake_forgive("changed before its completion was polled (wr_id 0x1)"));
	pair.a.memory[SEND_AT + 8] = 2;
	pair_close(&pair);
}

static void
test_posted_receive_belongs_to_the_card(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	memcpy(pair.b.memory, "old", 3);
	recv_many(&pair.b, 1);
	CU_ASSERT(memcmp(pair.b.memory, "old", 3) != 0);
	pair.b.memory[1000] = 1;
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	CU_ASSERT(fake_forgive("was written to (wr_id 0x64)"));
	pair_close(&pair);
}

static void
test_memory_that_is_not_registered(void)
{
	static char elsewhere[16];
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	for (unsigned wrong = 0; wrong < 4; wrong++) {
		pair_open(&pair, &(struct pair_want){.device_b = 1});
		recv_many(&pair.b, 1);
		sge = end_sge(&pair.a, END_BYTES - 8, 8);
		if (wrong == 0)
			sge.lkey ^= 1;
		else if (wrong == 1)
			sge.lkey = pair.b.mr->lkey; /* another device's */
		else if (wrong == 2)
			sge.length = 9;
		else
			sge.addr = (uintptr_t)elsewhere;
		ASSERT_EQ(ibv_post_send(pair.a.qp, &wr, &bad), 0);
		ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_LOC_PROT_ERR);
		CU_ASSERT(fake_forgive("not registered with its protection domain"));
		ASSERT_EQ(fake_cq_fill(pair.b.recv_cq), 0);
		pair_close(&pair);
	}
}

static void
test_receive_memory_that_is_not_registered(void)
{
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	pair_open(&pair, NULL);
	sge = end_sge(&pair.b, 0, 8);
	sge.lkey ^= 1;
	ASSERT_EQ(ibv_post_recv(pair.b.qp, &wr, &bad), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_LOC_PROT_ERR);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_REM_OP_ERR);
	CU_ASSERT(fake_forgive("a receive on queue pair"));
	pair_close(&pair);
}

UNIT_SUITE("fakeverbs/post", {"send slots need a polled completion", test_send_slots_need_a_polled_completion},
	   {"unsignaled sends fill the queue for good", test_unsignaled_sends_fill_the_queue_for_good},
	   {"receive slots need a polled completion", test_receive_slots_need_a_polled_completion},
	   {"all sends can be signaled", test_all_sends_can_be_signaled},
	   {"a full queue in the middle of a chain", test_full_queue_in_the_middle_of_a_chain},
	   {"any request of a chain can fail", test_any_request_of_a_chain_can_fail},
	   {"hooks see whole chains", test_hooks_see_whole_chains},
	   {"posts in wrong states", test_posts_in_wrong_states},
	   {"requests that ask for too much", test_requests_that_ask_for_too_much},
	   {"shared receive queues are not supported", test_shared_receive_queues_are_not_supported},
	   {"inlined payload is copied at post", test_inlined_payload_is_copied_at_post},
	   {"sent memory stays as it is", test_sent_memory_stays_as_it_is},
	   {"a posted receive belongs to the card", test_posted_receive_belongs_to_the_card},
	   {"memory that is not registered", test_memory_that_is_not_registered},
	   {"receive memory that is not registered", test_receive_memory_that_is_not_registered});
