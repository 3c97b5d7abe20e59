/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include "perf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define container_of(member_ptr, type, member) ((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))

/* ---- what sessions tell their lane ---- */

void
lane_count_call(struct lane *lane, uint64_t latency_ns, double cpu_server)
{
	__atomic_store_n(&lane->calls, lane->calls + 1, __ATOMIC_RELAXED);
	histogram_record(&lane->latency_ns, latency_ns);
	if (cpu_server >= 0) {
		lane->cpu_server_sum += cpu_server;
		lane->cpu_server_count++;
	}
}

void
lane_count_error(struct lane *lane, const char *format, ...)
{
	struct load *load = lane->load;
	va_list args;

	__atomic_store_n(&lane->errors, lane->errors + 1, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&load->has_error, true, __ATOMIC_ACQ_REL))
		return;
	va_start(args, format);
	vsnprintf(load->first_error, sizeof load->first_error, format, args);
	va_end(args);
	fprintf(stderr, "xr-perf client: %s\n", load->first_error);
}

/* ---- phases ---- */

static void
pump_sessions(struct pace *pace)
{
	struct lane *lane = container_of(pace, struct lane, pace);
	uint64_t now_ns = cpu_wall_ns();

	for (struct session *session = lane->sessions; session; session = session->next)
		session_pump(session, now_ns);
}

static void
lane_ended(struct lane *lane)
{
	xr_timer_cancel(&lane->end);
	pace_end(&lane->pace);
	if (__atomic_sub_fetch(&lane->load->running, 1, __ATOMIC_ACQ_REL) == 0 &&
	    !__atomic_load_n(&lane->load->draining, __ATOMIC_RELAXED))
		xr_stop();
}

void
lane_session_ended(struct lane *lane)
{
	lane->end_ns = cpu_wall_ns();
	if (--lane->open == 0)
		lane_ended(lane);
}

static void
stop_sessions(struct lane *lane)
{
	struct session *next;

	for (struct session *session = lane->sessions; session; session = next) {
		next = session->next;
		session_stop(session);
	}
}

static void
time_is_up(struct xr_timer *timer)
{
	stop_sessions(container_of(timer, struct lane, end));
}

static void
drain_lane(struct xr_msg *msg, int status)
{
	if (status == 0)
		stop_sessions(container_of(msg, struct lane, drain));
}

/* An interrupt: sessions end as when their time is up, so that their figures are whole. */
static void
drain(void *arg)
{
	struct load *load = arg;

	__atomic_store_n(&load->draining, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < load->lane_count; i++)
		xr_post(load->lanes[i].lcore, &load->lanes[i].drain);
}

static void
begin(struct xr_msg *msg, int status)
{
	struct lane *lane = container_of(msg, struct lane, begin);
	const struct load_options *options = lane->load->options;

	/* No session is left when every warm-up failed. */
	if (status != 0 || lane->open == 0)
		return;
	lane->begin_ns = cpu_wall_ns();
	xr_timer_arm(&lane->end, (uint64_t)options->test_seconds * 1000000, 0);
	pace_begin(&lane->pace);
	for (struct session *session = lane->sessions; session; session = session->next)
		session_begin(session);
}

/* The last session of all to warm up lets every lane begin. */
void
lane_warmed(struct lane *lane)
{
	struct load *load = lane->load;

	if (__atomic_sub_fetch(&load->warming, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	load->cpu_begin = cpu_mark_now();
	for (unsigned i = 0; i < load->lane_count; i++)
		xr_post(load->lanes[i].lcore, &load->lanes[i].begin);
}

static int
prepare(struct lane *lane)
{
	unsigned depth = (unsigned)lane->load->options->queue_depth, first_slice = 0;
	int err;

	err = payload_init(&lane->payload, lane->load->options->attachment_memory,
			   (size_t)lane->load->options->attachment_size, lane->lcore + 1);
	for (struct session *session = lane->sessions; session && !err; session = session->next) {
		err = session_prepare(session, first_slice);
		first_slice += depth;
	}
	return err;
}

static void
start(struct xr_msg *msg, int status)
{
	struct lane *lane = container_of(msg, struct lane, start);
	int err;

	if (status != 0)
		return;
	err = prepare(lane);
	if (err) {
		lane_count_error(lane, "cannot make the attachments: %s", xr_strerror(err));
		xr_stop();
		return;
	}
	for (struct session *session = lane->sessions; session; session = session->next)
		session_warm_up(session);
}

/* ---- before and after ---- */

static int
make_lanes(struct load *load)
{
	unsigned lcore, count = 0, most = (unsigned)load->options->thread_num;

	load->lanes = aligned_alloc(64, xr_lcore_count() * sizeof load->lanes[0]);
	if (!load->lanes)
		return -ENOMEM;
	XR_LCORE_FOREACH (lcore) {
		if (count == most || !xr_port_has_lcore(xr_port_find(NULL), lcore))
			continue;
		memset(&load->lanes[count], 0, sizeof load->lanes[0]);
		load->lanes[count].load = load;
		load->lanes[count].lcore = lcore;
		load->lanes[count].start = (struct xr_msg)XR_MSG_INIT(start);
		load->lanes[count].begin = (struct xr_msg)XR_MSG_INIT(begin);
		load->lanes[count].drain = (struct xr_msg)XR_MSG_INIT(drain_lane);
		load->lanes[count].end = (struct xr_timer)XR_TIMER_INIT(time_is_up);
		count++;
	}
	load->lane_count = load->running = count;
	return count > 0 ? 0 : -ENODEV;
}

/* "A+B" into its parts. */
static int
split_servers(struct load *load)
{
	char *text = strdup(load->options->servers), *rest = text;

	load->servers = calloc(strlen(load->options->servers) + 1, sizeof load->servers[0]);
	load->servers_text = text;
	if (!text || !load->servers)
		return -ENOMEM;
	do
		load->servers[load->server_count++] = strsep(&rest, "+");
	while (rest);
	return 0;
}

/* Sessions go round the servers and round the lanes. */
static int
make_sessions(struct load *load)
{
	unsigned wanted = (unsigned)load->options->thread_num;

	load->sessions = calloc(wanted, sizeof load->sessions[0]);
	if (!load->sessions)
		return -ENOMEM;
	for (unsigned i = 0; i < wanted; i++) {
		struct session *session = &load->sessions[i];
		struct lane *lane = &load->lanes[i % load->lane_count];
		const char *server = load->servers[i % load->server_count];
		int err;

		session->lane = lane;
		err = session_open(session, server);
		if (err) {
			fprintf(stderr, "xr-perf client: cannot call \"%s\": %s\n", server, perf_address_error(err));
			return err;
		}
		load->session_count++;
		session->next = lane->sessions;
		lane->sessions = session;
		lane->open++;
	}
	load->warming = load->session_count;
	return 0;
}

/* Each lane has the rate of its sessions, and bursts of its own. */
static void
set_paces(struct load *load)
{
	const struct load_options *options = load->options;

	for (unsigned i = 0; i < load->lane_count; i++) {
		struct lane *lane = &load->lanes[i];
		struct pace_options pace = {
			.calls_per_us = (double)options->expected_qps * lane->open / load->session_count / 1e6,
			.burst_calls = (unsigned)options->burst_calls,
			.silence_us = (unsigned)options->silence_us,
			.seed = (uint64_t)options->burst_seed + i,
		};

		pace_init(&lane->pace, &pace, pump_sessions);
	}
}

int
load_init(struct load *load, const struct load_options *options)
{
	int err;

	*load = (struct load){.options = options};
	err = make_lanes(load);
	if (!err)
		err = split_servers(load);
	if (err)
		fprintf(stderr, "xr-perf client: %s\n", xr_strerror(err));
	else
		err = make_sessions(load);
	if (err)
		load_fini(load);
	else
		set_paces(load);
	return err;
}

int
load_start(struct load *load)
{
	for (unsigned i = 0; i < load->lane_count; i++) {
		int err = xr_post(load->lanes[i].lcore, &load->lanes[i].start);

		if (err)
			return err;
	}
	xr_on_drain(drain, load);
	return 0;
}

int
load_fini(struct load *load)
{
	int err = 0;

	xr_on_drain(NULL, NULL);
	for (unsigned i = 0; i < load->session_count; i++)
		session_release(&load->sessions[i]);
	for (unsigned i = 0; i < load->lane_count; i++)
		if (payload_fini(&load->lanes[i].payload) != 0)
			err = -EBUSY;
	if (err)
		fprintf(stderr, "xr-perf client: the library has not given back all memory of attachments\n");
	free(load->sessions);
	free(load->lanes);
	free(load->servers);
	free(load->servers_text);
	return err;
}
