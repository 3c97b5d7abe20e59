/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client whose reactor lives in a bare epoll loop: sends messages of many sizes to an echo server, such as uv-echo,
 *each when the one before has come back, and some after a pause.
 *
 *	cc epoll-ping.c -o epoll-ping $(pkg-config --cflags --libs xrdma-reactor)
 *	./epoll-ping -l 1 127.0.0.1:8002 1000
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <xrdma/xrdma.h>

#define SIZE_MOST 20000
#define PAUSE_US  500

static struct xr_conn *g_conn;
static unsigned long g_rounds = 1000, g_done;
static size_t g_awaited;

/* ---- the exchange ---- */

static void
ping(void)
{
	static const char bytes[SIZE_MOST];
	struct xr_iobuf out = XR_IOBUF_INIT;
	int err;

	g_awaited = 1 + g_done * 37 % SIZE_MOST;
	err = xr_iobuf_append(&out, bytes, g_awaited);
	if (!err)
		err = xr_conn_send(g_conn, &out);
	if (err)
		xr_conn_abort(g_conn, err);
	xr_iobuf_clear(&out);
}

static void
on_pause_over(struct xr_timer *timer)
{
	(void)timer;
	ping();
}

static struct xr_timer g_pause = XR_TIMER_INIT(on_pause_over);

static void
on_open(struct xr_conn *conn, int status)
{
	struct xr_conn_info info = {.size = sizeof info};

	if (status)
		return;
	xr_conn_info(conn, &info);
	printf("over %s\n", info.transport);
	ping();
}

static void
on_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	g_awaited -= xr_iobuf_drop(in, g_awaited);
	if (g_awaited)
		return;
	if (++g_done == g_rounds)
		xr_conn_close(conn);
	else if (g_done % 3 == 0)
		xr_timer_arm(&g_pause, PAUSE_US, 0);
	else
		ping();
}

static void
on_close(struct xr_conn *conn, int reason)
{
	(void)conn;
	if (reason)
		fprintf(stderr, "the connection ended: %s\n", xr_strerror(reason));
	xr_timer_cancel(&g_pause);
	xr_stop();
}

static const struct xr_conn_ops g_ops = {
	.size = sizeof g_ops, .on_open = on_open, .on_data = on_data, .on_close = on_close};

/* ---- the loop ---- */

static int
timeout_ms(uint64_t timeout_us)
{
	if (timeout_us == XR_WAIT_FOREVER)
		return -1;
	return timeout_us > 1000000 ? 1000 : (int)((timeout_us + 999) / 1000);
}

/* An application would have more in its set, and look at what epoll_wait() gives. */
static int
loop(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);
	uint64_t timeout_us;

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, xr_worker_fd(), &event))
		return -errno;
	while (xr_worker_progress() != -ESHUTDOWN)
		if (xr_worker_prepare_wait(&timeout_us) == 0)
			epoll_wait(set, &event, 1, timeout_ms(timeout_us));
	close(set);
	return 0;
}

static void
print_wakes(const char *name, const char *help, uint64_t value, void *arg)
{
	(void)help, (void)arg;
	if (strncmp(name, "reactor_wakes_", 14) == 0)
		printf("%s %" PRIu64 "\n", name, value);
}

static int
run(const char *address)
{
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_ops, .use_rdma = XR_RDMA_AUTO};
	int err = xr_worker_begin();

	if (err)
		return err;
	err = xr_dial(NULL, address, &opts, &g_conn);
	if (!err)
		err = loop();
	printf("%lu of %lu came back\n", g_done, g_rounds);
	xr_counter_foreach(XR_LCORE_NONE, print_wakes, NULL);
	xr_worker_end();
	return err;
}

int
main(int argc, char **argv)
{
	int next = xr_init(argc, argv), err;

	if (next < 0)
		return next == XR_INIT_EXIT ? 0 : 2;
	if (next + 1 < argc)
		g_rounds = strtoul(argv[next + 1], NULL, 10);
	err = run(next < argc ? argv[next] : "127.0.0.1:8002");
	xr_fini();
	return err || g_done != g_rounds ? 1 : 0;
}
