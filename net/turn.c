/* SPDX-License-Identifier: Apache-2.0 */

#include "net/turn.h"
#include "mem/block.h"
#include "mem/pressure.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/rdma_provider.h"
#include "poll/reactor.h"
#include <errno.h>
#include <stdlib.h>

__thread struct net_lcore *t_net __attribute__((tls_model("initial-exec")));

static struct net_lcore *g_net_lcores;

/* ---- the deliver step ---- */

static int
deliver_poll(struct source *source, struct reactor *reactor)
{
	struct net_lcore *net = caa_container_of(source, struct net_lcore, deliver);
	CDS_LIST_HEAD(again);
	int work = 0;

	(void)reactor;
	net->turn++;
	if (scarcity_due(&net->scarcity))
		work = scarcity_turn(&net->scarcity);
	while (!cds_list_empty(&net->touched)) {
		struct xr_conn *conn = cds_list_first_entry(&net->touched, struct xr_conn, touched);

		cds_list_del_init(&conn->touched);
		if (conn->delivered_turn == net->turn) {
			cds_list_add_tail(&conn->touched, &again);
			continue;
		}
		conn->delivered_turn = net->turn;
		conn_deliver(conn);
		work++;
	}
	cds_list_splice(&again, &net->touched);
	net->worked = work;
	return work;
}

static int
deliver_arm(struct source *source, struct reactor *reactor)
{
	struct net_lcore *net = caa_container_of(source, struct net_lcore, deliver);

	(void)reactor;
	return cds_list_empty(&net->touched) && !scarcity_due(&net->scarcity) ? 0 : -EBUSY;
}

static const struct source_ops g_deliver_ops = {.poll = deliver_poll, .arm = deliver_arm};

/* ---- the flush step ---- */

static void
take_list(struct cds_list_head *from, struct cds_list_head *to)
{
	CDS_INIT_LIST_HEAD(to);
	cds_list_splice(from, to);
	CDS_INIT_LIST_HEAD(from);
}

/* What on_close makes end is finished in the next turn: who dials there what fails at once can't keep the step busy. */
static int
finish_ended(struct net_lcore *net)
{
	struct cds_list_head now;
	int work = 0;

	take_list(&net->ended, &now);
	while (!cds_list_empty(&now)) {
		conn_finish(cds_list_first_entry(&now, struct xr_conn, flushing));
		work++;
	}
	return work;
}

/* What on_writable sends leaves in the next turn likewise. */
static int
flush_poll(struct source *source, struct reactor *reactor)
{
	struct net_lcore *net = caa_container_of(source, struct net_lcore, flush);
	struct cds_list_head now;
	int work = 0;

	(void)reactor;
	take_list(&net->flushing, &now);
	while (!cds_list_empty(&now)) {
		struct xr_conn *conn = cds_list_first_entry(&now, struct xr_conn, flushing);

		cds_list_del_init(&conn->flushing);
		conn_flush(conn);
		work++;
	}
	work += finish_ended(net);
	drain_progress(net);
	block_turn_end();
	if (scarcity_somebody_waits(&net->scarcity) && (work || net->worked))
		scarcity_worked(&net->scarcity);
	return work;
}

static int
flush_arm(struct source *source, struct reactor *reactor)
{
	struct net_lcore *net = caa_container_of(source, struct net_lcore, flush);

	(void)reactor;
	return cds_list_empty(&net->flushing) && cds_list_empty(&net->ended) ? 0 : -EBUSY;
}

static const struct source_ops g_flush_ops = {.poll = flush_poll, .arm = flush_arm};

/* ---- life ---- */

static void
net_lcore_setup(struct net_lcore *net, const struct lcore *lcore)
{
	net->lcore = lcore;
	drain_lcore_init(&net->drain);
	net->deliver = (struct source){.name = "deliver", .ops = &g_deliver_ops, .stage = SOURCE_DELIVER};
	net->flush = (struct source){.name = "flush", .ops = &g_flush_ops, .stage = SOURCE_FLUSH};
	scarcity_init(&net->scarcity);
	CDS_INIT_LIST_HEAD(&net->touched);
	CDS_INIT_LIST_HEAD(&net->flushing);
	CDS_INIT_LIST_HEAD(&net->ended);
	CDS_INIT_LIST_HEAD(&net->conns);
	CDS_INIT_LIST_HEAD(&net->listeners);
}

int
net_lcores_init(void)
{
	g_net_lcores = aligned_alloc(_Alignof(struct net_lcore), lcore_count() * sizeof *g_net_lcores);
	if (!g_net_lcores || ledgers_init() != 0) {
		free(g_net_lcores);
		return -ENOMEM;
	}
	drain_init();
	for (unsigned i = 0; i < lcore_count(); i++) {
		g_net_lcores[i] = (struct net_lcore){.turn = 0};
		net_lcore_setup(&g_net_lcores[i], lcore_at(i));
	}
	pressure_set_wake(scarcity_wake);
	return 0;
}

void
net_lcores_fini(void)
{
	pressure_set_wake(NULL);
	ledgers_fini();
	free(g_net_lcores);
	g_net_lcores = NULL;
}

struct net_lcore *
net_lcore_at(unsigned index)
{
	return &g_net_lcores[index];
}

/* The loop has ended: listeners are closed, connections left end with -ECANCELED, and each has its on_close. */
static void
close_everything(struct reactor *reactor, void *arg)
{
	struct net_lcore *net = arg;
	struct xr_conn *conn;

	(void)reactor;
	net->closing = true;
	listeners_close(net);
	drain_cut_off(net);
	cds_list_for_each_entry (conn, &net->conns, all)
		conn_end(conn, -ECANCELED);
	while (finish_ended(net))
		;
}

void
net_lcore_enter(struct lcore *lcore)
{
	struct net_lcore *net = &g_net_lcores[lcore->index];
	struct reactor *reactor = reactor_of(lcore);

	t_net = net;
	source_add(reactor, &net->deliver);
	source_add(reactor, &net->flush);
	reactor_on_exit(reactor, close_everything, net);
}

void
net_lcore_leave(void)
{
	struct net_lcore *net = t_net;
	struct reactor *reactor = reactor_current();

	source_del(reactor, &net->flush);
	source_del(reactor, &net->deliver);
	rdma_provider_leave();
	rx_clear(&net->rx);
	t_net = NULL;
}
