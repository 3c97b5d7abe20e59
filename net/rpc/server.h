/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_SERVER_H
#define NET_RPC_SERVER_H

/*
 * The parts of a server. What belongs to a connection is touched on its lcore alone: requests are read there, answers
 * leave there, and an answer given elsewhere is posted there. The exceptions are two counts of references:
 *
 *   a server      by its owner until xr_rpc_server_close(), by each connection, by each message that closes it
 *   a connection  by itself until on_close, and by each call that has outlived its handler
 *
 * A call may thus be answered after its connection ended, and even after its lcore has stopped.
 */

#include "core/lcore.h"
#include "core/log.h"
#include "net/rpc/arena.h"
#include "net/rpc/service.h"
#include "net/scarcity.h"
#include <urcu/list.h>
#include <xrdma/reactor.h>
#include <xrdma/rpc.h>

struct frame;
struct meta;

/* What a server has on one lcore, made there with its first connection. */
struct server_lcore {
	struct xr_rpc_server *server;
	const struct lcore *lcore;
	struct cds_list_head conns;
	struct xr_rpc_call *running; /* the call whose handler runs, until it is answered */
	struct xr_rpc_call *free_calls;
	bool closing;
	uint64_t closing_us; /* since when */
	struct arena arena;
};

struct server_conn {
	struct server_lcore *here;
	struct xr_conn *conn; /* NULL: it has ended */
	uint32_t refs;
	bool needs_more;	      /* xr_conn_need() holds for a frame that is still to come */
	bool blocked;		      /* the connection takes no more: answers gather in backlog, reading pauses */
	struct xr_iobuf backlog;      /* whole frames */
	struct cds_list_head unbuilt; /* calls whose answers no memory was there for */
	struct hunger hunger;	      /* while the backlog or those want memory */
	uint64_t heard_us;	      /* when something came last */
	struct xr_timer deadline; /* when the server closes: the end of its quiet time; blocked, of its peer's time */
	struct cds_list_head link;
};

struct xr_rpc_call {
	struct server_conn *conn;
	int64_t correlation_id;
	int64_t log_id;
	int32_t timeout_ms;
	bool outlives_handler; /* holds a reference to conn */
	struct xr_iobuf message, attachment;
	struct xr_iobuf answer; /* built on another thread, on its way to the connection's lcore */
	int answer_error;
	int failure;		      /* of an answer that is still to be built: its code, 0: message and attachment */
	char *failure_text;	      /* malloc'd, NULL: the code's own */
	struct cds_list_head unbuilt; /* in its connection's list */
	struct xr_msg msg;
	struct xr_rpc_call *next_free;
};

struct server_slot {
	struct server_lcore *here; /* NULL: no connection so far; its lcore's alone */
	struct xr_rpc_server *server;
	struct xr_msg close;
};

struct server_listener {
	struct xr_listener *listener;
	char *address;
};

struct xr_rpc_server {
	uint64_t id; /* what an accepted connection carries until it opens */
	uint32_t refs;
	uint64_t max_body_size;
	struct log_limit refusals;
	struct service_table services;
	struct server_listener *listeners;
	unsigned listener_count;
	struct cds_list_head link;
	unsigned slot_count;
	struct server_slot slots[]; /* by lcore index */
};

/* ---- server.c ---- */

/* The server with this id, with a reference; NULL: it closes or is gone. Any thread. */
struct xr_rpc_server *server_hold(uint64_t id);

/* The last reference frees it. Any thread. */
void server_put(struct xr_rpc_server *server);

/* ---- server_conn.c ---- */

extern const struct xr_conn_ops g_server_conn_ops;

/* On its lcore: takes no new calls, ends each connection as soon as its calls are answered. */
void server_lcore_close(struct server_lcore *here);
void server_lcore_free(struct server_lcore *here);

/*
 * Sends a frame, or keeps it until the connection takes it and there is memory for it; frame is empty after that.
 * -XR_ERDMAMEM: the connection can't send it (frame is dropped); every other failure ends the connection.
 */
int server_conn_send(struct server_conn *conn, struct xr_iobuf *frame);

/* An answer could not be made: the peer would wait for it in vain, so the connection ends. */
void server_conn_fail(struct server_conn *conn, int error);

void server_conn_hold(struct server_conn *conn);
void server_conn_put(struct server_conn *conn);

/* No memory for the call's answer: it is built when there is some, and no further request is read till then. */
void server_conn_await_memory(struct server_conn *conn, struct xr_rpc_call *call) __attribute__((cold));

/* A call has been answered: ends a connection that only waited for it. */
void server_conn_call_ended(struct server_conn *conn);

/* ---- server_call.c ---- */

/* A call with what the meta says; message and attachment are empty. NULL: no memory. On the connection's lcore. */
struct xr_rpc_call *server_call_new(struct server_conn *conn, const struct meta *meta);

/* Runs the handler; the call is answered when this returns, or has become one that outlives its handler. */
void server_call_run(struct xr_rpc_call *call, const struct method *method);

/* Builds the answer of a call that waited for memory, in an empty iobuf; the call is gone after that. -ENOMEM: not. */
int server_call_build(struct xr_rpc_call *call, struct xr_iobuf *frame) __attribute__((cold));

/* Drops a call that waited in vain. */
void server_call_drop(struct xr_rpc_call *call) __attribute__((cold));

#endif
