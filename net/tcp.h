/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TCP_H
#define NET_TCP_H

/* The TCP link: a socket of the connection's. */

#include "net/link.h"
#include "net/scarcity.h"
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <xrdma/reactor.h>

struct tcp {
	struct xr_fd fd; /* fd.fd < 0: no socket */
	struct hunger hunger;
	bool starved;	     /* reading waits for a free block */
	uint8_t read_blocks; /* offered to the next read; grows while reads fill them */
	bool connecting;
	bool full;	/* its buffer: no use to try before it says so */
	bool wants_out; /* watched for room in its buffer, or for being connected */
	bool ended;	/* the peer's end has been read */
	/* Another link carries the bytes, and the socket is a sign of life: whom its end is told. NULL: it carries
	 * them. */
	void (*on_end)(struct xr_conn *conn);
};

extern const struct link_ops g_tcp_link;

/* Fresh, without a socket. */
void tcp_init(struct tcp *tcp);

/*
 * Makes a non-blocking socket and begins to connect; conn_connected() or conn_fail() follows. A negative errno: nothing
 * follows. A peer that refuses at once is reported like one that refuses later.
 */
int tcp_dial(struct xr_conn *conn);

/* Takes over the socket that was accepted. A negative errno leaves it the caller's. */
int tcp_adopt(struct xr_conn *conn, int fd);

/* Whether the peer's system has acknowledged all that was sent. */
bool tcp_all_arrived(const struct xr_conn *conn);

/* Whether the socket has bytes that were not read. */
bool tcp_unread(const struct xr_conn *conn);

/* From now on the socket says nothing but its end, which on_end hears of; a byte on it fails the connection. */
void tcp_go_silent(struct xr_conn *conn, void (*on_end)(struct xr_conn *conn));

/* Sends bytes that stand outside of conn->out, those of the handshake: how many, 0 when the socket is full, -errno. */
ssize_t tcp_send_bytes(struct xr_conn *conn, const void *data, size_t len);

#endif
