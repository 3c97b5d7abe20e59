/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What calls cost in the card's own counts: doorbells, requests, completions, pure ACKs and events, at depth 1 and at
 * depth 64, printed, and held against bounds that follow from the rules (doc/flow.md). And what an idle connection
 * costs.
 */

#include "core/counter.h"
#include "poll/stat.h"
#include "tests/unit/net/verbs/rdma_fixture.h"

struct load {
	unsigned depth, calls;
	size_t bytes; /* of a request and of its answer */
	unsigned sent;
	uint64_t answered; /* bytes */
};

/* Requests leave as one iobuf each, so that only the library puts them together. */
static void
send_more(struct load *load, struct xr_conn *conn)
{
	while (load->sent < load->calls && load->sent * load->bytes < load->answered + load->depth * load->bytes) {
		NET_CHECK(send_pattern(conn, load->sent * load->bytes, load->bytes) == 0);
		load->sent++;
	}
}

static void
take_answers(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct load *load = probe->arg;

	load->answered += take_pattern(in, load->answered);
	send_more(load, conn);
	__atomic_store_n(&probe->bytes, load->answered, __ATOMIC_RELEASE);
}

static void
begin(void *arg)
{
	struct rdma_pair *pair = arg;

	send_more(pair->client.arg, pair->client.conn);
}

static void
script_load(struct rdma_pair *pair)
{
	const struct load *load = pair->client.arg;

	fake_counts_clear();
	rdma_do(begin, pair);
	NET_AWAIT(PROBE_READ(pair->client.bytes) == load->calls * load->bytes);
}

static struct fake_counts
run_load(struct load *load)
{
	struct rdma_pair pair = {.server.on_data = probe_echo, .client = {.on_data = take_answers, .arg = load}};
	struct fake_counts counts;

	rdma_up("--port", "default,mode=poll", NULL);
	rdma_pair_run(&pair, script_load);
	counts = fake_device_counts(0);
	rdma_down();
	return counts;
}

static double
per(uint64_t count, uint64_t what)
{
	return what ? (double)count / (double)what : 0;
}

static void
print(const struct load *load, const struct fake_counts *counts)
{
	uint64_t sends = counts->sends - counts->zero_length;

	printf("\n  depth %2u, %5zu bytes, per call: %.3f doorbells %.3f sends %.3f completions %.3f receive posts; "
	       "per send: %.3f signaled %.3f solicited %.3f inlined %.3f pure ACKs",
	       load->depth, load->bytes, per(counts->post_send, load->calls), per(sends, load->calls),
	       per(counts->completions, load->calls), per(counts->post_recv, load->calls), per(counts->signaled, sends),
	       per(counts->solicited, sends), per(counts->inlined, sends), per(counts->zero_length, sends));
	fflush(stdout);
}

/* Small calls one at a time: a request and an answer, each inlined, each carrying the other's credit. */
static void
test_depth_1_small(void)
{
	struct load load = {.depth = 1, .calls = 2000, .bytes = 64};
	struct fake_counts counts = run_load(&load);

	print(&load, &counts);
	ASSERT_EQ(counts.sends, 2 * load.calls);
	ASSERT_EQ(counts.post_send, 2 * load.calls);
	ASSERT_EQ(counts.inlined, counts.sends);
	ASSERT_EQ(counts.zero_length, 0);
	ASSERT_EQ(counts.solicited, counts.sends); /* each empties the queue */
	CU_ASSERT(counts.signaled <= counts.sends / 31 + 2);
	CU_ASSERT(counts.completions <= counts.sends + counts.signaled);
	CU_ASSERT(counts.post_recv <= counts.sends);
}

/* A block each way: it is held, so its completion is asked for; nothing more. */
static void
test_depth_1_block(void)
{
	struct load load = {.depth = 1, .calls = 500, .bytes = BLOCK_PAYLOAD};
	struct fake_counts counts = run_load(&load);

	print(&load, &counts);
	CU_ASSERT(counts.sends <= 2 * load.calls * 2);
	ASSERT_EQ(counts.zero_length, 0);
	CU_ASSERT(counts.signaled <= 2 * load.calls * 2);
	ASSERT_EQ(counts.post_send, 2 * load.calls);
}

/* 64 at once: they share SENDs and doorbells. */
static void
test_depth_64_small(void)
{
	struct load load = {.depth = 64, .calls = 6400, .bytes = 64};
	struct fake_counts counts = run_load(&load);

	print(&load, &counts);
	CU_ASSERT(counts.post_send <= load.calls / 8);
	CU_ASSERT(counts.sends <= load.calls / 8);
	CU_ASSERT(counts.zero_length == 0);
}

/* One way in bulk: completions for a quarter of a window, reports for half of one. */
static void
script_bulk(struct rdma_pair *pair)
{
	fake_counts_clear();
	NET_CHECK(rdma_send(pair->client.conn, 0, 2000 * BLOCK_PAYLOAD) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == 2000 * BLOCK_PAYLOAD);
	rdma_settle();
}

static void
test_bulk(void)
{
	struct load load = {.depth = 64, .calls = 2000, .bytes = BLOCK_PAYLOAD};
	struct rdma_pair pair = {.client.opened = 0};
	struct fake_counts counts;

	rdma_up("--port", "default,mode=poll", "--conn_output_limit_kb", "32768", NULL);
	rdma_pair_run(&pair, script_bulk);
	counts = fake_device_counts(0);
	print(&load, &counts);
	CU_ASSERT(counts.sends - counts.zero_length <= 2100);
	CU_ASSERT(counts.signaled - counts.zero_length <= 2100 / 31 + 100);
	CU_ASSERT(counts.zero_length <= 2100 / 63 + 1);
	CU_ASSERT(counts.solicited - counts.zero_length <= 2100 / 31 * 2);
	CU_ASSERT(counts.post_send - counts.zero_length <= 2100 / 31);
	rdma_down();
}

/* ---- an idle connection ---- */

static uint64_t
stat_now(enum reactor_stat which)
{
	return counter_read(&g_stats[which], NULL);
}

/* It sleeps, and no wake-up is lost: a completion between the last poll and the arming is found by the poll after it.
 */
static void
deliver_now(struct ibv_cq *cq, int solicited_only, void *arg)
{
	(void)cq;
	(void)solicited_only;
	(void)arg;
	fake_deliver(1000);
}

static void
script_race(struct rdma_pair *pair)
{
	struct fake_hooks hooks = {.before_notify = deliver_now};

	fake_hold(FAKE_DELIVERY, 0);
	fake_hooks(&hooks);
	for (uint64_t i = 0; i < 300; i++) {
		NET_CHECK(rdma_send(pair->client.conn, i * 64, 64) == 0);
		NET_AWAIT(PROBE_READ(pair->client.bytes) == (i + 1) * 64);
	}
	fake_hooks(NULL);
	fake_let_go(FAKE_DELIVERY, 0);
}

static void
script_race_after(struct rdma_pair *pair)
{
	struct fake_hooks hooks = {.after_notify = deliver_now};

	fake_hold(FAKE_DELIVERY, 0);
	fake_hooks(&hooks);
	for (uint64_t i = 0; i < 300; i++) {
		NET_CHECK(rdma_send(pair->client.conn, i * 64, 64) == 0);
		NET_AWAIT(PROBE_READ(pair->client.bytes) == (i + 1) * 64);
	}
	fake_hooks(NULL);
	fake_let_go(FAKE_DELIVERY, 0);
}

static void
test_completion_between_poll_and_arm(void)
{
	static void (*const scripts[])(struct rdma_pair *) = {script_race, script_race_after};
	static const char *const caps[] = {"0", "50"};

	for (int i = 0; i < 4; i++) {
		struct rdma_pair pair = {.server.on_data = probe_echo};

		rdma_up("--port", "default,mode=event", "--wait_cap_ms", caps[i / 2], NULL);
		rdma_pair_run(&pair, scripts[i % 2]);
		CU_ASSERT(stat_now(STAT_SLEEPS) > 0);
		ASSERT_EQ(stat_now(STAT_WAKES_RESCUED), 0);
		rdma_down();
	}
}

/* Neither side wakes for what is only a report or a message that more will follow. */
static void
script_quiet(struct rdma_pair *pair)
{
	uint64_t sleeps;

	NET_CHECK(rdma_send(pair->client.conn, 0, 64) == 0);
	NET_AWAIT(PROBE_READ(pair->client.bytes) == 64);
	rdma_settle();
	net_sleep_ms(20);
	sleeps = stat_now(STAT_SLEEPS);
	net_sleep_ms(300);
	NET_CHECK(stat_now(STAT_SLEEPS) == sleeps);
	NET_CHECK(rdma_info(pair->client.conn).rdma.in_flight == 0);
	NET_CHECK(rdma_info(pair->server.conn).rdma.in_flight == 0);
}

static void
test_idle_sleeps(void)
{
	struct rdma_pair pair = {.server.on_data = probe_echo};

	rdma_up("--port", "default,mode=event", NULL);
	rdma_pair_run(&pair, script_quiet);
	rdma_down();
}

UNIT_SUITE("cost", {"small calls at depth 1", test_depth_1_small}, {"a block a call at depth 1", test_depth_1_block},
	   {"small calls at depth 64", test_depth_64_small}, {"bulk one way", test_bulk},
	   {"a completion between poll and arm", test_completion_between_poll_and_arm},
	   {"an idle connection sleeps", test_idle_sleeps});
