/* SPDX-License-Identifier: Apache-2.0 */

/* Completion queues as a source of the loop: polled each turn, armed before each sleep. */

#include "net/verbs/cq_private.h"
#include "net/verbs/endpoint.h"
#include "net/verbs/flags.h"
#include "poll/reactor.h"
#include <string.h>
#include <sys/epoll.h>

#define POLLS_A_TURN 8	 /* of one queue: the other sources get their turn */
#define ACK_BATCH    64u /* acknowledging takes a lock: not for each event */

/* ---- completions ---- */

static void
dispatch(struct cq *cq, const struct ibv_wc *wc)
{
	struct handle_entry *entry = handles_find(cq->endpoints, (uint32_t)(wc->wr_id >> 32));

	if (!entry) {
		cq_count(CQ_STALE, 1);
		return;
	}
	if (cds_list_empty(&entry->touched))
		cds_list_add_tail(&entry->touched, &cq->touched);
	endpoint_complete(entry->endpoint, wc);
}

/* How many completions there were, at most `once`; negative: the queue has failed. */
static int
poll_once(struct cq *cq, struct queue_side *side, int once)
{
	struct ibv_wc wcs[RDMA_CQE_POLL_MAX];
	int n = ibv_poll_cq(side->cq, once, wcs);

	if (n < 0) {
		cq_fail(cq, "it can't be polled");
		return n;
	}
	/* It was empty: who has left by now has nothing in it any more. */
	if (n < once)
		side->leaving = 0;
	for (int i = 0; i < n; i++)
		dispatch(cq, &wcs[i]);
	return n;
}

/* Up to POLLS_A_TURN polls; how many completions. */
static int
poll_side(struct cq *cq, struct queue_side *side)
{
	int once = (int)option_int(&g_rdma_cqe_poll_once), total = 0, polls = 0, n;

	do {
		n = poll_once(cq, side, once);
		total += n > 0 ? n : 0;
	} while (++polls < POLLS_A_TURN && n == once);
	cq_count(CQ_POLLS, (uint64_t)polls);
	if (total)
		cq_count(CQ_COMPLETIONS, (uint64_t)total);
	return total;
}

/* Each endpoint does once what its completions have led to. */
static void
end_batch(struct cq *cq)
{
	while (!cds_list_empty(&cq->touched)) {
		struct handle_entry *entry = cds_list_first_entry(&cq->touched, struct handle_entry, touched);

		cds_list_del_init(&entry->touched);
		endpoint_batch_end(entry->endpoint);
	}
}

static int
cq_poll(struct source *source, struct reactor *reactor)
{
	struct cq *cq = caa_container_of(source, struct cq, source);
	int work;

	(void)reactor;
	if (__builtin_expect(cq->failed, 0))
		return 0;
	work = poll_side(cq, &cq->recv);
	work += poll_side(cq, &cq->send);
	if (work)
		end_batch(cq);
	return work;
}

/* Not endless, however fast others fill the queue: what is in it now is among the next so many. */
void
cq_drain(struct cq *cq)
{
	unsigned seen = 0;
	int n = 1;

	while (n > 0 && seen < cq->recv.entries && !cq->failed) {
		n = poll_side(cq, &cq->recv);
		seen += (unsigned)n;
		end_batch(cq);
	}
}

/* ---- events ---- */

static void
acknowledge(struct queue_side *side, unsigned at_least)
{
	if (side->unacked < at_least)
		return;
	ibv_ack_cq_events(side->cq, side->unacked);
	side->unacked = 0;
}

static bool
take_event(struct cq *cq)
{
	struct queue_side *side;
	struct ibv_cq *raised;
	void *context;

	if (ibv_get_cq_event(cq->channel, &raised, &context))
		return false;
	side = raised == cq->recv.cq ? &cq->recv : &cq->send;
	side->unacked++;
	acknowledge(side, ACK_BATCH);
	cq_count(CQ_EVENTS, 1);
	return true;
}

/* Empties the channel. What the events speak of is found by polling. False: no event will come any more. */
static bool
take_events(struct cq *cq)
{
	while (take_event(cq))
		;
	return errno == EAGAIN;
}

/* A channel whose device was pulled out has no more events to read but stays ready for ever. */
void
cq_events_ready(struct xr_fd *fd, uint32_t revents)
{
	struct cq *cq = caa_container_of(fd, struct cq, events);

	if (take_events(cq) && !(revents & EPOLLERR))
		return;
	xr_fd_del(fd);
	cq_fail(cq, "its channel is gone");
}

void
cq_settle_events(struct cq *cq)
{
	take_events(cq);
	acknowledge(&cq->recv, 1);
	acknowledge(&cq->send, 1);
}

/*
 * The peer marks as solicited what must wake us (doc/flow.md); of our own sends every completion that was asked for.
 * Both may still be armed since the last sleep, so that events have come of completions that were polled long ago:
 * those are taken out first, lest they end this sleep at once. Arming can't be taken back and need not be.
 */
static int
cq_arm(struct source *source, struct reactor *reactor)
{
	struct cq *cq = caa_container_of(source, struct cq, source);
	int error;

	(void)reactor;
	if (cq->failed)
		return 0;
	take_events(cq);
	error = ibv_req_notify_cq(cq->recv.cq, cq->recv.solicited_only);
	if (error == 0)
		error = ibv_req_notify_cq(cq->send.cq, cq->send.solicited_only);
	return -error;
}

const struct source_ops g_cq_source_ops = {.poll = cq_poll, .arm = cq_arm};
