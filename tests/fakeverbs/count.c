/* SPDX-License-Identifier: Apache-2.0 */

/* Counts, and the log of what was posted. */

#include "tests/fakeverbs/fake.h"
#include <stdlib.h>

struct fake_counts
fake_device_counts(unsigned device)
{
	const struct fv_card *card;

	FV_LOCKED();
	card = fv_card_at(device);
	return card ? card->counts : (struct fake_counts){0};
}

struct fake_counts
fake_qp_counts(uint32_t qp_num)
{
	const struct fv_qp *qp;

	FV_LOCKED();
	qp = fv_qp(qp_num);
	return qp ? qp->counts : (struct fake_counts){0};
}

void
fake_counts_clear(void)
{
	struct fv_card *card;
	struct fv_qp *qp;

	FV_LOCKED();
	cds_list_for_each_entry (card, fv_cards(), node)
		card->counts = (struct fake_counts){0};
	cds_list_for_each_entry (qp, fv_qps(), node)
		qp->counts = (struct fake_counts){0};
}

void
fv_log(struct fv_queue *queue, const struct fake_request *request)
{
	queue->log[queue->logged++ % FAKE_LOG] = *request;
}

static const struct fv_queue *
queue_of(uint32_t qp_num, enum fake_queue which)
{
	const struct fv_qp *qp = fv_qp(qp_num);

	if (!qp)
		return NULL;
	return which == FAKE_SQ ? &qp->sq : &qp->rq;
}

bool
fake_request(uint32_t qp_num, enum fake_queue which, uint64_t index, struct fake_request *request)
{
	const struct fv_queue *queue;

	FV_LOCKED();
	queue = queue_of(qp_num, which);
	if (!queue || index >= queue->logged || queue->logged - index > FAKE_LOG)
		return false;
	*request = queue->log[index % FAKE_LOG];
	return true;
}

uint64_t
fake_requests(uint32_t qp_num, enum fake_queue which)
{
	const struct fv_queue *queue;

	FV_LOCKED();
	queue = queue_of(qp_num, which);
	return queue ? queue->logged : 0;
}

unsigned
fake_queued(uint32_t qp_num, enum fake_queue which)
{
	const struct fv_queue *queue;

	FV_LOCKED();
	queue = queue_of(qp_num, which);
	return queue ? (unsigned)(queue->posted - queue->freed) : 0;
}
