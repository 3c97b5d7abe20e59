/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_CONN_H
#define NET_CONN_H

/*
 * The connection as the floor sees it.
 *
 * Nothing calls the application from where it happens. Links, timers and the application's own calls only mark the
 * connection and put it on a list of its lcore (net/turn.h); two steps of the turn work the lists off:
 *
 *   deliver   on_open(0), on_data
 *   flush     on_writable; and for a connection that has ended on_open(-errno) and on_close, after which it is freed
 *
 * So a callback may do anything to its own or to another connection, and none runs inside a call of the application's.
 */

#include "mem/iobuf.h"
#include "net/address.h"
#include "net/handshake/machine.h"
#include "net/input.h"
#include "net/link.h"
#include "net/tcp.h"
#include <urcu/list.h>
#include <xrdma/conn.h>
#include <xrdma/reactor.h>

struct endpoint;
struct net_lcore;

enum conn_state {
	CONN_CONNECTING,  /* the socket connects */
	CONN_NEGOTIATING, /* the handshake, or the wait for the first byte that tells whether there is one */
	CONN_OPEN,
	CONN_CLOSING,  /* what is queued leaves, input is discarded */
	CONN_DRAINING, /* the peer has been told the end; its own is awaited */
	CONN_ENDED,    /* on_close is due, or running */
};

struct xr_conn {
	/* what every message touches */
	const struct link_ops *link;
	struct net_lcore *home;
	const struct xr_conn_ops *ops;
	void *arg;
	struct xr_iobuf in, out;
	uint8_t state;	   /* enum conn_state */
	bool sending_over; /* nothing more is accepted for sending */
	bool open_due;	   /* on_open(0) is due */
	bool opened;	   /* on_open(0) has been called */
	bool paused;
	bool hold_input; /* the link does not read */
	bool scarce;	 /* net/input.c counts it: it has a share, a reservation, or wants one */
	bool squeezed;	 /* held because of the pool, not because of conn_input_limit_kb */
	bool hungry;	 /* receive slots wait for a block */
	uint8_t in_type; /* enum block_type of its input's blocks, the largest of them */
	bool want_writable;
	bool eof; /* the peer has ended its side */
	size_t need;
	size_t in_pinned; /* bytes of blocks that `in` pins, as of its last look; links add what they append since */
	size_t partial;	  /* of those, counted in the sum of messages that are not whole */
	uint64_t delivered_turn;
	struct cds_list_head touched;  /* in a list of net_lcore; points to itself when in none */
	struct cds_list_head flushing; /* likewise; when it has ended, in the list of those */
	uint64_t bytes_in, bytes_out;
	struct endpoint *endpoint; /* made by the handshake for RDMA; NULL: none */
	struct tcp tcp;

	/* what memory that is short needs */
	struct input_claim claim;
	struct cds_list_head squeezed_entry;

	/* what its beginning and its end need */
	bool dialled;
	bool peer_first;  /* accepted: it may wait for the peer's first bytes, whatever its port says of RDMA */
	bool close_asked; /* before it opened: it closes when it has */
	bool reset;	  /* aborted: the peer shall see an error, not an end */
	bool skip_hello;  /* dialled anew, since the peer answered no hello */
	enum xr_use_rdma use_rdma;
	uint64_t accepted_us;
	uint64_t drain_mark; /* bytes that had passed when the stop began */
	int reason;	     /* why it has failed or ended */
	struct cds_list_head all;
	struct xr_timer deadline; /* of what its state waits for */
	int64_t connect_timeout_ms;
	struct xr_port *port;
	struct address local, peer;
	struct xr_msg arrival; /* carries an accepted connection and its socket to its lcore */
	int arriving_fd;
	char *no_rdma_text;  /* malloc'd, behind no_rdma or the handshake's reason when that has figures in it */
	const char *no_rdma; /* why it is on TCP when the handshake did not say so */
	struct handshake hs;
};

/* A connection for the lcore, counted there as live; not in its lists yet. Any thread. NULL: no memory. */
struct xr_conn *conn_new(struct net_lcore *home, struct xr_port *port, const struct xr_conn_ops *ops, void *arg);

/* Takes back one that never came to be and of which the application does not know. Without a socket. */
void conn_discard(struct xr_conn *conn);

/* Puts it into its lcore's care. On that lcore. */
void conn_attach(struct xr_conn *conn);

/* Dials its peer, for the first time or anew. 0, or a negative errno: nothing follows. */
int conn_connect(struct xr_conn *conn);

/* Ends the calling lcore's accepted connections with these ops and this arg that have not opened: nobody is told. */
void conn_end_unopened(const struct xr_conn_ops *ops, const void *arg);

/* False for callbacks that no connection can have. */
bool conn_ops_valid(const struct xr_conn_ops *ops);

/* Makes bytes fit for its link to send, as xr_conn_send() does; see link_ops.accept. */
int conn_fit(struct xr_conn *conn, struct xr_iobuf *out);

/* The stop begins: from here on it is quiet as long as no byte passes. */
void conn_mark(struct xr_conn *conn);

/* Input has come that on_data has not seen, be it on the socket. */
bool conn_input_due(struct xr_conn *conn);

/*
 * The stop asks it to end: it is closed, unless the application has an on_drain to do so, or has not heard of it. A
 * quiet one does not wait for its peer's end: nothing is on its way that a reset could catch up with.
 */
void conn_drain(struct xr_conn *conn);

/* Limits what its state waits for. */
void conn_set_deadline(struct xr_conn *conn, int64_t after_ms);

/* ---- what links and the handshake report ---- */

/* There is input, or something else to tell the application: it gets its turn in the deliver step. */
void conn_touch(struct xr_conn *conn);

/* There is something to send, or the socket has room again: it gets its turn in the flush step. */
void conn_flush_later(struct xr_conn *conn);

/* The socket is connected: the handshake begins. */
void conn_connected(struct xr_conn *conn);

/* Its transport is settled. */
void conn_opened(struct xr_conn *conn);

/* The link has appended len bytes to the input. */
void conn_received(struct xr_conn *conn, size_t len);

/* The peer has ended its side; all its bytes have been appended. */
void conn_eof(struct xr_conn *conn);

/* It is broken: input that came before is still delivered, unless it is paused or closing, then it ends. */
void conn_fail(struct xr_conn *conn, int error);

/* It has ended: on_close with the reason in this turn's flush step, or in the next turn's when that runs already. */
void conn_end(struct xr_conn *conn, int reason);

/* ---- the two steps ---- */

void conn_deliver(struct xr_conn *conn);
void conn_flush(struct xr_conn *conn);

/* The last step of one that has ended: gives everything back, calls on_close, frees it. */
void conn_finish(struct xr_conn *conn);

#endif
