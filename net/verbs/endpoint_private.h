/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_ENDPOINT_PRIVATE_H
#define NET_VERBS_ENDPOINT_PRIVATE_H

/*
 * What an endpoint is made of. Its parts: bringup.c makes it and takes it back, send.c and recv.c are its two halves,
 * ending.c takes it from the peer's or the own end to silence, fault.c says what went wrong.
 */

#include "net/conn.h"
#include "net/verbs/cq.h"
#include "net/verbs/endpoint.h"
#include "net/verbs/fault.h"
#include "net/verbs/gid.h"
#include "net/verbs/qp.h"
#include "net/verbs/recv.h"
#include "net/verbs/send.h"

enum endpoint_state {
	ENDPOINT_PREPARING, /* until the handshake has ended: data may come, none may leave */
	ENDPOINT_OPEN,
	ENDPOINT_ENDING, /* the peer has ended: the queue pair is in ERR, its last completions are awaited */
	ENDPOINT_ENDED,	 /* nothing of it counts any more: the last completion was read, or it has failed */
};

struct endpoint {
	/* what every message touches */
	struct xr_conn *conn;
	uint32_t handle; /* for wr_id */
	uint8_t state;	 /* enum endpoint_state */
	bool proven;	 /* a message has come, or one of its own has arrived */
	struct qp qp;
	struct sender send;
	struct receiver recv;
	struct fault fault; /* of this batch */

	/* its beginning and its end */
	struct cq *cq;
	struct gid_entry local;
	uint16_t admitted_send, admitted_recv; /* cq_admit() */
	uint32_t peer_qp_num;
	struct xr_timer flushing; /* the last completions are awaited; net/verbs/ending.h */
};

/* Its device's number, as memory knows it. */
static inline unsigned
endpoint_device(const struct endpoint *endpoint)
{
	return endpoint->local.device;
}

/* What fault.c has noted ends the connection now. */
void endpoint_fail(struct endpoint *endpoint);

#endif
