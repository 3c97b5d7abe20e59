/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/rdma_fixture.h"
#include <semaphore.h>

void
rdma_card(const struct fake_device *card)
{
	struct fake_device usual = fake_device("fake0", "127.0.0.1");

	fake_reset();
	fake_device_add(card ? card : &usual);
}

void
rdma_down(void)
{
	net_down();
	ASSERT_EQ(fake_leaks(), 0);
	ASSERT_EQ(fake_violations(), 0);
	fake_reset();
}

uint64_t
rdma_counted(enum figure figure)
{
	return counter_read(&g_figures[figure], NULL);
}

uint32_t
rdma_qp(const struct xr_conn *conn)
{
	return conn->endpoint->qp.qp->qp_num;
}

/* ---- on the lcore ---- */

struct errand {
	struct xr_msg msg;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void
run_errand(struct xr_msg *msg, int status)
{
	struct errand *errand = caa_container_of(msg, struct errand, msg);

	if (NET_CHECK(status == 0))
		errand->fn(errand->arg);
	sem_post(&errand->done);
}

void
rdma_do(void (*fn)(void *arg), void *arg)
{
	struct errand errand = {.msg = XR_MSG_INIT(run_errand), .fn = fn, .arg = arg};

	sem_init(&errand.done, 0, 0);
	if (NET_CHECK(xr_post(0, &errand.msg) == 0))
		sem_wait(&errand.done);
	sem_destroy(&errand.done);
}

struct call {
	struct xr_conn *conn;
	uint64_t first;
	size_t len;
	int ret;
	struct xr_conn_info info;
};

static void
do_send(void *arg)
{
	struct call *call = arg;

	call->ret = send_pattern(call->conn, call->first, call->len);
}

int
rdma_send(struct xr_conn *conn, uint64_t first, size_t len)
{
	struct call call = {.conn = conn, .first = first, .len = len};

	rdma_do(do_send, &call);
	return call.ret;
}

static void
do_info(void *arg)
{
	struct call *call = arg;

	call->info.size = sizeof call->info;
	xr_conn_info(call->conn, &call->info);
}

struct xr_conn_info
rdma_info(struct xr_conn *conn)
{
	struct call call = {.conn = conn};

	rdma_do(do_info, &call);
	return call.info;
}

static void
do_state(void *arg)
{
	struct call *call = arg;

	call->ret = call->conn->state;
}

enum conn_state
rdma_state(struct xr_conn *conn)
{
	struct call call = {.conn = conn};

	rdma_do(do_state, &call);
	return (enum conn_state)call.ret;
}

static void
do_pause(void *conn)
{
	xr_conn_pause(conn);
}

static void
do_resume(void *conn)
{
	xr_conn_resume(conn);
}

static void
do_close(void *conn)
{
	xr_conn_close(conn);
}

void
rdma_pause(struct xr_conn *conn)
{
	rdma_do(do_pause, conn);
}

void
rdma_resume(struct xr_conn *conn)
{
	rdma_do(do_resume, conn);
}

void
rdma_close(struct xr_conn *conn)
{
	rdma_do(do_close, conn);
}

static void
do_nothing(void *arg)
{
	(void)arg;
}

void
rdma_settle(void)
{
	for (int i = 0; i < 10; i++)
		rdma_do(do_nothing, NULL);
}

/* ---- the pair ---- */

static void
remember(struct probe *probe, struct xr_conn *conn, int status)
{
	NET_CHECK(status == 0);
	__atomic_store_n(&probe->conn, conn, __ATOMIC_RELEASE);
}

static void
play(void *arg)
{
	struct rdma_pair *pair = arg;

	NET_AWAIT(PROBE_READ(pair->client.opened) && PROBE_READ(pair->server.opened));
	if (NET_CHECK(PROBE_READ(pair->server.conn) && rdma_info(pair->server.conn).rdma.device))
		pair->script(pair);
	xr_stop();
}

void
rdma_pair_run(struct rdma_pair *pair, void (*script)(struct rdma_pair *pair))
{
	rdma_pair_run_at(pair, NULL, script);
}

void
rdma_pair_run_at(struct rdma_pair *pair, const char *address, void (*script)(struct rdma_pair *pair))
{
	struct xr_listener *listener;

	pair->server.on_open = remember;
	pair->script = script;
	listener = probe_listen(&pair->server, address);
	probe_dial(&pair->client, xr_listener_address(listener), XR_RDMA_REQUIRE);
	net_run(play, pair);
}
