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

/* One card, fake0 at 127.0.0.1, and the library up with one lcore in event mode and further arguments. */
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

#endif
