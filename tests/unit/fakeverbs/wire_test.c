/* SPDX-License-Identifier: Apache-2.0 */

/* Sends on their way: delivered, acknowledged, completed; what may be held back, wait, or fail. */

#include "tests/unit/fakeverbs/pair.h"
#include <arpa/inet.h>

#define SEND_AT 32768 /* where sends take their payload from, behind the receives */

static void
test_send_arrives_at_once(void)
{
	struct pair pair;
	struct ibv_wc wc;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	memcpy(pair.a.memory + SEND_AT, "hello", 5);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 5, IBV_SEND_SIGNALED, 7), 0);

	wc = poll_one(pair.b.recv_cq);
	ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
	ASSERT_EQ(wc.opcode, IBV_WC_RECV);
	ASSERT_EQ(wc.wr_id, 100);
	ASSERT_EQ(wc.byte_len, 5);
	ASSERT_EQ(wc.wc_flags, IBV_WC_WITH_IMM);
	ASSERT_EQ(ntohl(wc.imm_data), 7);
	ASSERT_EQ(wc.qp_num, pair.b.qp->qp_num);
	ASSERT_EQ(wc.src_qp, pair.a.qp->qp_num);
	ASSERT_EQ(memcmp(pair.b.memory, "hello", 5), 0);

	wc = poll_one(pair.a.send_cq);
	ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
	ASSERT_EQ(wc.opcode, IBV_WC_SEND);
	ASSERT_EQ(wc.wr_id, 7);
	ASSERT_EQ(wc.qp_num, pair.a.qp->qp_num);
	pair_close(&pair);
}

static void
test_both_ends_on_one_device_or_two(void)
{
	struct pair pair;

	for (unsigned device = 0; device < 2; device++) {
		pair_open(&pair, &(struct pair_want){.device_b = device});
		recv_many(&pair.a, 1);
		recv_many(&pair.b, 1);
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 5, 0, 1), 0);
		ASSERT_EQ(send_one(&pair.b, SEND_AT, 5, 0, 1), 0);
		ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
		ASSERT_EQ(poll_one(pair.a.recv_cq).status, IBV_WC_SUCCESS);
		pair_close(&pair);
	}
}

static void
test_zero_length_needs_no_memory(void)
{
	struct ibv_recv_wr empty = {.wr_id = 9}, *bad;
	struct pair pair;
	struct ibv_wc wc;

	pair_open(&pair, NULL);
	ASSERT_EQ(ibv_post_recv(pair.b.qp, &empty, &bad), 0);
	ASSERT_EQ(send_one(&pair.a, 0, 0, IBV_SEND_SOLICITED, 5), 0);
	wc = poll_one(pair.b.recv_cq);
	ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
	ASSERT_EQ(wc.byte_len, 0);
	ASSERT_EQ(ntohl(wc.imm_data), 5);
	pair_close(&pair);
}

static void
test_plain_send_has_no_immediate(void)
{
	struct pair pair;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).wc_flags, 0);
	pair_close(&pair);
}

static void
test_pieces_are_gathered_and_scattered(void)
{
	struct pair pair;
	struct ibv_sge from[3], to[2];
	struct ibv_send_wr send = {.sg_list = from, .num_sge = 3, .opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.sg_list = to, .num_sge = 2}, *bad_recv;

	pair_open(&pair, NULL);
	memcpy(pair.a.memory, "one", 3);
	memcpy(pair.a.memory + 100, "two", 3);
	memcpy(pair.a.memory + 200, "three", 5);
	from[0] = end_sge(&pair.a, 0, 3);
	from[1] = end_sge(&pair.a, 100, 3);
	from[2] = end_sge(&pair.a, 200, 5);
	to[0] = end_sge(&pair.b, 0, 4);
	to[1] = end_sge(&pair.b, 50, 100);
	ASSERT_EQ(ibv_post_recv(pair.b.qp, &recv, &bad_recv), 0);
	ASSERT_EQ(ibv_post_send(pair.a.qp, &send, &bad_send), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).byte_len, 11);
	ASSERT_EQ(memcmp(pair.b.memory, "onet", 4), 0);
	ASSERT_EQ(memcmp(pair.b.memory + 50, "wothree", 7), 0);
	pair_close(&pair);
}

/* ---- held back ---- */

static void
test_deliveries_can_be_stepped(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 3);
	fake_hold(FAKE_DELIVERY, 0);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, i), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION);
	ASSERT_EQ(fake_deliver(1), 1);
	ASSERT_EQ(poll_one(pair.b.recv_cq).wr_id, 100);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 0);
	fake_let_go(FAKE_DELIVERY, 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).wr_id, 101);
	ASSERT_EQ(poll_one(pair.b.recv_cq).wr_id, 102);
	ASSERT_EQ(fake_deliver(1), 0);
	pair_close(&pair);
}

static void
test_one_queue_pair_can_be_held(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.a, 1);
	recv_many(&pair.b, 1);
	fake_hold(FAKE_DELIVERY, pair.a.qp->qp_num);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 0), 0);
	ASSERT_EQ(send_one(&pair.b, SEND_AT, 1, 0, 0), 0);
	ASSERT_EQ(poll_one(pair.a.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION);
	ASSERT_EQ(fake_do(FAKE_DELIVERY, pair.b.qp->qp_num, 9), 0);
	ASSERT_EQ(fake_do(FAKE_DELIVERY, pair.a.qp->qp_num, 9), 1);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	pair_close(&pair);
}

static void
test_acknowledgements_can_be_late(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 2);
	fake_hold(FAKE_ACK, pair.a.qp->qp_num);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 1), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 2), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, NO_COMPLETION);
	ASSERT_EQ(fake_do(FAKE_ACK, 0, 1), 1);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 1);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, NO_COMPLETION);
	fake_let_go(FAKE_ACK, pair.a.qp->qp_num);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 2);
	pair_close(&pair);
}

/* ---- a peer that does not answer ---- */

static void
test_send_waits_for_a_late_peer(void)
{
	struct pair_want want = {0};
	struct pair pair;

	pair_devices();
	end_open(&pair.a, 0, &want);
	end_open(&pair.b, 1, &want);
	ASSERT_EQ(end_init(&pair.a), 0);
	ASSERT_EQ(end_init(&pair.b), 0);
	recv_many(&pair.b, 1);
	ASSERT_EQ(end_rtr(&pair.a, &pair.b, IBV_MTU_1024), 0);
	ASSERT_EQ(end_rts(&pair.a, 0), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 1), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, NO_COMPLETION);
	ASSERT_EQ(end_rtr(&pair.b, &pair.a, IBV_MTU_1024), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_SUCCESS);
	pair_close(&pair);
}

static void
test_patience_ends(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(end_error(&pair.b), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 2), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, NO_COMPLETION);
	ASSERT_EQ(fake_expire(), 1);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(fake_expire(), 0);
	ASSERT_EQ(fake_qp_state(pair.a.qp->qp_num), IBV_QPS_ERR);
	ASSERT_EQ(pair.a.qp->state, IBV_QPS_RTS); /* what modify_qp has said */
	pair_close(&pair);
}

static void
test_nothing_passes_a_port_that_is_down(void)
{
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.device_b = 1});
	recv_many(&pair.b, 1);
	fake_port_set(1, 1, IBV_PORT_DOWN);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION);
	fake_port_set(1, 1, IBV_PORT_ACTIVE);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	pair_close(&pair);
}

static void
test_rnr_fails_at_once_without_retries(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(fake_qp_counts(pair.a.qp->qp_num).rnr, 1);
	ASSERT_EQ(fake_qp_state(pair.b.qp->qp_num), IBV_QPS_RTS);
	pair_close(&pair);
}

static void
test_rnr_waits_with_retries(void)
{
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.rnr_retry = 7});
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(fake_expire(), 0);
	recv_many(&pair.b, 1);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(fake_qp_counts(pair.a.qp->qp_num).rnr, 1);
	pair_close(&pair);

	pair_open(&pair, &(struct pair_want){.rnr_retry = 3});
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(fake_expire(), 1);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_close(&pair);
}

static void
test_both_ends_must_agree(void)
{
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.mtu_b = IBV_MTU_4096});
	recv_many(&pair.b, 1);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_REM_INV_REQ_ERR);
	CU_ASSERT(fake_forgive("path_mtu 3"));
	pair_close(&pair);
}

/* An InfiniBand fabric finds a port by its LID; no GRH is needed. */
static void
test_infiniband_without_grh(void)
{
	struct fake_device device = fake_device("ib", "10.0.0.3");
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = {.dlid = 42, .port_num = 1}};
	struct pair pair;
	struct end *ends[] = {&pair.a, &pair.b};

	fake_reset();
	device.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	device.ports[0].lid = 42;
	fake_device_add(&device);
	for (unsigned i = 0; i < 2; i++) {
		end_open(ends[i], 0, &(struct pair_want){0});
		ASSERT_EQ(end_init(ends[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		attr.dest_qp_num = ends[1 - i]->qp->qp_num;
		ASSERT_EQ(ibv_modify_qp(ends[i]->qp, &attr,
					IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			  0);
		ASSERT_EQ(end_rts(ends[i], 0), 0);
	}
	recv_many(&pair.b, 1);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	pair_close(&pair);
}

/* RoCE v1 and v2 do not hear each other; neither do two that do not both mean the other. */
static void
test_the_wrong_address_is_silence(void)
{
	struct fake_gid gid = fake_gid_ipv4("10.0.0.2", IBV_GID_TYPE_ROCE_V1, 1);
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.device_b = 1});
	recv_many(&pair.b, 1);
	fake_gid_set(1, 1, 2, &gid);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION);
	gid.type = IBV_GID_TYPE_ROCE_V2;
	fake_gid_set(1, 1, 2, &gid);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);

	gid = fake_gid_ipv4("10.0.0.9", IBV_GID_TYPE_ROCE_V2, 1);
	fake_gid_set(1, 1, 2, &gid);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(fake_expire(), 1);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
	pair_close(&pair);
}

/* ---- failing ---- */

static void
test_error_flushes_everything_in_order(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.a, 2);
	recv_many(&pair.b, 1);
	fake_hold(FAKE_ACK, 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0); /* delivered, not acknowledged */
	fake_hold(FAKE_DELIVERY, 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 2), 0);
	ASSERT_EQ(end_error(&pair.a), 0);
	for (unsigned i = 1; i <= 2; i++) {
		struct ibv_wc wc = poll_one(pair.a.send_cq);

		ASSERT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		ASSERT_EQ(wc.wr_id, i);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_wc wc = poll_one(pair.a.recv_cq);

		ASSERT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		ASSERT_EQ(wc.wr_id, 100 + i);
	}
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 3), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).wr_id, 3);
	ASSERT_EQ(recv_one(&pair.a, 0, 1, 103), 0);
	ASSERT_EQ(poll_one(pair.a.recv_cq).wr_id, 103);
	pair_close(&pair);
}

static void
test_silent_sends_that_arrived_are_not_flushed(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(end_error(&pair.a), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, NO_COMPLETION);
	pair_close(&pair);
}

static void
test_scripted_send_fails(void)
{
	struct pair pair;
	struct ibv_wc wc;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 3);
	fake_fail_send(pair.a.qp->qp_num, 2, IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 1; i <= 3; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	wc = poll_one(pair.a.send_cq);
	ASSERT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	ASSERT_EQ(wc.wr_id, 2);
	ASSERT_EQ(wc.qp_num, pair.a.qp->qp_num);
	CU_ASSERT(wc.opcode != IBV_WC_SEND); /* rubbish */
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION);
	pair_close(&pair);
}

static void
test_scripted_recv_fails(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 2);
	fake_fail_recv(pair.b.qp->qp_num, IBV_WC_LOC_QP_OP_ERR);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_LOC_QP_OP_ERR);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_REM_OP_ERR);
	pair_close(&pair);
}

static void
test_message_longer_than_its_receive(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	ASSERT_EQ(recv_one(&pair.b, 0, 4, 1), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 5, 0, 1), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_LOC_LEN_ERR);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_REM_INV_REQ_ERR);
	pair_close(&pair);
}

static void
test_card_gives_a_queue_pair_up(void)
{
	struct pair pair;
	struct ibv_async_event event;

	pair_open(&pair, NULL);
	recv_many(&pair.a, 1);
	fake_fail_qp(pair.a.qp->qp_num);
	ASSERT_EQ(poll_one(pair.a.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(ibv_get_async_event(pair.a.context, &event), 0);
	ASSERT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
	CU_ASSERT(event.element.qp == pair.a.qp);
	ASSERT_EQ(ibv_destroy_qp(pair.a.qp), EBUSY);
	CU_ASSERT(fake_forgive("not acknowledged"));
	ibv_ack_async_event(&event);
	pair_close(&pair);
}

UNIT_SUITE("fakeverbs/wire", {"a send arrives at once", test_send_arrives_at_once},
	   {"both ends on one device or two", test_both_ends_on_one_device_or_two},
	   {"zero length needs no memory", test_zero_length_needs_no_memory},
	   {"a plain send has no immediate", test_plain_send_has_no_immediate},
	   {"pieces are gathered and scattered", test_pieces_are_gathered_and_scattered},
	   {"deliveries can be stepped", test_deliveries_can_be_stepped},
	   {"one queue pair can be held", test_one_queue_pair_can_be_held},
	   {"acknowledgements can be late", test_acknowledgements_can_be_late},
	   {"a send waits for a late peer", test_send_waits_for_a_late_peer}, {"patience ends", test_patience_ends},
	   {"nothing passes a port that is down", test_nothing_passes_a_port_that_is_down},
	   {"RNR fails at once without retries", test_rnr_fails_at_once_without_retries},
	   {"RNR waits with retries", test_rnr_waits_with_retries}, {"both ends must agree", test_both_ends_must_agree},
	   {"InfiniBand without GRH", test_infiniband_without_grh},
	   {"the wrong address is silence", test_the_wrong_address_is_silence},
	   {"an error flushes everything in order", test_error_flushes_everything_in_order},
	   {"silent sends that arrived are not flushed", test_silent_sends_that_arrived_are_not_flushed},
	   {"a scripted send fails", test_scripted_send_fails}, {"a scripted receive fails", test_scripted_recv_fails},
	   {"a message longer than its receive", test_message_longer_than_its_receive},
	   {"the card gives a queue pair up", test_card_gives_a_queue_pair_up});
