/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_CONN_H
#define XRDMA_CONN_H

#include <xrdma/iobuf.h>
#include <xrdma/port.h>

XR_BEGIN_DECLS

/**
 * A connection is a stream of bytes on a port, bound to one lcore for life: its callbacks run there, and every call on
 * it must be made there (an assertion in debug builds), from any callback. None of them blocks. The same code serves
 * every transport and every mode.
 *
 * A connection is the library's: it may be used until its on_close has returned, and never after.
 */
struct xr_conn;
struct xr_listener;

/** The callbacks: static, outliving the connection; each may be NULL. Begin with size = sizeof(struct xr_conn_ops). */
struct xr_conn_ops {
	size_t size;
	/**
	 * Once. status 0: the connection is open and its transport is settled. A negative errno: it did not come to be
	 * (-ECONNREFUSED, -ETIMEDOUT, -EPROTO, ...) and only on_close follows. A connection that was accepted and ends
	 * before it opened has neither call.
	 */
	void (*on_open)(struct xr_conn *conn, int status);
	/**
	 * Bytes have come: takes from the front of in what it can use and leaves the rest, which stands there again at
	 * the next call. At most once a turn. in belongs to the connection; cut what is to be kept.
	 */
	void (*on_data)(struct xr_conn *conn, struct xr_iobuf *in);
	/** After -EAGAIN from xr_conn_send(), once, when the queue has drained to half its limit. */
	void (*on_writable)(struct xr_conn *conn);
	/**
	 * The last call. reason 0: closed by either side after all data; else a negative errno: -ECONNRESET, -EPROTO,
	 * -ETIMEDOUT (a deadline passed; also conn_starved_ms, when the peer stalled within a message whose memory
	 * others wait for), -EMSGSIZE (the pool can never hold its message, see xr_conn_need()), -ECANCELED (cut off by
	 * the end of xr_run()), -XR_ERDMA, or what xr_conn_abort() was given. What came before the peer's end or its
	 * reset has been delivered; a paused connection waits with its end until it is resumed, but not with a reset.
	 */
	void (*on_close)(struct xr_conn *conn, int reason);
	/**
	 * xr_stop() has begun a drain: the connection should be closed as soon as its work is done, and is cut off when
	 * --drain_ms have passed. Once, of a dialled connection maybe before on_open. NULL: it is closed now, as by
	 * xr_conn_close().
	 */
	void (*on_drain)(struct xr_conn *conn);
};

/** What a dialled connection wants of RDMA; a port's rdma=off forbids it and rdma=require asks for it. */
enum xr_use_rdma {
	XR_RDMA_NO = 0,	 /**< plain TCP, not a byte of a handshake */
	XR_RDMA_AUTO,	 /**< RDMA when both sides can, else TCP on the same connection */
	XR_RDMA_REQUIRE, /**< RDMA, or on_open with -EPROTONOSUPPORT */
};

struct xr_listen_opts {
	size_t size; /**< sizeof(struct xr_listen_opts) */
	const struct xr_conn_ops *ops;
	void *arg;   /**< the first xr_conn_arg() of each accepted connection */
	int backlog; /**< 0: the system's largest */
	/** The peer sends the first bytes, as an RPC client does: an RDMA client falls back on the same connection. */
	bool peer_speaks_first;
};

/**
 * Listens on "ADDRESS:PORT": 0.0.0.0:8002, 127.0.0.1:0 (the system chooses the port), [::1]:8002, :8002 (every
 * address, both families). Accepted connections are given to the port's lcores, the one with fewest first. port NULL:
 * the default port. The listener belongs to the calling lcore, which is the main one before xr_run().
 *
 * An accepted connection opens when the peer's first bytes have shown whether it begins with an RDMA handshake. On a
 * port with rdma=off it opens at once, and all bytes are the application's, unless peer_speaks_first is set: then a
 * handshake is refused there as by a server without a device.
 *
 * Errors: -EINVAL no such address, no ops, or called on no worker; -ESHUTDOWN after xr_stop(); and the system's:
 * -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EMFILE, -ENOMEM.
 */
XR_API int xr_listen(struct xr_port *port, const char *address, const struct xr_listen_opts *opts,
		     struct xr_listener **out);

/** The address as bound, with the port that the system chose: text as above, valid as long as the listener. */
XR_API const char *xr_listener_address(const struct xr_listener *listener);

/** Stops accepting and releases the listener; its connections live on. On its lcore. */
XR_API void xr_listener_close(struct xr_listener *listener);

struct xr_dial_opts {
	size_t size; /**< sizeof(struct xr_dial_opts) */
	const struct xr_conn_ops *ops;
	void *arg;
	enum xr_use_rdma use_rdma;
	int connect_timeout_ms; /**< 0: the flag --connect_timeout_ms */
};

/**
 * Begins a connection to "ADDRESS:PORT" (numeric, as for xr_listen(); without an address to this machine) on the
 * calling lcore, which must be one of the port's. on_open follows when this call has returned, with whatever the peer
 * had to say, -ECONNREFUSED too. Before it opens, xr_conn_send() queues.
 *
 * Errors (no callback follows): -EINVAL no such address, no ops, or not an lcore of the port; -ESHUTDOWN after
 * xr_stop(); -EMFILE, -ENOMEM, and connect()'s own when it fails on this side (-ENETUNREACH, -EADDRNOTAVAIL, ...).
 */
XR_API int xr_dial(struct xr_port *port, const char *address, const struct xr_dial_opts *opts, struct xr_conn **out);

XR_API void *xr_conn_arg(const struct xr_conn *conn);
XR_API void xr_conn_set_arg(struct xr_conn *conn, void *arg);

/**
 * Sends: moves all bytes of out into the connection's queue, which leaves at the end of this turn together with what
 * else was sent in it. Nothing is taken on an error:
 * -EAGAIN the queue is at conn_output_limit_kb or at its share of the pool: on_writable will say when to go on,
 * -EPIPE closing or closed, -XR_ERDMAMEM user memory that the connection's RDMA device does not know, -ENOMEM.
 * On TCP any memory can be sent. Before the transport is settled (see xr_dial()) any memory is taken, too: what the
 * device turns out not to know is then copied into the pool, once; if the pool has no room for it, TCP carries it all.
 * An empty out is allowed and does nothing.
 */
XR_API int xr_conn_send(struct xr_conn *conn, struct xr_iobuf *out);

/** Bytes accepted by xr_conn_send() that have not left yet. */
XR_API size_t xr_conn_queued(const struct xr_conn *conn);

/**
 * No on_data until xr_conn_resume(); the peer is held back once conn_input_limit_kb is waiting, or what the pool has
 * for one connection.
 */
XR_API void xr_conn_pause(struct xr_conn *conn);

/** Ends a pause; also without one: on_data comes this turn with what is left in the input, if anything. */
XR_API void xr_conn_resume(struct xr_conn *conn);

/**
 * The peer is not held back below this many bytes of input (default 1): what a parser knows that it needs. When memory
 * is short a large message waits until there is enough for all of it, and one that the pool could never hold ends its
 * connection with -EMSGSIZE: so name the whole size as soon as it is known. Large messages whose sizes are named bit by
 * bit can come to wait for each other.
 */
XR_API void xr_conn_need(struct xr_conn *conn, size_t bytes);

/**
 * Closes: no on_data any more, and the input is emptied now, also inside on_data; what is queued still leaves, then the
 * peer sees the end, then, when its own end has come, on_close(0). It takes conn_close_ms at most, after which on_close
 * has -ETIMEDOUT. A dial that has not opened yet and has nothing queued ends with -ECANCELED. Repeating it is allowed.
 */
XR_API void xr_conn_close(struct xr_conn *conn);

/**
 * Closes at once, dropping what is queued; the peer sees a reset. on_close comes with the reason (0 is turned into
 * -ECONNABORTED) at the end of this turn, never inside this call.
 */
XR_API void xr_conn_abort(struct xr_conn *conn, int reason);

/** What RDMA alone has; counts are of messages. doc/flow.md explains the windows. */
struct xr_conn_rdma {
	const char *device; /**< NULL: the connection is not on RDMA */
	uint8_t ib_port;
	uint16_t gid_index;
	uint32_t qp_num, peer_qp_num;
	uint32_t peer_block_bytes;		 /**< the largest message that the peer takes */
	uint16_t remote_window, remote_capacity; /**< sends that the peer can still take, and at most */
	uint16_t own_window, own_capacity;	 /**< places known to be free in the own send queue, and at most */
	uint16_t ack_slots;			 /**< pure ACKs that may leave now */
	uint16_t unsignaled, unsolicited;	 /**< sends since the last one that asked for a completion, an event */
	uint16_t peer_capacity;			 /**< messages that the peer may have unreported */
	uint16_t unreported, held, starved;	 /**< of those: to be reported, held back among them, without a block */
	size_t in_flight;			 /**< bytes that a completion is awaited for */
};

struct xr_conn_info {
	size_t size;		   /**< sizeof(struct xr_conn_info), set by the caller */
	const char *transport;	   /**< "tcp", "rdma"; "none" before it is settled */
	char fallback_reason[192]; /**< why it is not RDMA: "not asked for", "refused by the peer", ...; "" for RDMA */
	const char *state;	   /**< the handshake's state by its name in brpc: "ESTABLISHED", "FALLBACK_TCP", ... */
	unsigned lcore;
	const struct xr_port *port;
	char local[64], peer[64]; /**< "ADDRESS:PORT" */
	uint64_t bytes_in, bytes_out;
	size_t input_waiting, output_queued; /**< bytes */
	struct xr_conn_rdma rdma;
};

/** Fills as much of info as its size holds. */
XR_API void xr_conn_info(const struct xr_conn *conn, struct xr_conn_info *info);

XR_END_DECLS

#endif
