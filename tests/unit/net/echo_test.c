/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes there and back, in every mode, on one lcore and across two, alone and many at once. */

#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <stdlib.h>

static const size_t g_sizes[] = {0, 1, 64, 511, 512, 8160, 8161, 65536, 4 << 20};

#define SIZES (sizeof g_sizes / sizeof g_sizes[0])

struct client {
	struct probe probe;
	size_t sizes;	/* how many of g_sizes it goes through */
	size_t at;	/* the one on its way */
	uint64_t taken; /* bytes that have come back */
	uint64_t sent;
	unsigned *left; /* clients that are not done */
};

static void
send_next(struct client *client, struct xr_conn *conn)
{
	while (client->at < client->sizes && g_sizes[client->at] == 0)
		NET_CHECK(send_pattern(conn, 0, g_sizes[client->at++]) == 0);
	if (client->at == client->sizes) {
		xr_conn_close(conn);
		return;
	}
	NET_CHECK(send_pattern(conn, client->sent, g_sizes[client->at]) == 0);
	client->sent += g_sizes[client->at++];
}

static void
client_open(struct probe *probe, struct xr_conn *conn, int status)
{
	NET_CHECK(status == 0);
	send_next(probe->arg, conn);
}

static void
client_data(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct client *client = probe->arg;

	client->taken += take_pattern(in, client->taken);
	if (client->taken == client->sent)
		send_next(client, conn);
}

static void
client_close(struct probe *probe, struct xr_conn *conn, int reason)
{
	struct client *client = probe->arg;

	(void)conn;
	NET_CHECK(reason == 0);
	if (__atomic_sub_fetch(client->left, 1, __ATOMIC_ACQ_REL) == 0)
		xr_stop();
}

static void
client_init(struct client *client, size_t sizes, unsigned *left)
{
	*client = (struct client){.sizes = sizes};
	client->left = left;
	client->probe =
		(struct probe){.on_open = client_open, .on_data = client_data, .on_close = client_close, .arg = client};
}

/* Dials on the lcore that it is posted to. */
struct dialler {
	struct xr_msg msg;
	struct client *client;
	const char *address;
};

static void
dial_there(struct xr_msg *msg, int status)
{
	struct dialler *dialler = (struct dialler *)msg;

	if (status == 0)
		probe_dial(&dialler->client->probe, dialler->address, XR_RDMA_NO);
}

static void
echo(unsigned lcores, const char *mode)
{
	struct probe server = {.on_data = probe_echo};
	unsigned left = 1;
	struct client client;
	struct dialler dialler = {.msg = XR_MSG_INIT(dial_there), .client = &client};

	net_up(lcores, "--port", mode, NULL);
	client_init(&client, SIZES, &left);
	dialler.address = xr_listener_address(probe_listen(&server, NULL));
	ASSERT_EQ(xr_post(lcores - 1, &dialler.msg), 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.at, SIZES);
	ASSERT_EQ(client.taken, client.sent);
	ASSERT_EQ(client.probe.opened, 1);
	ASSERT_EQ(client.probe.closed, 1);
	ASSERT_EQ(server.opened, 1);
	ASSERT_EQ(server.closed, 1);
	net_down();
}

static void
test_poll(void)
{
	echo(1, "default,mode=poll");
}

static void
test_event(void)
{
	echo(1, "default,mode=event");
}

static void
test_adaptive(void)
{
	echo(1, "default,mode=adaptive");
}

static void
test_poll_across(void)
{
	echo(2, "default,mode=poll");
}

static void
test_event_across(void)
{
	echo(2, "default,mode=event");
}

static void
test_adaptive_across(void)
{
	echo(2, "default,mode=adaptive,spin_us=20");
}

/* Small blocks are shared by all of them, large ones go their own ways. */
static void
many(size_t clients, size_t sizes)
{
	struct probe server = {.on_data = probe_echo};
	struct client *client = calloc(clients, sizeof *client);
	unsigned left = (unsigned)clients;
	const char *address;

	ASSERT_FATAL(client != NULL);
	net_up(1, "--port", "default,mode=event", NULL);
	address = xr_listener_address(probe_listen(&server, NULL));
	for (size_t i = 0; i < clients; i++) {
		client_init(&client[i], sizes, &left);
		probe_dial(&client[i].probe, address, XR_RDMA_NO);
	}
	net_run(NULL, NULL);
	for (size_t i = 0; i < clients; i++)
		ASSERT_EQ(client[i].taken, client[i].sent);
	ASSERT_EQ(server.opened, clients);
	net_down();
	free(client);
}

static void
test_64_small(void)
{
	many(64, 5);
}

static void
test_64_large(void)
{
	many(64, 8);
}

static void
test_16_mib_at_once(void)
{
	many(16, SIZES);
}

/* ---- both sides stop in the middle ---- */

static void
stop_after_some(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	xr_conn_send(conn, in);
	if (probe->datas == 20)
		xr_stop();
}

static void
first_bytes(struct probe *probe, struct xr_conn *conn, int status)
{
	(void)probe;
	NET_CHECK(status == 0 && send_pattern(conn, 0, 1000) == 0);
}

static void
stop_in_the_middle(unsigned lcores)
{
	struct probe server = {.on_data = probe_echo};
	struct client client = {.probe = {.on_open = first_bytes, .on_data = stop_after_some}};
	struct dialler dialler = {.msg = XR_MSG_INIT(dial_there), .client = &client};

	net_up(lcores, NULL);
	dialler.address = xr_listener_address(probe_listen(&server, NULL));
	ASSERT_EQ(xr_post(lcores - 1, &dialler.msg), 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.probe.closed, 1);
	ASSERT_EQ(client.probe.close_reason, -ECANCELED);
	ASSERT_EQ(server.closed, 1);
	net_down();
}

static void
test_stop(void)
{
	stop_in_the_middle(1);
}

static void
test_stop_across(void)
{
	stop_in_the_middle(2);
}

UNIT_SUITE("echo", {"poll mode", test_poll}, {"event mode", test_event}, {"adaptive mode", test_adaptive},
	   {"poll mode across lcores", test_poll_across}, {"event mode across lcores", test_event_across},
	   {"adaptive mode across lcores", test_adaptive_across}, {"64 connections, small", test_64_small},
	   {"64 connections up to 64 KiB", test_64_large}, {"16 connections up to 4 MiB", test_16_mib_at_once},
	   {"stopped in the middle", test_stop}, {"stopped in the middle across lcores", test_stop_across});
