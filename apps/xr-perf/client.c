/* SPDX-License-Identifier: Apache-2.0 */
/* The load client: its options, one run of the load, and what came of it. */

#include "descriptors.h"
#include "load.h"
#include "perf.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct load_options g_options;
static const char *g_attachment_memory;

static int
check_servers(const char *value, const char **why)
{
	size_t len = strlen(value);

	if (len == 0 || value[0] == '+' || value[len - 1] == '+' || strstr(value, "++")) {
		*why = "must be ADDRESS:PORT, or several with \"+\" between them";
		return -EINVAL;
	}
	return 0;
}

static int
set_attachment_memory(const char *value, const char **why)
{
	for (unsigned memory = 0; memory < PAYLOAD_MEMORIES; memory++) {
		if (strcmp(value, g_payload_memory_names[memory]) != 0)
			continue;
		g_options.attachment_memory = memory;
		return 0;
	}
	*why = "pool, registered and plain are allowed";
	return -EINVAL;
}

/* The names are those of brpc's rdma_performance, where it has such an option. */
static const struct xr_option client_options[] = {
	{.name = "servers",
	 .type = XR_OPTION_STRING,
	 .value = &g_options.servers,
	 .default_value = "127.0.0.1:8002",
	 .placeholder = "ADDRESS:PORT",
	 .help = "servers, several with \"+\" between them: threads go round them",
	 .set = check_servers},
	{.name = "thread_num",
	 .type = XR_OPTION_INT,
	 .value = &g_options.thread_num,
	 .default_value = "1",
	 .min = 1,
	 .max = 65536,
	 .placeholder = "N",
	 .help = "connections, spread over the lcores"},
	{.name = "queue_depth",
	 .type = XR_OPTION_INT,
	 .value = &g_options.queue_depth,
	 .default_value = "1",
	 .min = 1,
	 .max = 65536,
	 .placeholder = "N",
	 .help = "calls in flight on each connection"},
	{.name = "attachment_size",
	 .type = XR_OPTION_INT,
	 .value = &g_options.attachment_size,
	 .default_value = "0",
	 .min = 0,
	 .max = 1 << 30,
	 .placeholder = "BYTES",
	 .help = "attachment of each request"},
	{.name = "attachment_memory",
	 .type = XR_OPTION_STRING,
	 .value = &g_attachment_memory,
	 .default_value = "pool",
	 .set = set_attachment_memory,
	 .placeholder = "KIND",
	 .help = "where attachments lie: pool (the library's blocks), registered (memory of the program's own, registered "
		 "for RDMA), plain (not registered: refused over RDMA)"},
	{.name = "echo_attachment",
	 .type = XR_OPTION_BOOL,
	 .value = &g_options.echo_attachment,
	 .default_value = "false",
	 .help = "have the server send the attachment back, and compare"},
	{.name = "use_rdma",
	 .type = XR_OPTION_BOOL,
	 .value = &g_options.use_rdma,
	 .default_value = "true",
	 .help = "offer RDMA to the server; TCP when either side has none"},
	{.name = "test_seconds",
	 .type = XR_OPTION_INT,
	 .value = &g_options.test_seconds,
	 .default_value = "20",
	 .min = 1,
	 .max = 604800, /* a week */
	 .placeholder = "S",
	 .help = "ends the test after this time"},
	{.name = "test_iterations",
	 .type = XR_OPTION_INT,
	 .value = &g_options.test_iterations,
	 .default_value = "0",
	 .min = 0,
	 .max = INT64_MAX,
	 .placeholder = "N",
	 .help = "ends each thread after this many calls (0: only test_seconds ends it)"},
	{.name = "expected_qps",
	 .type = XR_OPTION_INT,
	 .value = &g_options.expected_qps,
	 .default_value = "0",
	 .min = 0,
	 .max = 1000000000,
	 .placeholder = "N",
	 .help = "calls a second of all threads together at most (0: as many as it can)"},
	{.name = "burst_calls",
	 .type = XR_OPTION_INT,
	 .value = &g_options.burst_calls,
	 .default_value = "0",
	 .min = 0,
	 .max = 1000000,
	 .placeholder = "N",
	 .help = "calls in bursts of a random number up to this, with silences between them (0: no bursts)"},
	{.name = "silence_us",
	 .type = XR_OPTION_INT,
	 .value = &g_options.silence_us,
	 .default_value = "10000",
	 .min = 0,
	 .max = 60000000,
	 .placeholder = "US",
	 .help = "once a burst is answered, a silence of a random length up to this"},
	{.name = "burst_seed",
	 .type = XR_OPTION_INT,
	 .value = &g_options.burst_seed,
	 .default_value = "1",
	 .min = 0,
	 .max = INT64_MAX,
	 .placeholder = "N",
	 .help = "another number, another row of bursts and silences"},
	{.name = "rpc_timeout_ms",
	 .type = XR_OPTION_INT,
	 .value = &g_options.rpc_timeout_ms,
	 .default_value = "2000",
	 .min = 1,
	 .max = 3600000,
	 .placeholder = "MS",
	 .help = "a call without an answer for this long is an error"},
	{.name = "progress",
	 .type = XR_OPTION_BOOL,
	 .value = &g_options.progress,
	 .default_value = "false",
	 .help = "a line a second on stderr (always when that is a terminal)"},
	{0},
};

/* ---- progress ---- */

#define PROGRESS_US 1000000

struct progress {
	struct xr_timer timer;
	const struct load *load;
	bool terminal;
	unsigned seconds;
	uint64_t calls; /* at the last line */
};

static void
print_progress(struct xr_timer *timer)
{
	struct progress *progress = (struct progress *)(void *)timer;
	uint64_t calls = 0, errors = 0;

	for (unsigned i = 0; i < progress->load->lane_count; i++) {
		calls += __atomic_load_n(&progress->load->lanes[i].calls, __ATOMIC_RELAXED);
		errors += __atomic_load_n(&progress->load->lanes[i].errors, __ATOMIC_RELAXED);
	}
	fprintf(stderr, "%s%4u s  %10llu calls/s  %llu errors%s", progress->terminal ? "\r" : "", ++progress->seconds,
		(unsigned long long)(calls - progress->calls), (unsigned long long)errors,
		progress->terminal ? "" : "\n");
	progress->calls = calls;
}

static void
progress_begin(struct progress *progress, const struct load *load)
{
	*progress = (struct progress){
		.timer = XR_TIMER_INIT(print_progress),
		.load = load,
		.terminal = isatty(STDERR_FILENO),
	};
	if (progress->terminal || g_options.progress)
		xr_timer_arm(&progress->timer, PROGRESS_US, PROGRESS_US);
}

static void
progress_end(const struct progress *progress)
{
	if (progress->terminal && progress->seconds > 0)
		fputc('\n', stderr);
}

/* ---- figures ---- */

static void
sum_up_lanes(const struct load *load, struct histogram *latency_ns, struct client_result *result)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0, cpu_count = 0;
	double cpu_sum = 0;

	for (unsigned i = 0; i < load->lane_count; i++) {
		const struct lane *lane = &load->lanes[i];

		histogram_merge(latency_ns, &lane->latency_ns);
		result->calls += lane->calls;
		result->errors += lane->errors;
		cpu_sum += lane->cpu_server_sum;
		cpu_count += lane->cpu_server_count;
		if (lane->begin_ns > 0 && lane->begin_ns < begin_ns)
			begin_ns = lane->begin_ns;
		if (lane->end_ns > end_ns)
			end_ns = lane->end_ns;
	}
	result->seconds = end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1e9 : 0;
	result->cpu_server = cpu_count > 0 ? cpu_sum / (double)cpu_count : -1;
}

static void
sum_up_connections(const struct load *load, struct client_result *result)
{
	uint64_t bytes_in = 0, bytes_out = 0;

	result->transport = "none";
	result->fallback_reason = "";
	for (unsigned i = 0; i < load->session_count; i++) {
		const struct session *session = &load->sessions[i];

		if (session->warm.size == 0)
			continue;
		bytes_in += session->bytes_in;
		bytes_out += session->bytes_out;
		if (strcmp(result->transport, "none") == 0)
			result->transport = session->warm.transport;
		else if (strcmp(result->transport, session->warm.transport) != 0)
			result->transport = "mixed";
		if (result->fallback_reason[0] == '\0')
			result->fallback_reason = session->warm.fallback_reason;
	}
	if (result->calls > 0) {
		result->request_wire_bytes = (double)bytes_out / (double)result->calls;
		result->response_wire_bytes = (double)bytes_in / (double)result->calls;
	}
}

static int
report(const struct load *load)
{
	struct histogram *latency_ns = calloc(1, sizeof *latency_ns);
	struct client_result result = {
		.servers = g_options.servers,
		.mode = xr_port_mode_name(xr_port_mode(xr_port_find(NULL))),
		.first_error = load->first_error,
		.threads = g_options.thread_num,
		.depth = g_options.queue_depth,
		.attachment = g_options.attachment_size,
		.attachment_memory = g_attachment_memory,
		.lcores = load->lane_count,
		.echo = g_options.echo_attachment,
		.cpu_client = load->cpu_begin.wall_ns > 0 ? cpu_usage_since(&load->cpu_begin) : 0,
		.latency_ns = latency_ns,
	};
	int status = PERF_FAILED;

	if (!latency_ns)
		return PERF_FAILED;
	sum_up_lanes(load, latency_ns, &result);
	sum_up_connections(load, &result);
	report_client(&result);
	if (g_common.json[0] == '\0' || report_client_json(&result, g_common.json) == 0)
		status = load->has_error ? PERF_FAILED : PERF_OK;
	free(latency_ns);
	return status;
}

static int
run(void)
{
	struct progress progress;
	struct load load;
	int status, err;

	if (g_options.burst_calls > 0 && g_options.expected_qps > 0) {
		fprintf(stderr,
			"xr-perf client: --burst_calls and --expected_qps exclude each other: give one of them\n");
		return PERF_BAD_USAGE;
	}
	err = descriptors_check((uint64_t)g_options.thread_num);
	if (err)
		return PERF_FAILED;
	err = load_init(&load, &g_options);
	if (err)
		return err == -EINVAL ? PERF_BAD_USAGE : PERF_FAILED;
	progress_begin(&progress, &load);
	err = load_start(&load);
	if (!err)
		err = xr_run();
	progress_end(&progress);
	if (err)
		fprintf(stderr, "xr-perf client: cannot run: %s\n", xr_strerror(err));
	status = err ? PERF_FAILED : report(&load);
	if (load_fini(&load) != 0 && status == PERF_OK)
		status = PERF_FAILED;
	return status;
}

const struct perf_command g_client_command = {
	.name = "client",
	.summary = "call servers and measure",
	.options = client_options,
	.run = run,
};
