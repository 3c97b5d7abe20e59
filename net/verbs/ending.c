/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/ending.h"
#include "net/verbs/endpoint_private.h"

#define FLUSH_MAX_US 1000000u /* a device that has not flushed by then never will */

static void
finish(struct endpoint *endpoint)
{
	xr_timer_cancel(&endpoint->flushing);
	endpoint->state = ENDPOINT_ENDED;
	conn_eof(endpoint->conn);
}

/* Also when the lcore was busy elsewhere all the time: what has come by now is read first. */
static void
flushed_long_enough(struct xr_timer *timer)
{
	struct endpoint *endpoint = caa_container_of(timer, struct endpoint, flushing);

	cq_drain(endpoint->cq);
	if (endpoint->state == ENDPOINT_ENDING)
		finish(endpoint);
}

/* What the peer sent before its end is in the receive queue, in front of the receives that are flushed now. */
static void
flush(struct endpoint *endpoint)
{
	endpoint->state = ENDPOINT_ENDING;
	endpoint->flushing = (struct xr_timer)XR_TIMER_INIT(flushed_long_enough);
	xr_timer_arm(&endpoint->flushing, FLUSH_MAX_US, 0);
	if (qp_fail(&endpoint->qp))
		finish(endpoint);
	else
		ending_progress(endpoint);
}

void
ending_progress(struct endpoint *endpoint)
{
	if (endpoint->recv.posted == 0)
		finish(endpoint);
}

/* Who has closed as well does not want what may still be there. */
void
ending_begin(struct xr_conn *conn)
{
	struct endpoint *endpoint = conn->endpoint;

	if (conn->state >= CONN_CLOSING) {
		conn_eof(conn);
		return;
	}
	cq_drain(endpoint->cq);
	if (endpoint->state == ENDPOINT_OPEN)
		flush(endpoint);
}
