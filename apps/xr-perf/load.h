/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_LOAD_H
#define XR_PERF_LOAD_H

/*
 * The load: sessions spread over lanes, a lane being one lcore's share with all that it measures, so that lanes share
 * nothing while they run. They meet twice: when every session has warmed up, all lanes begin; when the last one ends,
 * the program does.
 */

#include "cpu.h"
#include "histogram.h"
#include "pace.h"
#include "payload.h"
#include "session.h"

struct load_options {
	int64_t thread_num, queue_depth, attachment_size, echo_attachment, use_rdma;
	int64_t test_seconds, test_iterations, rpc_timeout_ms;
	int64_t expected_qps, burst_calls, silence_us, burst_seed;
	int64_t progress;
	const char *servers;
	enum payload_memory attachment_memory;
};

struct load;

struct lane {
	struct load *load;
	unsigned lcore;
	struct xr_msg start, begin, drain;
	struct xr_timer end;
	struct pace pace;
	struct session *sessions;
	unsigned open; /* sessions that have not ended */
	struct payload payload;
	uint64_t begin_ns, end_ns;
	uint64_t calls, errors; /* read by the progress line */
	double cpu_server_sum;
	uint64_t cpu_server_count;
	struct histogram latency_ns;
} __attribute__((aligned(64)));

struct load {
	const struct load_options *options;
	struct lane *lanes;
	unsigned lane_count;
	char **servers, *servers_text;
	unsigned server_count;
	struct session *sessions;
	unsigned session_count;
	unsigned warming; /* sessions that have not warmed up yet */
	unsigned running; /* lanes that have not ended */
	bool draining;	  /* the program stops without being told so again */
	struct cpu_mark cpu_begin;
	bool has_error; /* taken by an exchange: the first one writes its text */
	char first_error[256];
};

/* Makes lanes and sessions and opens the channels, on the main thread. After an error, told on stderr, one of errno. */
int load_init(struct load *load, const struct load_options *options);

/* Has every lane start when xr_run() begins; the last one calls xr_stop(). */
int load_start(struct load *load);

/* After xr_run(). -EBUSY, told on stderr: the library holds attachments back. */
int load_fini(struct load *load);

/* ---- between a session and its lane ---- */

void lane_warmed(struct lane *lane);
void lane_session_ended(struct lane *lane);

void lane_count_call(struct lane *lane, uint64_t latency_ns, double cpu_server);
void lane_count_error(struct lane *lane, const char *format, ...) XR_PRINTF(2, 3);

#endif
