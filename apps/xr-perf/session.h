/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_SESSION_H
#define XR_PERF_SESSION_H

/*
 * A session is what brpc's example calls a thread: one channel with queue_depth calls in flight. It lives on one lcore.
 * First it makes one call to warm up, then each answer begins the next call; at its first error it stops.
 */

#include <xrdma/xrdma.h>

struct lane;
struct session;

/* One of the calls in flight. */
struct slot {
	struct session *session;
	struct xr_iobuf payload; /* its slice: what an echo must equal */
	uint64_t start_ns;
	struct slot *next; /* while it is held back */
};

struct session {
	struct lane *lane;
	struct session *next; /* on the same lane */
	const char *server;
	struct xr_rpc_channel *channel; /* NULL when it has ended */
	struct slot *slots;
	struct slot *held,
		**held_end; /* first in, first out: wait for a token, or for room in the connection's queue */
	unsigned in_flight;
	uint64_t calls_left;
	bool stopped;		      /* begins no more calls; ends when none is in flight */
	struct xr_conn_info warm;     /* the connection as it was after the warm-up */
	uint64_t bytes_in, bytes_out; /* since then */
};

/* Opens the channel to one server: main thread, before xr_run(). Errors: xr_rpc_channel_open()'s. */
int session_open(struct session *session, const char *server);

/* Allocates the slots with their slices. On the session's lcore, as all that follows. -ENOMEM. */
int session_prepare(struct session *session, unsigned first_slice);

/* lane_warmed() follows when it is done, well or not. */
void session_warm_up(struct session *session);

void session_begin(struct session *session);

/* Calls as long as slots are held and neither tokens nor the connection's queue forbid it. */
void session_pump(struct session *session, uint64_t now_ns);

/* Lets the calls in flight come in, then ends: lane_session_ended(). */
void session_stop(struct session *session);

/* Frees what is left, after xr_run(). */
void session_release(struct session *session);

#endif
