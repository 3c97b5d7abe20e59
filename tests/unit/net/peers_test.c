/* SPDX-License-Identifier: Apache-2.0 */

#include "net/peers.h"
#include "tests/unit/unit.h"

static struct address
peer(unsigned number)
{
	char text[32];
	struct address address;

	snprintf(text, sizeof text, "10.0.%u.%u:80", number / 256, number % 256);
	ASSERT_FATAL(address_parse(text, &address) == 0);
	return address;
}

static void
test_remembered_for_its_time(void)
{
	static struct peers peers;
	struct address a = peer(1), b = peer(2);

	CU_ASSERT_FALSE(peers_avoids_hello(&peers, &a, 0));
	peers_avoid_hello(&peers, &a, 100);
	CU_ASSERT_TRUE(peers_avoids_hello(&peers, &a, 99));
	CU_ASSERT_FALSE(peers_avoids_hello(&peers, &a, 100));
	CU_ASSERT_FALSE(peers_avoids_hello(&peers, &b, 0));
}

static void
test_renewed_in_its_place(void)
{
	static struct peers peers;
	struct address a = peer(1), b = peer(2);

	peers_avoid_hello(&peers, &a, 100);
	for (unsigned i = 0; i < 2 * PEERS_MAX; i++)
		peers_avoid_hello(&peers, &b, 200 + i);
	CU_ASSERT_TRUE(peers_avoids_hello(&peers, &a, 99));
	CU_ASSERT_TRUE(peers_avoids_hello(&peers, &b, 200 + 2 * PEERS_MAX - 2));
	peers_avoid_hello(&peers, &b, 0);
	CU_ASSERT_FALSE(peers_avoids_hello(&peers, &b, 0));
}

static void
test_oldest_makes_room(void)
{
	static struct peers peers;
	struct address first = peer(0), second = peer(1);

	for (unsigned i = 0; i < PEERS_MAX + 1; i++) {
		struct address address = peer(i);

		peers_avoid_hello(&peers, &address, 100);
		CU_ASSERT_TRUE(peers_avoids_hello(&peers, &address, 50));
	}
	CU_ASSERT_FALSE(peers_avoids_hello(&peers, &first, 50));
	CU_ASSERT_TRUE(peers_avoids_hello(&peers, &second, 50));
}

UNIT_SUITE("peers", {"remembered for its time", test_remembered_for_its_time},
	   {"renewed in its place", test_renewed_in_its_place}, {"the oldest makes room", test_oldest_makes_room});
