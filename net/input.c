/* SPDX-License-Identifier: Apache-2.0 */

#include "net/input.h"
#include "core/log.h"
#include "mem/iobuf.h"
#include "net/conn.h"
#include "net/net.h"
#include "net/turn.h"
#include <errno.h>

#define SPARSE 4 /* input that pins more than this many times its size is copied together */

#define PROGRESS_PARTS 16 /* one of a message's parts is what a peer has to send within conn_starved_ms */

#define TURN_BYTES (256u << 10) /* of one connection in one turn: the others get theirs */

static enum block_type
type_of(const struct xr_conn *conn)
{
	return (enum block_type)conn->in_type;
}

static struct scarcity *
scarcity_of(const struct xr_conn *conn)
{
	return &conn->home->scarcity;
}

static const struct share_limits *
limits_of(const struct xr_conn *conn)
{
	return scarcity_limits(scarcity_of(conn), type_of(conn));
}

/* ---- what it pins ---- */

/*
 * Small pieces of much-shared blocks pin many times their size: a peer that sends a byte at a time must not cost more
 * memory than one that sends at once.
 */
static void
copy_together(struct xr_conn *conn)
{
	struct xr_iobuf dense = XR_IOBUF_INIT;
	struct iovec iov[16];
	size_t done = 0;
	int n, ret = 0;

	while (ret == 0 && (n = xr_iobuf_iovec(&conn->in, done, iov, 16)) > 0)
		for (int i = 0; i < n && ret == 0; i++) {
			ret = xr_iobuf_append(&dense, iov[i].iov_base, iov[i].iov_len);
			done += iov[i].iov_len;
		}
	if (ret == 0 && xr_iobuf_move(&conn->in, &dense) == 0) {
		xr_iobuf_drop(&conn->in, done);
		net_count(NET_INPUT_COMPACTED, 1);
	}
	xr_iobuf_clear(&dense);
}

/* Of the pool, counted; before, it has been copied together if it is above the limit and sparse. */
static void
count_exactly(struct xr_conn *conn, size_t limit)
{
	conn->in_pinned = iobuf_pinned_bytes(&conn->in);
	if (conn->in_pinned > limit && conn->in_pinned > SPARSE * xr_iobuf_size(&conn->in)) {
		copy_together(conn);
		conn->in_pinned = iobuf_pinned_bytes(&conn->in);
	}
}

static size_t
configured_limit(void)
{
	return (size_t)option_int(&g_conn_input_limit_kb) * 1024;
}

void
input_compact(struct xr_conn *conn)
{
	count_exactly(conn, configured_limit());
}

/* ---- untaken ---- */

static void
end_squeeze(struct xr_conn *conn)
{
	conn->squeezed = false;
	scarcity_del(scarcity_of(conn), &conn->squeezed_entry);
}

/* An application that has paused will be heard of; who left its input there unasked has to be looked after. */
static void
squeeze(struct xr_conn *conn)
{
	conn->scarce = conn->squeezed = true;
	if (!conn->paused)
		scarcity_add(scarcity_of(conn), &conn->squeezed_entry, &scarcity_of(conn)->squeezed);
}

static bool
too_much_untaken(struct xr_conn *conn, size_t share)
{
	size_t limit = configured_limit();

	if (conn->in_pinned > limit || conn->in_pinned > share)
		count_exactly(conn, limit < share ? limit : share);
	if (conn->in_pinned > share && conn->in_pinned <= limit)
		squeeze(conn);
	else if (conn->squeezed)
		end_squeeze(conn);
	return conn->in_pinned > limit || conn->in_pinned > share;
}

/* ---- partial, within what all such messages may have ---- */

static void
count_partial(struct xr_conn *conn, size_t pinned)
{
	size_t *sum = &conn->home->sums.partial[conn->in_type];

	if (pinned == conn->partial)
		return;
	__atomic_store_n(sum, *sum + pinned - conn->partial, __ATOMIC_RELAXED);
	conn->partial = pinned;
	conn->scarce |= pinned > 0;
}

/* ---- partial, with a reservation ---- */

static void
end_claim(struct xr_conn *conn)
{
	if (claim_state(&conn->claim.claim) == CLAIM_NONE)
		return;
	scarcity_del(scarcity_of(conn), &conn->claim.entry);
	ledger_end(&conn->claim.claim);
}

static void
refuse(struct xr_conn *conn, size_t bytes, const struct share_pool *pool)
{
	static struct log_limit limit;
	char peer[ADDRESS_TEXT_BYTES];

	address_format(&conn->peer, peer);
	log_limited(&limit, XR_LOG_WARNING,
		    "connection with %s closed: its message of %zu bytes needs %zu KiB of %s blocks, and of %zu KiB no "
		    "more than %zu can be had for one (--pool_max_mb, --rdma_memory_pool_max_regions)",
		    peer, conn->need, bytes >> 10, block_type_name(type_of(conn)), pool->capacity >> 10,
		    share_largest(pool) >> 10);
	net_count(NET_MESSAGES_TOO_LARGE, 1);
	xr_conn_abort(conn, -EMSGSIZE);
}

/* Of the rest of the message; false: the connection has ended, as it can never be had. */
static bool
ask(struct xr_conn *conn, size_t size)
{
	struct claim *claim = &conn->claim.claim;
	size_t whole = share_blocks(conn->need, type_of(conn));
	struct share_pool pool;

	ledger_look(type_of(conn), &pool);
	if (whole > share_largest(&pool)) {
		refuse(conn, whole, &pool);
		return false;
	}
	claim->home = conn->home;
	claim->type = conn->in_type;
	claim->need = conn->need;
	conn->claim.seen = conn->claim.mark = size;
	conn->claim.mark_us = xr_now_us();
	conn->scarce = true;
	net_count(NET_RESERVATIONS, 1);
	if (!ledger_ask(claim, whole, share_blocks(conn->need - size, type_of(conn)), conn->dialled))
		net_count(NET_RESERVATIONS_WAITED, 1);
	scarcity_add(scarcity_of(conn), &conn->claim.entry, &scarcity_of(conn)->claims);
	return true;
}

/* What came under a reservation is no longer among the partial ones; a sparse one must not take twice its due. */
static void
go_on(struct xr_conn *conn, size_t size)
{
	struct input_claim *claim = &conn->claim;

	count_partial(conn, 0);
	ledger_progress(&claim->claim, share_blocks(claim->claim.need - size, type_of(conn)));
	claim->seen = size;
	if (size - claim->mark > claim->claim.need / PROGRESS_PARTS) {
		claim->mark = size;
		claim->mark_us = xr_now_us();
	}
	if (conn->in_pinned > SPARSE * size)
		input_compact(conn);
}

/* Whether the next byte has to wait. */
static bool
without_reservation(struct xr_conn *conn, size_t size)
{
	count_partial(conn, conn->in_pinned);
	if (conn->in_pinned > SPARSE * size)
		input_compact(conn);
	if (conn->in_pinned <= limits_of(conn)->of_partial)
		return false;
	count_exactly(conn, limits_of(conn)->of_partial);
	count_partial(conn, iobuf_pool_bytes(&conn->in));
	scarcity_look(scarcity_of(conn));
	if (conn->partial <= limits_of(conn)->of_partial)
		return false;
	return !ask(conn, size) || !ledger_granted(&conn->claim.claim);
}

/*
 * The one that asked was taken, and the next one begins; or it needs more than it has asked for. Who needs less keeps
 * what it has, since it may come to need it again, and others may not let it have that then.
 */
static bool
is_another_message(const struct xr_conn *conn, size_t size)
{
	const struct input_claim *claim = &conn->claim;

	return claim_state(&claim->claim) != CLAIM_NONE && (claim->claim.need < conn->need || size < claim->seen);
}

static bool
partial_must_wait(struct xr_conn *conn, size_t size)
{
	struct claim *claim = &conn->claim.claim;
	bool wait;

	if (conn->squeezed)
		end_squeeze(conn);
	if (is_another_message(conn, size))
		end_claim(conn);
	wait = claim_state(claim) == CLAIM_NONE ? without_reservation(conn, size) : !ledger_granted(claim);
	if (!wait && claim_state(claim) != CLAIM_NONE)
		go_on(conn, size);
	conn->squeezed = wait;
	return wait;
}

/* ---- all of it ---- */

void
input_over(struct xr_conn *conn)
{
	if (!conn->scarce)
		return;
	end_claim(conn);
	count_partial(conn, 0);
	end_squeeze(conn);
	conn->scarce = false;
}

/*
 * An application that has paused wants nothing now, so it must not stand in others' way. Its message is not whole all
 * the same: when it goes on, only more memory sets that free.
 */
static bool
paused_must_hold(struct xr_conn *conn)
{
	bool hold;

	end_claim(conn);
	hold = too_much_untaken(conn, limits_of(conn)->of_partial);
	count_partial(conn, conn->in_pinned);
	return hold;
}

/* A message that has its reservation is read to its end, come what may: others wait for what it was promised. */
static bool
must_hold(struct xr_conn *conn)
{
	size_t size = xr_iobuf_size(&conn->in);

	/* Counting is dear for a large message that comes in small pieces: not less than that is enough at first. */
	conn->in_pinned = iobuf_pinned_at_most(&conn->in, type_of(conn));
	if (size >= conn->need || size == 0) {
		if (conn->scarce && (size == 0 || conn->partial || claim_state(&conn->claim.claim) != CLAIM_NONE))
			input_over(conn);
		return size && too_much_untaken(conn, limits_of(conn)->of_free);
	}
	if (conn->paused && (!ledger_granted(&conn->claim.claim) || is_another_message(conn, size)))
		return paused_must_hold(conn);
	return partial_must_wait(conn, size);
}

void
input_review(struct xr_conn *conn)
{
	bool hold = must_hold(conn);

	if (hold == conn->hold_input || conn->state == CONN_ENDED)
		return;
	conn->hold_input = hold;
	if (hold)
		net_count(NET_INPUT_HELD, 1);
	conn->link->hold(conn);
}

size_t
input_turn_bytes(struct xr_conn *conn)
{
	size_t share = limits_of(conn)->of_partial;

	return share >= TURN_BYTES || ledger_granted(&conn->claim.claim) ? TURN_BYTES : share;
}

/* ---- for net/scarcity.c ---- */

bool
input_review_claim(struct cds_list_head *entry)
{
	struct xr_conn *conn = cds_list_entry(entry, struct xr_conn, claim.entry);
	bool held = conn->hold_input;

	if (held && conn->state == CONN_OPEN)
		input_review(conn);
	return conn->hold_input != held;
}

bool
input_review_squeezed(struct cds_list_head *entry)
{
	struct xr_conn *conn = cds_list_entry(entry, struct xr_conn, squeezed_entry);
	bool held = conn->hold_input;

	if (conn->state == CONN_OPEN)
		input_review(conn);
	return conn->hold_input != held;
}

/* As long as it is not, its peer is not to blame that nothing comes. */
static bool
is_read(const struct xr_conn *conn)
{
	return ledger_granted(&conn->claim.claim) && !conn->hold_input && !conn->tcp.starved && !conn->hungry;
}

bool
input_check_peer(struct cds_list_head *entry)
{
	static struct log_limit limit;
	struct xr_conn *conn = cds_list_entry(entry, struct xr_conn, claim.entry);
	uint64_t patience_us = (uint64_t)option_int(&g_conn_starved_ms) * 1000;
	char peer[ADDRESS_TEXT_BYTES];

	if (!is_read(conn))
		conn->claim.mark_us = xr_now_us();
	if (!ledger_waited_for(type_of(conn)) || xr_now_us() - conn->claim.mark_us < patience_us)
		return false;
	address_format(&conn->peer, peer);
	log_limited(
		&limit, XR_LOG_WARNING,
		"connection with %s closed: for conn_starved_ms it has sent less than 1/16 of a message of %zu bytes, and "
		"other connections wait for the memory that is reserved for it",
		peer, conn->need);
	net_count(NET_GIVEN_UP, 1);
	xr_conn_abort(conn, -ETIMEDOUT);
	return true;
}
