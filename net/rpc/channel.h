/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_CHANNEL_H
#define NET_RPC_CHANNEL_H

/*
 * The parts of a channel. What lcores share never changes after the channel was opened, but for the count of
 * references, the closed flag and what limits the log; connections, calls and timers belong to the lcore that called.
 *
 * A call is on the list of the connection that carries it, and ends with that connection at the latest. The connection
 * that new calls go to is the current one; one that fails stops being it at once, lives on until its on_close, and
 * fails its calls there.
 */

#include "core/log.h"
#include "net/rpc/arena.h"
#include "net/rpc/call.h"
#include <urcu/list.h>
#include <xrdma/reactor.h>
#include <xrdma/rpc.h>

struct client_conn {
	struct channel_lcore *here;
	struct xr_conn *conn;
	struct cds_list_head calls;
	struct cds_list_head link;
	const char *why; /* why this side ends it, for its calls; NULL: it does not */
	bool opened;
	bool logged_off; /* the server said that it stops */
	bool needs_more; /* xr_conn_need() holds for a frame that is still to come */
};

/* What a channel has on one lcore, made there by its first call. */
struct channel_lcore {
	struct xr_rpc_channel *channel;
	struct client_conn *current; /* NULL: the next call dials */
	struct cds_list_head conns;
	struct call_table calls;
	struct cds_list_head cancelled; /* calls whose done is due */
	bool logged_off;		/* one of its connections is */
	unsigned inside;		/* how deep in functions that call the application's done */
	struct arena arena;
	struct xr_msg close;
};

struct xr_rpc_channel {
	struct xr_port *port;
	char *address;
	uint64_t max_body_size;
	enum xr_use_rdma use_rdma;
	int timeout_ms;
	int connect_timeout_ms;
	bool closed;
	struct log_limit refusals;
	uint32_t refs; /* the owner's, and one for each lcore that has called */
	unsigned lcore_count;
	struct channel_lcore *here[]; /* by lcore index; set by that lcore, read by the one that closes */
};

/* ---- channel.c ---- */

/*
 * Around everything that may end calls. Calls cancelled inside, by the done of another one, get theirs in the outermost
 * channel_leave(): done never runs inside done.
 */
void channel_enter(struct channel_lcore *here);
void channel_leave(struct channel_lcore *here);

/* Ends a call: takes it off its list and out of the table, then runs done. Between enter and leave. */
void channel_end_call(struct call *call, const struct xr_rpc_response *response);

/* With an error; text NULL: the number's own. */
void channel_fail_call(struct call *call, int error_code, const char *text);

/* ---- client_conn.c ---- */

/* Dials and makes it the current connection. xr_dial()'s errors. */
int client_conn_dial(struct channel_lcore *here);

/* Fails its calls with -ECANCELED, lets go of the connection and frees it. Between enter and leave. */
void client_conn_close(struct client_conn *conn);

/* Closes one that no call waits for any more, if none will again: its server stops, or this process does. */
void client_conn_close_idle(struct client_conn *conn);

#endif
