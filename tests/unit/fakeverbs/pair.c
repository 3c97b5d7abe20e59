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
make_qp(const struct end *end, const struct pair_want *want, unsigned depth)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 4,
			.max_recv_sge = 2,
			.max_inline_data = want->inline_bytes},
	};

	return ibv_create_qp(end->pd, &attr);
}

static void
make_cqs(struct end *end, int entries)
{
	end->channel = ibv_create_comp_channel(end->context);
	ASSERT_FATAL(end->channel != NULL);
	ASSERT_EQ(fcntl(end->channel->fd, F_SETFL, O_NONBLOCK), 0);
	end->send_cq = ibv_create_cq(end->context, entries, end, end->channel, 0);
	end->recv_cq = ibv_create_cq(end->context, entries, end, end->channel, 0);
	ASSERT_FATAL(end->send_cq != NULL && end->recv_cq != NULL);
}

void
end_open(struct end *end, unsigned device, const struct pair_want *want)
{
	unsigned depth = want->depth ? want->depth : 8;

	*end = (struct end){.context = open_device(device)};
	ASSERT_FATAL(end->context != NULL);
	ASSERT_EQ(ibv_query_gid(end->context, 1, 2, &end->gid), 0);
	end->pd = ibv_alloc_pd(end->context);
	ASSERT_FATAL(end->pd != NULL);
	end->memory = calloc(1, END_BYTES);
	end->mr = ibv_reg_mr(end->pd, end->memory, END_BYTES, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_FATAL(end->mr != NULL);
	make_cqs(end, (int)(want->cq_depth ? want->cq_depth : depth));
	end->qp = make_qp(end, want, depth);
	ASSERT_FATAL(end->qp != NULL);
}

int
end_init(struct end *end)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int
end_rtr(struct end *end, const struct end *peer, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = peer->qp->qp_num,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 2, .hop_limit = 16}},
	};

	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int
end_rts(struct end *end, uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = rnr_retry};

	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

int
end_error(struct end *end)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
}

void
pair_open(struct pair *pair, const struct pair_want *want)
{
	static const struct pair_want defaults;

	want = want ? want : &defaults;
	pair_devices();
	end_open(&pair->a, 0, want);
	end_open(&pair->b, want->device_b, want);
	ASSERT_EQ(end_init(&pair->a), 0);
	ASSERT_EQ(end_init(&pair->b), 0);
	ASSERT_EQ(end_rtr(&pair->a, &pair->b, IBV_MTU_1024), 0);
	ASSERT_EQ(end_rtr(&pair->b, &pair->a, want->mtu_b ? want->mtu_b : IBV_MTU_1024), 0);
	ASSERT_EQ(end_rts(&pair->a, want->rnr_retry), 0);
	ASSERT_EQ(end_rts(&pair->b, want->rnr_retry), 0);
}

void
end_close(struct end *end)
{
	if (end->qp)
		ASSERT_EQ(ibv_destroy_qp(end->qp), 0);
	ASSERT_EQ(ibv_destroy_cq(end->send_cq), 0);
	ASSERT_EQ(ibv_destroy_cq(end->recv_cq), 0);
	ASSERT_EQ(ibv_destroy_comp_channel(end->channel), 0);
	ASSERT_EQ(ibv_dereg_mr(end->mr), 0);
	ASSERT_EQ(ibv_dealloc_pd(end->pd), 0);
	ASSERT_EQ(ibv_close_device(end->context), 0);
	free(end->memory);
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
	end_close(&pair->a);
	end_close(&pair->b);
	assert_clean();
}

struct ibv_sge
end_sge(const struct end *end, size_t offset, uint32_t bytes)
{
	return (struct ibv_sge){(uintptr_t)(end->memory + offset), bytes, end->mr->lkey};
}

int
send_one(struct end *end, size_t offset, uint32_t bytes, unsigned flags, uint64_t wr_id)
{
	struct ibv_sge sge = end_sge(end, offset, bytes);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = bytes > 0,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = flags,
				 .imm_data = htonl((uint32_t)wr_id)};
	struct ibv_send_wr *bad;

	return ibv_post_send(end->qp, &wr, &bad);
}

int
recv_one(struct end *end, size_t offset, uint32_t bytes, uint64_t wr_id)
{
	struct ibv_sge sge = end_sge(end, offset, bytes);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(end->qp, &wr, &bad);
}

void
recv_many(struct end *end, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ASSERT_EQ(recv_one(end, (size_t)i * RECV_BYTES, RECV_BYTES, 100 + i), 0);
}

struct ibv_wc
poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(cq, 1, &wc) != 1)
		wc = (struct ibv_wc){.status = NO_COMPLETION};
	return wc;
}
