/* SPDX-License-Identifier: Apache-2.0 */

/* Sends on their way: delivery, acknowledgement, and what may be held back or go wrong. */

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

UNIT_SUITE("fakeverbs/wire", {"a send arrives at once", test_send_arrives_at_once});
