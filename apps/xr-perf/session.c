/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include "load.h"
#include "message.h"
#include "perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int
session_open(struct session *session, const char *server)
{
	const struct load_options *options = session->lane->load->options;
	struct xr_rpc_channel_opts opts = {
		.size = sizeof opts,
		.address = server,
		.use_rdma = options->use_rdma ? XR_RDMA_AUTO : XR_RDMA_NO,
		.timeout_ms = (int)options->rpc_timeout_ms,
		.max_body_size = (uint64_t)g_common.max_body_size,
	};

	session->server = server;
	session->held_end = &session->held;
	session->calls_left = options->test_iterations > 0 ? (uint64_t)options->test_iterations : UINT64_MAX;
	return xr_rpc_channel_open(&opts, &session->channel);
}

int
session_prepare(struct session *session, unsigned first_slice)
{
	unsigned depth = (unsigned)session->lane->load->options->queue_depth;

	session->slots = calloc(depth, sizeof session->slots[0]);
	if (!session->slots)
		return -ENOMEM;
	for (unsigned i = 0; i < depth; i++) {
		struct slot *slot = &session->slots[i];
		int err = payload_slice(&session->lane->payload, first_slice + i, &slot->payload);

		slot->session = session;
		if (err)
			return err;
	}
	return 0;
}

void
session_release(struct session *session)
{
	unsigned depth = (unsigned)session->lane->load->options->queue_depth;

	if (session->channel)
		xr_rpc_channel_close(session->channel);
	for (unsigned i = 0; session->slots && i < depth; i++)
		xr_iobuf_clear(&session->slots[i].payload);
	free(session->slots);
}

/* ---- the end ---- */

/* The connection as it is now; all zero when there is none. */
static struct xr_conn_info
connection(struct session *session)
{
	struct xr_conn_info info = {.size = sizeof info};

	if (xr_rpc_channel_info(session->channel, &info) != 0)
		info = (struct xr_conn_info){.size = 0};
	return info;
}

static void
end(struct session *session)
{
	struct xr_conn_info info = connection(session);

	if (info.size > 0 && session->warm.size > 0) {
		session->bytes_in = info.bytes_in - session->warm.bytes_in;
		session->bytes_out = info.bytes_out - session->warm.bytes_out;
	}
	xr_rpc_channel_close(session->channel);
	session->channel = NULL;
	lane_session_ended(session->lane);
}

static void
end_when_quiet(struct session *session)
{
	if (session->in_flight == 0 && session->channel && (session->stopped || session->calls_left == 0))
		end(session);
}

void
session_stop(struct session *session)
{
	session->stopped = true;
	end_when_quiet(session);
}

/* The program's own end cancels calls or lets no new ones begin: no error, but the session goes no further. */
static void
stop_for(struct session *session, int error_code, const char *text)
{
	session->stopped = true;
	if (error_code != -ECANCELED && error_code != -ESHUTDOWN)
		lane_count_error(session->lane, "call to %s: %s (error %d)", session->server, text, error_code);
}

/* ---- calls ---- */

static int
call(struct session *session, bool echo, const struct xr_iobuf *payload, xr_rpc_done *done, void *arg)
{
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	struct xr_rpc_request request = {
		.size = sizeof request,
		.service = PERF_SERVICE,
		.method = PERF_METHOD,
		.message = &message,
		.attachment = &attachment,
	};
	int err;

	err = message_put_request(&message, echo);
	if (!err && payload)
		err = xr_iobuf_share(&attachment, payload);
	if (!err)
		err = xr_rpc_call(session->channel, &request, done, arg, NULL);
	if (err) {
		xr_iobuf_clear(&message);
		xr_iobuf_clear(&attachment);
	}
	return err;
}

static void
hold(struct session *session, struct slot *slot)
{
	slot->next = NULL;
	*session->held_end = slot;
	session->held_end = &slot->next;
}

static void
release_first(struct session *session)
{
	session->held = session->held->next;
	if (!session->held)
		session->held_end = &session->held;
}

/* What is wrong with the answer; NULL: nothing. *cpu_server is set then. */
static const char *
fault_of(const struct slot *slot, const struct xr_rpc_response *response, double *cpu_server)
{
	bool echo = slot->session->lane->load->options->echo_attachment;

	if (message_get_response(response->message, cpu_server) != 0)
		return "the response is no test.PerfTestResponse";
	if (echo && !xr_iobuf_equal(response->attachment, &slot->payload))
		return "the echoed attachment differs from what was sent";
	if (!echo && xr_iobuf_size(response->attachment) != 0)
		return "an attachment came back that was not asked for";
	return NULL;
}

/* The clock is read once a call: when one call's answer is in, the next one begins. */
static void
call_done(const struct xr_rpc_response *response, void *arg)
{
	struct slot *slot = arg;
	struct session *session = slot->session;
	uint64_t now_ns = cpu_wall_ns();
	const char *fault;
	double cpu_server;

	session->in_flight--;
	pace_call_ended(&session->lane->pace);
	if (response->error_code != 0) {
		stop_for(session, response->error_code, response->error_text);
	} else if ((fault = fault_of(slot, response, &cpu_server)) != NULL) {
		stop_for(session, XR_RPC_ERESPONSE, fault);
	} else {
		lane_count_call(session->lane, now_ns - slot->start_ns, cpu_server);
		hold(session, slot);
		session_pump(session, now_ns);
	}
	end_when_quiet(session);
}

void
session_pump(struct session *session, uint64_t now_ns)
{
	const struct load_options *options = session->lane->load->options;

	while (session->held && !session->stopped && session->calls_left > 0 && pace_take(&session->lane->pace)) {
		struct slot *slot = session->held;
		int err = call(session, options->echo_attachment, &slot->payload, call_done, slot);

		/* The queue is full of this session's own calls: the next answer comes by here again. */
		if (err == -EAGAIN && session->in_flight > 0) {
			pace_give_back(&session->lane->pace);
			return;
		}
		if (err) {
			stop_for(session, err, xr_strerror(err));
			return;
		}
		release_first(session);
		slot->start_ns = now_ns;
		session->in_flight++;
		session->calls_left--;
	}
}

void
session_begin(struct session *session)
{
	unsigned depth = (unsigned)session->lane->load->options->queue_depth;

	for (unsigned i = 0; i < depth; i++)
		hold(session, &session->slots[i]);
	session_pump(session, cpu_wall_ns());
	end_when_quiet(session);
}

/* ---- warm-up ---- */

static void
warmed(struct session *session)
{
	session->warm = connection(session);
	lane_warmed(session->lane);
	end_when_quiet(session);
}

static void
warm_up_done(const struct xr_rpc_response *response, void *arg)
{
	struct session *session = arg;

	session->in_flight--;
	if (response->error_code != 0)
		stop_for(session, response->error_code, response->error_text);
	warmed(session);
}

void
session_warm_up(struct session *session)
{
	int err = call(session, false, NULL, warm_up_done, session);

	if (err) {
		stop_for(session, err, xr_strerror(err));
		warmed(session);
		return;
	}
	session->in_flight++;
}
