/* SPDX-License-Identifier: Apache-2.0 */

/* The stop of connections that are no RPC's: what it waits for, what it closes, and when it has waited enough. */

#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* Longer than the watchdog: a drain that is not over by itself fails its test. */
#define LONG "--drain_ms", "3600000"

/* ---- nothing in work ---- */

static void
sleep_and_stop(void *arg)
{
	(void)arg;
	net_sleep_ms(50);
	xr_stop();
}

static void
test_all_workers_asleep(void)
{
	net_up(3, LONG, "--port", "default,mode=event", NULL);
	net_run(sleep_and_stop, NULL);
	net_down();
}

static void
test_before_run(void)
{
	net_up(2, LONG, NULL);
	xr_stop();
	net_run(NULL, NULL);
	net_down();
}

/* ---- idle connections ---- */

#define IDLE 200

/* They don't close their side: nobody waits for that, since nothing is on its way. */
static void
connect_idle(void *address)
{
	int fds[IDLE];
	char echo;

	for (int i = 0; i < IDLE; i++) {
		fds[i] = raw_connect(address);
		raw_send(fds[i], "x", 1);
		NET_CHECK(raw_read(fds[i], &echo, 1));
	}
	net_sleep_ms(20);
	xr_stop();
	for (int i = 0; i < IDLE; i++)
		NET_CHECK(raw_await_end(fds[i]) == 0);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	for (int i = 0; i < IDLE; i++)
		close(fds[i]);
}

static void
test_idle_connections(void)
{
	struct probe server = {.on_data = probe_echo};

	net_up(3, LONG, NULL);
	net_run_against(probe_listen(&server, NULL), connect_idle);
	ASSERT_EQ(server.closed, IDLE);
	ASSERT_EQ(server.drains, IDLE);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
	net_down();
}

static const struct xr_conn_ops g_no_drain_ops = {.size = sizeof g_no_drain_ops};

static void
connect_and_stop(void *address)
{
	int fd = raw_connect(address);

	NET_AWAIT(net_counted(NET_CONNS_OPENED) == 1);
	xr_stop();
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

/* Without an on_drain it is closed. */
static void
test_no_callback(void)
{
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_no_drain_ops};
	struct xr_listener *listener;

	net_up(1, LONG, "--port", "default,rdma=off", NULL);
	ASSERT_FATAL(xr_listen(NULL, "127.0.0.1:0", &opts, &listener) == 0);
	net_run_against(listener, connect_and_stop);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
	net_down();
}

/* The application has not heard of it: silent so far, or in the middle of a hello. */
static void
connect_unopened(void *address)
{
	int silent = raw_connect(address), hello = raw_connect(address);

	raw_send(hello, "RDMA", 4);
	NET_AWAIT(net_counted(NET_HANDSHAKES) == 1 && net_counted(NET_CONNS_LIVE) == 2);
	xr_stop();
	NET_CHECK(raw_await_end(silent) == 0);
	NET_CHECK(raw_await_end(hello) == 0);
	close(silent);
	close(hello);
}

static void
test_unopened(void)
{
	struct probe server = {0};

	net_up(1, LONG, NULL);
	net_run_against(probe_listen(&server, NULL), connect_unopened);
	ASSERT_EQ(server.opened + server.drains + server.closed, 0);
	net_down();
}

/* ---- lcores that hear of the stop at different times ---- */

#define LATE 4

static struct {
	char address[64];
	bool busy, stopped;
} g_late;

/* Its listener goes on accepting while the other lcore has long heard of the stop, and has nothing to wait for. */
static void
be_busy(struct xr_msg *msg, int status)
{
	(void)msg;
	NET_CHECK(status == 0);
	__atomic_store_n(&g_late.busy, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&g_late.stopped, __ATOMIC_ACQUIRE))
		net_sleep_ms(1);
	net_sleep_ms(100);
}

static void
connect_late(void *arg)
{
	int fds[LATE];
	char echo;

	NET_CHECK(xr_post(0, arg) == 0);
	NET_AWAIT(__atomic_load_n(&g_late.busy, __ATOMIC_ACQUIRE));
	for (int i = 0; i < LATE; i++) {
		fds[i] = raw_connect(g_late.address);
		raw_send(fds[i], "x", 1);
	}
	xr_stop();
	__atomic_store_n(&g_late.stopped, true, __ATOMIC_RELEASE);
	for (int i = 0; i < LATE; i++) {
		NET_CHECK(raw_read(fds[i], &echo, 1));
		NET_CHECK(raw_await_end(fds[i]) == 0);
		close(fds[i]);
	}
}

static void
test_lcore_that_hears_late(void)
{
	struct xr_msg busy = XR_MSG_INIT(be_busy);
	struct probe server = {.on_data = probe_echo};

	memset(&g_late, 0, sizeof g_late);
	net_up(2, LONG, NULL);
	snprintf(g_late.address, sizeof g_late.address, "%s", xr_listener_address(probe_listen(&server, NULL)));
	net_run(connect_late, &busy);
	ASSERT_EQ(server.drains, LATE);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 0);
	net_down();
}

/* ---- what is in work ---- */

#define QUEUED (3u << 20)

static void
send_much(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)probe;
	xr_iobuf_clear(in);
	NET_CHECK(send_pattern(conn, 0, QUEUED) == 0);
	xr_stop();
}

static void
read_slowly(void *address)
{
	static char bytes[QUEUED];
	int fd = raw_connect(address);

	raw_send(fd, "x", 1);
	net_sleep_ms(100);
	NET_CHECK(raw_read(fd, bytes, sizeof bytes));
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_queued_bytes_leave(void)
{
	struct probe server = {.on_data = send_much};

	net_up(2, LONG, NULL);
	net_run_against(probe_listen(&server, NULL), read_slowly);
	ASSERT_EQ(server.close_reason, 0);
	net_down();
}

/* An application with work of its own: it goes on, with timers, while nothing new begins. */
static struct {
	struct xr_timer later;
	struct xr_listener *listener;
	struct probe *probe;
	struct xr_conn *conn;
	int dial, listen;
} g_work;

/* Not before it has served what came in the meantime. */
static void
finish_work(struct xr_timer *timer)
{
	if (g_work.probe->datas < 2) {
		xr_timer_arm(timer, 10000, 0);
		return;
	}
	NET_CHECK(send_pattern(g_work.conn, 0, 10) == 0);
	xr_conn_close(g_work.conn);
}

static void
begin_end(struct probe *probe, struct xr_conn *conn)
{
	struct xr_listen_opts listen = {.size = sizeof listen, .ops = &g_probe_ops};
	struct xr_dial_opts dial = {.size = sizeof dial, .ops = &g_probe_ops};
	struct xr_listener *listener;
	struct xr_conn *dialled;

	g_work.dial = xr_dial(NULL, "127.0.0.1:1", &dial, &dialled);
	g_work.listen = xr_listen(NULL, "127.0.0.1:0", &listen, &listener);
	xr_listener_close(g_work.listener);
	g_work.conn = conn;
	g_work.probe = probe;
	g_work.later = (struct xr_timer)XR_TIMER_INIT(finish_work);
	xr_timer_arm(&g_work.later, 100000, 0);
}

static void
talk_while_draining(void *address)
{
	char bytes[10];
	int fd = raw_connect(address);

	raw_send(fd, "x", 1);
	NET_CHECK(raw_read(fd, bytes, 1));
	xr_stop();
	net_sleep_ms(30);
	raw_send(fd, "y", 1);
	NET_CHECK(raw_read(fd, bytes, 1) && bytes[0] == 'y');
	NET_CHECK(raw_read(fd, bytes, 10));
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_application_finishes_its_work(void)
{
	struct probe server = {.on_data = probe_echo, .on_drain = begin_end};

	net_up(1, LONG, NULL);
	g_work.listener = probe_listen(&server, NULL);
	net_run_against(g_work.listener, talk_while_draining);
	ASSERT_EQ(g_work.dial, -ESHUTDOWN);
	ASSERT_EQ(g_work.listen, -ESHUTDOWN);
	ASSERT_EQ(server.drains, 1);
	ASSERT_EQ(server.close_reason, 0);
	net_down();
}

/* What a dial has queued is sent, if it opens. */
static void
accept_and_read(void *arg)
{
	int *listener = arg, fd = raw_accept(*listener);
	char bytes[100];

	NET_CHECK(raw_read(fd, bytes, sizeof bytes));
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_dial_under_way(void)
{
	struct probe full = {0};
	char address[64];
	int listener;

	net_up(1, LONG, NULL);
	listener = raw_listen(address);
	ASSERT_EQ(send_pattern(probe_dial(&full, address, XR_RDMA_NO), 0, 100), 0);
	xr_stop();
	net_run(accept_and_read, &listener);
	ASSERT_EQ(full.open_status, 0);
	ASSERT_EQ(full.close_reason, 0);
	close(listener);
	net_down();
}

/* ---- enough ---- */

static void
ignore_drain(struct probe *probe, struct xr_conn *conn)
{
	(void)probe;
	(void)conn;
}

static void
connect_and_stay(void *address)
{
	int fd = raw_connect(address);

	raw_send(fd, "x", 1);
	NET_AWAIT(net_counted(NET_CONNS_OPENED) == 1);
	xr_stop();
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_deadline(void)
{
	struct probe server = {.on_drain = ignore_drain};

	net_up(2, "--drain_ms", "200", NULL);
	net_run_against(probe_listen(&server, NULL), connect_and_stay);
	ASSERT_EQ(server.drains, 1);
	ASSERT_EQ(server.close_reason, -ECANCELED);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 1);
	CU_ASSERT_TRUE(net_logged("1 connections had not ended within --drain_ms=200"));
	net_down();
}

static void
stop_twice(void *address)
{
	int fd = raw_connect(address);

	raw_send(fd, "x", 1);
	NET_AWAIT(net_counted(NET_CONNS_OPENED) == 1);
	raise(SIGTERM);
	net_sleep_ms(50);
	NET_CHECK(net_counted(NET_CONNS_LIVE) == 1);
	raise(SIGINT);
	NET_CHECK(raw_await_end(fd) == 0);
	close(fd);
}

static void
test_second_signal(void)
{
	struct probe server = {.on_drain = ignore_drain};

	net_up(2, LONG, "--port", "default,mode=event", NULL);
	ASSERT_EQ(xr_handle_signals(), 0);
	net_run_against(probe_listen(&server, NULL), stop_twice);
	ASSERT_EQ(server.close_reason, -ECANCELED);
	ASSERT_EQ(net_counted(NET_CONNS_CUT_OFF), 1);
	CU_ASSERT_FALSE(net_logged("had not ended within"));
	net_down();
}

static void
test_none_wanted(void)
{
	struct probe server = {0};

	net_up(2, "--drain_ms", "0", NULL);
	net_run_against(probe_listen(&server, NULL), connect_and_stay);
	ASSERT_EQ(server.drains, 0);
	ASSERT_EQ(server.close_reason, -ECANCELED);
	net_down();
}

/* ---- work that is no connection's ---- */

static struct {
	unsigned drains;
	unsigned lcore;
	bool released;
} g_own;

static void
hold_drain(void *arg)
{
	NET_CHECK(arg == &g_own);
	g_own.lcore = xr_lcore_id();
	xr_drain_hold();
	xr_drain_hold();
	__atomic_add_fetch(&g_own.drains, 1, __ATOMIC_RELEASE);
}

static void
stop_and_release(void *arg)
{
	(void)arg;
	net_sleep_ms(20);
	xr_stop();
	NET_AWAIT(__atomic_load_n(&g_own.drains, __ATOMIC_ACQUIRE) == 1);
	xr_drain_release();
	net_sleep_ms(50);
	__atomic_store_n(&g_own.released, true, __ATOMIC_RELEASE);
	xr_drain_release();
}

static void
test_hold(void)
{
	memset(&g_own, 0, sizeof g_own);
	xr_on_drain(hold_drain, &g_own);
	net_up(2, LONG, NULL);
	net_run(stop_and_release, NULL);
	CU_ASSERT_TRUE(g_own.released);
	ASSERT_EQ(g_own.drains, 1);
	ASSERT_EQ(g_own.lcore, 0);
	net_down();
	xr_on_drain(NULL, NULL);
	net_up(1, LONG, NULL);
	net_run(sleep_and_stop, NULL);
	net_down();
	ASSERT_EQ(g_own.drains, 1);
}

UNIT_SUITE("drain", {"all workers asleep", test_all_workers_asleep}, {"before the run", test_before_run},
	   {"idle connections", test_idle_connections}, {"no callback for it", test_no_callback},
	   {"connections that have not opened", test_unopened},
	   {"an lcore that hears of it late", test_lcore_that_hears_late},
	   {"queued bytes leave", test_queued_bytes_leave},
	   {"the application finishes its work", test_application_finishes_its_work},
	   {"a dial under way", test_dial_under_way}, {"the deadline", test_deadline},
	   {"a second signal", test_second_signal}, {"none is wanted", test_none_wanted},
	   {"work that is no connection's", test_hold});
