/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_RDMA_FIXTURE_H
#define TESTS_RDMA_FIXTURE_H

/*
 * The whole library on fakeverbs: client and server in one process, their handshake over real sockets on 127.0.0.1,
 * their messages over a card that a test may hold back, fail and count. See net_fixture.h for the rest.
 */

#include "net/conn.h"
#include "net/verbs/endpoint_private.h"
#include "net/verbs/figures.h"
#include "tests/fakeverbs/fakeverbs.h"
#include "tests/unit/net/net_fixture.h"

#define BLOCK_PAYLOAD 8160u /* of the default block */

/* One card, fake0 at 127.0.0.1 (or that one), and the library up with one lcore and further arguments. */
#define rdma_up(...) rdma_up_with(NULL, __VA_ARGS__)
#define rdma_up_with(card, ...)         \
	do {                            \
		rdma_card(card);        \
		net_up(1, __VA_ARGS__); \
	} while (0)
void rdma_card(const struct fake_device *card);

/* net_down(), and that the card is left without an object and without a violation. */
void rdma_down(void);

uint64_t rdma_counted(enum figure figure);

/* The queue pair of a connection that is open over RDMA. */
uint32_t rdma_qp(const struct xr_conn *conn);

/* ---- a client and a server of the library's own ---- */

/* The probes as net_fixture.h has them, with both `conn` set; server.on_open is the pair's own. */
struct rdma_pair {
	struct probe client, server;
	void (*script)(struct rdma_pair *pair);
	void *arg;
};

/* Runs the library; the script begins on a thread of its own when both are open over RDMA, and its end is the run's. */
void rdma_pair_run(struct rdma_pair *pair, void (*script)(struct rdma_pair *pair));
/* With the server at an address of its own, and thus, it may be, on another card. */
void rdma_pair_run_at(struct rdma_pair *pair, const char *address, void (*script)(struct rdma_pair *pair));

/* ---- for scripts and other threads ---- */

/* Runs fn on the lcore, and waits for its end. */
void rdma_do(void (*fn)(void *arg), void *arg);

/* On the lcore: send_pattern(), xr_conn_info(), xr_conn_pause(), ... */
int rdma_send(struct xr_conn *conn, uint64_t first, size_t len);
struct xr_conn_info rdma_info(struct xr_conn *conn);
enum conn_state rdma_state(struct xr_conn *conn);
void rdma_pause(struct xr_conn *conn);
void rdma_resume(struct xr_conn *conn);
void rdma_close(struct xr_conn *conn);

/* Lets the lcore have some turns, for what must not happen. */
void rdma_settle(void);

#endif
