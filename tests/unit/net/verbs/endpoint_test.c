/* SPDX-License-Identifier: Apache-2.0 */

/* The endpoint from its handshake to its end, with a client and a server of the library's own. */

#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <xrdma/error.h>

/* ---- an echo ---- */

struct echo {
	size_t size;
	unsigned rounds, done;
	size_t got;
	struct xr_conn_info info;
};

static void
send_round(struct probe *probe, struct xr_conn *conn)
{
	struct echo *echo = probe->arg;

	echo->got = 0;
	NET_CHECK(send_pattern(conn, echo->done, echo->size) == 0);
}

static void
echo_open(struct probe *probe, struct xr_conn *conn, int status)
{
	struct echo *echo = probe->arg;

	NET_CHECK(status == 0);
	echo->info.size = sizeof echo->info;
	xr_conn_info(conn, &echo->info);
	send_round(probe, conn);
}

static void
echo_data(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct echo *echo = probe->arg;

	echo->got += take_pattern(in, echo->done + echo->got);
	if (echo->got < echo->size)
		return;
	if (++echo->done < echo->rounds)
		send_round(probe, conn);
	else
		xr_conn_close(conn);
}

static void
run_echo(struct echo *echo)
{
	struct probe server = {.on_data = probe_echo};
	struct probe client = {
		.on_open = echo_open, .on_data = echo_data, .on_close = probe_stop_on_close, .arg = echo};
	struct xr_listener *listener = probe_listen(&server, NULL);

	probe_dial(&client, xr_listener_address(listener), XR_RDMA_REQUIRE);
	net_run(NULL, NULL);
	ASSERT_EQ(echo->done, echo->rounds);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_STR(echo->info.transport, "rdma");
	ASSERT_STR(echo->info.state, "ESTABLISHED");
	ASSERT_STR(echo->info.fallback_reason, "");
	ASSERT_EQ(rdma_counted(RDMA_CONNECTIONS), 2);
	ASSERT_EQ(rdma_counted(RDMA_ERRORS), 0);
}

static const size_t g_sizes[] = {1, 64, 511, 512, 8160, 8161, 65536, 4 << 20};

static void
test_echo(void)
{
	static const char *const modes[] = {"default,mode=poll", "default,mode=event", "default,mode=adaptive"};

	for (size_t mode = 0; mode < 3; mode++)
		for (size_t i = 0; i < sizeof g_sizes / sizeof g_sizes[0]; i++) {
			struct echo echo = {.size = g_sizes[i], .rounds = 3};

			rdma_up("--port", modes[mode], NULL);
			run_echo(&echo);
			rdma_down();
		}
}

UNIT_SUITE("endpoint", {"an echo of every size in every mode", test_echo});
