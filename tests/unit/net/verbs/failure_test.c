/* SPDX-License-Identifier: Apache-2.0 */

/* What connections see when a device, a port or a queue fails, and what new ones do then. */

#include "net/verbs/cq_private.h"
#include "net/verbs/device.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <xrdma/error.h>

static struct xr_listener *g_listener;
static void (*g_script)(void);

/* ---- connections, one after the other ---- */

struct pair {
	struct probe client, server;
	enum xr_use_rdma use_rdma;
};

static struct pair g_first, g_second, g_third;
static struct pair *g_accepting; /* the next accepted connection is its server */

/* The listener's probe only passes accepted connections on. */
static struct probe g_door;

static void
at_the_door(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	NET_CHECK(status == 0);
	__atomic_store_n(&g_accepting->server.conn, conn, __ATOMIC_RELEASE);
	xr_conn_set_arg(conn, &g_accepting->server);
	__atomic_fetch_add(&g_accepting->server.opened, 1, __ATOMIC_ACQ_REL);
}

static void
dial(void *arg)
{
	struct pair *pair = arg;

	g_accepting = pair;
	probe_dial(&pair->client, xr_listener_address(g_listener), pair->use_rdma);
}

static void
talk(struct pair *pair, uint64_t bytes)
{
	uint64_t before = PROBE_READ(pair->server.bytes);

	NET_CHECK(rdma_send(pair->client.conn, 0, bytes) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == before + bytes);
}

/* Both ends are open over that transport, and the client's reason is this. A server hears of TCP by its first byte. */
static void
connect_pair(struct pair *pair, enum xr_use_rdma use_rdma, const char *transport, const char *reason)
{
	struct xr_conn_info info;

	*pair = (struct pair){.use_rdma = use_rdma};
	rdma_do(dial, pair);
	NET_AWAIT(PROBE_READ(pair->client.opened));
	talk(pair, 1);
	info = rdma_info(pair->client.conn);
	NET_CHECK(strcmp(info.transport, transport) == 0);
	if (!NET_CHECK(strcmp(info.fallback_reason, reason) == 0))
		printf("fallback_reason is \"%s\"\n", info.fallback_reason);
	NET_CHECK(strcmp(rdma_info(pair->server.conn).transport, transport) == 0);
}

static void
assert_closed(struct pair *pair, int reason)
{
	NET_AWAIT(PROBE_READ(pair->client.closed) && PROBE_READ(pair->server.closed));
	NET_CHECK(pair->client.close_reason == reason);
}

/* ---- around each test ---- */

static void
play(void *arg)
{
	(void)arg;
	g_script();
	xr_stop();
}

static void
run(void (*script)(void))
{
	struct fake_device other = fake_device("fake1", "10.0.0.2");

	rdma_card(NULL);
	fake_device_add(&other);
	net_up(1, "--rdma_retry_after_s", "0", NULL);
	g_door = (struct probe){.on_open = at_the_door};
	g_listener = probe_listen(&g_door, NULL);
	g_script = script;
	net_run(play, NULL);
	rdma_down();
}

/* ---- a device ---- */

static void
device_fails(void)
{
	connect_pair(&g_first, XR_RDMA_REQUIRE, "rdma", "");
	talk(&g_first, 10000);
	fake_device_fatal(0);
	assert_closed(&g_first, -XR_ERDMA);
	/* 127.0.0.1 is loopback, for which the other card stands in. */
	connect_pair(&g_second, XR_RDMA_AUTO, "rdma", "");
	NET_CHECK(strcmp(rdma_info(g_second.client.conn).rdma.device, "fake1") == 0);
	talk(&g_second, 10000);
	fake_device_fatal(1);
	assert_closed(&g_second, -XR_ERDMA);
	connect_pair(&g_third, XR_RDMA_AUTO, "tcp", "no RDMA device that works has a GID");
	talk(&g_third, 10000);
}

static void
test_device(void)
{
	run(device_fails);
}

static void
others_go_on(void)
{
	connect_pair(&g_first, XR_RDMA_REQUIRE, "rdma", "");
	fake_device_fatal(1);
	NET_AWAIT(!device_usable(device_at(1)));
	rdma_settle();
	talk(&g_first, 100000);
	connect_pair(&g_second, XR_RDMA_REQUIRE, "rdma", "");
	talk(&g_second, 10000);
}

static void
test_others_go_on(void)
{
	run(others_go_on);
}

/* ---- a port ---- */

static void
port_fails(void)
{
	unsigned acked;

	connect_pair(&g_first, XR_RDMA_REQUIRE, "rdma", "");
	fake_port_set(0, 1, IBV_PORT_DOWN);
	fake_port_set(1, 1, IBV_PORT_DOWN);
	NET_AWAIT(fake_calls("ack_async_event") == 2);
	rdma_settle();
	connect_pair(&g_second, XR_RDMA_AUTO, "tcp", "the RDMA port is not active");
	talk(&g_second, 1000);
	acked = fake_calls("ack_async_event");
	fake_port_set(0, 1, IBV_PORT_ACTIVE);
	NET_AWAIT(fake_calls("ack_async_event") == acked + 1);
	rdma_settle();
	connect_pair(&g_third, XR_RDMA_REQUIRE, "rdma", "");
	talk(&g_third, 1000);
	/* The first one has lived through it. */
	talk(&g_first, 1000);
}

static void
test_port(void)
{
	run(port_fails);
}

/* ---- queues ---- */

static void
queue_pair_fails(void)
{
	connect_pair(&g_first, XR_RDMA_REQUIRE, "rdma", "");
	connect_pair(&g_second, XR_RDMA_REQUIRE, "rdma", "");
	fake_fail_qp(rdma_qp(g_first.client.conn));
	assert_closed(&g_first, -XR_ERDMA);
	talk(&g_second, 10000);
}

static void
test_queue_pair(void)
{
	run(queue_pair_fails);
}

/* More completions than there is room for: a card gives the queue up. All its connections end, the next ones work. */
static void
overrun(void *arg)
{
	struct ibv_cq *cq = cq_recv(g_first.client.conn->endpoint->cq);
	const struct ibv_wc wc = {.wr_id = UINT64_MAX};

	(void)arg;
	for (int i = 0; i <= cq->cqe; i++)
		fake_complete(cq, &wc, false);
}

static void
completion_queue_fails(void)
{
	connect_pair(&g_first, XR_RDMA_REQUIRE, "rdma", "");
	connect_pair(&g_second, XR_RDMA_REQUIRE, "rdma", "");
	rdma_do(overrun, NULL);
	assert_closed(&g_first, -XR_ERDMA);
	assert_closed(&g_second, -XR_ERDMA);
	NET_CHECK(fake_forgive("has overrun"));
	rdma_settle();
	connect_pair(&g_third, XR_RDMA_REQUIRE, "rdma", "");
	talk(&g_third, 100000);
	NET_CHECK(fake_calls("create_cq") == 4);
}

static void
test_completion_queue(void)
{
	run(completion_queue_fails);
}

/* No room in the completion queues, and none for others: TCP, on the same connection. */
static void
no_room(void)
{
	connect_pair(&g_first, XR_RDMA_REQUIRE, "rdma", "");
	connect_pair(&g_second, XR_RDMA_AUTO, "tcp",
		     "the completion queue of fake0 is full: 320 entries are in use, 160 more are needed, and the "
		     "device allows 400; there can be no further one");
	talk(&g_first, 10000);
	talk(&g_second, 10000);
	NET_CHECK(
		net_logged("an RDMA connection goes to TCP: the completion queue of fake0 is full: 320 entries are in "
			   "use, 160 more are needed, and the device allows 400; there can be no further one"));
	/* And RDMA again once the first one has left it. */
	rdma_close(g_first.client.conn);
	assert_closed(&g_first, 0);
	rdma_settle();
	connect_pair(&g_third, XR_RDMA_REQUIRE, "rdma", "");
	talk(&g_third, 10000);
}

/* Each pair has room for one connection: both of its sides are in it. */
static void
further_queues(void)
{
	struct pair *const pairs[] = {&g_first, &g_second, &g_third};

	for (int i = 0; i < 3; i++)
		connect_pair(pairs[i], XR_RDMA_REQUIRE, "rdma", "");
	for (int i = 0; i < 3; i++)
		talk(pairs[i], 10000);
	NET_CHECK(fake_alive(FAKE_CQS) == 6);
	for (int i = 0; i < 3; i++) {
		rdma_close(pairs[i]->client.conn);
		assert_closed(pairs[i], 0);
	}
}

static void
run_on_small_queues(int max_cq, void (*script)(void))
{
	struct fake_device card = fake_device("fake0", "127.0.0.1");

	card.max_cqe = 400;
	card.max_cq = max_cq;
	rdma_card(&card);
	net_up(1, "--rdma_retry_after_s", "0", NULL);
	g_door = (struct probe){.on_open = at_the_door};
	g_listener = probe_listen(&g_door, NULL);
	g_script = script;
	net_run(play, NULL);
	rdma_down();
}

static void
test_no_room(void)
{
	run_on_small_queues(2, no_room);
}

static void
test_further_queues(void)
{
	run_on_small_queues(6, further_queues);
}

UNIT_SUITE("failure", {"a device fails", test_device}, {"another device fails", test_others_go_on},
	   {"a port goes and comes", test_port}, {"a queue pair fails", test_queue_pair},
	   {"a completion queue fails", test_completion_queue}, {"the completion queues are full", test_no_room},
	   {"further completion queues", test_further_queues});
