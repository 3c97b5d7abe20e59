/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/rdma_fixture.h"

void
rdma_card(const struct fake_device *card)
{
	struct fake_device usual = fake_device("fake0", "127.0.0.1");

	fake_reset();
	fake_device_add(card ? card : &usual);
}

void
rdma_down(void)
{
	net_down();
	ASSERT_EQ(fake_leaks(), 0);
	ASSERT_EQ(fake_violations(), 0);
	fake_reset();
}

uint64_t
rdma_counted(enum figure figure)
{
	return counter_read(&g_figures[figure], NULL);
}

uint32_t
rdma_qp(const struct xr_conn *conn)
{
	return conn->endpoint->qp.qp->qp_num;
}
