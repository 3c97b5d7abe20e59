/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

/* The main lcore's worker in a loop of the test's own: xr_worker_begin() to xr_worker_end(). */

static int
timeout_ms(uint64_t timeout_us)
{
	/* No sleep of these tests is without end, so that one that is lost shows as a failure. */
	return timeout_us > 5000000 ? 5000 : (int)((timeout_us + 999) / 1000);
}

/* Turns until the stop; how many waits went to their end without anything having come. */
static unsigned
loop(void)
{
	struct pollfd fd = {.fd = xr_worker_fd(), .events = POLLIN};
	unsigned silent = 0;
	uint64_t timeout_us;

	while (xr_worker_progress() != -ESHUTDOWN)
		if (xr_worker_prepare_wait(&timeout_us) == 0 && poll(&fd, 1, timeout_ms(timeout_us)) == 0)
			silent += timeout_us > 5000000;
	return silent;
}

#define BYTES 300000

static void *
exchange(void *address)
{
	static uint8_t data[BYTES], back[BYTES];
	int fd = raw_connect(address);

	memset(data, 0x5a, sizeof data);
	for (unsigned i = 0; i < 5; i++) {
		raw_send(fd, data, sizeof data);
		NET_CHECK(raw_read(fd, back, sizeof back) && memcmp(data, back, sizeof data) == 0);
		net_sleep_ms(2);
	}
	close(fd);
	return NULL;
}

static void
test_echo(void)
{
	struct probe probe = {.on_data = probe_echo, .on_close = probe_stop_on_close};
	struct xr_listener *listener;
	pthread_t peer;

	net_up(1, "--port", "default,mode=event", NULL);
	listener = probe_listen(&probe, NULL);
	ASSERT_EQ(xr_worker_begin(), 0);
	ASSERT_FATAL(pthread_create(&peer, NULL, exchange, (void *)xr_listener_address(listener)) == 0);
	ASSERT_EQ(loop(), 0);
	pthread_join(peer, NULL);
	ASSERT_EQ(xr_worker_end(), 0);
	ASSERT_EQ(probe.closed, 1);
	ASSERT_EQ(probe.close_reason, 0);
	net_down();
}

/* ---- the other lcores ---- */

static unsigned g_visits;
static struct xr_msg g_tour;

/* From one lcore to the other and back, again and again. */
static void
visit(struct xr_msg *msg, int status)
{
	if (status)
		return;
	if (++g_visits == 200)
		xr_stop();
	else
		NET_CHECK(xr_post(xr_lcore_id() ? 0 : 1, msg) == 0);
}

static void
test_others_run(void)
{
	g_visits = 0;
	g_tour = (struct xr_msg)XR_MSG_INIT(visit);
	net_up(2, NULL);
	ASSERT_EQ(xr_worker_begin(), 0);
	ASSERT_EQ(xr_post(1, &g_tour), 0);
	ASSERT_EQ(loop(), 0);
	ASSERT_EQ(xr_worker_end(), 0);
	ASSERT_EQ(g_visits, 200);
	net_down();
}

/* ---- order of calls ---- */

static void *
call_elsewhere(void *arg)
{
	(void)arg;
	NET_CHECK(xr_worker_begin() == -EINVAL);
	NET_CHECK(xr_worker_end() == -EINVAL);
	return NULL;
}

static void
elsewhere(void)
{
	pthread_t thread;

	ASSERT_FATAL(pthread_create(&thread, NULL, call_elsewhere, NULL) == 0);
	pthread_join(thread, NULL);
}

static void
end_inside(struct xr_msg *msg, int status)
{
	(void)msg;
	NET_CHECK(status == 0);
	NET_CHECK(xr_worker_end() == -EINVAL);
	NET_CHECK(xr_worker_progress() == -EINVAL);
	xr_stop();
}

static void
test_not_inside(void)
{
	struct xr_msg msg = XR_MSG_INIT(end_inside);

	net_up(1, NULL);
	ASSERT_EQ(xr_worker_begin(), 0);
	ASSERT_EQ(xr_post(0, &msg), 0);
	ASSERT_EQ(loop(), 0);
	ASSERT_EQ(xr_worker_end(), 0);
	net_down();
}

static void
test_order(void)
{
	ASSERT_EQ(xr_worker_begin(), -EINVAL);
	ASSERT_EQ(xr_worker_end(), -EINVAL);
	net_up(1, NULL);
	ASSERT_EQ(xr_worker_end(), -EINVAL);
	elsewhere();
	ASSERT_EQ(xr_worker_begin(), 0);
	ASSERT_EQ(xr_worker_begin(), -EALREADY);
	ASSERT_EQ(xr_run(), -EALREADY);
	elsewhere();
	ASSERT_EQ(xr_worker_end(), 0);
	ASSERT_EQ(xr_worker_end(), -EINVAL);
	ASSERT_EQ(xr_worker_begin(), -EALREADY);
	ASSERT_EQ(xr_worker_progress(), -EINVAL);
	net_down();
}

static void
test_after_run(void)
{
	net_up(1, NULL);
	xr_stop();
	ASSERT_EQ(xr_run(), 0);
	ASSERT_EQ(xr_worker_begin(), -EALREADY);
	ASSERT_EQ(xr_worker_end(), -EINVAL);
	net_down();
}

static void
test_stopped_before(void)
{
	net_up(2, NULL);
	xr_stop();
	ASSERT_EQ(xr_worker_begin(), 0);
	ASSERT_EQ(xr_worker_progress(), -ESHUTDOWN);
	ASSERT_EQ(xr_worker_end(), 0);
	net_down();
}

/* ---- the end ---- */

static void
grant_wait(void)
{
	uint64_t timeout_us;

	while (xr_worker_prepare_wait(&timeout_us) == -EBUSY)
		CU_ASSERT(xr_worker_progress() >= 0);
}

/* Both ends of a connection are open, and a wait has been granted. */
static void
begin_with_a_connection(struct probe *server, struct probe *client)
{
	struct xr_listener *listener;

	net_up(2, "--port", "default,mode=event,rdma=off", "--drain_ms", "5000", NULL);
	listener = probe_listen(server, NULL);
	ASSERT_EQ(xr_worker_begin(), 0);
	probe_dial(client, xr_listener_address(listener), XR_RDMA_NO);
	for (unsigned i = 0; i < 5000 && !(PROBE_READ(client->opened) && PROBE_READ(server->opened)); i++) {
		CU_ASSERT(xr_worker_progress() >= 0);
		net_sleep_ms(1);
	}
	grant_wait();
}

/* What is sent between two turns leaves with the next one, and until then there is no wait. */
static void
test_pending_flush_is_busy(void)
{
	struct probe server = {.on_data = probe_echo}, client = {0};
	uint64_t timeout_us;

	begin_with_a_connection(&server, &client);
	for (unsigned round = 1; round <= 3; round++) {
		while (xr_worker_progress() > 0)
			;
		ASSERT_EQ(send_pattern(client.conn, 0, 1000), 0);
		ASSERT_EQ(xr_worker_prepare_wait(&timeout_us), -EBUSY);
		for (unsigned i = 0; i < 5000 && PROBE_READ(client.bytes) < 1000 * round; i++) {
			CU_ASSERT(xr_worker_progress() >= 0);
			net_sleep_ms(1);
		}
		ASSERT_EQ(PROBE_READ(client.bytes), 1000 * round);
		grant_wait();
	}
	ASSERT_EQ(xr_worker_end(), 0);
	net_down();
}

static void
test_stop_drains(void)
{
	struct probe server = {.on_data = probe_echo}, client = {0};

	begin_with_a_connection(&server, &client);
	xr_stop();
	ASSERT_EQ(loop(), 0);
	/* Before the end, in an orderly way. */
	ASSERT_EQ(client.closed, 1);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(PROBE_READ(server.closed), 1);
	ASSERT_EQ(xr_worker_end(), 0);
	net_down();
}

static void
test_end_closes(void)
{
	struct probe server = {.on_data = probe_echo}, client = {0};

	begin_with_a_connection(&server, &client);
	ASSERT_EQ(xr_worker_end(), 0);
	ASSERT_EQ(client.closed, 1);
	ASSERT_EQ(client.close_reason, -ECANCELED);
	ASSERT_EQ(PROBE_READ(server.closed), 1);
	net_down();
}

static void
test_fini_ends(void)
{
	net_up(2, "--port", "default,mode=event", NULL);
	ASSERT_EQ(xr_worker_begin(), 0);
	grant_wait();
	net_down();
	ASSERT_EQ(xr_worker_progress(), -EINVAL);
}

UNIT_SUITE("embed", {"an echo", test_echo}, {"the other lcores run", test_others_run},
	   {"the order of calls", test_order}, {"not inside a callback", test_not_inside},
	   {"not after a run", test_after_run}, {"stopped before it began", test_stopped_before},
	   {"a pending flush is busy", test_pending_flush_is_busy}, {"a stop drains", test_stop_drains},
	   {"the end closes what is open", test_end_closes}, {"xr_fini() ends what was left", test_fini_ends});
