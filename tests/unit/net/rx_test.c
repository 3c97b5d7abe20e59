/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rx.h"
#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <unistd.h>

#define PAYLOAD 8160u

/* Writes len bytes of one value where the blocks offer room, and takes them. */
static void
receive(struct rx *rx, unsigned blocks, size_t len, int value, struct xr_iobuf *buf)
{
	struct iovec iov[RX_BLOCKS_MAX];
	size_t left = len;
	int n;

	ASSERT_FATAL(rx_offer(rx, blocks, iov, &n) >= len);
	for (int i = 0; i < n && left; i++) {
		size_t part = left < iov[i].iov_len ? left : iov[i].iov_len;

		memset(iov[i].iov_base, value, part);
		left -= part;
	}
	ASSERT_EQ(rx_take(rx, len, buf), 0);
}

static bool
is_all(const struct xr_iobuf *buf, size_t from, size_t len, int value)
{
	uint8_t byte;

	for (size_t i = from; i < from + len; i++)
		if (xr_iobuf_copy_out(buf, i, &byte, 1) != 1 || byte != value)
			return false;
	return true;
}

static void
test_small_ones_share_a_block(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;
	struct rx rx = {0};

	net_up(1, NULL);
	receive(&rx, 2, 100, 'a', &a);
	receive(&rx, 2, 50, 'b', &b);
	receive(&rx, 2, 10, 'a', &a);
	ASSERT_EQ(rx.used, 160);
	ASSERT_EQ(xr_iobuf_size(&a), 110);
	ASSERT_EQ(xr_iobuf_size(&b), 50);
	CU_ASSERT_TRUE(is_all(&a, 0, 110, 'a'));
	CU_ASSERT_TRUE(is_all(&b, 0, 50, 'b'));
	xr_iobuf_clear(&a);
	xr_iobuf_clear(&b);
	rx_clear(&rx);
	net_down();
}

static void
test_first_is_rewound_when_free(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	struct iovec iov[RX_BLOCKS_MAX];
	struct rx rx = {0};
	void *first;
	int n;

	net_up(1, NULL);
	receive(&rx, 2, 100, 'a', &buf);
	first = block_payload(rx.blocks[0]);
	ASSERT_EQ(rx_offer(&rx, 1, iov, &n), PAYLOAD - 100);
	xr_iobuf_clear(&buf);
	ASSERT_EQ(rx_offer(&rx, 1, iov, &n), PAYLOAD);
	CU_ASSERT_PTR_EQUAL(iov[0].iov_base, first);
	rx_clear(&rx);
	net_down();
}

/* To the byte: a block that is full is the reader's alone. */
static void
test_edges_of_blocks(void)
{
	static const size_t lens[] = {PAYLOAD - 1, 1, PAYLOAD, PAYLOAD + 1, 2 * PAYLOAD - 1, 1, 3 * PAYLOAD};
	struct xr_iobuf buf = XR_IOBUF_INIT;
	struct rx rx = {0};
	size_t at = 0;

	net_up(1, NULL);
	for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
		receive(&rx, 5, lens[i], (int)('a' + i), &buf);
		CU_ASSERT_TRUE(is_all(&buf, at, lens[i], (int)('a' + i)));
		at += lens[i];
		ASSERT_EQ(xr_iobuf_size(&buf), at);
		ASSERT_EQ(rx.used, at % PAYLOAD);
	}
	xr_iobuf_clear(&buf);
	rx_clear(&rx);
	net_down();
}

static void
test_offer_is_what_was_asked(void)
{
	struct iovec iov[RX_BLOCKS_MAX];
	struct rx rx = {0};
	int n;

	net_up(1, NULL);
	for (unsigned blocks = 1; blocks <= RX_BLOCKS_MAX; blocks++) {
		ASSERT_EQ(rx_offer(&rx, blocks, iov, &n), blocks * PAYLOAD);
		ASSERT_EQ(n, blocks);
	}
	ASSERT_EQ(rx_offer(&rx, 2, iov, &n), 2 * PAYLOAD);
	rx_clear(&rx);
	ASSERT_EQ(rx.count, 0);
	net_down();
}

/* ---- the pool at its limit ---- */

#define POOL_BLOCKS 4096u

static struct xr_block *g_taken[2 * POOL_BLOCKS];
static unsigned g_taken_count;

static void
take_all_blocks(void)
{
	while (g_taken_count < 2 * POOL_BLOCKS && ((g_taken[g_taken_count] = block_alloc(BLOCK_DEFAULT)) ||
						   (g_taken[g_taken_count] = block_alloc_recv(BLOCK_DEFAULT))))
		g_taken_count++;
}

static void
give_blocks(unsigned count)
{
	while (count-- && g_taken_count)
		block_drop(g_taken[--g_taken_count]);
}

static void
test_less_than_asked(void)
{
	struct iovec iov[RX_BLOCKS_MAX];
	struct rx rx = {0};
	int n;

	net_up(1, "--rdma_memory_pool_max_regions", "1", NULL);
	take_all_blocks();
	ASSERT_EQ(rx_offer(&rx, 4, iov, &n), 0);
	give_blocks(3);
	ASSERT_EQ(rx_offer(&rx, 4, iov, &n), 3 * PAYLOAD);
	ASSERT_EQ(n, 3);
	give_blocks(2 * POOL_BLOCKS);
	rx_clear(&rx);
	net_down();
}

static void
give_on_lcore(struct xr_msg *msg, int status)
{
	(void)msg;
	(void)status;
	give_blocks(2 * POOL_BLOCKS);
}

static struct xr_msg g_give = XR_MSG_INIT(give_on_lcore);

static void
send_to_the_starved(void *address)
{
	char bytes[1000], answer[1000];
	int fd = raw_connect(address);

	memset(bytes, 'x', sizeof bytes);
	raw_send(fd, bytes, sizeof bytes);
	NET_AWAIT(net_counted(NET_READ_STARVED) >= 3);
	NET_CHECK(net_counted(NET_BYTES_IN) == 0);
	NET_CHECK(xr_post(0, &g_give) == 0);
	NET_CHECK(raw_read(fd, answer, sizeof answer) && memcmp(bytes, answer, sizeof answer) == 0);
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_reading_waits_for_blocks(void)
{
	struct probe server = {.on_data = probe_echo};

	net_up(1, "--rdma_memory_pool_max_regions", "1", "--port", "default,mode=event", NULL);
	take_all_blocks();
	net_run_against(probe_listen(&server, NULL), send_to_the_starved);
	ASSERT_EQ(server.opened, 1);
	ASSERT_EQ(server.close_reason, 0);
	CU_ASSERT_TRUE(net_logged("no free block to read into"));
	net_down();
}

UNIT_SUITE("rx", {"small ones share a block", test_small_ones_share_a_block},
	   {"the first is rewound when it is free", test_first_is_rewound_when_free},
	   {"edges of blocks", test_edges_of_blocks}, {"the offer is what was asked for", test_offer_is_what_was_asked},
	   {"less than asked for", test_less_than_asked}, {"reading waits for blocks", test_reading_waits_for_blocks});
