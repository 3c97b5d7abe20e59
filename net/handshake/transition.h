/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HANDSHAKE_TRANSITION_H
#define NET_HANDSHAKE_TRANSITION_H

/* The handshake's transition table: which event leads from which state to which. */

#include "net/handshake/machine.h"

enum handshake_event {
	EVENT_DIALLED,	       /* the client has its TCP connection and may use RDMA */
	EVENT_NO_RDMA,	       /* this side has none */
	EVENT_MAGIC,	       /* the first bytes of a connection are a hello's magic */
	EVENT_OTHER_PROTOCOL,  /* they are not */
	EVENT_MALFORMED,       /* no hello where there must be one, or one with a length that is not allowed */
	EVENT_NEGOTIABLE,      /* a whole hello, and a queue pair can be made of it */
	EVENT_NOT_NEGOTIABLE,  /* a whole hello, and none can */
	EVENT_ALLOC_OK,	       /* QP and CQs are there */
	EVENT_ALLOC_FAILED,    /* they are not */
	EVENT_BRING_UP_OK,     /* all receives are posted, the QP is at RTS */
	EVENT_BRING_UP_FAILED, /* it is not */
	EVENT_HELLO_SENT,      /* a hello, or a server's refusal */
	EVENT_ACK_RDMA,	       /* an ACK with its bit set was sent or has come */
	EVENT_ACK_TCP,	       /* one without */
	EVENT_ACK_UNWANTED,    /* it has its bit set and this side had refused */
	EVENT_BYTES_BEHIND,    /* bytes on TCP that belong to RDMA */
	EVENT_CLOSED,	       /* the peer ended the TCP connection */
	EVENT_DEADLINE,	       /* the time for the handshake is over */
};

#define HANDSHAKE_EVENTS (EVENT_DEADLINE + 1)

#define HANDSHAKE_NOWHERE (-1)

/* The state that event leads to, or HANDSHAKE_NOWHERE when it can't happen in this one. */
int handshake_next(enum handshake_state state, enum handshake_event event);

#endif
