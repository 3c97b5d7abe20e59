/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/fail_alloc.h"
#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int
dial(struct xr_port *port, const char *address, const struct xr_dial_opts *opts)
{
	struct xr_conn *conn = NULL;
	int ret = xr_dial(port, address, opts, &conn);

	ASSERT_EQ(conn != NULL, ret == 0);
	return ret;
}

static void
test_bad_arguments(void)
{
	static const char *const addresses[] = {"", "localhost:80", "127.0.0.1", "127.0.0.1:65536", "[::1:80", NULL};
	struct xr_conn_ops small_ops = g_probe_ops;
	struct probe probe = {0};
	struct xr_dial_opts good = {.size = sizeof good, .ops = &g_probe_ops, .arg = &probe}, bad;
	struct xr_conn *conn;

	net_up(1, NULL);
	for (int i = 0; i < 6; i++)
		ASSERT_EQ(dial(NULL, addresses[i], &good), -EINVAL);
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", NULL), -EINVAL);
	bad = good;
	bad.ops = NULL;
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", &bad), -EINVAL);
	bad.ops = &small_ops;
	small_ops.size = 8;
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", &bad), -EINVAL);
	bad = good;
	bad.size = 8;
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", &bad), -EINVAL);
	bad = good;
	bad.use_rdma = 3;
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", &bad), -EINVAL);
	bad = good;
	bad.connect_timeout_ms = -1;
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", &bad), -EINVAL);
	ASSERT_EQ(xr_dial(NULL, "127.0.0.1:1", &good, NULL), -EINVAL);
	net_down();
	ASSERT_EQ(probe.opened + probe.closed, 0);
	ASSERT_EQ(xr_dial(NULL, "127.0.0.1:1", &good, &conn), -EINVAL);
}

static void
test_not_an_lcore_of_the_port(void)
{
	struct probe probe = {0};
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = &probe};

	net_up(2, "--port", "far,lcores=1", NULL);
	ASSERT_EQ(dial(xr_port_find("far"), "127.0.0.1:1", &opts), -EINVAL);
	net_down();
}

/* However loaded its lcore is: whoever dials there has reasons. */
#define DIALS 10

static struct probe g_here[DIALS];
static const char *g_here_address;

static void
check_here(struct probe *probe, struct xr_conn *conn, int status)
{
	struct xr_conn_info info = {.size = sizeof info};

	(void)probe;
	xr_conn_info(conn, &info);
	NET_CHECK(status == 0 && xr_lcore_id() == 2 && info.lcore == 2);
}

static void
dial_many_here(struct xr_msg *msg, int status)
{
	NET_CHECK(status == 0);
	(void)msg;
	for (int i = 0; i < DIALS; i++)
		probe_dial(&g_here[i], g_here_address, XR_RDMA_NO);
}

static void
dial_on_lcore_2(void *address)
{
	static struct xr_msg msg = XR_MSG_INIT(dial_many_here);

	g_here_address = address;
	NET_CHECK(xr_post(2, &msg) == 0);
	for (int i = 0; i < DIALS; i++)
		NET_AWAIT(PROBE_READ(g_here[i].opened) == 1);
	xr_stop();
}

static void
test_runs_where_it_was_dialled(void)
{
	struct probe server = {0};

	for (int i = 0; i < DIALS; i++)
		g_here[i] = (struct probe){.on_open = check_here};
	net_up(3, NULL);
	net_run_against(probe_listen(&server, NULL), dial_on_lcore_2);
	net_down();
}

static void
dial_off_worker(void *arg)
{
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = arg};
	struct xr_listen_opts listen_opts = {.size = sizeof listen_opts, .ops = &g_probe_ops};
	struct xr_listener *listener;
	struct xr_conn *conn;

	NET_CHECK(xr_dial(NULL, "127.0.0.1:1", &opts, &conn) == -EINVAL);
	NET_CHECK(xr_listen(NULL, "127.0.0.1:0", &listen_opts, &listener) == -EINVAL);
	xr_stop();
}

static void
test_off_the_workers(void)
{
	struct probe probe = {0};

	net_up(1, NULL);
	net_run(dial_off_worker, &probe);
	net_down();
}

/* A port that nobody listens on: bound and closed again. */
static void
dead_address(char address[64])
{
	int fd = raw_listen(address);

	close(fd);
}

static void
test_refused(void)
{
	struct probe client = {.on_close = probe_stop_on_close};
	char address[64];

	net_up(1, NULL);
	dead_address(address);
	probe_dial(&client, address, XR_RDMA_NO);
	ASSERT_EQ(client.opened, 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.opened, 1);
	ASSERT_EQ(client.open_status, -ECONNREFUSED);
	ASSERT_EQ(client.close_reason, -ECONNREFUSED);
	ASSERT_EQ(client.closed, 1);
	net_down();
}

/* The accept queue is full and the kernel drops what comes on: a connect that hangs. */
static void
connect_timeout(const char *flag_ms, int option_ms)
{
	struct probe client = {.on_close = probe_stop_on_close};
	struct xr_dial_opts opts = {
		.size = sizeof opts, .ops = &g_probe_ops, .arg = &client, .connect_timeout_ms = option_ms};
	char address[64];
	int listener, filler;

	net_up(1, "--connect_timeout_ms", flag_ms, "--port", "default,mode=event", NULL);
	listener = raw_listen(address);
	ASSERT_EQ(listen(listener, 0), 0);
	filler = raw_connect(address);
	ASSERT_EQ(dial(NULL, address, &opts), 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.open_status, -ETIMEDOUT);
	ASSERT_EQ(client.close_reason, -ETIMEDOUT);
	close(filler);
	close(listener);
	net_down();
}

static void
test_timeout_of_the_flag(void)
{
	connect_timeout("40", 0);
}

static void
test_timeout_of_the_dial(void)
{
	connect_timeout("60000", 40);
}

/* A closed connection's timeout does not come any more. */
static void
test_abort_while_connecting(void)
{
	struct probe client = {.on_close = probe_stop_on_close};
	char address[64];
	int listener, filler;

	net_up(1, NULL);
	listener = raw_listen(address);
	ASSERT_EQ(listen(listener, 0), 0);
	filler = raw_connect(address);
	xr_conn_abort(probe_dial(&client, address, XR_RDMA_NO), -EIO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.open_status, -EIO);
	close(filler);
	close(listener);
	net_down();
}

static void
test_no_descriptor_left(void)
{
	struct rlimit limit, none;
	struct probe client = {0};
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = &client};

	net_up(1, NULL);
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", &opts), -EMFILE);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	net_down();
	ASSERT_EQ(client.opened + client.closed, 0);
}

static void
test_no_memory(void)
{
	struct probe probe = {0};
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = &probe};
	struct xr_listen_opts listen_opts = {.size = sizeof listen_opts, .ops = &g_probe_ops};
	struct xr_listener *listener;

	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer brings its own allocator");
		return;
	}
	net_up(1, NULL);
	g_fail_alloc_after = 0;
	ASSERT_EQ(dial(NULL, "127.0.0.1:1", &opts), -ENOMEM);
	ASSERT_EQ(xr_listen(NULL, "127.0.0.1:0", &listen_opts, &listener), -ENOMEM);
	g_fail_alloc_after = -1;
	net_down();
	ASSERT_EQ(probe.opened + probe.closed, 0);
}

/* What the kernel refuses by itself: an IPv6 address without its scope. */
static void
test_refused_at_once(void)
{
	struct probe client = {0};
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = &client};
	int ret;

	net_up(1, NULL);
	ret = dial(NULL, "[fe80::1]:80", &opts);
	CU_ASSERT_TRUE(ret < 0 && ret != -EINPROGRESS);
	net_down();
	ASSERT_EQ(client.opened + client.closed, 0);
}

static void
dial_while_stopping(struct probe *probe, struct xr_conn *conn, int reason)
{
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = probe};
	struct xr_listen_opts listen_opts = {.size = sizeof listen_opts, .ops = &g_probe_ops};
	struct xr_listener *listener;
	struct xr_conn *other;

	(void)conn;
	NET_CHECK(reason == -ECANCELED);
	NET_CHECK(xr_dial(NULL, "127.0.0.1:1", &opts, &other) == -ESHUTDOWN);
	NET_CHECK(xr_listen(NULL, "127.0.0.1:0", &listen_opts, &listener) == -ESHUTDOWN);
}

static void
stop_at_open(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	(void)conn;
	NET_CHECK(status == 0);
	xr_stop();
}

static void
test_no_dial_while_stopping(void)
{
	struct probe server = {0}, client = {.on_open = stop_at_open, .on_close = dial_while_stopping};

	net_up(1, NULL);
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.closed, 1);
	net_down();
}

/* xr_fini() without xr_run(): the callbacks come all the same. */
static void
test_dialled_and_never_run(void)
{
	struct probe server = {0}, client = {0};

	net_up(1, NULL);
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_NO);
	xr_fini();
	ASSERT_EQ(client.open_status, -ECANCELED);
	ASSERT_EQ(client.close_reason, -ECANCELED);
	ASSERT_EQ(client.closed, 1);
}

/* ---- what the application can learn ---- */

static struct xr_conn_info g_info;

static void
read_info(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct xr_conn_info part = {.size = offsetof(struct xr_conn_info, lcore), .lcore = 4711};

	(void)probe;
	g_info.size = sizeof g_info;
	xr_conn_info(conn, &g_info);
	xr_conn_info(conn, &part);
	NET_CHECK(part.lcore == 4711 && strcmp(part.transport, "tcp") == 0);
	NET_CHECK(part.size == offsetof(struct xr_conn_info, lcore));
	xr_iobuf_clear(in);
	xr_stop();
}

static void
say_something(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	NET_CHECK(status == 0 && send_pattern(conn, 0, 100) == 0);
}

static void
test_info(void)
{
	struct probe server = {.on_data = probe_echo}, client = {.on_open = say_something, .on_data = read_info};
	struct xr_conn_info before = {.size = sizeof before};
	const char *address;

	net_up(1, NULL);
	address = xr_listener_address(probe_listen(&server, NULL));
	xr_conn_info(probe_dial(&client, address, XR_RDMA_NO), &before);
	ASSERT_STR(before.transport, "none");
	ASSERT_STR(before.peer, address);
	net_run(NULL, NULL);
	ASSERT_STR(g_info.transport, "tcp");
	ASSERT_STR(g_info.fallback_reason, "not asked for");
	ASSERT_STR(g_info.state, "FALLBACK_TCP");
	ASSERT_EQ(g_info.lcore, 0);
	CU_ASSERT_PTR_EQUAL(g_info.port, xr_port_find(NULL));
	CU_ASSERT_TRUE(strncmp(g_info.local, "127.0.0.1:", 10) == 0);
	ASSERT_EQ(g_info.bytes_in, 100);
	ASSERT_EQ(g_info.bytes_out, 100);
	ASSERT_EQ(g_info.input_waiting, 100);
	net_down();
}

/* ---- families ---- */

static void
echo_between(const char *listen_on, const char *prefix)
{
	struct probe server = {.on_data = probe_echo}, client = {.on_open = say_something, .on_data = read_info};
	const char *address;

	net_up(1, NULL);
	address = xr_listener_address(probe_listen(&server, listen_on));
	probe_dial(&client, address, XR_RDMA_NO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.open_status, 0);
	CU_ASSERT_TRUE(strncmp(g_info.peer, prefix, strlen(prefix)) == 0);
	net_down();
}

static bool
machine_has_ipv6(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool has = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

static void
test_ipv6(void)
{
	if (machine_has_ipv6())
		echo_between("[::1]:0", "[::1]:");
	else
		unit_skip("this machine has no IPv6");
}

static void
test_every_address(void)
{
	echo_between(":0", "127.0.0.1:");
}

static void
test_any_ipv4(void)
{
	echo_between("0.0.0.0:0", "0.0.0.0:");
}

UNIT_SUITE("dial", {"bad arguments", test_bad_arguments}, {"not an lcore of the port", test_not_an_lcore_of_the_port},
	   {"runs where it was dialled", test_runs_where_it_was_dialled}, {"off the workers", test_off_the_workers},
	   {"refused", test_refused}, {"the timeout of the flag", test_timeout_of_the_flag},
	   {"the timeout of the dial", test_timeout_of_the_dial},
	   {"abort while connecting", test_abort_while_connecting}, {"no descriptor left", test_no_descriptor_left},
	   {"no memory", test_no_memory}, {"refused at once", test_refused_at_once},
	   {"no dial while stopping", test_no_dial_while_stopping},
	   {"dialled and never run", test_dialled_and_never_run}, {"what info says", test_info}, {"IPv6", test_ipv6},
	   {"every address of both families", test_every_address}, {"every IPv4 address", test_any_ipv4});
