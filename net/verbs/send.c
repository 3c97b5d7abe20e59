/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/send.h"
#include "mem/mem.h"
#include "mem/pieces.h"
#include "mem/user_block.h"
#include "net/net.h"
#include "net/verbs/endpoint_private.h"
#include "net/verbs/figures.h"
#include "net/verbs/spill.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <xrdma/error.h>

#define CHAIN_MAX      64u
#define CHAIN_SGES     256u
#define REFUSED_MAX_US 1000000u /* a device without memory for so long has more than a bad moment */

#define LATER	1 /* the device has no memory right now */
#define SPILLED 1 /* some of it is to be copied */

static uint32_t
min_size(size_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

/* ---- life ---- */

void
send_init(struct sender *send, uint32_t *carried, uint16_t depth)
{
	send->carried = carried;
	send->room = depth;
}

void
send_clear(struct sender *send)
{
	xr_iobuf_clear(&send->in_flight);
	xr_iobuf_clear(&send->copied);
}

/* ---- which memory may leave ---- */

/* A piece's key for the endpoint's device. */
static int
lkey_of(const struct endpoint *endpoint, const struct xr_iobuf_piece *piece, uint32_t *lkey)
{
	unsigned device = endpoint_device(endpoint);

	return block_is_user(piece->block) ? user_block_lkey(user_block_of(piece->block), device, lkey)
					   : mem_block_lkey(device, piece->block, lkey);
}

/* The device can read it where it lies. The pool's blocks are registered with every device. */
static bool
sendable(const struct endpoint *endpoint, const struct xr_iobuf_piece *piece)
{
	uint32_t lkey;

	return !block_is_user(piece->block) || lkey_of(endpoint, piece, &lkey) == 0;
}

/* 0: all of it can leave; SPILLED: but for what the receiving half has copied; -XR_ERDMAMEM. */
static int
judge(const struct endpoint *endpoint, const struct xr_iobuf *out)
{
	int verdict = 0;

	for (const struct xr_iobuf_piece *piece = pieces_first(out); piece < pieces_end(out); piece++) {
		if (sendable(endpoint, piece))
			continue;
		if (!spill_owns(piece->block))
			return -XR_ERDMAMEM;
		verdict = SPILLED;
	}
	return verdict;
}

/* Moves the first piece of from, as memory that the device can read. */
static int
take_piece(const struct endpoint *endpoint, struct xr_iobuf *from, struct xr_iobuf *to)
{
	const struct xr_iobuf_piece *piece = pieces_first(from);
	size_t len = piece->len;
	int ret;

	if (sendable(endpoint, piece))
		return xr_iobuf_cut(from, len, to) == len ? 0 : -ENOMEM;
	ret = xr_iobuf_append(to, piece->data, len);
	if (ret == 0)
		xr_iobuf_drop(from, len);
	return ret;
}

/* out keeps what the device can read, and has copies of the rest; old, which was empty, what it was before. */
static int
copy_rest(const struct endpoint *endpoint, struct xr_iobuf *out, struct xr_iobuf *old)
{
	struct xr_iobuf from = XR_IOBUF_INIT, to = XR_IOBUF_INIT;
	int ret = xr_iobuf_share(&from, out);

	while (ret == 0 && xr_iobuf_size(&from))
		ret = take_piece(endpoint, &from, &to);
	if (ret == 0) {
		xr_iobuf_move(old, out);
		xr_iobuf_move(out, &to);
	}
	xr_iobuf_clear(&from);
	xr_iobuf_clear(&to);
	return ret;
}

int
send_accept(const struct endpoint *endpoint, struct xr_iobuf *out)
{
	struct xr_iobuf old = XR_IOBUF_INIT;
	int ret = judge(endpoint, out);

	if (ret == SPILLED)
		ret = copy_rest(endpoint, out, &old);
	xr_iobuf_clear(&old);
	return ret;
}

int
send_adopt(struct endpoint *endpoint)
{
	struct xr_iobuf *out = &endpoint->conn->out;

	return judge(endpoint, out) == 0 ? 0 : copy_rest(endpoint, out, &endpoint->send.copied);
}

/* ---- the posted requests ---- */

static void
remember(struct sender *send, uint32_t bytes)
{
	uint32_t at = (uint32_t)send->first + send->count++;

	send->carried[at < send->room ? at : at - send->room] = bytes;
}

int
send_completed(struct sender *send, uint16_t covers)
{
	size_t bytes = 0;

	if (window_completed(&send->window, covers))
		return -EPROTO;
	for (uint16_t i = 0; i < covers; i++) {
		bytes += send->carried[send->first];
		send->first = send->first + 1 < send->room ? send->first + 1 : 0;
	}
	send->count -= covers;
	xr_iobuf_drop(&send->in_flight, bytes);
	return 0;
}

/* ---- a chain of requests ---- */

/* Where in conn->out the next request begins. */
struct cursor {
	const struct xr_iobuf_piece *piece, *end;
	size_t offset;
};

struct chain {
	struct window window; /* as it will be behind the chain */
	unsigned count, sges;
	struct ibv_send_wr wrs[CHAIN_MAX];
	struct window_request requests[CHAIN_MAX];
	struct window_flags flags[CHAIN_MAX];
	struct ibv_sge sge[CHAIN_SGES];
};

/* The payload of one request: as much as a message, the device's pieces and the chain allow. -XR_ERDMAMEM. */
static int
gather(const struct endpoint *endpoint, struct chain *chain, struct cursor *at, struct ibv_send_wr *wr, uint32_t *bytes)
{
	uint32_t left = endpoint->send.message_max, max_sge = endpoint->qp.max_sge;

	wr->sg_list = &chain->sge[chain->sges];
	for (; at->piece < at->end && left && (uint32_t)wr->num_sge < max_sge && chain->sges < CHAIN_SGES;
	     wr->num_sge++) {
		struct ibv_sge *sge = &chain->sge[chain->sges++];
		const char *data = at->piece->data + at->offset;

		sge->addr = (uintptr_t)data;
		sge->length = min_size(at->piece->len - at->offset, left);
		if (lkey_of(endpoint, at->piece, &sge->lkey))
			return -XR_ERDMAMEM;
		left -= sge->length;
		at->offset += sge->length;
		if (at->offset == at->piece->len) {
			at->piece++;
			at->offset = 0;
		}
	}
	*bytes = endpoint->send.message_max - left;
	return 0;
}

static unsigned
flags_of(struct window_flags flags, bool inlined)
{
	return (flags.signaled ? IBV_SEND_SIGNALED : 0u) | (flags.solicited ? IBV_SEND_SOLICITED : 0u) |
	       (inlined ? IBV_SEND_INLINE : 0u);
}

/* Appends one request, with the flags that the window asks for. */
static int
add(const struct endpoint *endpoint, struct chain *chain, struct cursor *at)
{
	unsigned n = chain->count;
	struct ibv_send_wr *wr = &chain->wrs[n];
	struct window_request *request = &chain->requests[n];
	uint32_t bytes;
	int ret;

	*wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM};
	ret = gather(endpoint, chain, at, wr, &bytes);
	if (ret)
		return ret;
	*request = (struct window_request){
		.bytes = bytes,
		.credits = n == 0 ? credit_reportable(&endpoint->recv.credit) : 0,
		.last = at->piece == at->end,
		.holds = bytes > endpoint->qp.inline_bytes,
	};
	chain->flags[n] = window_decide(&chain->window, request);
	window_charge(&chain->window, request, chain->flags[n]);
	wr->imm_data = htonl(request->credits);
	wr->send_flags = flags_of(chain->flags[n], !request->holds);
	wr->wr_id = wr_id_make(endpoint->handle, WR_SEND, chain->flags[n].covers);
	if (n)
		chain->wrs[n - 1].next = wr;
	chain->count++;
	return 0;
}

static int
build(const struct endpoint *endpoint, struct chain *chain)
{
	const struct xr_iobuf *out = &endpoint->conn->out;
	struct cursor at = {.piece = pieces_first(out), .end = pieces_end(out)};
	int ret = 0;

	chain->window = endpoint->send.window;
	chain->count = chain->sges = 0;
	while (ret == 0 && at.piece < at.end && window_open(&chain->window) && chain->count < CHAIN_MAX &&
	       chain->sges < CHAIN_SGES)
		ret = add(endpoint, chain, &at);
	return ret;
}

/* ---- posting ---- */

/*
 * How many requests of the chain the device has taken, and what it says of the others: 0, LATER or a negative errno.
 * Drivers differ: some (rxe's, of some age) negate the errno, and name no bad request when all were taken but the
 * doorbell failed.
 */
static int
post(struct endpoint *endpoint, struct ibv_send_wr *first, unsigned count, unsigned *posted)
{
	struct ibv_send_wr *bad = first;
	int error = abs(ibv_post_send(endpoint->qp.qp, first, &bad));

	*posted = error && bad ? (unsigned)(bad - first) : count;
	if (*posted) {
		figure_count(RDMA_SEND_POSTS, 1);
		endpoint->send.refused_us = 0;
	}
	return error == ENOMEM && bad ? LATER : -error;
}

/* The front of conn->out belongs to requests that were posted with references. */
static int
hold(struct endpoint *endpoint, size_t bytes)
{
	return xr_iobuf_cut(&endpoint->conn->out, bytes, &endpoint->send.in_flight) == bytes ? 0 : -ENOMEM;
}

static void
count_posted(const struct chain *chain, unsigned posted)
{
	unsigned signaled = 0, solicited = 0, inlined = 0;

	for (unsigned i = 0; i < posted; i++) {
		signaled += chain->flags[i].signaled;
		solicited += chain->flags[i].solicited;
		inlined += !chain->requests[i].holds;
	}
	figure_count(RDMA_SENDS, posted);
	figure_count(RDMA_SIGNALED, signaled);
	figure_count(RDMA_SOLICITED, solicited);
	figure_count(RDMA_INLINE, inlined);
}

/*
 * Charges what was posted and moves its bytes on: inlined ones are done with. A failure leaves the rest in conn->out,
 * which stays as it is until the queue pair is gone, as the connection ends with it.
 */
static int
settle(struct endpoint *endpoint, const struct chain *chain, unsigned posted)
{
	struct sender *send = &endpoint->send;
	size_t run = 0, total = 0;
	int ret = 0;

	for (unsigned i = 0; i < posted && ret == 0; i++) {
		const struct window_request *request = &chain->requests[i];

		window_charge(&send->window, request, chain->flags[i]);
		remember(send, request->holds ? request->bytes : 0);
		total += request->bytes;
		if (request->holds) {
			run += request->bytes;
			continue;
		}
		ret = hold(endpoint, run);
		run = 0;
		if (ret == 0)
			xr_iobuf_drop(&endpoint->conn->out, request->bytes);
	}
	if (ret == 0)
		ret = hold(endpoint, run);
	endpoint->conn->bytes_out += total;
	net_count(NET_BYTES_OUT, total);
	return ret;
}

static int
send_chain(struct endpoint *endpoint)
{
	struct chain chain;
	unsigned posted;
	int ret = build(endpoint, &chain), status;

	if (ret) {
		fault_note(endpoint, ret, "memory in the queue that the device does not know");
		return ret;
	}
	status = post(endpoint, chain.wrs, chain.count, &posted);
	if (posted) {
		credit_reported(&endpoint->recv.credit, chain.requests[0].credits);
		count_posted(&chain, posted);
		ret = settle(endpoint, &chain, posted);
	}
	if (ret)
		fault_note(endpoint, ret, "no memory to keep track of what was sent");
	else if (status < 0)
		fault_note(endpoint, status, "the device refuses a send");
	return ret ? ret : status;
}

/* ---- requests without payload ---- */

static struct ibv_send_wr
empty_request(struct endpoint *endpoint, enum wr_kind kind, uint16_t value, uint16_t credits)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id_make(endpoint->handle, kind, value),
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		.imm_data = htonl(credits),
	};
}

static int
post_empty(struct endpoint *endpoint, struct ibv_send_wr wr, uint16_t credits)
{
	unsigned posted;
	int ret = post(endpoint, &wr, 1, &posted);

	if (ret == 0)
		credit_reported(&endpoint->recv.credit, credits);
	else if (ret < 0)
		fault_note(endpoint, ret, "the device refuses a send");
	return ret;
}

static bool
ack_due(const struct endpoint *endpoint)
{
	return endpoint->send.window.ack_slots && credit_ack_due(&endpoint->recv.credit);
}

/* Credits that no data carries. */
static int
send_ack(struct endpoint *endpoint)
{
	uint16_t credits = credit_reportable(&endpoint->recv.credit);
	int ret = post_empty(endpoint, empty_request(endpoint, WR_ACK, 0, credits), credits);

	if (ret == 0) {
		endpoint->send.window.ack_slots--;
		figure_count(RDMA_PURE_ACKS, 1);
	}
	return ret;
}

static bool
farewell_due(const struct endpoint *endpoint)
{
	const struct window *window = &endpoint->send.window;

	return endpoint->conn->state == CONN_CLOSING && xr_iobuf_size(&endpoint->conn->out) == 0 &&
	       window_uncovered(window) && window_open(window);
}

/* Nothing will say that the last SENDs have arrived: one more, whose completion covers them all. */
static int
send_farewell(struct endpoint *endpoint)
{
	struct sender *send = &endpoint->send;
	struct window_request request = {.credits = credit_reportable(&endpoint->recv.credit), .last = true};
	struct window_flags flags = {.signaled = true, .solicited = true, .covers = send->window.unsignaled + 1};
	int ret =
		post_empty(endpoint, empty_request(endpoint, WR_SEND, flags.covers, request.credits), request.credits);

	if (ret == 0) {
		window_charge(&send->window, &request, flags);
		remember(send, 0);
	}
	return ret;
}

/* ---- the flush step ---- */

static int
try_again(struct endpoint *endpoint)
{
	struct sender *send = &endpoint->send;
	uint64_t now_us = xr_now_us();

	figure_count(RDMA_RETRIES_ENOMEM, 1);
	if (!send->refused_us)
		send->refused_us = now_us;
	if (now_us - send->refused_us > REFUSED_MAX_US) {
		fault_note(endpoint, -ENOMEM, "the device has had no memory for a send for too long");
		return -ENOMEM;
	}
	conn_flush_later(endpoint->conn);
	return 0;
}

int
send_flush(struct endpoint *endpoint)
{
	const struct xr_iobuf *out = &endpoint->conn->out;
	int ret = 0;

	if (__builtin_expect(xr_iobuf_size(&endpoint->send.copied) > 0, 0))
		xr_iobuf_clear(&endpoint->send.copied);
	while (ret == 0 && xr_iobuf_size(out) && window_open(&endpoint->send.window))
		ret = send_chain(endpoint);
	if (ret == 0 && xr_iobuf_size(out))
		figure_count(RDMA_SEND_WINDOW_CLOSED, 1);
	if (ret == 0 && farewell_due(endpoint))
		ret = send_farewell(endpoint);
	if (ret == 0 && ack_due(endpoint))
		ret = send_ack(endpoint);
	if (ret == LATER)
		return try_again(endpoint);
	endpoint->send.refused_us = 0; /* nothing waits: a report that was refused may have been called off */
	return ret;
}

bool
send_due(const struct endpoint *endpoint)
{
	const struct xr_conn *conn = endpoint->conn;

	if (xr_iobuf_size(&conn->out) && window_open(&endpoint->send.window))
		return true;
	return conn->state == CONN_CLOSING || ack_due(endpoint);
}
