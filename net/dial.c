/* SPDX-License-Identifier: Apache-2.0 */

#include "net/conn.h"
#include "net/negotiate.h"
#include "net/net.h"
#include "net/port.h"
#include "net/turn.h"
#include <errno.h>

/* ":PORT" is this machine. */
static int
parse_peer(const char *text, struct address *peer)
{
	int ret = address_parse(text, peer);

	if (ret)
		return ret;
	if (peer->wildcard)
		*peer = (struct address){.v4 = {.sin_family = AF_INET,
						.sin_port = peer->v6.sin6_port,
						.sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
					 .len = sizeof peer->v4};
	return 0;
}

static bool
opts_valid(const struct xr_dial_opts *opts)
{
	return opts && opts->size >= sizeof *opts && conn_ops_valid(opts->ops) && opts->use_rdma >= XR_RDMA_NO &&
	       opts->use_rdma <= XR_RDMA_REQUIRE && opts->connect_timeout_ms >= 0;
}

int
conn_connect(struct xr_conn *conn)
{
	int64_t timeout_ms = conn->connect_timeout_ms;
	int ret;

	conn->state = CONN_CONNECTING;
	conn_set_deadline(conn, timeout_ms ? timeout_ms : option_int(&g_connect_timeout_ms));
	ret = tcp_dial(conn);
	if (ret)
		xr_timer_cancel(&conn->deadline);
	return ret;
}

/* A dial that can't have what it requires need not connect. */
static int
begin(struct xr_conn *conn)
{
	conn->no_rdma = negotiate_obstacle(conn);
	if (conn->no_rdma && negotiate_requires_rdma(conn)) {
		conn_end(conn, -EPROTONOSUPPORT);
		return 0;
	}
	return conn_connect(conn);
}

int
xr_dial(struct xr_port *port, const char *address, const struct xr_dial_opts *opts, struct xr_conn **out)
{
	struct net_lcore *net = t_net;
	struct address peer;
	struct xr_conn *conn;
	int ret;

	if (!port)
		port = xr_port_find(NULL);
	if (!net || !port || !out || !opts_valid(opts) || !port_uses_lcore(port, net->lcore->index) ||
	    parse_peer(address, &peer))
		return -EINVAL;
	if (net->closing || drain_begun())
		return -ESHUTDOWN;
	conn = conn_new(net, port, opts->ops, opts->arg);
	if (!conn)
		return -ENOMEM;
	conn->dialled = true;
	conn->use_rdma = opts->use_rdma;
	conn->connect_timeout_ms = opts->connect_timeout_ms;
	conn->peer = peer;
	conn_attach(conn);
	ret = begin(conn);
	if (ret)
		conn_discard(conn);
	else
		*out = conn;
	return ret;
}
