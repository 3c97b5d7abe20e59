/* SPDX-License-Identifier: Apache-2.0 */

#include "net/address.h"
#include "net/verbs/device.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>

static const struct gid_wish g_any = {.device = -1, .ib_port = 0, .gid_index = -1};

/* What is found for the address; -ENODEV leaves found as it was, and *why says why. */
static int
find(const char *address, struct gid_entry *found, const char **why)
{
	struct address parsed;

	ASSERT_FATAL(address_parse(address, &parsed) == 0);
	return gid_find(&parsed.any, &g_any, found, why);
}

static void
assert_none(const char *address, const char *expected)
{
	struct gid_entry found = {.index = 4711};
	const char *why = NULL;

	ASSERT_EQ(find(address, &found, &why), -ENODEV);
	ASSERT_STR(why, expected);
}

static struct gid_entry
assert_found(const char *address, unsigned device, unsigned ib_port, unsigned index)
{
	struct gid_entry found = {.index = 4711};
	const char *why = NULL;

	ASSERT_EQ(find(address, &found, &why), 0);
	CU_ASSERT_PTR_NULL(why);
	ASSERT_EQ(found.device, device);
	ASSERT_EQ(found.ib_port, ib_port);
	ASSERT_EQ(found.index, index);
	return found;
}

/* A card with two ports; the second one is InfiniBand. */
static struct fake_device
two_ports(const char *name, const char *ipv4)
{
	struct fake_device card = fake_device(name, ipv4);

	card.port_count = 2;
	card.ports[1] = (struct fake_port){
		.state = IBV_PORT_ACTIVE,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
		.lid = 0x17,
		.active_mtu = IBV_MTU_2048,
		.gids = {{.gid.raw = {0xfe, 0x80, [15] = 5}, .type = IBV_GID_TYPE_IB}},
	};
	return card;
}

static void
up(const struct fake_device *first, const struct fake_device *second)
{
	fake_reset();
	if (first)
		fake_device_add(first);
	if (second)
		fake_device_add(second);
	net_up(1, NULL);
}

static void
test_of_all_devices(void)
{
	struct fake_device a = fake_device("fake0", "10.0.0.1"), b = two_ports("fake1", "10.0.0.2");
	struct gid_entry found;

	up(&a, &b);
	found = assert_found("10.0.0.1:1", 0, 1, 2);
	ASSERT_EQ(found.type, IBV_GID_TYPE_ROCE_V2);
	ASSERT_EQ(found.mtu, IBV_MTU_4096);
	ASSERT_EQ(found.lid, 0);
	CU_ASSERT_TRUE(found.active && found.has_netdev && !found.infiniband);
	assert_found("10.0.0.2:1", 1, 1, 2);
	/* No such address: InfiniBand serves any. */
	found = assert_found("192.168.0.9:1", 1, 2, 0);
	CU_ASSERT_TRUE(found.infiniband && !found.has_netdev);
	ASSERT_EQ(found.lid, 0x17);
	ASSERT_EQ(found.mtu, IBV_MTU_2048);
	ASSERT_EQ(found.type, IBV_GID_TYPE_IB);
	rdma_down();
	assert_none("10.0.0.1:1", "no RDMA device that works has a GID");
}

static void
test_each_port_is_asked_once(void)
{
	struct fake_device card = two_ports("fake0", "10.0.0.1");

	up(&card, NULL);
	ASSERT_EQ(fake_calls("query_port"), 2);
	ASSERT_EQ(fake_calls("query_gid_table"), 1);
	rdma_down();
}

static void
test_no_device(void)
{
	up(NULL, NULL);
	assert_none("127.0.0.1:1", "no RDMA device that works has a GID");
	rdma_down();
}

/* An interface whose index is unknown here is in another network namespace. */
static void
test_foreign_interface(void)
{
	struct fake_device card = fake_device("fake0", "10.0.0.1");

	card.ports[0].gids[1].ifindex = 0;
	card.ports[0].gids[2].ifindex = 0x7ffffff0;
	up(&card, NULL);
	assert_none("10.0.0.1:1", "the RDMA port's network interface is not in this network namespace");
	rdma_down();
}

static void
test_port_that_is_down(void)
{
	struct fake_device card = fake_device("fake0", "10.0.0.1");

	card.ports[0].state = IBV_PORT_DOWN;
	up(&card, NULL);
	assert_none("10.0.0.1:1", "the RDMA port is not active");
	rdma_down();
}

static void
test_small_mtu(void)
{
	struct fake_device card = fake_device("fake0", "10.0.0.1");

	card.ports[0].active_mtu = IBV_MTU_512;
	up(&card, NULL);
	assert_none("10.0.0.1:1", "the RDMA port's MTU is below 1024 bytes");
	rdma_down();
}

/* ---- what can't be asked ---- */

static void
test_port_that_does_not_answer(void)
{
	struct fake_device a = two_ports("fake0", "10.0.0.1"), b = fake_device("fake1", "10.0.0.2");

	fake_reset();
	fake_device_add(&a);
	fake_device_add(&b);
	fake_fail_times("query_port", 1, 2, EIO);
	net_up(1, NULL);
	ASSERT_EQ(device_count(), 2);
	assert_none("10.0.0.1:1", "no RDMA device has the connection's local address");
	assert_found("10.0.0.2:1", 1, 1, 2);
	ASSERT_EQ(gid_table_refresh(), 0);
	assert_found("10.0.0.1:1", 0, 1, 2);
	rdma_down();
}

static void
test_table_that_can_not_be_read(void)
{
	struct fake_device a = fake_device("fake0", "10.0.0.1"), b = fake_device("fake1", "10.0.0.2");

	fake_reset();
	fake_device_add(&a);
	fake_device_add(&b);
	fake_fail("query_gid_table", 1, EOPNOTSUPP);
	net_up(1, NULL);
	assert_none("10.0.0.1:1", "no RDMA device has the connection's local address");
	assert_found("10.0.0.2:1", 1, 1, 2);
	rdma_down();
}

/* ---- what changes ---- */

static void
test_refreshed(void)
{
	struct fake_device card = fake_device("fake0", "10.0.0.1");
	const struct fake_gid gid = fake_gid_ipv4("10.9.9.9", IBV_GID_TYPE_ROCE_V2, 1);

	up(&card, NULL);
	assert_none("10.9.9.9:1", "no RDMA device has the connection's local address");
	fake_gid_set(0, 1, 15, &gid);
	assert_none("10.9.9.9:1", "no RDMA device has the connection's local address");
	ASSERT_EQ(gid_table_refresh(), 0);
	assert_found("10.9.9.9:1", 0, 1, 15);
	assert_found("10.0.0.1:1", 0, 1, 2);
	rdma_down();
}

static void
test_failed_device_has_none(void)
{
	struct fake_device a = fake_device("fake0", "10.0.0.1"), b = fake_device("fake1", "10.0.0.2");

	up(&a, &b);
	__atomic_store_n(&device_at(0)->failed, true, __ATOMIC_RELAXED);
	assert_none("10.0.0.1:1", "the RDMA device has failed");
	ASSERT_EQ(gid_table_refresh(), 0);
	assert_none("10.0.0.1:1", "no RDMA device has the connection's local address");
	assert_found("10.0.0.2:1", 1, 1, 2);
	rdma_down();
}

static void
test_no_memory(void)
{
	struct fake_device a = fake_device("fake0", "10.0.0.1"), b = fake_device("fake1", "10.0.0.2");
	const struct fake_gid gid = fake_gid_ipv4("10.9.9.9", IBV_GID_TYPE_ROCE_V2, 1);
	int ret = -ENOMEM;

	if (!FAIL_ALLOC) {
		unit_skip("allocations can't fail under a sanitizer");
		return;
	}
	up(&a, &b);
	fake_gid_set(0, 1, 15, &gid);
	for (int after = 0; ret == -ENOMEM; after++) {
		ASSERT_FATAL(after < 10);
		assert_none("10.9.9.9:1", "no RDMA device has the connection's local address");
		assert_found("10.0.0.1:1", 0, 1, 2);
		g_fail_alloc_after = after;
		ret = gid_table_refresh();
		g_fail_alloc_after = -1;
	}
	ASSERT_EQ(ret, 0);
	assert_found("10.9.9.9:1", 0, 1, 15);
	rdma_down();
}

UNIT_SUITE("gid_table", {"the GIDs of all devices", test_of_all_devices},
	   {"each port is asked once", test_each_port_is_asked_once}, {"no device", test_no_device},
	   {"an interface of another network namespace", test_foreign_interface},
	   {"a port that is down", test_port_that_is_down}, {"a port of a small MTU", test_small_mtu},
	   {"a port that does not answer", test_port_that_does_not_answer},
	   {"a table that can't be read", test_table_that_can_not_be_read}, {"a GID that comes later", test_refreshed},
	   {"a failed device has none", test_failed_device_has_none},
	   {"without memory the old table stays", test_no_memory});
