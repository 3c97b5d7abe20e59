/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections that do anything anywhere: each callback picks at random among the calls that are allowed in it, on its
 * own connection and on others of its lcore, until the run is stopped at a random moment. Each connection must have its
 * callbacks in order and its end once, and nothing may be left.
 */

#include "tests/unit/net/net_fixture.h"
#include <errno.h>
#include <stdlib.h>

#define LCORES	 2u
#define PER_SIDE 64u
#define ROUNDS	 25u

enum stage {
	UNUSED,
	BORN, /* dialled, or accepted and not yet told */
	OPENED,
	FAILED,
};

struct actor {
	struct xr_conn *conn;
	enum stage stage;
};

/* What one lcore has; touched there alone. */
struct stage_of_lcore {
	struct actor actors[2 * PER_SIDE];
	unsigned dials, seed;
} __attribute__((aligned(64)));

static struct stage_of_lcore g_lcores[LCORES];
static char g_address[64];
static unsigned g_begun, g_ended;
static unsigned g_total; /* of all rounds */

static unsigned
chance(unsigned of)
{
	return (unsigned)rand_r(&g_lcores[xr_lcore_id()].seed) % of;
}

static void act(struct actor *actor);

static struct actor *
new_actor(struct xr_conn *conn)
{
	struct stage_of_lcore *here = &g_lcores[xr_lcore_id()];

	for (unsigned i = 0; i < 2 * PER_SIDE; i++) {
		if (here->actors[i].stage != UNUSED)
			continue;
		here->actors[i] = (struct actor){.conn = conn, .stage = BORN};
		__atomic_add_fetch(&g_begun, 1, __ATOMIC_RELAXED);
		return &here->actors[i];
	}
	return NULL;
}

static void
on_open(struct xr_conn *conn, int status)
{
	struct actor *actor = xr_conn_arg(conn);

	if (!actor) { /* accepted */
		actor = new_actor(conn);
		xr_conn_set_arg(conn, actor);
		if (!actor) {
			xr_conn_abort(conn, 0);
			return;
		}
	}
	NET_CHECK(actor->conn == conn && actor->stage == BORN);
	actor->stage = status ? FAILED : OPENED;
	act(actor);
}

static void
on_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	struct actor *actor = xr_conn_arg(conn);

	if (!actor)
		return;
	NET_CHECK(actor->stage == OPENED && xr_iobuf_size(in) > 0);
	xr_iobuf_drop(in, chance(4) ? xr_iobuf_size(in) : chance(1000));
	act(actor);
}

static void
on_writable(struct xr_conn *conn)
{
	struct actor *actor = xr_conn_arg(conn);

	NET_CHECK(actor && actor->stage == OPENED);
	act(actor);
}

static void
on_close(struct xr_conn *conn, int reason)
{
	struct actor *actor = xr_conn_arg(conn);

	(void)reason;
	if (!actor)
		return;
	NET_CHECK(actor->stage == OPENED || actor->stage == FAILED);
	act(actor);
	actor->stage = UNUSED;
	actor->conn = NULL;
	__atomic_add_fetch(&g_ended, 1, __ATOMIC_RELAXED);
}

static const struct xr_conn_ops g_ops = {
	.size = sizeof g_ops,
	.on_open = on_open,
	.on_data = on_data,
	.on_writable = on_writable,
	.on_close = on_close,
};

static void
dial(void)
{
	struct stage_of_lcore *here = &g_lcores[xr_lcore_id()];
	struct actor *actor = here->dials < PER_SIDE ? new_actor(NULL) : NULL;
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_ops, .arg = actor};
	int ret;

	if (!actor)
		return;
	here->dials++;
	/* Now and then where nobody listens. */
	ret = xr_dial(NULL, chance(8) ? g_address : "127.0.0.1:1", &opts, &actor->conn);
	if (ret == 0)
		return;
	NET_CHECK(ret == -ESHUTDOWN);
	actor->stage = UNUSED;
	__atomic_add_fetch(&g_ended, 1, __ATOMIC_RELAXED);
}

static void
send_some(struct xr_conn *conn)
{
	static char bytes[300000];
	struct xr_iobuf out = XR_IOBUF_INIT;
	int ret;

	/* A first 'R' may begin a hello. */
	memset(bytes, chance(2) ? 'R' : 'x', 1);
	if (xr_iobuf_append(&out, bytes, 1 + chance(chance(3) ? 200 : sizeof bytes - 1)) == 0) {
		ret = xr_conn_send(conn, &out);
		NET_CHECK(ret == 0 || ret == -EAGAIN || ret == -EPIPE);
	}
	xr_iobuf_clear(&out);
}

static void
act_once(struct xr_conn *conn)
{
	struct xr_conn_info info = {.size = sizeof info};

	switch (chance(12)) {
	case 0:
		xr_conn_close(conn);
		break;
	case 1:
		xr_conn_abort(conn, chance(2) ? -ECONNRESET : 0);
		break;
	case 2:
		xr_conn_pause(conn);
		break;
	case 3:
	case 4:
		xr_conn_resume(conn);
		break;
	case 5:
		xr_conn_need(conn, chance(100000));
		break;
	case 6:
		xr_conn_info(conn, &info);
		NET_CHECK(info.output_queued == xr_conn_queued(conn));
		break;
	case 7:
		dial();
		break;
	default:
		send_some(conn);
		break;
	}
}

/* On this connection and on any other of the lcore. */
static void
act(struct actor *actor)
{
	struct stage_of_lcore *here = &g_lcores[xr_lcore_id()];

	for (unsigned n = chance(4); n; n--) {
		struct actor *other = chance(2) ? actor : &here->actors[chance(2 * PER_SIDE)];

		if (other->stage != UNUSED && other->conn)
			act_once(other->conn);
	}
}

/* Keeps the stage busy: dials anew, and pokes whom nobody else does. */
static void
stir(struct xr_timer *timer)
{
	struct stage_of_lcore *here = &g_lcores[xr_lcore_id()];

	(void)timer;
	here->dials = 0;
	for (unsigned i = 0; i < 8; i++)
		dial();
	act(&here->actors[chance(2 * PER_SIDE)]);
}

static struct xr_timer g_stir[LCORES];

static void
begin(struct xr_msg *msg, int status)
{
	unsigned id = xr_lcore_id();

	(void)msg;
	if (status)
		return;
	g_stir[id] = (struct xr_timer)XR_TIMER_INIT(stir);
	xr_timer_arm(&g_stir[id], 0, 500);
}

static void
stop_after(void *arg)
{
	net_sleep_ms(*(unsigned *)arg);
	xr_stop();
}

static void
torture(const char *port, unsigned round)
{
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_ops};
	struct xr_msg begins[LCORES] = {XR_MSG_INIT(begin), XR_MSG_INIT(begin)};
	unsigned after_ms = round * 7 % 60;
	struct xr_listener *listener;

	memset(g_lcores, 0, sizeof g_lcores);
	g_begun = g_ended = 0;
	net_up(LCORES, "--port", port, "--conn_close_ms=20", "--rdma_handshake_timeout_ms=20",
	       "--conn_input_limit_kb=64", "--conn_output_limit_kb=128", "--wait_cap_ms=50", NULL);
	ASSERT_FATAL(xr_listen(NULL, "127.0.0.1:0", &opts, &listener) == 0);
	snprintf(g_address, sizeof g_address, "%s", xr_listener_address(listener));
	for (unsigned i = 0; i < LCORES; i++) {
		g_lcores[i].seed = round * LCORES + i + 1;
		ASSERT_EQ(xr_post(i, &begins[i]), 0);
	}
	net_run(stop_after, &after_ms);
	ASSERT_EQ(g_begun, g_ended);
	g_total += g_begun;
	net_down();
}

static void
test_event(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		torture("default,mode=event", round);
}

static void
test_poll(void)
{
	for (unsigned round = 0; round < ROUNDS / 5; round++)
		torture("default,mode=poll", round);
}

static void
test_adaptive(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		torture("default,mode=adaptive,spin_us=20", round);
	CU_ASSERT(g_total > 1000);
}

UNIT_SUITE("torture", {"event", test_event}, {"poll", test_poll}, {"adaptive", test_adaptive});
