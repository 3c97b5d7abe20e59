/* SPDX-License-Identifier: Apache-2.0 */

#include "net/drain.h"
#include "core/log.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/turn.h"
#include "poll/reactor.h"
#include "poll/stall.h"
#include <errno.h>
#include <urcu/compiler.h>
#include <xrdma/env.h>

/* Within it every loop has read what had come before the stop, so that this is served. */
#define ASK_AFTER_US 5000

/* Who has stopped a process by hand wants to know why it is still there. */
#define TELL_AFTER_US 500000

bool g_drain_begun;

static unsigned g_holds;     /* lcores that are not drained, and the application's; at none the loops end */
static unsigned g_accepting; /* lcores that have not heard of the stop: they may hand connections to others */
static bool g_expired;	     /* --drain_ms have passed */
static struct xr_timer g_deadline, g_tell;
static void (*g_on_drain)(void *arg);
static void *g_on_drain_arg;

/* ---- what keeps the loops running ---- */

void
xr_drain_hold(void)
{
	__atomic_add_fetch(&g_holds, 1, __ATOMIC_RELAXED);
}

void
xr_drain_release(void)
{
	if (__atomic_sub_fetch(&g_holds, 1, __ATOMIC_ACQ_REL) == 0)
		reactors_stop();
}

static void
deadline_passed(struct xr_timer *timer)
{
	(void)timer;
	__atomic_store_n(&g_expired, true, __ATOMIC_RELAXED);
	reactors_stop();
}

/* ---- on each lcore ---- */

static struct net_lcore *
net_of(struct drain *drain)
{
	return caa_container_of(drain, struct net_lcore, drain);
}

void
drain_progress(struct net_lcore *net)
{
	if (net->drain.phase != DRAIN_ASKED || __atomic_load_n(&net->live, __ATOMIC_RELAXED))
		return;
	net->drain.phase = DRAIN_DONE;
	xr_drain_release();
}

static void
ask(struct xr_timer *timer)
{
	struct net_lcore *net = net_of(caa_container_of(timer, struct drain, ask));
	struct xr_conn *conn;

	cds_list_for_each_entry (conn, &net->conns, all)
		conn_drain(conn);
	net->drain.phase = DRAIN_ASKED;
	drain_progress(net);
}

static unsigned
count_live(void)
{
	unsigned live = 0;

	for (unsigned i = 0; i < lcore_count(); i++)
		live += __atomic_load_n(&net_lcore_at(i)->live, __ATOMIC_RELAXED);
	return live;
}

static void
tell(struct xr_timer *timer)
{
	(void)timer;
	log_notice("stopping: waiting for %u connections, up to --drain_ms=%lld; a second stop does not wait",
		   count_live(), (long long)option_int(&g_drain_ms));
}

/* The main lcore speaks for the process. */
static void
announce(void)
{
	int64_t drain_ms = option_int(&g_drain_ms);

	log_info("stopping: what is in work has %lld ms to end", (long long)drain_ms);
	g_deadline = (struct xr_timer)XR_TIMER_INIT(deadline_passed);
	xr_timer_arm(&g_deadline, (uint64_t)drain_ms * 1000, 0);
	g_tell = (struct xr_timer)XR_TIMER_INIT(tell);
	xr_timer_arm(&g_tell, TELL_AFTER_US, 0);
	if (g_on_drain)
		CALLBACK(g_on_drain, g_on_drain(g_on_drain_arg));
}

static void
begin(struct xr_msg *msg, int status)
{
	struct net_lcore *net = net_of(caa_container_of(msg, struct drain, begin));
	struct xr_conn *conn;

	if (status)
		return;
	net->drain.phase = DRAIN_BEGUN;
	listeners_stop(net);
	cds_list_for_each_entry (conn, &net->conns, all)
		conn_mark(conn);
	if (net->lcore == lcore_main())
		announce();
	if (__atomic_sub_fetch(&g_accepting, 1, __ATOMIC_ACQ_REL) == 0)
		for (unsigned i = 0; i < lcore_count(); i++)
			xr_post(lcore_at(i)->id, &net_lcore_at(i)->drain.all_closed);
}

/* No lcore hands connections over any more; those that are on their way came before this. */
static void
all_closed(struct xr_msg *msg, int status)
{
	struct drain *drain = caa_container_of(msg, struct drain, all_closed);

	if (status == 0)
		xr_timer_arm(&drain->ask, ASK_AFTER_US, 0);
}

void
drain_lcore_init(struct drain *drain)
{
	drain->phase = DRAIN_NONE;
	drain->begin = (struct xr_msg)XR_MSG_INIT(begin);
	drain->all_closed = (struct xr_msg)XR_MSG_INIT(all_closed);
	drain->ask = (struct xr_timer)XR_TIMER_INIT(ask);
}

static unsigned
count_open(const struct net_lcore *net)
{
	const struct xr_conn *conn;
	unsigned count = 0;

	cds_list_for_each_entry (conn, &net->conns, all)
		count += conn->state != CONN_ENDED;
	return count;
}

void
drain_cut_off(struct net_lcore *net)
{
	unsigned count = count_open(net);

	if (!count)
		return;
	net_count(NET_CONNS_CUT_OFF, count);
	if (__atomic_load_n(&g_expired, __ATOMIC_RELAXED))
		log_warning("lcore %u: %u connections had not ended within --drain_ms=%lld and are cut off",
			    net->lcore->id, count, (long long)option_int(&g_drain_ms));
}

/* ---- the whole ---- */

void
drain_init(void)
{
	g_holds = lcore_count();
	g_accepting = lcore_count();
	g_expired = false;
	__atomic_store_n(&g_drain_begun, false, __ATOMIC_RELAXED);
}

/* In a signal handler: a post is a few atomic steps and one write(). */
void
drain_stop(void)
{
	int saved_errno = errno;

	if (option_int(&g_drain_ms) == 0 || __atomic_exchange_n(&g_drain_begun, true, __ATOMIC_ACQ_REL))
		reactors_stop();
	else
		for (unsigned i = 0; i < lcore_count(); i++)
			xr_post(lcore_at(i)->id, &net_lcore_at(i)->drain.begin);
	errno = saved_errno;
}

void
xr_on_drain(void (*fn)(void *arg), void *arg)
{
	g_on_drain = fn;
	g_on_drain_arg = arg;
}
