/* SPDX-License-Identifier: Apache-2.0 */

#include "net/address.h"
#include "net/verbs/gid.h"
#include "tests/unit/unit.h"
#include <arpa/inet.h>

static const struct gid_wish g_any = {.device = -1, .ib_port = 0, .gid_index = -1};

/* An active RoCE v2 entry; tests change what they are about. */
static struct gid_entry
entry(unsigned device, uint16_t index, const char *gid)
{
	struct gid_entry made = {
		.device = device,
		.ib_port = 1,
		.index = index,
		.type = IBV_GID_TYPE_ROCE_V2,
		.has_netdev = true,
		.active = true,
		.mtu = IBV_MTU_1024,
	};

	ASSERT_FATAL(inet_pton(AF_INET6, gid, made.gid.raw) == 1);
	return made;
}

static struct address
address(const char *text)
{
	struct address parsed;

	ASSERT_FATAL(address_parse(text, &parsed) == 0);
	return parsed;
}

/* The position of what is chosen, -1 for none. */
static int
choose(const struct gid_entry *entries, size_t count, const char *local, const struct gid_wish *wish, const char **why)
{
	struct address parsed = address(local);
	const struct gid_entry *chosen = gid_choose(entries, count, &parsed.any, wish, why);

	return chosen ? (int)(chosen - entries) : -1;
}

static void
test_by_ipv4_address(void)
{
	const struct gid_entry entries[] = {
		entry(0, 0, "fe80::1"),
		entry(0, 1, "::ffff:10.0.0.1"),
		entry(1, 1, "::ffff:10.0.0.2"),
	};
	const char *why = NULL;

	ASSERT_EQ(choose(entries, 3, "10.0.0.2:1", &g_any, &why), 2);
	ASSERT_EQ(choose(entries, 3, "10.0.0.1:1", &g_any, &why), 1);
}

static void
test_by_ipv6_address(void)
{
	const struct gid_entry entries[] = {entry(0, 0, "2001:db8::1"), entry(0, 1, "2001:db8::2")};
	const char *why = NULL;

	ASSERT_EQ(choose(entries, 2, "[2001:db8::2]:1", &g_any, &why), 1);
	ASSERT_EQ(choose(entries, 2, "[2001:db8::3]:1", &g_any, &why), -1);
}

static void
test_mapped_socket_address(void)
{
	const struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1")};
	const char *why = NULL;

	ASSERT_EQ(choose(entries, 1, "[::ffff:10.0.0.1]:1", &g_any, &why), 0);
}

static void
test_roce_v2_first(void)
{
	struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1"), entry(0, 1, "::ffff:10.0.0.1"),
				      entry(0, 2, "::ffff:10.0.0.1")};
	const char *why = NULL;

	entries[0].type = entries[2].type = IBV_GID_TYPE_ROCE_V1;
	ASSERT_EQ(choose(entries, 3, "10.0.0.1:1", &g_any, &why), 1);
}

static void
test_foreign_namespace_skipped(void)
{
	struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1")};
	const char *why = NULL;

	entries[0].has_netdev = false;
	ASSERT_EQ(choose(entries, 1, "10.0.0.1:1", &g_any, &why), -1);
	ASSERT_STR(why, "the RDMA port's network interface is not in this network namespace");
}

/* brpc's paths have an MTU of 1024, and a path has 8 bits for the index of its GID. */
static void
test_what_no_path_can_have(void)
{
	struct gid_entry entries[] = {entry(0, 255, "::ffff:10.0.0.1"), entry(0, 256, "::ffff:10.0.0.2")};
	const struct gid_wish wish = {.device = 0, .ib_port = 0, .gid_index = 256};
	const char *why = NULL;

	ASSERT_EQ(choose(entries, 2, "10.0.0.1:1", &g_any, &why), 0);
	ASSERT_EQ(choose(entries, 2, "10.0.0.2:1", &g_any, &why), -1);
	ASSERT_STR(why, "no RDMA path can name a GID index above 255");
	ASSERT_EQ(choose(entries, 2, "10.0.0.1:1", &wish, &why), -1);
	ASSERT_STR(why, "no RDMA path can name a GID index above 255");
	entries[0].mtu = IBV_MTU_512;
	ASSERT_EQ(choose(entries, 2, "10.0.0.1:1", &g_any, &why), -1);
	ASSERT_STR(why, "the RDMA port's MTU is below 1024 bytes");
}

/* A port that is up does not hide why the one with the address can't be used. */
static void
test_reason_is_of_the_address(void)
{
	struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1"), entry(1, 0, "::ffff:10.0.0.2")};
	const char *why = NULL;

	entries[0].active = false;
	ASSERT_EQ(choose(entries, 2, "10.0.0.1:1", &g_any, &why), -1);
	ASSERT_STR(why, "the RDMA port is not active");
	ASSERT_EQ(choose(entries, 2, "10.0.0.3:1", &g_any, &why), -1);
	ASSERT_STR(why, "no RDMA device has the connection's local address");
}

static void
test_inactive_never(void)
{
	struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1")};
	const struct gid_wish wish = {.device = 0, .ib_port = 1, .gid_index = 0};
	const char *why = NULL;

	entries[0].active = false;
	ASSERT_EQ(choose(entries, 1, "10.0.0.1:1", &g_any, &why), -1);
	ASSERT_STR(why, "the RDMA port is not active");
	ASSERT_EQ(choose(entries, 1, "10.0.0.1:1", &wish, &why), -1);
}

static void
test_infiniband_without_match(void)
{
	struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1"), entry(1, 0, "fe80::5")};
	const char *why = NULL;

	entries[1].infiniband = true;
	entries[1].has_netdev = false;
	entries[1].type = IBV_GID_TYPE_IB;
	ASSERT_EQ(choose(entries, 2, "192.168.0.9:1", &g_any, &why), 1);
	ASSERT_EQ(choose(entries, 2, "10.0.0.1:1", &g_any, &why), 0);
}

/* A RoCE port stands in for another address only when it was asked for, or on loopback. */
static void
test_standing_in(void)
{
	const struct gid_entry entries[] = {entry(0, 0, "fe80::1"), entry(0, 1, "::ffff:10.0.0.1"),
					    entry(0, 2, "2001:db8::1")};
	const struct gid_wish device = {.device = 0, .ib_port = 0, .gid_index = -1};
	const struct gid_wish index = {.device = -1, .ib_port = 0, .gid_index = 2};
	const struct gid_wish other = {.device = 1, .ib_port = 0, .gid_index = -1};
	const char *why = NULL;

	ASSERT_EQ(choose(entries, 3, "192.168.0.9:1", &g_any, &why), -1);
	ASSERT_EQ(choose(entries, 3, "127.0.0.1:1", &g_any, &why), 1);
	ASSERT_EQ(choose(entries, 3, "[::1]:1", &g_any, &why), 1);
	ASSERT_EQ(choose(entries, 3, "192.168.0.9:1", &device, &why), 1);
	ASSERT_EQ(choose(entries, 3, "192.168.0.9:1", &index, &why), 2);
	ASSERT_EQ(choose(entries, 3, "10.0.0.1:1", &other, &why), -1);
	ASSERT_STR(why, "no GID fits the device, port and GID index that were asked for");
}

static void
test_wished_port(void)
{
	struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1"), entry(0, 0, "::ffff:10.0.0.1")};
	const struct gid_wish wish = {.device = -1, .ib_port = 2, .gid_index = -1};
	const char *why = NULL;

	entries[1].ib_port = 2;
	ASSERT_EQ(choose(entries, 2, "10.0.0.1:1", &wish, &why), 1);
}

static void
test_nothing_there(void)
{
	const char *why = NULL;

	ASSERT_EQ(choose(NULL, 0, "10.0.0.1:1", &g_any, &why), -1);
	ASSERT_STR(why, "no RDMA device that works has a GID");
}

static void
test_other_family(void)
{
	const struct gid_entry entries[] = {entry(0, 0, "::ffff:10.0.0.1")};
	const struct sockaddr local = {.sa_family = AF_UNIX};
	const char *why = NULL;

	CU_ASSERT_PTR_NULL(gid_choose(entries, 1, &local, &g_any, &why));
	CU_ASSERT_PTR_NOT_NULL(why);
}

UNIT_SUITE("gid", {"the IPv4 address finds its entry", test_by_ipv4_address},
	   {"the IPv6 address finds its entry", test_by_ipv6_address},
	   {"an IPv4 address that travels as IPv6 is the same", test_mapped_socket_address},
	   {"RoCE v2 comes before v1", test_roce_v2_first},
	   {"entries of other network namespaces are skipped", test_foreign_namespace_skipped},
	   {"an inactive port is never chosen", test_inactive_never},
	   {"nor what no path can have", test_what_no_path_can_have},
	   {"the reason is that of the entry with the address", test_reason_is_of_the_address},
	   {"an InfiniBand port serves any address", test_infiniband_without_match},
	   {"a RoCE port stands in only when asked for or on loopback", test_standing_in},
	   {"the port that was asked for", test_wished_port}, {"an empty table gives a reason", test_nothing_there},
	   {"neither IPv4 nor IPv6", test_other_family});
