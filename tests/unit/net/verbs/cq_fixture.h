/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CQ_FIXTURE_H
#define TESTS_CQ_FIXTURE_H

/*
 * The library up on one card, its one lcore's completion queues with stand-ins for endpoints in them, and completions
 * at will. The loop is driven by hand, before xr_run().
 */

#include "poll/reactor_private.h"
#include "tests/unit/net/verbs/endpoint_stub.h"
#include "tests/unit/net/verbs/rdma_fixture.h"

#define DEPTH 1024u

static struct cq *g_cq;

/* The library up, its loop driven by hand, and so many endpoints in the queues of the one lcore. */
static inline void
up(struct stub *stubs, unsigned count)
{
	const char *why = "";

	rdma_up(NULL);
	g_cq = cq_get(device_at(0), &why);
	ASSERT_FATAL(g_cq != NULL);
	for (unsigned i = 0; i < count; i++) {
		memset(&stubs[i], 0, sizeof stubs[i]);
		ASSERT_FATAL(cq_admit(g_cq, stub_endpoint(&stubs[i]), DEPTH, DEPTH, &stubs[i].handle, &why) == 0);
	}
}

static inline void
dismiss(struct stub *stub)
{
	cq_dismiss(g_cq, stub->handle, DEPTH, DEPTH);
}

static inline void
down(struct stub *stubs, unsigned count)
{
	fake_hooks(NULL);
	for (unsigned i = 0; i < count; i++)
		dismiss(&stubs[i]);
	rdma_down();
}

static inline int
turn(void)
{
	return reactor_poll(reactor_current(), SOURCES_ALL);
}

static inline void
receive(const struct stub *stub, uint16_t slot, bool solicited)
{
	struct ibv_wc wc = stub_wc(stub->handle, WR_RECV, slot);

	fake_complete(cq_recv(g_cq), &wc, solicited);
}

static inline void
sent(const struct stub *stub, uint16_t count)
{
	struct ibv_wc wc = stub_wc(stub->handle, WR_SEND, count);

	fake_complete(cq_send(g_cq), &wc, false);
}

static inline uint64_t
counted(enum cq_counter counter)
{
	return counter_read(&g_cq_counters[counter], NULL);
}

static inline struct fake_counts
card(void)
{
	return fake_device_counts(0);
}

#endif
