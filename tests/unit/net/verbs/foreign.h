/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FOREIGN_H
#define TESTS_FOREIGN_H

/*
 * The other side played by a thread of the test's: a plain socket for the handshake and a bare queue pair on fakeverbs,
 * so that it may do what the library's own never would. All of it by NET_CHECK().
 */

#include "net/handshake/hello.h"
#include "tests/fakeverbs/fakeverbs.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOREIGN_QUEUE 64u /* depth of its queues */
#define FOREIGN_BYTES 8160u

struct foreign {
	int fd;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *memory; /* FOREIGN_QUEUE receives, and as much to send from */
	struct hello own, peer;
};

/* A queue pair in INIT with all its receives posted, and the hello that tells of it. */
void foreign_open(struct foreign *foreign);

/* Connects, says hello, reads the answer. */
void foreign_dial(struct foreign *foreign, const char *address);

/* Accepts and reads a hello; answers it with its own; both, with the queue pair brought up in between. */
void foreign_meet(struct foreign *foreign, int listener);
void foreign_answer(struct foreign *foreign);
void foreign_accept(struct foreign *foreign, int listener);

/* RTR and RTS towards the peer of the hello. */
void foreign_bring_up(struct foreign *foreign);

void foreign_send_ack(struct foreign *foreign, bool use_rdma);
bool foreign_read_ack(struct foreign *foreign);

/* open, dial, bring up, ACK 1. */
void foreign_connect(struct foreign *foreign, const char *address);

/* Posts one SEND (signaled, solicited) of text, NULL for none, with credits in its immediate. */
void foreign_send(struct foreign *foreign, const void *data, size_t len, uint32_t credits);

/* The next completion of the kind, within 5 seconds; one with status 255 when there is none. */
struct ibv_wc foreign_await(struct foreign *foreign, enum ibv_wc_opcode opcode);

/* Posts the slot of a receive's completion again, having looked at it. */
void foreign_repost(struct foreign *foreign, const struct ibv_wc *wc);
const uint8_t *foreign_payload(const struct foreign *foreign, const struct ibv_wc *wc);

/* Destroys the queue pair, then closes the socket; either may have happened. */
void foreign_close(struct foreign *foreign);

#endif
