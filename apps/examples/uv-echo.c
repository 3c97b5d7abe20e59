/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server whose reactor lives in libuv's loop, beside a timer and a signal handler of libuv's.
 *
 *	cc uv-echo.c -o uv-echo $(pkg-config --cflags --libs xrdma-reactor libuv)
 *	./uv-echo -l 0 127.0.0.1:8002
 *
 * All that it takes is struct guest: a prepare handle, which libuv calls last before it waits, does a turn of the
 *worker and asks whether it may wait; a poll handle wakes libuv for the worker; a timer bounds the wait; and an idle
 *handle, while it is started, keeps libuv from waiting at all. None of the last three has anything to do: that libuv
 *goes round is enough.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <uv.h>
#include <xrdma/xrdma.h>

/* ---- the worker as a guest in libuv's loop ---- */

struct guest {
	uv_prepare_t turn;
	uv_poll_t ready;
	uv_timer_t deadline;
	uv_idle_t busy;
};

static void
on_ready(uv_poll_t *poll, int status, int events)
{
	(void)poll, (void)status, (void)events;
}

static void
on_deadline(uv_timer_t *timer)
{
	(void)timer;
}

static void
on_busy(uv_idle_t *idle)
{
	(void)idle;
}

/* libuv counts milliseconds, and from a time that it has read before the turn. */
static void
bound_wait(struct guest *guest, uint64_t timeout_us)
{
	if (timeout_us == XR_WAIT_FOREVER) {
		uv_timer_stop(&guest->deadline);
		return;
	}
	uv_update_time(guest->deadline.loop);
	uv_timer_start(&guest->deadline, on_deadline, (timeout_us + 999) / 1000, 0);
}

static void
close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void
on_turn(uv_prepare_t *prepare)
{
	struct guest *guest = prepare->data;
	uint64_t timeout_us;

	if (xr_worker_progress() == -ESHUTDOWN) {
		uv_walk(prepare->loop, close_handle, NULL); /* uv_run() returns when all are closed */
	} else if (xr_worker_prepare_wait(&timeout_us) != 0) {
		uv_idle_start(&guest->busy, on_busy);
	} else {
		uv_idle_stop(&guest->busy);
		bound_wait(guest, timeout_us);
	}
}

static int
move_in(struct guest *guest, uv_loop_t *loop)
{
	int err = uv_poll_init(loop, &guest->ready, xr_worker_fd());

	if (err)
		return err;
	uv_prepare_init(loop, &guest->turn);
	uv_timer_init(loop, &guest->deadline);
	uv_idle_init(loop, &guest->busy);
	guest->turn.data = guest;
	err = uv_poll_start(&guest->ready, UV_READABLE, on_ready);
	return err ? err : uv_prepare_start(&guest->turn, on_turn);
}

/* ---- the application ---- */

static uint64_t g_echoed;

static void
on_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	size_t size = xr_iobuf_size(in);

	if (xr_conn_send(conn, in) == 0)
		g_echoed += size;
}

static const struct xr_conn_ops g_echo = {.size = sizeof g_echo, .on_data = on_data, .on_writable = xr_conn_resume};

static void
on_second(uv_timer_t *timer)
{
	(void)timer;
	printf("%" PRIu64 " bytes echoed\n", g_echoed);
	fflush(stdout);
}

static void
on_signal(uv_signal_t *handle, int number)
{
	(void)handle, (void)number;
	xr_stop();
}

static int
serve(uv_loop_t *loop)
{
	struct guest guest;
	uv_timer_t second;
	uv_signal_t interrupt;
	int err = xr_worker_begin();

	if (err)
		return err;
	uv_timer_init(loop, &second);
	uv_timer_start(&second, on_second, 1000, 1000);
	uv_signal_init(loop, &interrupt);
	uv_signal_start(&interrupt, on_signal, SIGINT);
	err = move_in(&guest, loop);
	if (!err)
		uv_run(loop, UV_RUN_DEFAULT);
	xr_worker_end();
	return err;
}

int
main(int argc, char **argv)
{
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_echo};
	struct xr_listener *listener;
	int next = xr_init(argc, argv), err;

	if (next < 0)
		return next == XR_INIT_EXIT ? 0 : 2;
	err = xr_listen(NULL, next < argc ? argv[next] : "127.0.0.1:8002", &opts, &listener);
	if (!err) {
		printf("echoing on %s\n", xr_listener_address(listener));
		fflush(stdout);
		err = serve(uv_default_loop());
	}
	xr_fini();
	uv_loop_close(uv_default_loop());
	return err ? 1 : 0;
}
