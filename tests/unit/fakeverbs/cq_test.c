/* SPDX-License-Identifier: Apache-2.0 */

/* Completion queues and channels: capacity, arming, events and their acknowledgement. */

#include "tests/unit/fakeverbs/pair.h"
#include <poll.h>

#define SEND_AT 32768

static bool
readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

/* One event of that queue taken and acknowledged; false: none. */
static bool
take_event(struct end *end, const struct ibv_cq *cq)
{
	struct ibv_cq *got;
	void *arg;

	if (ibv_get_cq_event(end->channel, &got, &arg) != 0) {
		ASSERT_EQ(errno, EAGAIN);
		return false;
	}
	CU_ASSERT(got == cq);
	CU_ASSERT(arg == end);
	ibv_ack_cq_events(got, 1);
	return true;
}

/* ---- capacity ---- */

static void
test_overrun_kills_the_queue(void)
{
	struct pair pair;
	struct ibv_async_event event;

	pair_open(&pair, &(struct pair_want){.depth = 4, .cq_depth = 2});
	ASSERT_EQ(pair.b.recv_cq->cqe, 2);
	recv_many(&pair.b, 3);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	ASSERT_EQ(fake_cq_fill(pair.b.recv_cq), 2);
	ASSERT_EQ(ibv_get_async_event(pair.b.context, &event), 0);
	ASSERT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
	CU_ASSERT(event.element.cq == pair.b.recv_cq);
	ibv_ack_async_event(&event);
	CU_ASSERT(fake_forgive("of 2 entries has overrun"));
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 9), 0); /* there is room, but it is dead */
	ASSERT_EQ(fake_cq_fill(pair.b.recv_cq), 1);
	pair_close(&pair);
}

static void
test_flush_counts_against_capacity(void)
{
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.depth = 4, .cq_depth = 3});
	fake_hold(FAKE_DELIVERY, 0);
	for (unsigned i = 0; i < 4; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0); /* none signaled */
	ASSERT_EQ(end_error(&pair.a), 0);
	CU_ASSERT(fake_forgive("overrun"));
	pair_close(&pair);
}

static void
test_resize_keeps_what_is_there(void)
{
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.depth = 8, .cq_depth = 3});
	recv_many(&pair.b, 6);
	for (unsigned i = 0; i < 2; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	ASSERT_EQ(poll_one(pair.b.recv_cq).wr_id, 100);
	for (unsigned i = 0; i < 2; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	ASSERT_EQ(ibv_resize_cq(pair.b.recv_cq, 2), EINVAL);
	ASSERT_EQ(ibv_resize_cq(pair.b.recv_cq, 5), 0);
	ASSERT_EQ(pair.b.recv_cq->cqe, 5);
	for (unsigned i = 0; i < 2; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	for (unsigned i = 1; i < 6; i++)
		ASSERT_EQ(poll_one(pair.b.recv_cq).wr_id, 100 + i);
	pair_close(&pair);
}

static void
test_poll_takes_as_many_as_asked(void)
{
	struct pair pair;
	struct ibv_wc wcs[8];

	pair_open(&pair, NULL);
	recv_many(&pair.b, 5);
	for (unsigned i = 0; i < 5; i++)
		ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, i), 0);
	ASSERT_EQ(ibv_poll_cq(pair.b.recv_cq, 2, wcs), 2);
	ASSERT_EQ(ibv_poll_cq(pair.b.recv_cq, 8, wcs), 3);
	ASSERT_EQ(wcs[2].wr_id, 104);
	ASSERT_EQ(ibv_poll_cq(pair.b.recv_cq, 8, wcs), 0);
	pair_close(&pair);
}

static void
test_wrong_queues_are_refused(void)
{
	struct pair pair;
	int max;

	pair_open(&pair, &(struct pair_want){.device_b = 1});
	max = 65536;
	CU_ASSERT_PTR_NULL(ibv_create_cq(pair.a.context, 0, NULL, NULL, 0));
	ASSERT_EQ(errno, EINVAL);
	CU_ASSERT_PTR_NULL(ibv_create_cq(pair.a.context, max + 1, NULL, NULL, 0));
	CU_ASSERT_PTR_NULL(ibv_create_cq(pair.a.context, 1, NULL, NULL, 1));
	CU_ASSERT_PTR_NULL(ibv_create_cq(pair.a.context, 1, NULL, pair.b.channel, 0));
	CU_ASSERT(fake_forgive("channel of another context"));
	ASSERT_EQ(ibv_resize_cq(pair.a.send_cq, max + 1), EINVAL);
	pair_close(&pair);
}

/* ---- arming ---- */

static void
test_event_only_after_arming_and_once(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 4);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 0), 0);
	CU_ASSERT_FALSE(take_event(&pair.b, pair.b.recv_cq)); /* it was there before */
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 2), 0);
	CU_ASSERT(readable(pair.b.channel->fd));
	CU_ASSERT(take_event(&pair.b, pair.b.recv_cq));
	CU_ASSERT_FALSE(readable(pair.b.channel->fd));
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 3), 0);
	CU_ASSERT_FALSE(take_event(&pair.b, pair.b.recv_cq)); /* armed once */
	pair_close(&pair);
}

static void
test_solicited_only(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 4);
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 1), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	CU_ASSERT_FALSE(take_event(&pair.b, pair.b.recv_cq));
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SOLICITED, 2), 0);
	CU_ASSERT(take_event(&pair.b, pair.b.recv_cq));

	/* Armed for any, a wish for solicited ones does not take it back. */
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 0), 0);
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 1), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 3), 0);
	CU_ASSERT(take_event(&pair.b, pair.b.recv_cq));

	/* An error counts as solicited. */
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 1), 0);
	ASSERT_EQ(end_error(&pair.b), 0);
	CU_ASSERT(take_event(&pair.b, pair.b.recv_cq));
	pair_close(&pair);
}

static void
test_send_completions_fire_too(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 2);
	ASSERT_EQ(ibv_req_notify_cq(pair.a.send_cq, 0), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	CU_ASSERT_FALSE(take_event(&pair.a, pair.a.send_cq));
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, IBV_SEND_SIGNALED, 2), 0);
	CU_ASSERT(take_event(&pair.a, pair.a.send_cq));
	pair_close(&pair);
}

static void
test_arming_without_a_channel(void)
{
	struct ibv_context *context;
	struct ibv_cq *cq;

	pair_devices();
	context = open_device(0);
	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	ASSERT_FATAL(cq != NULL);
	ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
	CU_ASSERT(fake_forgive("no channel"));
	ASSERT_EQ(ibv_destroy_cq(cq), 0);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

/* ---- acknowledging ---- */

static void
test_unacknowledged_events_keep_the_queue(void)
{
	struct pair pair;
	struct ibv_cq *cq;
	void *arg;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 0), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	ASSERT_EQ(ibv_get_cq_event(pair.b.channel, &cq, &arg), 0);
	ASSERT_EQ(fake_cq_unacked(cq), 1);
	ASSERT_EQ(ibv_destroy_qp(pair.b.qp), 0);
	pair.b.qp = NULL;
	ASSERT_EQ(ibv_destroy_cq(cq), EBUSY);
	CU_ASSERT(fake_forgive("1 completion events"));
	ibv_ack_cq_events(cq, 2);
	CU_ASSERT(fake_forgive("2 events"));
	ASSERT_EQ(fake_cq_unacked(cq), 0);
	pair_close(&pair);
}

static void
test_events_of_a_destroyed_queue_vanish(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 0), 0);
	ASSERT_EQ(send_one(&pair.a, SEND_AT, 1, 0, 1), 0);
	CU_ASSERT(readable(pair.b.channel->fd));
	ASSERT_EQ(ibv_destroy_qp(pair.b.qp), 0);
	pair.b.qp = NULL;
	ASSERT_EQ(ibv_destroy_cq(pair.b.recv_cq), 0);
	CU_ASSERT_FALSE(readable(pair.b.channel->fd));
	pair.b.recv_cq = ibv_create_cq(pair.b.context, 1, NULL, pair.b.channel, 0);
	pair_close(&pair);
}

static void
test_what_is_in_use_stays(void)
{
	struct pair pair;

	pair_open(&pair, NULL);
	ASSERT_EQ(ibv_destroy_cq(pair.a.send_cq), EBUSY);
	CU_ASSERT(fake_forgive("1 uses by queue pairs"));
	ASSERT_EQ(ibv_destroy_comp_channel(pair.a.channel), EBUSY);
	CU_ASSERT(fake_forgive("channel is destroyed that 2"));
	pair_close(&pair);
}

/* ---- between the steps of a sleeper ---- */

struct between {
	struct end *sender;
	unsigned polled_empty, before, after;
};

static void
send_on_empty_poll(struct ibv_cq *cq, void *arg)
{
	struct between *between = arg;

	(void)cq;
	if (between->polled_empty++ == 0)
		ASSERT_EQ(send_one(between->sender, SEND_AT, 1, IBV_SEND_SOLICITED, 1), 0);
}

static void
count_before(struct ibv_cq *cq, int solicited_only, void *arg)
{
	(void)cq;
	ASSERT_EQ(solicited_only, 1);
	((struct between *)arg)->before++;
}

static void
count_after(struct ibv_cq *cq, int solicited_only, void *arg)
{
	(void)cq;
	ASSERT_EQ(solicited_only, 1);
	((struct between *)arg)->after++;
}

static void
test_completion_between_poll_and_arm(void)
{
	struct pair pair;
	struct between between = {.sender = &pair.a};
	struct fake_hooks hooks = {.poll_empty = send_on_empty_poll,
				   .before_notify = count_before,
				   .after_notify = count_after,
				   .arg = &between};

	pair_open(&pair, NULL);
	recv_many(&pair.b, 1);
	fake_hooks(&hooks);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION); /* and then it comes */
	ASSERT_EQ(ibv_req_notify_cq(pair.b.recv_cq, 1), 0);
	CU_ASSERT_FALSE(readable(pair.b.channel->fd)); /* too early for the event: only a second poll finds it */
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, IBV_WC_SUCCESS);
	ASSERT_EQ(between.before, 1);
	ASSERT_EQ(between.after, 1);
	fake_hooks(NULL);
	ASSERT_EQ(poll_one(pair.b.recv_cq).status, NO_COMPLETION);
	ASSERT_EQ(between.polled_empty, 1);
	pair_close(&pair);
}

static void
test_a_foreign_completion_can_be_put_in(void)
{
	struct pair pair;
	struct ibv_wc stale = {.wr_id = 0xdead, .qp_num = 0x999999};

	pair_open(&pair, NULL);
	ASSERT_EQ(ibv_req_notify_cq(pair.a.recv_cq, 1), 0);
	fake_complete(pair.a.recv_cq, &stale, false);
	CU_ASSERT_FALSE(readable(pair.a.channel->fd));
	fake_complete(pair.a.recv_cq, &stale, true);
	CU_ASSERT(take_event(&pair.a, pair.a.recv_cq));
	ASSERT_EQ(poll_one(pair.a.recv_cq).wr_id, 0xdead);
	pair_close(&pair);
}

UNIT_SUITE("fakeverbs/cq", {"an overrun kills the queue", test_overrun_kills_the_queue},
	   {"a flush counts against the capacity", test_flush_counts_against_capacity},
	   {"a resize keeps what is there", test_resize_keeps_what_is_there},
	   {"a poll takes as many as asked", test_poll_takes_as_many_as_asked},
	   {"wrong queues are refused", test_wrong_queues_are_refused},
	   {"an event only after arming, and once", test_event_only_after_arming_and_once},
	   {"solicited only", test_solicited_only}, {"send completions fire too", test_send_completions_fire_too},
	   {"arming without a channel", test_arming_without_a_channel},
	   {"unacknowledged events keep the queue", test_unacknowledged_events_keep_the_queue},
	   {"events of a destroyed queue vanish", test_events_of_a_destroyed_queue_vanish},
	   {"what is in use stays", test_what_is_in_use_stays},
	   {"a completion between poll and arm", test_completion_between_poll_and_arm},
	   {"a foreign completion can be put in", test_a_foreign_completion_can_be_put_in});
