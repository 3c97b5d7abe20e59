/* SPDX-License-Identifier: Apache-2.0 */

/* Peers that keep the whole pool for messages that never end do not stop the others. */

#include "net/scarcity.h"
#include "tests/unit/net/net_fixture.h"
#include <sys/socket.h>
#include <unistd.h>

#define HOARDERS 10
#define HOARD	 ((size_t)6 << 20) /* more than the pool has, in all */

static char g_bytes[1 << 16];

/* A first byte 'h' begins a message of 60 MiB; everything else is sent back. */
static void
hoard_or_echo(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	char first;

	xr_iobuf_copy_out(in, 0, &first, 1);
	if (first == 'h')
		xr_conn_need(conn, (size_t)60 << 20);
	else
		probe_echo(probe, conn, in);
}

/* As much as the other side takes within a moment. */
static int
hoard(const char *address)
{
	int fd = raw_connect(address);

	memset(g_bytes, 'h', sizeof g_bytes);
	for (size_t sent = 0; sent < HOARD;) {
		ssize_t n = send(fd, g_bytes, sizeof g_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		if (net_counted(NET_READ_STARVED) > 0)
			break;
		net_sleep_ms(1);
	}
	return fd;
}

static void
peers(void *address)
{
	int hoarders[HOARDERS], honest;
	char answer[5] = "";

	for (int i = 0; i < HOARDERS; i++)
		hoarders[i] = hoard(address);
	NET_AWAIT(net_counted(NET_READ_STARVED) > 0);
	honest = raw_connect(address);
	raw_send(honest, "i ho", 4);
	NET_CHECK(raw_read(honest, answer, 4) && memcmp(answer, "i ho", 4) == 0);
	NET_CHECK(net_counted(NET_GIVEN_UP) > 0);
	for (int i = 0; i < HOARDERS; i++)
		close(hoarders[i]);
	close(honest);
	xr_stop();
}

static void
run_with(unsigned lcores)
{
	struct probe probe = {.on_data = hoard_or_echo};

	net_up(lcores, "--rdma_memory_pool_initial_size_mb=32", "--rdma_memory_pool_max_regions=1", NULL);
	net_run_against(probe_listen(&probe, NULL), peers);
	net_down();
}

static void
test_own_lcore(void)
{
	run_with(1);
}

/* The honest peer's lcore may hold nothing itself, and those that do may all be silent. */
static void
test_other_lcores(void)
{
	run_with(4);
}

UNIT_SUITE("scarcity", {"peers of the same lcore", test_own_lcore}, {"peers of other lcores", test_other_lcores});
