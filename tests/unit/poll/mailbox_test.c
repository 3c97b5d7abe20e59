/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <errno.h>

#define PRODUCERS    4
#define PER_PRODUCER 20000

/* ---- order ---- */

struct numbered {
	struct xr_msg msg;
	unsigned producer, number;
};

static unsigned g_next[PRODUCERS], g_out_of_order, g_ran, g_bad_status;

static void
in_order(struct xr_msg *msg, int status)
{
	struct numbered *numbered = (struct numbered *)msg;

	g_bad_status += status != 0;
	g_out_of_order += numbered->number != g_next[numbered->producer];
	g_next[numbered->producer] = numbered->number + 1;
	free(numbered);
	if (++g_ran == PRODUCERS * PER_PRODUCER)
		reactors_stop();
}

static void *
produce_in_order(void *arg)
{
	unsigned producer = *(unsigned *)arg;

	for (unsigned number = 0; number < PER_PRODUCER; number++) {
		struct numbered *numbered = malloc(sizeof *numbered);

		*numbered = (struct numbered){XR_MSG_INIT(in_order), producer, number};
		if (xr_post(0, &numbered->msg) != 0)
			abort();
		if (number % 1000 == 0)
			usleep(200); /* lets the reactor fall asleep now and then */
	}
	return NULL;
}

static void
run_in_order(enum wait_mode mode, int64_t cap_ms)
{
	pthread_t threads[PRODUCERS];
	unsigned ids[PRODUCERS];

	fixture_start(1);
	g_wait_cap_ms = cap_ms;
	reactor_add_port(reactor_current(), "default", mode, 50);
	g_ran = g_out_of_order = g_bad_status = 0;
	memset(g_next, 0, sizeof g_next);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		ids[i] = i;
		ASSERT_FATAL(pthread_create(&threads[i], NULL, produce_in_order, &ids[i]) == 0);
	}
	reactor_run(reactor_current());
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(g_ran, PRODUCERS * PER_PRODUCER);
	ASSERT_EQ(g_out_of_order + g_bad_status, 0);
	ASSERT_EQ(stat_read(STAT_MESSAGES), PRODUCERS * PER_PRODUCER);
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED), 0);
	CU_ASSERT(stat_read(STAT_POSTS_WOKE) <= stat_read(STAT_SLEEPS) + stat_read(STAT_ARMED_FOUND));
	fixture_end();
}

static void
test_order_in_every_mode(void)
{
	run_in_order(WAIT_EVENT, 0);
	run_in_order(WAIT_ADAPTIVE, 0);
	run_in_order(WAIT_POLL, 0);
	run_in_order(WAIT_EVENT, 1);
}

/* ---- errors ---- */

static unsigned g_canceled;

static void
count_message(struct xr_msg *msg, int status)
{
	(void)msg;
	if (status == -ECANCELED)
		g_canceled++;
	else
		g_ran++;
}

static void
test_errors(void)
{
	struct xr_msg msg = XR_MSG_INIT(count_message), other = XR_MSG_INIT(count_message);

	fixture_start(1);
	g_ran = g_canceled = 0;
	ASSERT_EQ(xr_post(1, &msg), -EINVAL);
	ASSERT_EQ(xr_post(XR_LCORE_NONE, &msg), -EINVAL);
	ASSERT_EQ(xr_post(0, &msg), 0);
	ASSERT_EQ(xr_post(0, &msg), -EALREADY);
	fixture_run_for(5);
	ASSERT_EQ(g_ran, 1);
	ASSERT_EQ(xr_post(0, &other), -ESHUTDOWN);
	ASSERT_EQ(xr_post(0, &other), -ESHUTDOWN);
	ASSERT_EQ(other.queued_, 0);
	fixture_end();
	ASSERT_EQ(g_ran, 1);
	ASSERT_EQ(g_canceled, 0);
}

static void
test_drained_without_running(void)
{
	struct xr_msg msgs[3] = {XR_MSG_INIT(count_message), XR_MSG_INIT(count_message), XR_MSG_INIT(count_message)};

	fixture_start(1);
	g_ran = g_canceled = 0;
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(xr_post(0, &msgs[i]), 0);
	fixture_end();
	ASSERT_EQ(g_ran, 0);
	ASSERT_EQ(g_canceled, 3);
}

/* ---- inside the callback ---- */

static void
post_again(struct xr_msg *msg, int status)
{
	ASSERT_EQ(status, 0);
	if (++g_ran < 10)
		ASSERT_EQ(xr_post(0, msg), 0);
	else
		reactors_stop();
}

static void
test_posted_anew_by_itself(void)
{
	struct xr_msg msg = XR_MSG_INIT(post_again);

	fixture_start(1);
	g_ran = 0;
	ASSERT_EQ(xr_post(0, &msg), 0);
	reactor_run(reactor_current());
	ASSERT_EQ(g_ran, 10);
	fixture_end();
}

static void
test_a_turn_is_bounded(void)
{
	static struct xr_msg msgs[200];
	struct source *source;

	fixture_start(1);
	source = &reactor_current()->mailbox.source;
	g_ran = 0;
	for (unsigned i = 0; i < 200; i++) {
		msgs[i] = (struct xr_msg)XR_MSG_INIT(count_message);
		ASSERT_EQ(xr_post(0, &msgs[i]), 0);
	}
	ASSERT_EQ(source->ops->poll(source, reactor_current()), 64);
	ASSERT_EQ(g_ran, 64);
	ASSERT_EQ(source->ops->poll(source, reactor_current()), 64);
	ASSERT_EQ(source->ops->poll(source, reactor_current()), 64);
	ASSERT_EQ(source->ops->poll(source, reactor_current()), 8);
	ASSERT_EQ(source->ops->poll(source, reactor_current()), 0);
	fixture_end();
}

/* ---- one message, several posters: what was written before any post is seen by the last run ---- */

static struct {
	struct xr_msg msg;
	unsigned written; /* by the posters, before each post */
	unsigned seen;	  /* by the message's last run */
} g_shared;

static void
see_shared(struct xr_msg *msg, int status)
{
	(void)msg;
	(void)status;
	g_shared.seen = __atomic_load_n(&g_shared.written, __ATOMIC_RELAXED);
}

static void *
post_shared(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 50000; i++) {
		int error;

		__atomic_fetch_add(&g_shared.written, 1, __ATOMIC_RELAXED);
		error = xr_post(1, &g_shared.msg);
		if (error && error != -EALREADY)
			abort();
	}
	return NULL;
}

static void
test_already_queued_loses_nothing(void)
{
	pthread_t threads[2];

	fixture_start(2);
	memset(&g_shared, 0, sizeof g_shared);
	g_shared.msg = (struct xr_msg)XR_MSG_INIT(see_shared);
	ASSERT_FATAL(lcore_launch(fixture_worker) == 0);
	for (unsigned i = 0; i < 2; i++)
		ASSERT_FATAL(pthread_create(&threads[i], NULL, post_shared, NULL) == 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	reactors_stop();
	lcore_join();
	ASSERT_EQ(g_shared.written, 100000);
	ASSERT_EQ(g_shared.seen, 100000);
	fixture_end();
}

/* ---- stop in the middle of posting: each accepted post runs exactly once, none after its refusal ---- */

struct tally {
	struct xr_msg msg;
	unsigned accepted; /* by the poster */
	unsigned runs;	   /* by whoever runs the message */
	int last_error;
};

static void
tally_ran(struct xr_msg *msg, int status)
{
	struct tally *tally = (struct tally *)msg;

	__atomic_fetch_add(&tally->runs, 1, __ATOMIC_RELAXED);
	if (status && status != -ECANCELED)
		abort();
}

static void *
post_until_refused(void *arg)
{
	struct tally *tally = arg;
	int error;

	do {
		error = xr_post(1, &tally->msg);
		tally->accepted += error == 0;
	} while (error == 0 || error == -EALREADY);
	tally->last_error = error;
	return NULL;
}

static void
race_stop(unsigned after_us)
{
	struct tally tallies[PRODUCERS] = {0};
	pthread_t threads[PRODUCERS];

	fixture_start(2);
	ASSERT_FATAL(lcore_launch(fixture_worker) == 0);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		tallies[i].msg.fn = tally_ran;
		ASSERT_FATAL(pthread_create(&threads[i], NULL, post_until_refused, &tallies[i]) == 0);
	}
	usleep(after_us);
	reactors_stop();
	lcore_join();
	reactors_drain();
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
		ASSERT_EQ(tallies[i].last_error, -ESHUTDOWN);
		ASSERT_EQ(tallies[i].runs, tallies[i].accepted);
		ASSERT_EQ(tallies[i].msg.queued_, 0);
	}
	fixture_end();
}

static void
test_stop_races_posts(void)
{
	for (unsigned round = 0; round < 50; round++)
		race_stop(round * 40);
}

/* ---- two lcores that answer each other ---- */

#define ROUND_TRIPS 3000

static struct xr_msg g_ping, g_pong;
static unsigned g_round_trips;

static void
ping(struct xr_msg *msg, int status)
{
	(void)msg;
	if (status == 0 && xr_post(0, &g_pong) != 0)
		abort();
}

static void
pong(struct xr_msg *msg, int status)
{
	(void)msg;
	if (status != 0)
		return;
	if (++g_round_trips == ROUND_TRIPS)
		reactors_stop();
	else if (xr_post(1, &g_ping) != 0)
		abort();
}

static void
bounce(enum wait_mode mode, enum wait_mode other_mode, int64_t cap_ms)
{
	fixture_start(2);
	g_wait_cap_ms = cap_ms;
	g_round_trips = 0;
	g_ping = (struct xr_msg)XR_MSG_INIT(ping);
	g_pong = (struct xr_msg)XR_MSG_INIT(pong);
	reactor_add_port(reactor_of(lcore_at(0)), "here", mode, 20);
	reactor_add_port(reactor_of(lcore_at(1)), "there", other_mode, 20);
	ASSERT_FATAL(lcore_launch(fixture_worker) == 0);
	ASSERT_EQ(xr_post(1, &g_ping), 0);
	reactor_run(reactor_current());
	lcore_join();
	ASSERT_EQ(g_round_trips, ROUND_TRIPS);
	ASSERT_EQ(stat_read(STAT_WAKES_RESCUED), 0);
	fixture_end();
}

static void
test_bounce_in_every_mode(void)
{
	bounce(WAIT_EVENT, WAIT_EVENT, 0);
	bounce(WAIT_EVENT, WAIT_EVENT, 1);
	bounce(WAIT_ADAPTIVE, WAIT_EVENT, 0);
	bounce(WAIT_ADAPTIVE, WAIT_ADAPTIVE, 1);
	bounce(WAIT_POLL, WAIT_EVENT, 0);
}

UNIT_SUITE("mailbox", {"each producer's order, every mode", test_order_in_every_mode}, {"errors", test_errors},
	   {"drained without running", test_drained_without_running},
	   {"posted anew by itself", test_posted_anew_by_itself}, {"a turn is bounded", test_a_turn_is_bounded},
	   {"already queued loses nothing", test_already_queued_loses_nothing},
	   {"a stop races posts", test_stop_races_posts}, {"two lcores bounce, every mode", test_bounce_in_every_mode});
