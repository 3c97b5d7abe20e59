/* SPDX-License-Identifier: Apache-2.0 */

/* Completion queues: exactly as large as asked for, armed once at a time. */

#include "tests/fakeverbs/fake.h"
#include <stdlib.h>
#include <string.h>

static CDS_LIST_HEAD(g_cqs);

static struct fv_cq *
of(const struct ibv_cq *ibv)
{
	return caa_container_of(ibv, struct fv_cq, ibv);
}

/* ---- making and unmaking ---- */

static int
cq_refused(struct ibv_context *context, int cqe, const struct ibv_comp_channel *channel, int vector)
{
	const struct fv_card *card = fv_card(context);

	if (card->fatal)
		return EIO;
	if (cqe < 1 || cqe > card->spec.max_cqe || vector < 0 || vector >= context->num_comp_vectors)
		return EINVAL;
	if (channel && channel->context != context) {
		fv_violation("a completion queue is made with the channel of another context");
		return EINVAL;
	}
	return card->cqs >= (unsigned)card->spec.max_cq ? ENOMEM : 0;
}

static struct fv_cq *
cq_alloc(int cqe)
{
	struct fv_cq *cq = calloc(1, sizeof *cq);

	if (!cq)
		return NULL;
	cq->ring = calloc((size_t)cqe, sizeof *cq->ring);
	if (!cq->ring) {
		free(cq);
		return NULL;
	}
	cq->ibv.cqe = cqe;
	return cq;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct fv_cq *cq;

	FV_LOCKED();
	errno = fv_call(FV_create_cq);
	if (!errno)
		errno = cq_refused(context, cqe, channel, vector);
	cq = errno ? NULL : cq_alloc(cqe);
	if (!cq)
		return NULL;
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	if (channel)
		channel->refcnt++;
	cds_list_add_tail(&cq->node, &g_cqs);
	fv_context(context)->objects++;
	fv_card(context)->cqs++;
	fv_born(FAKE_CQS);
	return &cq->ibv;
}

static void
cq_delete(struct fv_cq *cq)
{
	cds_list_del(&cq->node);
	free(cq->ring);
	free(cq);
}

int
ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct fv_cq *cq = of(ibv);
	int error;

	FV_LOCKED();
	error = fv_call(FV_destroy_cq);
	if (error)
		return error;
	if (cq->users || cq->unacked || cq->async_unacked) {
		fv_violation("a completion queue is destroyed with %u uses by queue pairs, %u completion events and %u "
			     "asynchronous events not acknowledged",
			     cq->users, cq->unacked, cq->async_unacked);
		return EBUSY;
	}
	fv_channel_forget(cq);
	fv_async_forget(fv_context(ibv->context), ibv);
	if (ibv->channel)
		ibv->channel->refcnt--;
	fv_context(ibv->context)->objects--;
	fv_card(ibv->context)->cqs--;
	cq_delete(cq);
	fv_died(FAKE_CQS);
	return 0;
}

static struct fv_cqe *
entry(const struct fv_cq *cq, unsigned n)
{
	return &cq->ring[(cq->first + n) % (unsigned)cq->ibv.cqe];
}

int
ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct fv_cq *cq = of(ibv);
	struct fv_cqe *ring;
	int error;

	FV_LOCKED();
	error = fv_call(FV_resize_cq);
	if (error)
		return error;
	if (cqe < 1 || cqe > fv_card(ibv->context)->spec.max_cqe || (unsigned)cqe < cq->fill)
		return EINVAL;
	ring = calloc((size_t)cqe, sizeof *ring);
	if (!ring)
		return ENOMEM;
	for (unsigned i = 0; i < cq->fill; i++)
		ring[i] = *entry(cq, i);
	free(cq->ring);
	cq->ring = ring;
	cq->first = 0;
	cq->ibv.cqe = cqe;
	return 0;
}

/* ---- completions and events ---- */

static void
die(struct fv_cq *cq)
{
	const struct ibv_async_event event = {.element.cq = &cq->ibv, .event_type = IBV_EVENT_CQ_ERR};

	fv_violation("a completion queue of %d entries has overrun", cq->ibv.cqe);
	cq->dead = true;
	fv_raise(fv_context(cq->ibv.context), &event);
}

/* An unsuccessful completion counts as solicited. */
static bool
fires(const struct fv_cq *cq, const struct fv_cqe *cqe)
{
	return cq->armed == FV_ARMED_ANY ||
	       (cq->armed == FV_ARMED_SOLICITED && (cqe->solicited || cqe->wc.status != IBV_WC_SUCCESS));
}

void
fv_cq_push(struct fv_cq *cq, const struct fv_cqe *cqe)
{
	if (cq->dead)
		return;
	if (cq->fill == (unsigned)cq->ibv.cqe) {
		die(cq);
		return;
	}
	*entry(cq, cq->fill++) = *cqe;
	if (fires(cq, cqe)) {
		cq->armed = FV_DISARMED;
		fv_channel_ring(cq);
	}
}

void
fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	const struct fv_cqe cqe = {.wc = *wc, .solicited = solicited};

	FV_LOCKED();
	fv_cq_push(of(cq), &cqe);
}

void
fv_cq_drop(struct fv_cq *cq, uint32_t qp_num)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < cq->fill; i++) {
		if (entry(cq, i)->wc.qp_num != qp_num)
			*entry(cq, kept++) = *entry(cq, i);
	}
	cq->fill = kept;
}

static int
poll_locked(struct fv_cq *cq, int count, struct ibv_wc *wcs)
{
	struct fake_counts *counts = &fv_card(cq->ibv.context)->counts;
	int error, n = 0;

	FV_LOCKED();
	error = fv_call(FV_poll_cq);
	if (error)
		return -error;
	while (n < count && cq->fill > 0) {
		fv_slot_free(entry(cq, 0));
		wcs[n++] = entry(cq, 0)->wc;
		cq->first = (cq->first + 1) % (unsigned)cq->ibv.cqe;
		cq->fill--;
	}
	counts->polls++;
	counts->polls_empty += n == 0;
	counts->completions += (unsigned)n;
	return n;
}

int
fv_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wcs)
{
	int n = poll_locked(of(ibv), count, wcs);

	if (n == 0)
		fv_hook_poll_empty(ibv);
	return n;
}

static int
notify_locked(struct fv_cq *cq, int solicited_only)
{
	int error;

	FV_LOCKED();
	error = fv_call(FV_req_notify_cq);
	if (error)
		return error;
	if (!cq->ibv.channel) {
		fv_violation("a completion queue is armed that has no channel");
		return 0;
	}
	if (!solicited_only)
		cq->armed = FV_ARMED_ANY;
	else if (cq->armed == FV_DISARMED)
		cq->armed = FV_ARMED_SOLICITED;
	fv_card(cq->ibv.context)->counts.notifies++;
	return 0;
}

int
fv_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	int error;

	fv_hook_notify(ibv, solicited_only, false);
	error = notify_locked(of(ibv), solicited_only);
	fv_hook_notify(ibv, solicited_only, true);
	return error;
}

unsigned
fake_cq_fill(const struct ibv_cq *cq)
{
	FV_LOCKED();
	return of(cq)->fill;
}

unsigned
fake_cq_unacked(const struct ibv_cq *cq)
{
	FV_LOCKED();
	return of(cq)->unacked;
}

void
fv_cqs_reset(void)
{
	struct fv_cq *cq, *next;

	cds_list_for_each_entry_safe (cq, next, &g_cqs, node)
		cq_delete(cq);
}
