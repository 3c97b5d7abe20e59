/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_RPC_H
#define XRDMA_RPC_H

#include <xrdma/conn.h>

XR_BEGIN_DECLS

/**
 * baidu_std ("PRPC") over connections: byte-compatible with brpc in both roles. Messages and attachments are iobufs;
 * attachments are never copied, compressed or looked at, and of messages only short ones are copied, when they leave.
 * <xrdma/protobuf.h> packs protobuf-c's messages into them and unpacks them there.
 *
 * Not done: compression (a compressed request is answered with EREQUEST, a compressed response ends its call with
 * ERESPONSE), authentication, streams, checksums (none is sent, and a peer's is not verified). An RpcMeta of more than
 * 64 KiB ends its connection, as does everything that is no frame.
 */

/** Errors of the protocol, by its own numbers. They come from the peer, or from this side on the peer's behalf. */
enum xr_rpc_error {
	XR_RPC_ENOSERVICE = 1001,    /**< no such service */
	XR_RPC_ENOMETHOD = 1002,     /**< no such method */
	XR_RPC_EREQUEST = 1003,	     /**< the request makes no sense */
	XR_RPC_ERPCTIMEDOUT = 1008,  /**< no answer within the timeout */
	XR_RPC_EFAILEDSOCKET = 1009, /**< the connection failed, or could not be made */
	XR_RPC_EOVERCROWDED = 1011,  /**< too much is queued on the connection */
	XR_RPC_EEOF = 1014,	     /**< the peer closed the connection */
	XR_RPC_EINTERNAL = 2001,     /**< the server failed without saying how */
	XR_RPC_ERESPONSE = 2002,     /**< the response makes no sense */
	XR_RPC_ELOGOFF = 2003,	     /**< the server is stopping */
	XR_RPC_ELIMIT = 2004,	     /**< too many calls at once */
	XR_RPC_ECLOSE = 2005,	     /**< this side closed the connection */
};

/** "no such service", ...; errno's text for a negative number. Static. Any thread. */
XR_API const char *xr_rpc_strerror(int error_code);

/* ---- server ---- */

struct xr_rpc_server;

/**
 * One call being served. It is the handler's until xr_rpc_reply() or xr_rpc_fail(), one of which must follow, before
 * xr_fini().
 */
struct xr_rpc_call;

/** Runs on the connection's lcore; must not block. It may answer at once or later, from any thread. */
typedef void xr_rpc_handler(struct xr_rpc_call *call, void *arg);

struct xr_rpc_server_opts {
	size_t size;		/**< sizeof(struct xr_rpc_server_opts) */
	uint64_t max_body_size; /**< a larger frame closes its connection; 0: 64 MiB, the protocol's default */
};

/** Main thread or any lcore; does not block. opts NULL: all defaults. Errors: -EINVAL, -ENOMEM. */
XR_API int xr_rpc_server_open(const struct xr_rpc_server_opts *opts, struct xr_rpc_server **out);

/**
 * Adds a method under its full service name ("test.PerfTestService"); a client may also use the part after the last
 * dot. Before the first xr_rpc_server_listen(). Errors: -EEXIST, -EBUSY (listening already), -ENOMEM.
 */
XR_API int xr_rpc_server_add(struct xr_rpc_server *server, const char *service, const char *method,
			     xr_rpc_handler *handler, void *arg);

/** Listens as xr_listen() does, with its errors; may be called several times. On a worker. */
XR_API int xr_rpc_server_listen(struct xr_rpc_server *server, struct xr_port *port, const char *address);

/** The address that the n-th xr_rpc_server_listen() bound; NULL past the last. */
XR_API const char *xr_rpc_server_address(const struct xr_rpc_server *server, unsigned n);

/**
 * Closes: no new connections and no new calls (ELOGOFF); calls in work are answered, connections end; then the server
 * frees itself. A client that does not read its answers is cut off after conn_close_ms. On the lcore that listened,
 * also in a handler, or on the main thread after xr_run(); does not block.
 */
XR_API void xr_rpc_server_close(struct xr_rpc_server *server);

/** What the client sent; the handler may take both (cut, move). Valid until the answer, on the handler's thread. */
XR_API struct xr_iobuf *xr_rpc_call_message(struct xr_rpc_call *call);
XR_API struct xr_iobuf *xr_rpc_call_attachment(struct xr_rpc_call *call);
/** The client's log_id, 0 when it sent none. */
XR_API int64_t xr_rpc_call_log_id(const struct xr_rpc_call *call);
/** How long the client says that it waits, in milliseconds; 0 when it did not say. */
XR_API int32_t xr_rpc_call_timeout_ms(const struct xr_rpc_call *call);

/**
 * Answers with a message (serialized protobuf bytes) and an attachment, either NULL for none; both are emptied. Any
 * thread, once; the call is gone when this returns. Of a connection that has ended meanwhile the answer is dropped. An
 * attachment in user memory that the connection's RDMA device does not know can't leave: the client gets the error
 * XR_ERDMAMEM in its place, and other calls are not touched by it.
 */
XR_API void xr_rpc_reply(struct xr_rpc_call *call, struct xr_iobuf *message, struct xr_iobuf *attachment);

/**
 * Answers with an error. error_code is one of enum xr_rpc_error or any other number above 0 (else: EINTERNAL); text
 * NULL: xr_rpc_strerror()'s. Any thread, once.
 */
XR_API void xr_rpc_fail(struct xr_rpc_call *call, int error_code, const char *text);

/* ---- client ---- */

/** A channel leads to one server; each lcore that calls has its own connection, made at its first call. */
struct xr_rpc_channel;

struct xr_rpc_channel_opts {
	size_t size;	      /**< sizeof(struct xr_rpc_channel_opts) */
	struct xr_port *port; /**< NULL: the default port */
	const char *address;  /**< "ADDRESS:PORT", copied */
	enum xr_use_rdma use_rdma;
	int timeout_ms;		/**< of calls that name none; 0: 2000 */
	int connect_timeout_ms; /**< 0: the flag --connect_timeout_ms */
	uint64_t max_body_size; /**< 0: 64 MiB */
};

/** Main thread or any lcore; does not block and does not connect. Errors: -EINVAL (address, opts), -ENOMEM. */
XR_API int xr_rpc_channel_open(const struct xr_rpc_channel_opts *opts, struct xr_rpc_channel **out);

struct xr_rpc_request {
	size_t size;	     /**< sizeof(struct xr_rpc_request) */
	const char *service; /**< full name; need not outlive the call */
	const char *method;
	struct xr_iobuf *message;    /**< serialized protobuf bytes, emptied when the call is taken; NULL: none */
	struct xr_iobuf *attachment; /**< likewise */
	int timeout_ms;		     /**< 0: the channel's; negative: none */
	int64_t log_id;		     /**< 0: not sent */
};

struct xr_rpc_response {
	int error_code;		  /**< 0, a number of enum xr_rpc_error or another one of the peer's, or -ECANCELED */
	const char *error_text;	  /**< what happened, not at which address; "" for 0 */
	struct xr_iobuf *message; /**< may be taken from; dropped when done returns */
	struct xr_iobuf *attachment; /**< likewise */
};

/**
 * Runs once for each call that was taken, on the lcore that made it, never inside xr_rpc_call() and never inside
 * another done of the same channel. It may call, cancel and close.
 */
typedef void xr_rpc_done(const struct xr_rpc_response *response, void *arg);

typedef uint64_t xr_rpc_id;

/**
 * Calls. On an lcore of the channel's port; does not block. id may be NULL.
 * Errors (nothing is taken, done does not run): -EINVAL not such an lcore, no name, or an attachment of 2 GiB or more;
 * -EAGAIN the connection's queue is full; -ESHUTDOWN the channel is closed, or xr_stop() was called; -XR_ERDMAMEM user
 * memory that the connection's RDMA device does not know (before it has opened: see xr_conn_send()); -ENOMEM;
 * xr_dial()'s.
 */
XR_API int xr_rpc_call(struct xr_rpc_channel *channel, const struct xr_rpc_request *request, xr_rpc_done *done,
		       void *arg, xr_rpc_id *id);

/**
 * Ends a call with -ECANCELED, unless it has ended: done runs before this returns or, when this is called by a done of
 * the same channel, right after that one. On the lcore that called.
 */
XR_API void xr_rpc_cancel(struct xr_rpc_channel *channel, xr_rpc_id id);

/** The calling lcore's connection, as xr_conn_info() tells it. Errors: -ENOTCONN there is none. */
XR_API int xr_rpc_channel_info(struct xr_rpc_channel *channel, struct xr_conn_info *info);

/**
 * Closes: calls in work end with -ECANCELED in a later turn, each on its own lcore; the channel frees itself when all
 * have. No call on it may follow, but for xr_rpc_call() (-ESHUTDOWN) and xr_rpc_cancel() in a done that this brings.
 * Any thread, also in a done, also the main one after xr_run(); does not block.
 */
XR_API void xr_rpc_channel_close(struct xr_rpc_channel *channel);

XR_END_DECLS

#endif
