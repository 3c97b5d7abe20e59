/* SPDX-License-Identifier: Apache-2.0 */

#include "net/negotiate.h"
#include "core/log.h"
#include "net/net.h"
#include "net/port.h"
#include "net/rdma_provider.h"
#include "net/turn.h"
#include <errno.h>
#include <string.h>
#include <xrdma/error.h>

/* ---- whether there is to be one ---- */

static const char g_port_off[] = "the port has rdma=off";

static enum xr_use_rdma
wanted(const struct xr_conn *conn)
{
	return conn->port->rdma == PORT_RDMA_REQUIRE ? XR_RDMA_REQUIRE : conn->use_rdma;
}

bool
negotiate_requires_rdma(const struct xr_conn *conn)
{
	return wanted(conn) == XR_RDMA_REQUIRE;
}

const char *
negotiate_obstacle(const struct xr_conn *conn)
{
	if (wanted(conn) == XR_RDMA_NO)
		return "not asked for";
	if (conn->port->rdma == PORT_RDMA_OFF)
		return g_port_off;
	if (!rdma_provider()->ops)
		return rdma_provider()->reason;
	if (wanted(conn) != XR_RDMA_AUTO)
		return NULL;
	if (conn->skip_hello || peers_avoids_hello(&conn->home->peers, &conn->peer, xr_now_us()))
		return "the peer answered no hello";
	return NULL;
}

const char *
negotiate_reason(const struct xr_conn *conn)
{
	return conn->no_rdma ? conn->no_rdma : conn->hs.reason ? conn->hs.reason : "";
}

/* ---- how it ends ---- */

/* Peers can cause this at will: who wants a line for each connection gets one, others at most one a second. */
static void
log_failed(const struct xr_conn *conn)
{
	static struct log_limit limit;
	const char *direction = conn->dialled ? "to" : "from";
	char peer[ADDRESS_TEXT_BYTES];

	address_format(&conn->peer, peer);
	if (log_enabled(XR_LOG_INFO))
		log_warning("connection %s %s closed in its handshake: %s", direction, peer, conn->hs.reason);
	else
		log_limited(&limit, XR_LOG_WARNING, "connection %s %s closed in its handshake: %s", direction, peer,
			    conn->hs.reason);
}

static void
fail(struct xr_conn *conn, int error)
{
	net_count(NET_HANDSHAKES_FAILED, 1);
	log_failed(conn);
	conn_end(conn, error);
}

static void
log_fallback(const struct xr_conn *conn)
{
	char peer[ADDRESS_TEXT_BYTES];

	if (!log_enabled(XR_LOG_INFO))
		return;
	address_format(&conn->peer, peer);
	log_info("connection %s %s falls back to TCP: %s", conn->dialled ? "to" : "from", peer, negotiate_reason(conn));
}

void
negotiate_discard(struct xr_conn *conn)
{
	if (conn->endpoint)
		rdma_provider()->discard(conn);
}

static void
go_tcp(struct xr_conn *conn)
{
	bool asked = conn->dialled ? wanted(conn) != XR_RDMA_NO : conn->hs.started;

	negotiate_discard(conn);
	if (conn->hs.started)
		net_count(NET_HANDSHAKES_REFUSED, 1);
	if (asked) {
		net_count(NET_FALLBACKS, 1);
		log_fallback(conn);
	}
	if (conn->dialled && negotiate_requires_rdma(conn))
		conn_end(conn, -EPROTONOSUPPORT);
	else
		conn_opened(conn);
}

static void
go_rdma(struct xr_conn *conn)
{
	int ret = rdma_provider()->attach(conn);

	if (ret)
		conn_end(conn, ret);
	else
		conn_opened(conn);
}

/* The deadline runs from the first byte of a hello, not from the accept: an idle connection may stay silent. */
static void
go_on(struct xr_conn *conn, bool had_started)
{
	if (!conn->hs.started || had_started)
		return;
	net_count(NET_HANDSHAKES, 1);
	conn_set_deadline(conn, option_int(&g_rdma_handshake_timeout_ms));
}

static void
settle(struct xr_conn *conn, enum handshake_result result, bool had_started)
{
	if (conn->state == CONN_ENDED)
		return; /* by the free function of user memory, as an endpoint was given back */
	go_on(conn, had_started);
	if (conn->hs.out_len)
		conn_flush_later(conn);
	switch (result) {
	case HANDSHAKE_GO_ON:
		break;
	case HANDSHAKE_TCP:
		go_tcp(conn);
		break;
	case HANDSHAKE_RDMA:
		go_rdma(conn);
		break;
	case HANDSHAKE_FAIL:
		fail(conn, -EPROTO);
		break;
	}
}

/* ---- how it begins ---- */

static void
start_client(struct xr_conn *conn)
{
	conn->no_rdma = negotiate_obstacle(conn);
	settle(conn, handshake_start_client(&conn->hs, conn->no_rdma ? NULL : rdma_provider()->ops, conn), false);
}

static void
start_server(struct xr_conn *conn)
{
	bool off = conn->port->rdma == PORT_RDMA_OFF;

	handshake_start_server(&conn->hs, off ? NULL : rdma_provider()->ops, conn);
	if (!off)
		return;
	conn->no_rdma = g_port_off;
	if (conn->peer_first)
		return;
	conn->hs.state = HANDSHAKE_FALLBACK_TCP;
	go_tcp(conn);
}

void
negotiate_start(struct xr_conn *conn)
{
	if (conn->dialled)
		start_client(conn);
	else
		start_server(conn);
}

/* ---- bytes in and out ---- */

void
negotiate_input(struct xr_conn *conn)
{
	uint8_t bytes[HELLO_V2_MAX];
	bool had_started = conn->hs.started;
	enum handshake_result result;
	size_t len, used;

	do {
		len = xr_iobuf_copy_out(&conn->in, 0, bytes, sizeof bytes);
		result = handshake_feed(&conn->hs, bytes, len, &used);
		xr_iobuf_drop(&conn->in, used);
	} while ((result == HANDSHAKE_GO_ON || result == HANDSHAKE_RDMA) && used && xr_iobuf_size(&conn->in));
	if (conn->hs.started && !conn->no_rdma && !rdma_provider()->ops)
		conn->no_rdma = rdma_provider()->reason;
	settle(conn, result, had_started);
}

bool
negotiate_send(struct xr_conn *conn)
{
	struct handshake *hs = &conn->hs;
	ssize_t sent = tcp_send_bytes(conn, hs->out, hs->out_len);

	if (sent < 0) {
		conn_fail(conn, (int)sent);
		return false;
	}
	hs->out_len -= (size_t)sent;
	memmove(hs->out, hs->out + sent, hs->out_len);
	return hs->out_len == 0;
}

/* ---- peers that do not answer ---- */

void
negotiate_avoid_rdma(struct xr_conn *conn)
{
	uint64_t avoid_us = (uint64_t)option_int(&g_rdma_retry_after_s) * 1000000;

	peers_avoid_hello(&conn->home->peers, &conn->peer, xr_now_us() + avoid_us);
}

/*
 * A server that does not know hellos closes, or waits for more: the same dial goes on with a new socket and without a
 * hello, and the next dials too for a while. Nothing of the application's has left yet.
 */
static bool
dial_anew(struct xr_conn *conn)
{
	int ret;

	if (!conn->dialled || conn->hs.state != HANDSHAKE_C_HELLO_WAIT || wanted(conn) != XR_RDMA_AUTO)
		return false;
	negotiate_avoid_rdma(conn);
	negotiate_discard(conn);
	conn->skip_hello = true;
	conn->link->close(conn);
	xr_iobuf_clear(&conn->in);
	conn->hs.out_len = 0;
	conn->eof = false;
	ret = conn_connect(conn);
	if (ret)
		conn_end(conn, ret);
	return true;
}

void
negotiate_eof(struct xr_conn *conn)
{
	if (dial_anew(conn))
		return;
	if (conn->hs.started) {
		handshake_eof(&conn->hs);
		fail(conn, -ECONNRESET);
	} else {
		conn_end(conn, -ECONNRESET);
	}
}

void
negotiate_timeout(struct xr_conn *conn)
{
	if (dial_anew(conn))
		return;
	handshake_timeout(&conn->hs);
	fail(conn, -ETIMEDOUT);
}

bool
negotiate_broken(struct xr_conn *conn)
{
	return dial_anew(conn);
}
