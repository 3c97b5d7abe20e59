/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/recv.h"
#include "core/log.h"
#include "mem/iobuf.h"
#include "mem/mem.h"
#include "net/net.h"
#include "net/turn.h"
#include "net/verbs/endpoint_private.h"
#include "net/verbs/figures.h"
#include "net/verbs/flags.h"
#include <arpa/inet.h>
#include <errno.h>

#define CHAIN_MAX 128u

/* ---- life ---- */

/* Connections may come faster than regions are mapped: for one that is on its way it is worth waiting. */
static unsigned
fill_slots(enum block_type type, struct xr_block **blocks, unsigned slots)
{
	unsigned count = block_alloc_bulk(type, blocks, slots);

	while (count < slots && errno == EAGAIN) {
		block_await(type);
		count += block_alloc_bulk(type, blocks + count, slots - count);
	}
	return count;
}

int
recv_init(struct receiver *recv, enum block_type type, uint16_t slots, struct xr_block **blocks, uint16_t *idle)
{
	recv->blocks = blocks;
	recv->idle = idle;
	recv->type = (uint8_t)type;
	recv->slots = (uint16_t)fill_slots(type, blocks, slots);
	block_recv_slots_add(type, recv->slots);
	if (recv->slots < slots)
		return -ENOMEM;
	for (uint16_t slot = 0; slot < slots; slot++)
		idle[slot] = slot;
	recv->ready = slots;
	recv->counted = slots * block_bytes(type);
	ledger_count_receives(type, recv->counted, 0);
	return 0;
}

void
recv_clear(struct receiver *recv)
{
	for (uint16_t slot = 0; slot < recv->slots; slot++)
		if (recv->blocks[slot])
			block_drop(recv->blocks[slot]);
	block_recv_slots_add(recv->type, recv->starved - recv->slots);
	if (recv->counted)
		ledger_count_receives(recv->type, 0, recv->counted);
	xr_iobuf_clear(&recv->early);
	spill_leave(recv->spill);
}

/* ---- posting ---- */

/* One chain of the slots that were added last; how many there are in it, or a negative errno. */
static int
post_chain(struct endpoint *endpoint)
{
	struct receiver *recv = &endpoint->recv;
	unsigned count = recv->ready < CHAIN_MAX ? recv->ready : CHAIN_MAX;
	const uint16_t *slots = recv->idle + recv->ready - count;
	struct ibv_recv_wr wrs[CHAIN_MAX], *bad;
	struct ibv_sge sge[CHAIN_MAX];

	for (unsigned i = 0; i < count; i++) {
		char *payload = block_payload(recv->blocks[slots[i]]);

		sge[i] = (struct ibv_sge){(uintptr_t)payload, (uint32_t)block_payload_bytes(recv->type), 0};
		if (mem_block_lkey(endpoint_device(endpoint), recv->blocks[slots[i]], &sge[i].lkey))
			return -ENODEV;
		wrs[i] = (struct ibv_recv_wr){
			.wr_id = wr_id_make(endpoint->handle, WR_RECV, slots[i]),
			.next = i + 1 < count ? &wrs[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	figure_count(RDMA_RECV_POSTS, 1);
	return ibv_post_recv(endpoint->qp.qp, wrs, &bad) ? -EIO : (int)count;
}

int
recv_post(struct endpoint *endpoint)
{
	struct receiver *recv = &endpoint->recv;

	while (recv->ready) {
		int count = post_chain(endpoint);

		if (count < 0)
			return count;
		recv->ready -= (uint16_t)count;
		recv->posted += (uint16_t)count;
	}
	for (; recv->messages; recv->messages--)
		credit_reposted(&recv->credit);
	return 0;
}

static void
make_ready(struct receiver *recv, uint16_t slot, bool message)
{
	recv->idle[recv->ready++] = slot;
	recv->messages += message;
}

/* ---- slots without a block ---- */

/* Others have the memory, and will let go of it some day: the connection waits, and is not to blame. */
static void
complain_of_hunger(struct endpoint *endpoint)
{
	static struct log_limit limit;
	uint64_t now_us = xr_now_us(), patience_us = (uint64_t)option_int(&g_conn_starved_ms) * 1000;
	char peer[ADDRESS_TEXT_BYTES];

	if (now_us - endpoint->recv.starved_us < patience_us)
		return;
	endpoint->recv.starved_us = now_us;
	address_format(&endpoint->conn->peer, peer);
	log_limited(&limit, XR_LOG_WARNING,
		    "connection with %s has had no free block to receive into for conn_starved_ms, and still waits",
		    peer);
}

/* A block of the pool's or its reserve's: NULL when there is none. */
static struct xr_block *
fresh_block(struct endpoint *endpoint)
{
	struct xr_block *block = block_alloc_recv(endpoint->recv.type);

	if (block)
		scarcity_spend(&endpoint->conn->home->scarcity, block_bytes(endpoint->recv.type));
	return block;
}

/* Gives blocks to starved slots; how many. */
static unsigned
feed_slots(struct endpoint *endpoint)
{
	struct receiver *recv = &endpoint->recv;
	unsigned filled = 0;

	for (; recv->starved; filled++) {
		uint16_t slot = recv->idle[recv->slots - recv->starved];
		struct xr_block *block = fresh_block(endpoint);

		if (!block)
			break;
		recv->blocks[slot] = block;
		recv->starved--;
		block_recv_slots_add(recv->type, 1);
		make_ready(recv, slot, true);
	}
	return filled;
}

/* Also before the handshake has ended: what came early may have found no block. */
static enum hunger_end
feed(struct hunger *hunger)
{
	struct endpoint *endpoint = caa_container_of(hunger, struct endpoint, recv.hunger);
	unsigned filled;

	if (endpoint->state > ENDPOINT_OPEN)
		return HUNGER_OVER;
	filled = feed_slots(endpoint);
	endpoint->conn->hungry = endpoint->recv.starved > 0;
	if (filled == 0) {
		complain_of_hunger(endpoint);
		return HUNGER_NONE;
	}
	endpoint->recv.starved_us = xr_now_us();
	recv_batch_end(endpoint);
	if (endpoint->fault.error)
		endpoint_fail(endpoint);
	else if (endpoint->state == ENDPOINT_OPEN && send_due(endpoint))
		conn_flush_later(endpoint->conn);
	return endpoint->recv.starved ? HUNGER_SOME : HUNGER_OVER;
}

static void
starve(struct endpoint *endpoint, uint16_t slot)
{
	struct receiver *recv = &endpoint->recv;

	recv->blocks[slot] = NULL;
	recv->starved++;
	block_recv_slots_add(recv->type, -1);
	recv->idle[recv->slots - recv->starved] = slot;
	figure_count(RDMA_STARVED, 1);
	if (hunger_waits(&recv->hunger))
		return;
	endpoint->conn->hungry = true;
	recv->starved_us = xr_now_us();
	recv->hunger = hunger_init(feed);
	hunger_join(&recv->hunger, &endpoint->conn->home->scarcity, recv->type);
}

/* ---- a message with payload ---- */

static size_t
input_limit(void)
{
	return (size_t)option_int(&g_conn_input_limit_kb) * 1024;
}

/* Where a message goes: TCP's bytes and RDMA's never meet, and the application hears of none before it is open. */
static struct xr_iobuf *
input_of(struct endpoint *endpoint)
{
	return endpoint->state == ENDPOINT_PREPARING ? &endpoint->recv.early : &endpoint->conn->in;
}

/* Short ones cost a copy less than a block; also rather short ones, once the input pins much for little. */
static bool
better_copied(const struct endpoint *endpoint, uint32_t len)
{
	const struct receiver *recv = &endpoint->recv;

	return len < recv->copy_below ||
	       (len < block_payload_bytes(recv->type) / 4 && endpoint->conn->in_pinned > recv->pin_limit);
}

/* The block itself becomes input; the slot goes on with another one, or without. */
static int
hand_over(struct endpoint *endpoint, uint16_t slot, uint32_t len, struct xr_block *fresh)
{
	struct receiver *recv = &endpoint->recv;
	struct xr_block *block = recv->blocks[slot];

	if (iobuf_append_block(input_of(endpoint), block, block_payload(block), len)) {
		if (fresh)
			block_drop(fresh);
		return -ENOMEM;
	}
	endpoint->conn->in_pinned += block_bytes(recv->type);
	if (fresh) {
		recv->blocks[slot] = fresh;
		make_ready(recv, slot, true);
		figure_count(RDMA_ZERO_COPY, 1);
	} else {
		starve(endpoint, slot);
	}
	return 0;
}

/* To ordinary memory, as far as one connection may have that: the slot keeps its block. */
static bool
spill(struct endpoint *endpoint, uint16_t slot, uint32_t len)
{
	struct receiver *recv = &endpoint->recv;
	const char *payload = block_payload(recv->blocks[slot]);

	if (spill_append(&recv->spill, input_limit(), payload, len, input_of(endpoint)))
		return false;
	endpoint->conn->in_pinned += len;
	make_ready(recv, slot, true);
	figure_count(RDMA_COPIED_SHORT_OF_BLOCKS, 1);
	return true;
}

/*
 * A connection that holds its peer back because of the pool gets the rest of the peer's window, which no holding keeps
 * away: that shall cost the pool as little as can be.
 */
static int
keep(struct endpoint *endpoint, uint16_t slot, uint32_t len)
{
	struct xr_block *fresh = NULL;

	if (endpoint->conn->squeezed && spill(endpoint, slot, len))
		return 0;
	fresh = fresh_block(endpoint);
	if (!fresh && !endpoint->conn->squeezed && spill(endpoint, slot, len))
		return 0;
	return hand_over(endpoint, slot, len, fresh);
}

static int
take_message(struct endpoint *endpoint, uint16_t slot, uint32_t len)
{
	struct receiver *recv = &endpoint->recv;

	if (endpoint->conn->state >= CONN_CLOSING) {
		make_ready(recv, slot, true);
		return 0;
	}
	if (endpoint->state != ENDPOINT_PREPARING)
		recv->arrived += len;
	if (better_copied(endpoint, len) &&
	    xr_iobuf_append(input_of(endpoint), block_payload(recv->blocks[slot]), len) == 0) {
		make_ready(recv, slot, true);
		figure_count(RDMA_COPIED, 1);
		return 0;
	}
	return keep(endpoint, slot, len);
}

/* ---- completions ---- */

static int
violation(struct endpoint *endpoint, const char *what)
{
	fault_note(endpoint, -EPROTO, what);
	return -EPROTO;
}

int
recv_completed(struct endpoint *endpoint, const struct ibv_wc *wc)
{
	struct receiver *recv = &endpoint->recv;
	uint16_t slot = wr_id_value(wc->wr_id);
	int ret;

	if (wc->opcode != IBV_WC_RECV || !(wc->wc_flags & IBV_WC_WITH_IMM))
		return violation(endpoint, "a message without an immediate");
	if (window_credited(&endpoint->send.window, ntohl(wc->imm_data)))
		return violation(endpoint, "more credits than messages were sent");
	if (wc->byte_len == 0) {
		make_ready(recv, slot, false);
		return 0;
	}
	if (credit_received(&recv->credit, wc->byte_len))
		return violation(endpoint, "more messages than the peer has credits for");
	figure_count(RDMA_RECEIVES, 1);
	if (endpoint->state == ENDPOINT_PREPARING)
		figure_count(RDMA_EARLY, 1);
	ret = take_message(endpoint, slot, wc->byte_len);
	if (ret)
		fault_note(endpoint, ret, "no memory for a message");
	return ret;
}

int
recv_batch_end(struct endpoint *endpoint)
{
	int ret = 0;

	if (endpoint->recv.arrived)
		conn_received(endpoint->conn, endpoint->recv.arrived);
	endpoint->recv.arrived = 0;
	if (endpoint->state != ENDPOINT_ENDING)
		ret = recv_post(endpoint);
	if (ret)
		fault_note(endpoint, ret, "the device refuses a receive");
	recv_review(endpoint);
	return ret;
}

int
recv_open(struct endpoint *endpoint)
{
	size_t early = xr_iobuf_size(&endpoint->recv.early);

	endpoint->conn->bytes_in += early;
	net_count(NET_BYTES_IN, early);
	return xr_iobuf_move(&endpoint->conn->in, &endpoint->recv.early);
}

/* ---- what may be reported ---- */

static size_t
pin_limit(struct endpoint *endpoint)
{
	size_t share = scarcity_limits(&endpoint->conn->home->scarcity, endpoint->recv.type)->of_free;

	return share < input_limit() ? share : input_limit();
}

void
recv_review(struct endpoint *endpoint)
{
	struct receiver *recv = &endpoint->recv;
	struct credit *credit = &recv->credit;
	uint64_t taken = credit->received - xr_iobuf_size(input_of(endpoint));

	credit->holding = endpoint->conn->hold_input;
	credit_taken(credit, taken - credit->taken);
	recv->copy_below =
		option_bool(&g_rdma_recv_zerocopy) ? (uint32_t)option_int(&g_rdma_zerocopy_min_size) : UINT32_MAX;
	recv->pin_limit = pin_limit(endpoint) / 2;
}
