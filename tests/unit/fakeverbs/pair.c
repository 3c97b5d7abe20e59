/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/fakeverbs/pair.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>

#define RECV_BYTES 1024

void
pair_devices(void)
{
	struct fake_device one = fake_device("fake0", "10.0.0.1"), two = fake_device("fake1", "10.0.0.2");

	fake_reset();
	fake_device_add(&one);
	fake_device_add(&two);
}

struct ibv_context *
open_device(unsigned device)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context;

	ASSERT_FATAL(list != NULL && (unsigned)count > device);
	context = ibv_open_device(list[device]);
	ibv_free_device_list(list);
	return context;
}

static struct ibv_qp *
make_qp(const struct side *side, const struct pair_want *want, unsigned depth)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = side->send_cq,
		.recv_cq = side->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 4,
			.max_recv_sge = 2,
			.max_inline_data = want->inline_bytes},
	};

	return ibv_create_qp(side->pd, &attr);
}

static void
make_cqs(struct side *side, int entries)
{
	side->channel = ibv_create_comp_channel(side->context);
	ASSERT_FATAL(side->channel != NULL);
	ASSERT_EQ(fcntl(side->channel->fd, F_SETFL, O_NONBLOCK), 0);
	side->send_cq = ibv_create_cq(side->context, entries, side, side->channel, 0);
	side->recv_cq = ibv_create_cq(side->context, entries, side, side->channel, 0);
	ASSERT_FATAL(side->send_cq != NULL && side->recv_cq != NULL);
}

void
side_open(struct side *side, unsigned device, const struct pair_want *want)
{
	unsigned depth = want->depth ? want->depth : 8;

	*side = (struct side){.context = open_device(device)};
	ASSERT_FATAL(side->context != NULL);
	ASSERT_EQ(ibv_query_gid(side->context, 1, 2, &side->gid), 0);
	side->pd = ibv_alloc_pd(side->context);
	ASSERT_FATAL(side->pd != NULL);
	side->memory = calloc(1, SIDE_BYTES);
	side->mr = ibv_reg_mr(side->pd, side->memory, SIDE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_FATAL(side->mr != NULL);
	make_cqs(side, (int)(want->cq_depth ? want->cq_depth : depth));
	side->qp = make_qp(side, want, depth);
	ASSERT_FATAL(side->qp != NULL);
}

int
side_init(struct side *side)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	return ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int
side_rtr(struct side *side, const struct side *peer, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = peer->qp->qp_num,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 2, .hop_limit = 16}},
	};

	return ibv_modify_qp(side->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int
side_rts(struct side *side, uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = rnr_retry};

	return ibv_modify_qp(side->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

int
side_error(struct side *side)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return ibv_modify_qp(side->qp, &attr, IBV_QP_STATE);
}

void
pair_open(struct pair *pair, const struct pair_want *want)
{
	static const struct pair_want defaults;

	want = want ? want : &defaults;
	pair_devices();
	side_open(&pair->a, 0, want);
	side_open(&pair->b, want->device_b, want);
	ASSERT_EQ(side_init(&pair->a), 0);
	ASSERT_EQ(side_init(&pair->b), 0);
	ASSERT_EQ(side_rtr(&pair->a, &pair->b, IBV_MTU_1024), 0);
	ASSERT_EQ(side_rtr(&pair->b, &pair->a, want->mtu_b ? want->mtu_b : IBV_MTU_1024), 0);
	ASSERT_EQ(side_rts(&pair->a, want->rnr_retry), 0);
	ASSERT_EQ(side_rts(&pair->b, want->rnr_retry), 0);
}

void
side_close(struct side *side)
{
	if (side->qp)
		ASSERT_EQ(ibv_destroy_qp(side->qp), 0);
	ASSERT_EQ(ibv_destroy_cq(side->send_cq), 0);
	ASSERT_EQ(ibv_destroy_cq(side->recv_cq), 0);
	ASSERT_EQ(ibv_destroy_comp_channel(side->channel), 0);
	ASSERT_EQ(ibv_dereg_mr(side->mr), 0);
	ASSERT_EQ(ibv_dealloc_pd(side->pd), 0);
	ASSERT_EQ(ibv_close_device(side->context), 0);
	free(side->memory);
}

void
assert_clean(void)
{
	ASSERT_EQ(fake_leaks(), 0);
	ASSERT_EQ(fake_violations(), 0);
}

void
pair_close(struct pair *pair)
{
	side_close(&pair->a);
	side_close(&pair->b);
	assert_clean();
}

struct ibv_sge
side_sge(const struct side *side, size_t offset, uint32_t bytes)
{
	return (struct ibv_sge){(uintptr_t)(side->memory + offset), bytes, side->mr->lkey};
}

int
send_one(struct side *side, size_t offset, uint32_t bytes, unsigned flags, uint64_t wr_id)
{
	struct ibv_sge sge = side_sge(side, offset, bytes);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = bytes > 0,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = flags,
				 .imm_data = htonl((uint32_t)wr_id)};
	struct ibv_send_wr *bad;

	return ibv_post_send(side->qp, &wr, &bad);
}

int
recv_one(struct side *side, size_t offset, uint32_t bytes, uint64_t wr_id)
{
	struct ibv_sge sge = side_sge(side, offset, bytes);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(side->qp, &wr, &bad);
}

void
recv_many(struct side *side, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ASSERT_EQ(recv_one(side, (size_t)i * RECV_BYTES, RECV_BYTES, 100 + i), 0);
}

struct ibv_wc
poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(cq, 1, &wc) != 1)
		wc = (struct ibv_wc){.status = NO_COMPLETION};
	return wc;
}
