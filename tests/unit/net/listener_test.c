/* SPDX-License-Identifier: Apache-2.0 */

#include "net/address.h"
#include "net/turn.h"
#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int
listen_on(const char *address, const struct xr_listen_opts *opts)
{
	struct xr_listener *listener = NULL;
	int ret = xr_listen(NULL, address, opts, &listener);

	ASSERT_EQ(listener != NULL, ret == 0);
	if (listener)
		xr_listener_close(listener);
	return ret;
}

static void
test_bad_arguments(void)
{
	struct xr_listen_opts good = {.size = sizeof good, .ops = &g_probe_ops}, bad = good;
	struct xr_listener *listener;

	net_up(1, NULL);
	ASSERT_EQ(listen_on("nowhere", &good), -EINVAL);
	ASSERT_EQ(listen_on(NULL, &good), -EINVAL);
	ASSERT_EQ(listen_on("127.0.0.1:0", NULL), -EINVAL);
	bad.ops = NULL;
	ASSERT_EQ(listen_on("127.0.0.1:0", &bad), -EINVAL);
	bad = good;
	bad.size = 4;
	ASSERT_EQ(listen_on("127.0.0.1:0", &bad), -EINVAL);
	bad = good;
	bad.backlog = -1;
	ASSERT_EQ(listen_on("127.0.0.1:0", &bad), -EINVAL);
	ASSERT_EQ(xr_listen(NULL, "127.0.0.1:0", &good, NULL), -EINVAL);
	ASSERT_EQ(listen_on("203.0.113.1:0", &good), -EADDRNOTAVAIL);
	ASSERT_EQ(listen_on("127.0.0.1:0", &good), 0);
	net_down();
	ASSERT_EQ(xr_listen(NULL, "127.0.0.1:0", &good, &listener), -EINVAL);
}

static void
test_address_in_use(void)
{
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_probe_ops};
	struct xr_listener *listener;
	struct probe server = {0};

	net_up(1, NULL);
	listener = probe_listen(&server, NULL);
	ASSERT_EQ(listen_on(xr_listener_address(listener), &opts), -EADDRINUSE);
	net_down();
}

static void
test_no_descriptor_left(void)
{
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_probe_ops};
	struct rlimit limit, none;

	net_up(1, NULL);
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	ASSERT_EQ(listen_on("127.0.0.1:0", &opts), -EMFILE);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	net_down();
}

static void
test_address_as_bound(void)
{
	struct probe server = {0};
	const char *address;

	net_up(1, NULL);
	address = xr_listener_address(probe_listen(&server, "127.0.0.1:0"));
	CU_ASSERT_TRUE(strncmp(address, "127.0.0.1:", 10) == 0 && strcmp(address, "127.0.0.1:0") != 0);
	address = xr_listener_address(probe_listen(&server, ":0"));
	CU_ASSERT_TRUE((address[0] == ':' || strncmp(address, "0.0.0.0:", 8) == 0) && strcmp(address, ":0") != 0);
	net_down();
}

/* ---- its connections live on ---- */

static void
echo_once(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	xr_listener_close(probe->arg);
	xr_conn_send(conn, in);
}

static void
say_something(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	NET_CHECK(status == 0 && send_pattern(conn, 0, 100) == 0);
}

static void
close_after_answer(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	probe->bytes += take_pattern(in, probe->bytes);
	if (probe->bytes == 100)
		xr_conn_close(conn);
}

static void
test_connections_outlive_it(void)
{
	struct probe server = {.on_data = echo_once};
	struct probe client = {
		.on_open = say_something, .on_data = close_after_answer, .on_close = probe_stop_on_close};
	struct xr_listener *listener;

	net_up(1, NULL);
	listener = probe_listen(&server, NULL);
	server.arg = listener;
	probe_dial(&client, xr_listener_address(listener), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.bytes, 100);
	ASSERT_EQ(client.close_reason, 0);
	net_down();
}

/* ---- lcores ---- */

#define BURST 30

static void
connect_burst(void *address)
{
	int fds[BURST];

	for (int i = 0; i < BURST; i++) {
		fds[i] = raw_connect(address);
		raw_send(fds[i], "x", 1);
	}
	NET_AWAIT(net_counted(NET_CONNS_OPENED) == BURST);
	for (unsigned i = 0; i < 3; i++)
		NET_CHECK(PROBE_READ(net_lcore_at(i)->live) == BURST / 3);
	for (int i = 0; i < BURST; i++)
		close(fds[i]);
	NET_AWAIT(net_counted(NET_CONNS_CLOSED) == BURST);
	for (unsigned i = 0; i < 3; i++)
		NET_CHECK(PROBE_READ(net_lcore_at(i)->live) == 0);
	xr_stop();
}

/* Those that are left count: newcomers fill up where others have gone. */
static void
connect_refill(void *address)
{
	int fds[BURST];

	for (int i = 0; i < BURST; i++)
		fds[i] = raw_connect(address);
	NET_AWAIT(net_counted(NET_CONNS_OPENED) == BURST);
	for (int i = 0; i < BURST / 2; i++)
		close(fds[i]);
	NET_AWAIT(net_counted(NET_CONNS_CLOSED) == BURST / 2);
	for (int i = 0; i < BURST / 2; i++)
		fds[i] = raw_connect(address);
	NET_AWAIT(net_counted(NET_CONNS_OPENED) == BURST + BURST / 2);
	for (unsigned i = 0; i < 3; i++)
		NET_CHECK(PROBE_READ(net_lcore_at(i)->live) == BURST / 3);
	for (int i = 0; i < BURST; i++)
		close(fds[i]);
	xr_stop();
}

static void
test_refill_spreads(void)
{
	struct probe server = {0};

	net_up(3, "--port", "default,rdma=off", NULL);
	net_run_against(probe_listen(&server, NULL), connect_refill);
	ASSERT_EQ(server.opened, BURST + BURST / 2);
	net_down();
}

/* In the middle of a handshake they count as well; the peers go on while the acceptor's lcore is not the port's. */
#define HALF_OPEN 300

static void
connect_half_open(void *address)
{
	int fds[HALF_OPEN];

	for (int i = 0; i < HALF_OPEN; i++) {
		fds[i] = raw_connect(address);
		raw_send(fds[i], "RDMA", 4);
	}
	NET_AWAIT(net_counted(NET_HANDSHAKES) == HALF_OPEN);
	NET_CHECK(PROBE_READ(net_lcore_at(0)->live) == 0);
	NET_CHECK(PROBE_READ(net_lcore_at(1)->live) == HALF_OPEN / 2);
	NET_CHECK(PROBE_READ(net_lcore_at(2)->live) == HALF_OPEN / 2);
	for (int i = 0; i < HALF_OPEN; i++)
		close(fds[i]);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_half_open_spread(void)
{
	struct probe server = {0};
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = &server};
	struct xr_listener *listener;

	net_up(3, "--port", "far,lcores=1-2,mode=event", "--rdma_handshake_timeout_ms=60000", NULL);
	ASSERT_FATAL(xr_listen(xr_port_find("far"), "127.0.0.1:0", &opts, &listener) == 0);
	net_run_against(listener, connect_half_open);
	ASSERT_EQ(server.opened, 0);
	net_down();
}

static void
test_burst_spreads(void)
{
	struct probe server = {0};

	net_up(3, NULL);
	net_run_against(probe_listen(&server, NULL), connect_burst);
	ASSERT_EQ(server.opened, BURST);
	net_down();
}

/* The listener's lcore is not the port's. */
static void
check_lcore(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct xr_conn_info info = {.size = sizeof info};

	xr_conn_info(conn, &info);
	NET_CHECK(info.lcore == 1 && xr_lcore_id() == 1 && strcmp(xr_port_name(info.port), "far") == 0);
	probe_echo(probe, conn, in);
}

static void
echo_over_far(void *address)
{
	char answer[5];
	int fd = raw_connect(address);

	raw_send(fd, "hello", 5);
	NET_CHECK(raw_read(fd, answer, 5) && memcmp(answer, "hello", 5) == 0);
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_only_the_ports_lcores(void)
{
	struct probe server = {.on_data = check_lcore};
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = &server};
	struct xr_listener *listener;

	net_up(2, "--port", "far,lcores=1,mode=event", NULL);
	ASSERT_EQ(xr_listen(xr_port_find("far"), "127.0.0.1:0", &opts, &listener), 0);
	net_run_against(listener, echo_over_far);
	ASSERT_EQ(server.opened, 1);
	net_down();
}

/* Accepted, on their way to an lcore that stops. */
static void
connect_and_stop(void *address)
{
	int fds[BURST];

	for (int i = 0; i < BURST; i++)
		fds[i] = raw_connect(address);
	xr_stop();
	for (int i = 0; i < BURST; i++)
		close(fds[i]);
}

static void
test_stop_while_accepting(void)
{
	for (int i = 0; i < 10; i++) {
		struct probe server = {0};

		net_up(2, "--port", "default,rdma=off", NULL);
		net_run_against(probe_listen(&server, NULL), connect_and_stop);
		ASSERT_EQ(server.opened, server.closed);
		net_down();
	}
}

/* ---- no descriptor for what is to be accepted ---- */

static struct rlimit g_limit;

/* Everything that needs a descriptor is there before the limit falls; the connection waits in the backlog. */
static void
exhaust_descriptors(void *address)
{
	struct rlimit none = g_limit;
	struct address to;
	char answer[5];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	NET_CHECK(address_parse(address, &to) == 0);
	none.rlim_cur = 0;
	NET_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	NET_CHECK(connect(fd, &to.any, to.len) == 0);
	raw_send(fd, "hello", 5);
	NET_AWAIT(net_counted(NET_ACCEPT_ERRORS) >= 1);
	net_sleep_ms(250);
	NET_CHECK(net_counted(NET_ACCEPT_ERRORS) <= 5);
	NET_CHECK(setrlimit(RLIMIT_NOFILE, &g_limit) == 0);
	NET_CHECK(raw_read(fd, answer, 5) && memcmp(answer, "hello", 5) == 0);
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_CLOSED) == 1);
	xr_stop();
}

static void
test_descriptors_run_out(void)
{
	struct probe server = {.on_data = probe_echo};

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &g_limit), 0);
	net_up(1, "--port", "default,mode=event", NULL);
	net_run_against(probe_listen(&server, NULL), exhaust_descriptors);
	ASSERT_EQ(server.opened, 1);
	CU_ASSERT_TRUE(net_logged("can't accept for 100 ms"));
	CU_ASSERT_TRUE(net_logged("; this process may have 0 descriptors"));
	net_down();
}

UNIT_SUITE("listener", {"bad arguments", test_bad_arguments}, {"an address in use", test_address_in_use},
	   {"no descriptor left", test_no_descriptor_left}, {"the address as bound", test_address_as_bound},
	   {"connections outlive it", test_connections_outlive_it}, {"a burst spreads over lcores", test_burst_spreads},
	   {"newcomers fill up", test_refill_spreads}, {"handshakes count", test_half_open_spread},
	   {"only the port's lcores", test_only_the_ports_lcores}, {"stop while accepting", test_stop_while_accepting},
	   {"descriptors run out", test_descriptors_run_out});
