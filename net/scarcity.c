/* SPDX-License-Identifier: Apache-2.0 */

#include "net/scarcity.h"
#include "core/lcore.h"
#include "mem/block_cache.h"
#include "mem/pressure.h"
#include "net/input.h"
#include "net/ledger.h"
#include "net/net.h"
#include "net/turn.h"

#define LOOK_AGAIN_BYTES (256 << 10)
#define LONG_STOP_US	 100000u

static void woken(struct xr_msg *msg, int status);
static void long_stop(struct xr_timer *timer);

static struct net_lcore *
lcore_of(struct scarcity *scarcity)
{
	return caa_container_of(scarcity, struct net_lcore, scarcity);
}

void
scarcity_init(struct scarcity *scarcity)
{
	*scarcity = (struct scarcity){
		.unseen = -1,
		.wake = XR_MSG_INIT(woken),
		.long_stop = XR_TIMER_INIT(long_stop),
	};
	for (unsigned kind = 0; kind < HUNGER_KINDS; kind++)
		CDS_INIT_LIST_HEAD(&scarcity->hungry[kind]);
	CDS_INIT_LIST_HEAD(&scarcity->claims);
	CDS_INIT_LIST_HEAD(&scarcity->squeezed);
}

/* ---- the limits ---- */

void
scarcity_look(struct scarcity *scarcity)
{
	scarcity->of_free = SIZE_MAX;
	for (unsigned type = 0; type < BLOCK_TYPES; type++) {
		struct share_limits *limits = &scarcity->limits[type];
		struct share_pool pool;

		ledger_look(type, &pool);
		*limits = (struct share_limits){share_of_free(&pool), share_of_partial(&pool)};
		if (pool.capacity && limits->of_free < scarcity->of_free)
			scarcity->of_free = limits->of_free;
	}
	scarcity->unseen = LOOK_AGAIN_BYTES;
}

/* ---- the lists ---- */

void
scarcity_add(struct scarcity *scarcity, struct cds_list_head *entry, struct cds_list_head *list)
{
	if (entry->next)
		return;
	cds_list_add_tail(entry, list);
	scarcity->waiting++;
	if (!xr_timer_armed(&scarcity->long_stop))
		xr_timer_arm(&scarcity->long_stop, LONG_STOP_US, LONG_STOP_US);
}

void
scarcity_del(struct scarcity *scarcity, struct cds_list_head *entry)
{
	if (!entry->next)
		return;
	cds_list_del(entry);
	entry->next = entry->prev = NULL;
	if (--scarcity->waiting == 0)
		xr_timer_cancel(&scarcity->long_stop);
}

/* To be told when there are blocks: when there are some again, right away. */
static void
await_blocks(struct scarcity *scarcity, unsigned kind)
{
	if (kind != HUNGER_ALLOCATE && !pressure_wait((enum block_type)kind))
		scarcity_wake(lcore_of(scarcity)->lcore->index);
}

void
hunger_join(struct hunger *hunger, struct scarcity *scarcity, unsigned kind)
{
	if (hunger_waits(hunger))
		return;
	scarcity_add(scarcity, &hunger->link, &scarcity->hungry[kind]);
	await_blocks(scarcity, kind);
}

void
hunger_leave(struct hunger *hunger, struct scarcity *scarcity)
{
	scarcity_del(scarcity, &hunger->link);
}

/* ---- feeding ---- */

/* Out of the list first: it may be the only one, and its own neighbour. */
static void
step_back(struct hunger *hunger, struct cds_list_head *hungry)
{
	cds_list_del(&hunger->link);
	cds_list_add_tail(&hunger->link, hungry);
}

/* The first is fed until it has enough or there is nothing; who got something steps behind the others. */
static int
feed(struct scarcity *scarcity, unsigned kind)
{
	struct cds_list_head *hungry = &scarcity->hungry[kind];
	int fed = 0;

	while (!cds_list_empty(hungry)) {
		struct hunger *first = cds_list_first_entry(hungry, struct hunger, link);
		enum hunger_end end = first->feed(first);

		if (end == HUNGER_NONE) {
			await_blocks(scarcity, kind);
			break;
		}
		if (end == HUNGER_OVER)
			hunger_leave(first, scarcity);
		else
			step_back(first, hungry);
		fed++;
	}
	return fed;
}

static int
review(struct cds_list_head *list, bool (*each)(struct cds_list_head *entry))
{
	struct cds_list_head *entry, *next;
	int count = 0;

	cds_list_for_each_safe(entry, next, list)
	{
		count += each(entry);
	}
	return count;
}

/* The lcore has some itself, although the pool has none. */
static bool
has_cached(unsigned kind)
{
	return kind < BLOCK_TYPES && block_cache_count((enum block_type)kind) > 0;
}

int
scarcity_turn(struct scarcity *scarcity)
{
	int work = 0;

	for (unsigned kind = 0; kind < HUNGER_KINDS; kind++)
		if (scarcity->woken || kind == HUNGER_ALLOCATE || has_cached(kind))
			work += feed(scarcity, kind);
	if (scarcity->woken)
		work += review(&scarcity->claims, input_review_claim);
	if (!cds_list_empty(&scarcity->squeezed)) {
		scarcity_look(scarcity);
		work += review(&scarcity->squeezed, input_review_squeezed);
	}
	scarcity->woken = scarcity->worked = false;
	return work;
}

static void
review_ledgers(void)
{
	for (unsigned type = 0; type < BLOCK_TYPES; type++)
		ledger_review(type);
}

void
scarcity_worked(struct scarcity *scarcity)
{
	scarcity->worked = true;
	review_ledgers();
}

/* ---- waking ---- */

static void
woken(struct xr_msg *msg, int status)
{
	if (status == 0)
		caa_container_of(msg, struct scarcity, wake)->woken = true;
}

void
scarcity_wake(unsigned lcore_index)
{
	struct net_lcore *net = net_lcore_at(lcore_index);

	xr_post(net->lcore->id, &net->scarcity.wake);
}

static void
long_stop(struct xr_timer *timer)
{
	struct scarcity *scarcity = caa_container_of(timer, struct scarcity, long_stop);

	scarcity->woken = true;
	review_ledgers();
	review(&scarcity->claims, input_check_peer);
}
