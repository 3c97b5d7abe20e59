/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ENDPOINT_STUB_H
#define TESTS_ENDPOINT_STUB_H

/*
 * Endpoints that only remember what the completion queues tell them. Included by one test, all endpoints of which are
 * these: it stands in for the library's functions by ld's --wrap.
 */

#include "net/verbs/cq_private.h"
#include "net/verbs/endpoint.h"
#include <string.h>

struct stub {
	unsigned completions, batch_ends, events;
	struct ibv_wc last;
	enum ibv_event_type event;
	unsigned char lcore; /* where the last call came from */
	uint32_t handle;
	/* NULL: nothing. */
	void (*on_complete)(struct stub *stub, const struct ibv_wc *wc);
	void (*on_batch_end)(struct stub *stub);
	void (*on_event)(struct stub *stub);
	void *arg;
};

static inline struct endpoint *
stub_endpoint(struct stub *stub)
{
	return (struct endpoint *)stub;
}

void __wrap_endpoint_complete(struct endpoint *endpoint, const struct ibv_wc *wc);
void __wrap_endpoint_batch_end(struct endpoint *endpoint);
void __wrap_endpoint_async_event(struct endpoint *endpoint, enum ibv_event_type type);

#define STUB_COUNT(field) __atomic_fetch_add(&(field), 1, __ATOMIC_ACQ_REL)

void
__wrap_endpoint_complete(struct endpoint *endpoint, const struct ibv_wc *wc)
{
	struct stub *stub = (struct stub *)endpoint;

	stub->last = *wc;
	STUB_COUNT(stub->completions);
	if (stub->on_complete)
		stub->on_complete(stub, wc);
}

void
__wrap_endpoint_batch_end(struct endpoint *endpoint)
{
	struct stub *stub = (struct stub *)endpoint;

	STUB_COUNT(stub->batch_ends);
	if (stub->on_batch_end)
		stub->on_batch_end(stub);
}

void
__wrap_endpoint_async_event(struct endpoint *endpoint, enum ibv_event_type type)
{
	struct stub *stub = (struct stub *)endpoint;

	stub->event = type;
	stub->lcore = (unsigned char)xr_lcore_id();
	STUB_COUNT(stub->events);
	if (stub->on_event)
		stub->on_event(stub);
}

/* A successful completion for the endpoint with this handle. */
static inline struct ibv_wc
stub_wc(uint32_t handle, enum wr_kind kind, uint16_t value)
{
	return (struct ibv_wc){.wr_id = wr_id_make(handle, kind, value), .status = IBV_WC_SUCCESS};
}

#endif
