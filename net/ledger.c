/* SPDX-License-Identifier: Apache-2.0 */

#include "net/ledger.h"
#include "mem/pressure.h"
#include "net/net.h"
#include "net/turn.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct ledger {
	pthread_mutex_t lock;
	struct reservations queue;
	unsigned waiting; /* a copy for readers without the lock */
	size_t receives;  /* any lcore of the node */
} __attribute__((aligned(64)));

static struct {
	struct ledger *ledgers; /* [node * BLOCK_TYPES + type] */
	size_t count;
} g_ledgers;

unsigned g_ledgers_waiting;

static unsigned
node_of(const struct lcore *lcore)
{
	return lcore->numa_node > 0 ? (unsigned)lcore->numa_node : 0;
}

static struct ledger *
ledger_here(enum block_type type)
{
	return &g_ledgers.ledgers[node_of(t_net->lcore) * BLOCK_TYPES + type];
}

int
ledgers_init(void)
{
	unsigned nodes = 1;

	for (unsigned i = 0; i < lcore_count(); i++)
		if (node_of(lcore_at(i)) >= nodes)
			nodes = node_of(lcore_at(i)) + 1;
	g_ledgers.count = (size_t)nodes * BLOCK_TYPES;
	g_ledgers.ledgers = aligned_alloc(_Alignof(struct ledger), g_ledgers.count * sizeof *g_ledgers.ledgers);
	if (!g_ledgers.ledgers)
		return -ENOMEM;
	for (size_t i = 0; i < g_ledgers.count; i++) {
		struct ledger *ledger = &g_ledgers.ledgers[i];

		*ledger = (struct ledger){.lock = PTHREAD_MUTEX_INITIALIZER};
		reservations_init(&ledger->queue);
	}
	return 0;
}

void
ledgers_fini(void)
{
	for (size_t i = 0; i < g_ledgers.count; i++)
		pthread_mutex_destroy(&g_ledgers.ledgers[i].lock);
	free(g_ledgers.ledgers);
	g_ledgers.ledgers = NULL;
	g_ledgers.count = 0;
}

/* ---- the sums ---- */

void
ledger_look(enum block_type type, struct share_pool *pool)
{
	unsigned node = node_of(t_net->lcore);

	*pool = (struct share_pool){
		.capacity = pressure_capacity_bytes(type),
		.available = pressure_available_bytes(type),
		.receives = __atomic_load_n(&ledger_here(type)->receives, __ATOMIC_RELAXED),
	};
	for (unsigned i = 0; i < lcore_count(); i++) {
		const struct ledger_sums *sums = &net_lcore_at(i)->sums;

		if (node_of(lcore_at(i)) != node)
			continue;
		pool->promised += __atomic_load_n(&sums->promised[type], __ATOMIC_RELAXED);
		pool->partial += __atomic_load_n(&sums->partial[type], __ATOMIC_RELAXED);
	}
}

void
ledger_count_receives(enum block_type type, size_t more, size_t less)
{
	__atomic_add_fetch(&ledger_here(type)->receives, more - less, __ATOMIC_RELAXED);
}

void
ledger_progress(struct claim *claim, size_t open)
{
	if (open >= claim->open)
		return;
	__atomic_sub_fetch(&claim->home->sums.promised[claim->type], claim->open - open, __ATOMIC_RELAXED);
	claim->open = open;
}

/* ---- the queue; with the lock held ---- */

static void
grant(struct claim *claim)
{
	__atomic_add_fetch(&claim->home->sums.promised[claim->type], claim->open, __ATOMIC_RELAXED);
	__atomic_store_n(&claim->state, CLAIM_GRANTED, __ATOMIC_RELEASE);
}

static void
publish_waiting(struct ledger *ledger)
{
	unsigned waiting = ledger->queue.waiting;

	__atomic_add_fetch(&g_ledgers_waiting, waiting - ledger->waiting, __ATOMIC_RELAXED);
	__atomic_store_n(&ledger->waiting, waiting, __ATOMIC_RELAXED);
}

/* Grants what can be, and tells their homes, but for the one who asks. */
static void
serve_queue(struct ledger *ledger, enum block_type type, const struct claim *asking)
{
	struct reservation *next;
	struct share_pool pool;

	while (ledger->queue.waiting) {
		struct claim *claim;

		ledger_look(type, &pool);
		next = reservations_grant(&ledger->queue, &pool);
		if (!next)
			break;
		claim = caa_container_of(next, struct claim, reservation);
		grant(claim);
		if (claim != asking)
			scarcity_wake(claim->home->lcore->index);
	}
	publish_waiting(ledger);
}

/* ---- claims ---- */

bool
ledger_ask(struct claim *claim, size_t whole, size_t rest, bool urgent)
{
	struct ledger *ledger = ledger_here(claim->type);

	claim->reservation.bytes = whole;
	claim->open = rest;
	claim->reservation.urgent = urgent;
	claim->state = CLAIM_WAITING;
	pthread_mutex_lock(&ledger->lock);
	reservations_ask(&ledger->queue, &claim->reservation);
	serve_queue(ledger, claim->type, claim);
	pthread_mutex_unlock(&ledger->lock);
	return ledger_granted(claim);
}

void
ledger_end(struct claim *claim)
{
	struct ledger *ledger = ledger_here(claim->type);
	bool granted;

	pthread_mutex_lock(&ledger->lock);
	granted = ledger_granted(claim);
	if (granted)
		ledger_progress(claim, 0);
	reservations_end(&ledger->queue, &claim->reservation, granted);
	claim->state = CLAIM_NONE;
	serve_queue(ledger, claim->type, NULL);
	pthread_mutex_unlock(&ledger->lock);
}

bool
ledger_waited_for(enum block_type type)
{
	return __atomic_load_n(&ledger_here(type)->waiting, __ATOMIC_RELAXED) > 0;
}

void
ledger_review(enum block_type type)
{
	struct ledger *ledger = ledger_here(type);

	if (!ledger_waited_for(type))
		return;
	pthread_mutex_lock(&ledger->lock);
	serve_queue(ledger, type, NULL);
	pthread_mutex_unlock(&ledger->lock);
}
