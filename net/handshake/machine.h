/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HANDSHAKE_MACHINE_H
#define NET_HANDSHAKE_MACHINE_H

/*
 * The handshake's state machine: both roles, fed by bytes, never blocking, no socket and no verbs. The connection hands
 * it what TCP brought and sends what it leaves in out; resources come through struct handshake_ops.
 */

#include "net/handshake/hello.h"

/* brpc's names and numbers (reference: its rdma_endpoint.h); "in handshake" is state < HANDSHAKE_ESTABLISHED. */
enum handshake_state {
	HANDSHAKE_UNINIT = 0x0,
	HANDSHAKE_C_ALLOC_QPCQ = 0x1,
	HANDSHAKE_C_HELLO_SEND = 0x2,
	HANDSHAKE_C_HELLO_WAIT = 0x3,
	HANDSHAKE_C_BRINGUP_QP = 0x4,
	HANDSHAKE_C_ACK_SEND = 0x5,
	HANDSHAKE_S_HELLO_WAIT = 0x11,
	HANDSHAKE_S_ALLOC_QPCQ = 0x12,
	HANDSHAKE_S_BRINGUP_QP = 0x13,
	HANDSHAKE_S_HELLO_SEND = 0x14,
	HANDSHAKE_S_ACK_WAIT = 0x15,
	HANDSHAKE_ESTABLISHED = 0x100,
	HANDSHAKE_FALLBACK_TCP = 0x200,
	HANDSHAKE_FAILED = 0x300,
};

/* "UNINIT", "C_ALLOC_QPCQ", ... */
const char *handshake_state_name(enum handshake_state state);

/* What the transport does for it. NULL ops: this side has no RDMA. */
struct handshake_ops {
	/*
	 * Makes QP and CQs and fills in what this side's hello says (the versions are there). 0, or a negative errno
	 * with *why (static text).
	 */
	int (*alloc)(void *arg, struct hello *own, const char **why);
	/* Posts all receives and takes the QP to RTS towards the peer. 0, or a negative errno with *why. */
	int (*bring_up)(void *arg, const struct hello *peer, const char **why);
};

enum handshake_role {
	HANDSHAKE_CLIENT,
	HANDSHAKE_SERVER,
};

#define HANDSHAKE_OUT_BYTES (HELLO_V2_BYTES + HELLO_ACK_BYTES)

struct handshake {
	enum handshake_role role;
	enum handshake_state state;
	/* The first byte of a hello was seen or sent, so the deadline runs; false again when it was none after all. */
	bool started;
	/* RDMA is off for this connection, whatever follows. */
	bool refused;
	/* Why not RDMA, or why FAILED: static text, never NULL, "" as long as there is none. */
	const char *reason;
	const struct handshake_ops *ops;
	void *ops_arg;
	struct hello own, peer;
	/* Bytes to send, out_len of them. The connection takes them and sets out_len to 0. */
	uint8_t out[HANDSHAKE_OUT_BYTES];
	size_t out_len;
};

enum handshake_result {
	HANDSHAKE_GO_ON, /* needs more bytes */
	HANDSHAKE_TCP,	 /* over: plain TCP, all bytes not used belong to the application */
	HANDSHAKE_RDMA,	 /* over: ESTABLISHED */
	HANDSHAKE_FAIL,	 /* over: close the connection, reason says why */
};

/* The client's first step puts a hello into out, or goes to TCP at once (alloc failed, no ops) having sent nothing. */
enum handshake_result handshake_start_client(struct handshake *hs, const struct handshake_ops *ops, void *arg);

/* Waits for the first bytes of a connection that was accepted. */
void handshake_start_server(struct handshake *hs, const struct handshake_ops *ops, void *arg);

/*
 * Hands over the bytes that have come so far; *used of them were taken. Messages are taken whole, a hello together with
 * its tail: what is left after HANDSHAKE_GO_ON is the beginning of one. The caller keeps it, at most HELLO_V2_MAX - 1
 * bytes, and calls again with it and what has come since (never with bytes that were used). How the bytes are cut into
 * calls makes no difference to the end, to what is sent and to what was used.
 *
 * A server whose peer speaks something else than a hello ends with HANDSHAKE_TCP and used 0, at the first byte that
 * differs. Whoever fell back leaves every byte behind the handshake to the application. Behind ESTABLISHED TCP is
 * silent: a byte there, in the same call or in a later one, is HANDSHAKE_FAIL, and the only thing that changes an end.
 */
enum handshake_result handshake_feed(struct handshake *hs, const uint8_t *data, size_t len, size_t *used);

/* The peer closed the TCP connection, or the deadline passed. Ends in FAILED with the reason, unless it is over. */
void handshake_eof(struct handshake *hs);
void handshake_timeout(struct handshake *hs);

#endif
