/* SPDX-License-Identifier: Apache-2.0 */

#include "net/listener.h"
#include "core/log.h"
#include "core/why.h"
#include "net/conn.h"
#include "net/net.h"
#include "net/port.h"
#include "net/turn.h"
#include "poll/reactor.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xrdma/error.h>

#define ACCEPTS_A_TURN	64
#define ACCEPTS_AT_STOP 4096
#define ACCEPT_PAUSE_US 100000u

struct xr_listener {
	struct xr_fd fd;
	struct xr_timer pause; /* armed: the system could not accept */
	struct net_lcore *home;
	struct xr_port *port;
	const struct xr_conn_ops *ops;
	void *arg;
	bool peer_first;
	struct cds_list_head link;
	char address[ADDRESS_TEXT_BYTES];
};

/* ---- accepted connections go to their lcores ---- */

/*
 * One socket and one lcore that accepts, and not a socket for each lcore (SO_REUSEPORT): the kernel would choose by a
 * hash, not by load, and would leave connections to an lcore that has no time for them. Accepting is the small part of
 * a connection's beginning, some microseconds; what follows, the handshake above all, is done by the lcore that gets
 * it. Connections on their way, and those in their handshake, count, so that a burst spreads.
 */
static struct net_lcore *
least_loaded(const struct xr_port *port)
{
	struct net_lcore *best = net_lcore_at(port->lcores[0]);
	unsigned fewest = __atomic_load_n(&best->live, __ATOMIC_RELAXED);

	for (unsigned i = 1; i < port->lcore_count; i++) {
		struct net_lcore *net = net_lcore_at(port->lcores[i]);
		unsigned live = __atomic_load_n(&net->live, __ATOMIC_RELAXED);

		if (live < fewest) {
			best = net;
			fewest = live;
		}
	}
	return best;
}

static void
turn_away(struct xr_conn *conn, int fd)
{
	close(fd);
	conn_discard(conn);
}

/* On the connection's lcore. */
static void
arrive(struct xr_conn *conn)
{
	int fd = conn->arriving_fd;

	conn_attach(conn);
	conn->accepted_us = xr_now_us();
	if (tcp_adopt(conn, fd)) {
		net_count(NET_ACCEPT_ERRORS, 1);
		turn_away(conn, fd);
		return;
	}
	conn_connected(conn);
	if (conn->home->drain.phase == DRAIN_ASKED && conn->state == CONN_NEGOTIATING)
		conn_drain(conn);
}

static void
arrival(struct xr_msg *msg, int status)
{
	struct xr_conn *conn = caa_container_of(msg, struct xr_conn, arrival);

	if (status)
		turn_away(conn, conn->arriving_fd);
	else
		arrive(conn);
}

static void
hand_over(struct xr_listener *listener, int fd, const struct address *peer)
{
	struct net_lcore *net = least_loaded(listener->port);
	struct xr_conn *conn = conn_new(net, listener->port, listener->ops, listener->arg);

	if (!conn) {
		net_count(NET_ACCEPT_ERRORS, 1);
		close(fd);
		return;
	}
	conn->peer = *peer;
	conn->peer_first = listener->peer_first;
	conn->arriving_fd = fd;
	conn->arrival = (struct xr_msg)XR_MSG_INIT(arrival);
	if (net == listener->home)
		arrive(conn);
	else if (xr_post(net->lcore->id, &conn->arrival))
		turn_away(conn, fd);
}

/* ---- accepting ---- */

static void
pause_over(struct xr_timer *timer)
{
	struct xr_listener *listener = caa_container_of(timer, struct xr_listener, pause);

	xr_fd_set_events(&listener->fd, EPOLLIN);
}

/* For the log: what a process that has run out of descriptors can do. */
static const char *
descriptors_hint(int error)
{
	struct rlimit limit;

	if (error != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return "";
	if (limit.rlim_cur < limit.rlim_max)
		return why_text("; this process may have %llu descriptors (ulimit -n, systemd's LimitNOFILE=), and "
				"could allow itself %llu",
				(unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
	return why_text("; this process may have %llu descriptors (ulimit -Hn, systemd's LimitNOFILE=)",
			(unsigned long long)limit.rlim_cur);
}

/* Who waits stays in the backlog. Without the pause a level-triggered listener would keep the loop spinning. */
static void
pause_accepting(struct xr_listener *listener, int error)
{
	static struct log_limit limit;

	log_limited(&limit, XR_LOG_WARNING, "listener %s can't accept for %u ms: %s%s", listener->address,
		    ACCEPT_PAUSE_US / 1000, xr_strerror(error), descriptors_hint(error));
	net_count(NET_ACCEPT_ERRORS, 1);
	xr_fd_set_events(&listener->fd, 0);
	xr_timer_arm(&listener->pause, ACCEPT_PAUSE_US, 0);
}

static bool
system_exhausted(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* False when there is nothing more to accept now. */
static bool
accept_one(struct xr_listener *listener)
{
	struct address peer = {.len = sizeof peer.v6};
	int fd = accept4(listener->fd.fd, &peer.any, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		hand_over(listener, fd, &peer);
		return true;
	}
	if (errno == EAGAIN)
		return false;
	if (system_exhausted(errno)) {
		pause_accepting(listener, errno);
		return false;
	}
	return true; /* one that has gone already */
}

static void
listener_ready(struct xr_fd *fd, uint32_t revents)
{
	struct xr_listener *listener = caa_container_of(fd, struct xr_listener, fd);

	(void)revents;
	for (int i = 0; i < ACCEPTS_A_TURN; i++)
		if (!accept_one(listener))
			break;
}

/* ---- life ---- */

static int
bind_and_listen(int fd, const struct address *address, int backlog)
{
	int on = 1, only_v6 = !address->wildcard;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* accepted sockets inherit it */
	if (address->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
	if (bind(fd, &address->any, address->len) || listen(fd, backlog > 0 ? backlog : INT_MAX))
		return -errno;
	return 0;
}

static int
open_socket(const struct address *address, int backlog)
{
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = bind_and_listen(fd, address, backlog);
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

/* ":PORT" on a machine without IPv6 is every IPv4 address. */
static int
open_any_family(const struct address *address, int backlog)
{
	struct address v4 = {.v4 = {.sin_family = AF_INET, .sin_port = address->v6.sin6_port}, .len = sizeof v4.v4};
	int fd = open_socket(address, backlog);

	if (address->wildcard && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL))
		fd = open_socket(&v4, backlog);
	return fd;
}

static void
note_address(struct xr_listener *listener, bool wildcard)
{
	struct address bound = {.len = sizeof bound.v6};

	getsockname(listener->fd.fd, &bound.any, &bound.len);
	bound.wildcard = wildcard && bound.any.sa_family == AF_INET6;
	address_format(&bound, listener->address);
}

static int
start(struct xr_listener *listener, const struct address *address, int backlog)
{
	int fd = open_any_family(address, backlog);
	int ret;

	if (fd < 0)
		return fd;
	listener->fd = (struct xr_fd)XR_FD_INIT(fd, EPOLLIN, listener_ready);
	listener->pause = (struct xr_timer)XR_TIMER_INIT(pause_over);
	note_address(listener, address->wildcard);
	ret = xr_fd_add(&listener->fd);
	if (ret) {
		close(fd);
		return ret;
	}
	fd_set_quiet(&listener->fd, true);
	cds_list_add_tail(&listener->link, &listener->home->listeners);
	return 0;
}

static bool
opts_valid(const struct xr_listen_opts *opts)
{
	return opts && opts->size >= sizeof *opts && conn_ops_valid(opts->ops) && opts->backlog >= 0;
}

int
xr_listen(struct xr_port *port, const char *text, const struct xr_listen_opts *opts, struct xr_listener **out)
{
	struct xr_listener *listener;
	struct address address;
	int ret;

	if (!port)
		port = xr_port_find(NULL);
	if (!t_net || !port || !out || !opts_valid(opts) || address_parse(text, &address))
		return -EINVAL;
	if (t_net->closing || drain_begun())
		return -ESHUTDOWN;
	listener = calloc(1, sizeof *listener);
	if (!listener)
		return -ENOMEM;
	listener->home = t_net;
	listener->port = port;
	listener->ops = opts->ops;
	listener->arg = opts->arg;
	listener->peer_first = opts->peer_speaks_first;
	ret = start(listener, &address, opts->backlog);
	if (ret) {
		free(listener);
		return ret;
	}
	log_info("listening on %s, port %s", listener->address, xr_port_name(port));
	*out = listener;
	return 0;
}

const char *
xr_listener_address(const struct xr_listener *listener)
{
	return listener->address;
}

/* Afterwards its owner can still close it. */
static void
stop_accepting(struct xr_listener *listener)
{
	if (listener->fd.fd < 0)
		return;
	xr_timer_cancel(&listener->pause);
	xr_fd_del(&listener->fd);
	close(listener->fd.fd);
	listener->fd.fd = -1;
}

void
xr_listener_close(struct xr_listener *listener)
{
#ifdef XR_DEBUG
	assert(listener->home == t_net);
#endif
	stop_accepting(listener);
	cds_list_del(&listener->link);
	free(listener);
}

/* Closing the socket would reset who has connected by now and waits in the backlog. */
static void
accept_waiting(struct xr_listener *listener)
{
	for (int i = 0; i < ACCEPTS_AT_STOP; i++)
		if (!accept_one(listener))
			break;
}

void
listeners_stop(struct net_lcore *net)
{
	struct xr_listener *listener;

	cds_list_for_each_entry (listener, &net->listeners, link) {
		accept_waiting(listener);
		stop_accepting(listener);
	}
}

void
listeners_close(struct net_lcore *net)
{
	struct xr_listener *listener, *next;

	cds_list_for_each_entry_safe (listener, next, &net->listeners, link)
		xr_listener_close(listener);
}
