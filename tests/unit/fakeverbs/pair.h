/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_FAKEVERBS_PAIR_H
#define TESTS_UNIT_FAKEVERBS_PAIR_H

/* Two ends with everything that a connection needs, up to queue pairs in RTS; and short ways to post and to poll. */

#include "tests/fakeverbs/fakeverbs.h"
#include "tests/unit/unit.h"

#define END_BYTES 65536 /* of registered memory */

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *memory;
	union ibv_gid gid;
};

struct pair {
	struct end a, b;
};

struct pair_want {
	unsigned depth; /* of all queues; CQs hold so many completions as well. 0: 8 */
	unsigned cq_depth;
	uint32_t inline_bytes;
	uint8_t rnr_retry;
	enum ibv_mtu mtu_b; /* 0: as a's, 1024 */
	unsigned device_b;
};

/* A reset fakeverbs with two devices, fake0 at 10.0.0.1 and fake1 at 10.0.0.2. */
void pair_devices(void);

/* One end up to a queue pair in RESET. */
void end_open(struct end *end, unsigned device, const struct pair_want *want);

/* The context of a device, opened by its number. */
struct ibv_context *open_device(unsigned device);

/* To INIT, RTR, RTS, each with what a peer of brpc's would say; 0 or what modify_qp says. */
int end_init(struct end *end);
int end_rtr(struct end *end, const struct end *peer, enum ibv_mtu mtu);
int end_rts(struct end *end, uint8_t rnr_retry);
int end_error(struct end *end);

/* Everything connected. want: NULL for the defaults. */
void pair_open(struct pair *pair, const struct pair_want *want);

/* Destroys everything, and asserts that there is nothing left and that no rule was broken. */
void pair_close(struct pair *pair);
void end_close(struct end *end);
void assert_clean(void);

/* The work requests that the posts below use, for tests that want them a bit different. */
struct ibv_sge end_sge(const struct end *end, size_t offset, uint32_t bytes);
int send_one(struct end *end, size_t offset, uint32_t bytes, unsigned flags, uint64_t wr_id);
int recv_one(struct end *end, size_t offset, uint32_t bytes, uint64_t wr_id);

/* So many receives of 1 KiB each from the start of the memory, wr_id 100, 101, ... */
void recv_many(struct end *end, unsigned count);

/* Polls one completion; with status 255 when there is none. */
struct ibv_wc poll_one(struct ibv_cq *cq);
#define NO_COMPLETION 255

#endif
