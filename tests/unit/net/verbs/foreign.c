/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/foreign.h"
#include "tests/unit/net/net_fixture.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#define GID_INDEX 2 /* RoCE v2 over IPv4, on fakeverbs' usual card */

static uint8_t *
slot(const struct foreign *foreign, uint64_t number)
{
	return foreign->memory + number * FOREIGN_BYTES;
}

static void
post_receive(struct foreign *foreign, uint64_t number)
{
	struct ibv_sge sge = {(uintptr_t)slot(foreign, number), FOREIGN_BYTES, foreign->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = number, .sg_list = &sge, .num_sge = 1}, *bad;

	NET_CHECK(ibv_post_recv(foreign->qp, &wr, &bad) == 0);
}

static void
open_device(struct foreign *foreign)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	foreign->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	foreign->pd = ibv_alloc_pd(foreign->context);
	foreign->cq = ibv_create_cq(foreign->context, 2 * FOREIGN_QUEUE, NULL, NULL, 0);
	foreign->memory = calloc(2 * FOREIGN_QUEUE, FOREIGN_BYTES);
	foreign->mr = ibv_reg_mr(foreign->pd, foreign->memory, (size_t)2 * FOREIGN_QUEUE * FOREIGN_BYTES,
				 IBV_ACCESS_LOCAL_WRITE);
}

void
foreign_open(struct foreign *foreign)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = FOREIGN_QUEUE,
			.max_recv_wr = FOREIGN_QUEUE,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	union ibv_gid gid;

	*foreign = (struct foreign){.fd = -1};
	open_device(foreign);
	init.send_cq = init.recv_cq = foreign->cq;
	foreign->qp = ibv_create_qp(foreign->pd, &init);
	NET_CHECK(ibv_modify_qp(foreign->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	for (uint64_t i = 0; i < FOREIGN_QUEUE; i++)
		post_receive(foreign, i);
	NET_CHECK(ibv_query_gid(foreign->context, 1, GID_INDEX, &gid) == 0);
	foreign->own = (struct hello){
		.hello_ver = HELLO_V2_VERSION,
		.impl_ver = HELLO_V2_IMPL,
		.block_size = FOREIGN_BYTES,
		.sq_size = FOREIGN_QUEUE,
		.rq_size = FOREIGN_QUEUE,
		.qp_num = foreign->qp->qp_num,
	};
	memcpy(foreign->own.gid, gid.raw, sizeof gid.raw);
}

/* ---- the handshake ---- */

static void
say_hello(struct foreign *foreign)
{
	uint8_t bytes[HELLO_V2_BYTES];

	hello_v2_encode(&foreign->own, bytes);
	raw_send(foreign->fd, bytes, sizeof bytes);
}

static void
read_hello(struct foreign *foreign)
{
	uint8_t bytes[HELLO_V2_BYTES];
	size_t used;

	NET_CHECK(raw_read(foreign->fd, bytes, sizeof bytes));
	NET_CHECK(hello_v2_decode(bytes, sizeof bytes, &foreign->peer, &used) == HELLO_GOT);
}

void
foreign_dial(struct foreign *foreign, const char *address)
{
	foreign->fd = raw_connect(address);
	say_hello(foreign);
	read_hello(foreign);
}

void
foreign_meet(struct foreign *foreign, int listener)
{
	foreign->fd = raw_accept(listener);
	read_hello(foreign);
}

void
foreign_answer(struct foreign *foreign)
{
	say_hello(foreign);
}

void
foreign_accept(struct foreign *foreign, int listener)
{
	foreign_meet(foreign, listener);
	foreign_bring_up(foreign);
	foreign_answer(foreign);
}

void
foreign_bring_up(struct foreign *foreign)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = foreign->peer.qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = GID_INDEX, .hop_limit = 16}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7};

	memcpy(rtr.ah_attr.grh.dgid.raw, foreign->peer.gid, sizeof foreign->peer.gid);
	NET_CHECK(ibv_modify_qp(foreign->qp, &rtr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	NET_CHECK(ibv_modify_qp(foreign->qp, &rts,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

void
foreign_send_ack(struct foreign *foreign, bool use_rdma)
{
	uint8_t ack[HELLO_ACK_BYTES];

	hello_ack_encode(use_rdma, ack);
	raw_send(foreign->fd, ack, sizeof ack);
}

bool
foreign_read_ack(struct foreign *foreign)
{
	uint8_t ack[HELLO_ACK_BYTES];

	return NET_CHECK(raw_read(foreign->fd, ack, sizeof ack)) && hello_ack_decode(ack);
}

void
foreign_connect(struct foreign *foreign, const char *address)
{
	foreign_open(foreign);
	foreign_dial(foreign, address);
	foreign_bring_up(foreign);
	foreign_send_ack(foreign, true);
}

/* ---- messages ---- */

void
foreign_send(struct foreign *foreign, const void *data, size_t len, uint32_t credits)
{
	static uint64_t next;
	uint8_t *memory = slot(foreign, FOREIGN_QUEUE + next++ % FOREIGN_QUEUE);
	struct ibv_sge sge = {(uintptr_t)memory, (uint32_t)len, foreign->mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		.imm_data = htonl(credits),
		.sg_list = &sge,
		.num_sge = len > 0,
	};
	struct ibv_send_wr *bad;

	if (len)
		memcpy(memory, data, len);
	NET_CHECK(ibv_post_send(foreign->qp, &wr, &bad) == 0);
}

/* A completion in error says nothing of its kind: it counts as the one that was waited for. */
struct ibv_wc
foreign_await(struct foreign *foreign, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	for (int i = 0; i < 5000; i++) {
		if (ibv_poll_cq(foreign->cq, 1, &wc) == 0)
			net_sleep_ms(1);
		else if (wc.status != IBV_WC_SUCCESS || wc.opcode == opcode)
			return wc;
	}
	wc.status = (enum ibv_wc_status)255;
	return wc;
}

void
foreign_repost(struct foreign *foreign, const struct ibv_wc *wc)
{
	post_receive(foreign, wc->wr_id);
}

const uint8_t *
foreign_payload(const struct foreign *foreign, const struct ibv_wc *wc)
{
	return slot(foreign, wc->wr_id);
}

void
foreign_close(struct foreign *foreign)
{
	if (foreign->qp)
		NET_CHECK(ibv_destroy_qp(foreign->qp) == 0);
	NET_CHECK(ibv_destroy_cq(foreign->cq) == 0);
	NET_CHECK(ibv_dereg_mr(foreign->mr) == 0);
	NET_CHECK(ibv_dealloc_pd(foreign->pd) == 0);
	NET_CHECK(ibv_close_device(foreign->context) == 0);
	free(foreign->memory);
	if (foreign->fd >= 0)
		close(foreign->fd);
}
