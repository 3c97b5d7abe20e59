/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tcp.h"
#include "core/log.h"
#include "net/conn.h"
#include "net/net.h"
#include "net/turn.h"
#include "poll/reactor.h"
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_BLOCKS_MIN	 2u
#define READ_HEAD_BYTES	 512u /* shows how large a message is; all that is read when even a block is too much */
#define DISCARD_BYTES	 (1u << 20)
#define DISCARD_CALLS	 4
#define WRITE_PIECES	 64
#define WRITE_TURN_BYTES (1u << 20) /* of one connection in one turn: the others get theirs */

static struct xr_conn *
conn_of(struct tcp *tcp)
{
	return caa_container_of(tcp, struct xr_conn, tcp);
}

/* ---- what the socket is watched for ---- */

static bool
may_read(const struct xr_conn *conn)
{
	const struct tcp *tcp = &conn->tcp;

	return !tcp->ended && (tcp->on_end || (!conn->hold_input && !tcp->starved));
}

static void
watch(struct xr_conn *conn)
{
	struct tcp *tcp = &conn->tcp;
	uint32_t events = (may_read(conn) ? EPOLLIN : 0) | (tcp->wants_out ? EPOLLOUT : 0);
	int ret;

	if (events == tcp->fd.events)
		return;
	ret = xr_fd_set_events(&tcp->fd, events);
	if (ret)
		conn_end(conn, ret);
}

/* The pool is at its limit: the bytes stay in the socket until blocks come back. */
static void
starve(struct xr_conn *conn)
{
	static struct log_limit limit;
	char peer[ADDRESS_TEXT_BYTES];

	net_count(NET_READ_STARVED, 1);
	if (conn->tcp.starved)
		return;
	address_format(&conn->peer, peer);
	log_limited(&limit, XR_LOG_WARNING, "no free block to read into, connection with %s waits", peer);
	conn->tcp.starved = true;
	hunger_join(&conn->tcp.hunger, &conn->home->scarcity, BLOCK_DEFAULT);
	watch(conn);
}

/* ---- receiving ---- */

/* More blocks for who fills them, fewer for who does not. */
static void
adapt_read_blocks(struct tcp *tcp, size_t got, size_t offered)
{
	if (got == offered && tcp->read_blocks < RX_BLOCKS_MAX)
		tcp->read_blocks *= 2;
	else if (got < offered / 4 && tcp->read_blocks > READ_BLOCKS_MIN)
		tcp->read_blocks /= 2;
}

static unsigned
blocks_to_offer(const struct xr_conn *conn, size_t turn_bytes)
{
	size_t most = turn_bytes / block_bytes(BLOCK_DEFAULT);

	return most > conn->tcp.read_blocks ? conn->tcp.read_blocks : most ? (unsigned)most : 1;
}

/* Until the socket is empty or the turn's share is taken: how much. *last: what the last call said, -errno included. */
static size_t
read_blocks(struct xr_conn *conn, ssize_t *last)
{
	struct tcp *tcp = &conn->tcp;
	struct rx *rx = &conn->home->rx;
	struct iovec iov[RX_BLOCKS_MAX];
	size_t total = 0, offered, turn_bytes = input_turn_bytes(conn);
	int n;

	do {
		offered = rx_offer(rx, blocks_to_offer(conn, turn_bytes), iov, &n);
		if (offered == 0) {
			*last = -EAGAIN;
			starve(conn);
			break;
		}
		if (turn_bytes < block_bytes(BLOCK_DEFAULT) && offered > READ_HEAD_BYTES)
			iov[0].iov_len = offered = READ_HEAD_BYTES;
		*last = readv(tcp->fd.fd, iov, n);
		if (*last < 0)
			*last = -errno;
		if (*last <= 0)
			break;
		adapt_read_blocks(tcp, (size_t)*last, offered);
		if (rx_take(rx, (size_t)*last, &conn->in)) {
			*last = -ENOMEM;
			break;
		}
		total += (size_t)*last;
	} while ((size_t)*last == offered && total < turn_bytes);
	scarcity_spend(&conn->home->scarcity, rx->taken);
	rx->taken = 0;
	return total;
}

/* What a closing connection's peer still sends. Not by recv(), whose sanitized version takes NULL for written to. */
static void
discard_input(struct xr_conn *conn, ssize_t *last)
{
	for (int i = 0; i < DISCARD_CALLS; i++) {
		*last = syscall(SYS_recvfrom, conn->tcp.fd.fd, NULL, DISCARD_BYTES, MSG_TRUNC | MSG_DONTWAIT, NULL,
				NULL);
		if (*last < 0)
			*last = -errno;
		if (*last <= 0)
			break;
	}
}

static void
read_input(struct xr_conn *conn)
{
	size_t got = 0;
	ssize_t last = -EAGAIN;

	if (conn->state >= CONN_CLOSING)
		discard_input(conn, &last);
	else
		got = read_blocks(conn, &last);
	if (got)
		conn_received(conn, got);
	if (last == 0) {
		conn->tcp.ended = true;
		watch(conn);
		if (conn->tcp.on_end) /* since its last bytes, right before the end */
			conn->tcp.on_end(conn);
		else
			conn_eof(conn);
	} else if (last < 0 && last != -EAGAIN && last != -EINTR) {
		conn_fail(conn, (int)last);
	}
}

/* Blocks have come home. */
static enum hunger_end
feed(struct hunger *hunger)
{
	struct xr_conn *conn = conn_of(caa_container_of(hunger, struct tcp, hunger));
	uint64_t before = conn->bytes_in;

	conn->tcp.starved = false;
	if (may_read(conn))
		read_input(conn);
	if (conn->tcp.starved)
		return conn->bytes_in == before ? HUNGER_NONE : HUNGER_SOME;
	hunger_leave(hunger, &conn->home->scarcity);
	watch(conn);
	return HUNGER_OVER;
}

/* ---- silent ---- */

static void
break_silence(struct xr_conn *conn)
{
	static struct log_limit limit;
	char peer[ADDRESS_TEXT_BYTES];

	address_format(&conn->peer, peer);
	log_limited(&limit, XR_LOG_WARNING, "connection with %s closed: bytes on TCP, which RDMA had replaced", peer);
	conn_fail(conn, -EPROTO);
}

static void
hear_end(struct xr_conn *conn)
{
	char byte;
	ssize_t got = recv(conn->tcp.fd.fd, &byte, sizeof byte, MSG_DONTWAIT);

	if (got > 0) {
		break_silence(conn);
	} else if (got == 0) {
		conn->tcp.ended = true;
		watch(conn);
		conn->tcp.on_end(conn);
	} else if (errno != EAGAIN && errno != EINTR) {
		conn_fail(conn, -errno);
	}
}

void
tcp_go_silent(struct xr_conn *conn, void (*on_end)(struct xr_conn *conn))
{
	conn->tcp.on_end = on_end;
	fd_set_quiet(&conn->tcp.fd, true);
}

/* ---- sending ---- */

static ssize_t
send_iov(struct xr_conn *conn, struct iovec *iov, int n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t sent = sendmsg(conn->tcp.fd.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (sent < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	conn->bytes_out += (uint64_t)sent;
	net_count(NET_BYTES_OUT, (uint64_t)sent);
	return sent;
}

/* The socket's buffer is full, or has room again. */
static void
set_full(struct xr_conn *conn, bool full)
{
	conn->tcp.full = full;
	if (full == conn->tcp.wants_out)
		return;
	conn->tcp.wants_out = full;
	watch(conn);
}

ssize_t
tcp_send_bytes(struct xr_conn *conn, const void *data, size_t len)
{
	struct iovec iov = {(void *)data, len};
	ssize_t sent = send_iov(conn, &iov, 1);

	if (sent >= 0)
		set_full(conn, (size_t)sent < len);
	return sent;
}

/* One call of the system: how much of the front of conn->out has left, -errno. */
static ssize_t
flush_some(struct xr_conn *conn)
{
	struct iovec iov[WRITE_PIECES];
	int n = xr_iobuf_iovec(&conn->out, 0, iov, WRITE_PIECES);
	size_t want = 0;
	ssize_t sent = send_iov(conn, iov, n);

	if (sent < 0)
		return sent;
	for (int i = 0; i < n; i++)
		want += iov[i].iov_len;
	xr_iobuf_drop(&conn->out, (size_t)sent);
	set_full(conn, (size_t)sent < want);
	return sent;
}

static int
tcp_flush(struct xr_conn *conn)
{
	size_t total = 0;

	while (!conn->tcp.full && total < WRITE_TURN_BYTES && xr_iobuf_size(&conn->out)) {
		ssize_t sent = flush_some(conn);

		if (sent < 0)
			return (int)sent;
		total += (size_t)sent;
	}
	if (conn->tcp.full)
		return 0;
	if (xr_iobuf_size(&conn->out))
		conn_flush_later(conn);
	else
		set_full(conn, false);
	return 0;
}

bool
tcp_all_arrived(const struct xr_conn *conn)
{
	int unacknowledged = 0;

	return ioctl(conn->tcp.fd.fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
}

bool
tcp_unread(const struct xr_conn *conn)
{
	int unread = 0;

	return ioctl(conn->tcp.fd.fd, SIOCINQ, &unread) == 0 && unread > 0;
}

/* ---- life ---- */

void
tcp_init(struct tcp *tcp)
{
	*tcp = (struct tcp){
		.fd = XR_FD_INIT(-1, 0, NULL),
		.hunger = hunger_init(feed),
		.read_blocks = READ_BLOCKS_MIN,
	};
}

static void
note_local_address(struct xr_conn *conn)
{
	conn->local.len = sizeof conn->local.v6;
	getsockname(conn->tcp.fd.fd, &conn->local.any, &conn->local.len);
}

static int
pending_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof error;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return -error;
}

static void
finish_connect(struct xr_conn *conn)
{
	int ret = pending_error(conn->tcp.fd.fd);

	conn->tcp.connecting = false;
	conn->tcp.wants_out = false;
	if (ret) {
		conn_fail(conn, ret);
		return;
	}
	note_local_address(conn);
	watch(conn);
	conn_connected(conn);
}

/* Of a socket that says that it has one. */
static int
error_of(int fd)
{
	int error = pending_error(fd);

	return error ? error : -ECONNRESET;
}

static void
tcp_ready(struct xr_fd *fd, uint32_t revents)
{
	struct xr_conn *conn = conn_of(caa_container_of(fd, struct tcp, fd));

	if (conn->state == CONN_ENDED)
		return;
	if (conn->tcp.connecting) {
		finish_connect(conn);
		return;
	}
	if (revents & EPOLLOUT) {
		conn->tcp.full = false;
		conn_flush_later(conn);
	}
	if (may_read(conn) && (revents & ~(uint32_t)EPOLLOUT) && conn->tcp.on_end)
		hear_end(conn);
	else if (may_read(conn) && (revents & ~(uint32_t)EPOLLOUT))
		read_input(conn);
	else if (revents & EPOLLERR)
		conn_fail(conn, error_of(fd->fd));
}

int
tcp_adopt(struct xr_conn *conn, int fd)
{
	struct tcp *tcp = &conn->tcp;
	int ret;

	tcp->fd = (struct xr_fd)XR_FD_INIT(fd, EPOLLIN, tcp_ready);
	ret = xr_fd_add(&tcp->fd);
	if (ret)
		tcp->fd.fd = -1;
	else
		note_local_address(conn);
	return ret;
}

/* What the peer's answer may be already when connect() returns, on loopback. */
static bool
answered_by_peer(int error)
{
	return error == ECONNREFUSED || error == ECONNRESET || error == ECONNABORTED;
}

static int
begin_connect(struct xr_conn *conn, int fd)
{
	struct tcp *tcp = &conn->tcp;
	int on = 1, error = 0, ret;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, &conn->peer.any, conn->peer.len) && errno != EINPROGRESS)
		error = errno;
	if (error && !answered_by_peer(error))
		return -error;
	tcp->fd = (struct xr_fd)XR_FD_INIT(fd, EPOLLOUT, tcp_ready);
	tcp->connecting = true;
	tcp->wants_out = true;
	ret = xr_fd_add(&tcp->fd);
	if (ret)
		tcp->fd.fd = -1;
	else if (error)
		conn_fail(conn, -error);
	return ret;
}

int
tcp_dial(struct xr_conn *conn)
{
	int fd = socket(conn->peer.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = begin_connect(conn, fd);
	if (ret)
		close(fd);
	return ret;
}

static void
tcp_hold(struct xr_conn *conn)
{
	watch(conn);
}

static void
tcp_shutdown(struct xr_conn *conn)
{
	shutdown(conn->tcp.fd.fd, SHUT_WR);
}

static void
tcp_close(struct xr_conn *conn)
{
	struct tcp *tcp = &conn->tcp;
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	hunger_leave(&tcp->hunger, &conn->home->scarcity);
	if (tcp->fd.fd < 0)
		return;
	xr_fd_del(&tcp->fd);
	if (conn->reset)
		setsockopt(tcp->fd.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(tcp->fd.fd);
	tcp_init(tcp);
}

const struct link_ops g_tcp_link = {
	.transport = "tcp",
	.flush = tcp_flush,
	.hold = tcp_hold,
	.shutdown = tcp_shutdown,
	.close = tcp_close,
};
