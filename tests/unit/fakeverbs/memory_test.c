/* SPDX-License-Identifier: Apache-2.0 */

/* Protection domains and memory regions. */

#include "tests/unit/fakeverbs/pair.h"

static char g_bytes[4096];

static void
test_registering(void)
{
	struct ibv_context *context;
	struct ibv_mr *mr, *other;
	struct ibv_pd *pd;
	unsigned access = 0;

	pair_devices();
	context = open_device(1);
	pd = ibv_alloc_pd(context);
	ASSERT_FATAL(pd != NULL);
	mr = ibv_reg_mr(pd, g_bytes, 100, IBV_ACCESS_LOCAL_WRITE);
	other = ibv_reg_mr(pd, g_bytes, 100, 0);
	ASSERT_FATAL(mr != NULL && other != NULL);
	CU_ASSERT(mr->lkey != other->lkey);
	CU_ASSERT(mr->addr == g_bytes);
	ASSERT_EQ(mr->length, 100);
	CU_ASSERT(fake_region(1, g_bytes + 99, &access));
	ASSERT_EQ(access, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_FALSE(fake_region(1, g_bytes + 100, &access));
	CU_ASSERT_FALSE(fake_region(0, g_bytes, &access));
	ASSERT_EQ(ibv_dealloc_pd(pd), EBUSY);
	CU_ASSERT(fake_forgive("2 regions and queue pairs use"));
	ASSERT_EQ(ibv_close_device(context), -1);
	ASSERT_EQ(errno, EBUSY);
	CU_ASSERT(fake_forgive("closed with 1 objects"));
	ASSERT_EQ(ibv_dereg_mr(mr), 0);
	ASSERT_EQ(ibv_dereg_mr(other), 0);
	ASSERT_EQ(ibv_dealloc_pd(pd), 0);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

/* With the relaxed flag the macro calls another symbol. */
static void
test_relaxed_ordering_where_it_is_known(void)
{
	struct fake_device device = fake_device("old", "10.0.0.3");

	for (int known = 0; known < 2; known++) {
		struct ibv_context *context;
		struct ibv_pd *pd;
		struct ibv_mr *mr;
		unsigned access = 0;

		fake_reset();
		device.relaxed_ordering = known;
		fake_device_add(&device);
		context = open_device(0);
		pd = ibv_alloc_pd(context);
		mr = ibv_reg_mr(pd, g_bytes, sizeof g_bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
		ASSERT_FATAL(mr != NULL);
		CU_ASSERT(fake_region(0, g_bytes, &access));
		ASSERT_EQ((access & IBV_ACCESS_RELAXED_ORDERING) != 0, known);
		ASSERT_EQ(fake_calls("reg_mr"), 1);
		ASSERT_EQ(ibv_dereg_mr(mr), 0);
		ASSERT_EQ(ibv_dealloc_pd(pd), 0);
		ASSERT_EQ(ibv_close_device(context), 0);
		assert_clean();
	}
}

static void
test_what_can_not_be_registered(void)
{
	struct fake_device device = fake_device("small", "10.0.0.3");
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	fake_reset();
	device.max_mr = 1;
	fake_device_add(&device);
	context = open_device(0);
	pd = ibv_alloc_pd(context);
	CU_ASSERT_PTR_NULL(ibv_reg_mr(pd, g_bytes, 0, 0));
	ASSERT_EQ(errno, EINVAL);
	CU_ASSERT_PTR_NULL(ibv_reg_mr(pd, g_bytes, 1, IBV_ACCESS_REMOTE_WRITE));
	ASSERT_EQ(errno, EINVAL);
	mr = ibv_reg_mr(pd, g_bytes, 1, 0);
	CU_ASSERT_PTR_NULL(ibv_reg_mr(pd, g_bytes, 1, 0));
	ASSERT_EQ(errno, ENOMEM);
	ASSERT_EQ(ibv_dereg_mr(mr), 0);
	ASSERT_EQ(ibv_dealloc_pd(pd), 0);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

/* An SGE's address is the region's own, which need not be where the memory is. */
static void
test_region_at_another_address(void)
{
	struct pair pair;
	struct ibv_mr *mr;
	struct ibv_sge sge = {.length = 5};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	memcpy(g_bytes + 7, "there", 5);
	mr = ibv_reg_mr_iova2(pair.a.pd, g_bytes, sizeof g_bytes, 0x1000, 0);
	ASSERT_FATAL(mr != NULL);
	sge.addr = 0x1007;
	sge.lkey = mr->lkey;
	ASSERT_EQ(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).byte_len, 5);
	ASSERT_EQ(memcmp(pair.b.memory, "there", 5), 0);
	ASSERT_EQ(ibv_dereg_mr(mr), 0);
	pair_close(&pair);
}

static void
test_region_gone_before_the_send_is(void)
{
	struct pair pair;
	struct ibv_sge sge = {.addr = (uintptr_t)g_bytes, .length = 5};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_mr *mr;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	mr = ibv_reg_mr(pair.a.pd, g_bytes, sizeof g_bytes, 0);
	sge.lkey = mr->lkey;
	ASSERT_EQ(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	ASSERT_EQ(ibv_dereg_mr(mr), 0);
	ASSERT_EQ(poll_one(pair.a.send_cq).status, IBV_WC_SUCCESS);
	CU_ASSERT(fake_forgive("changed before its completion was polled"));
	pair_close(&pair);
}

UNIT_SUITE("fakeverbs/memory", {"registering", test_registering},
	   {"relaxed ordering where it is known", test_relaxed_ordering_where_it_is_known},
	   {"what can't be registered", test_what_can_not_be_registered},
	   {"a region at another address", test_region_at_another_address},
	   {"a region gone before the send is", test_region_gone_before_the_send_is});
