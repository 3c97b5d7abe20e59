/* SPDX-License-Identifier: Apache-2.0 */
/* The server: test.PerfTestService/Test, which echoes attachments and tells its CPU use now and then. */

#include "cpu.h"
#include "message.h"
#include "perf.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* How often the CPU use is told, over all connections together: as brpc's server does. */
#define CPU_USAGE_INTERVAL_US 100000

static const char *g_listen;

static const struct xr_option server_options[] = {
	{.name = "listen",
	 .type = XR_OPTION_STRING,
	 .value = &g_listen,
	 .default_value = "0.0.0.0:8002",
	 .placeholder = "ADDRESS:PORT",
	 .help = "where to listen; port 0 lets the system choose"},
	{0},
};

/* What one lcore has served: written by it alone. */
struct lane {
	uint64_t calls, errors, attachment_bytes;
} __attribute__((aligned(64)));

struct server {
	struct lane *lanes; /* by lcore number */
	struct xr_rpc_server *rpc;
	uint64_t cpu_next_us; /* taken by compare-and-swap: who moves it on owns cpu_mark */
	struct cpu_mark cpu_mark;
};

/* The CPU use since it was last told, or -1 when that is not long enough ago. */
static double
take_cpu_usage(struct server *server)
{
	uint64_t now_us = xr_now_us(), next_us = __atomic_load_n(&server->cpu_next_us, __ATOMIC_ACQUIRE);
	double usage;

	/* UINT64_MAX stands there while another lcore is at it. */
	if (now_us < next_us || !__atomic_compare_exchange_n(&server->cpu_next_us, &next_us, UINT64_MAX, false,
							     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return -1;
	usage = cpu_usage_since(&server->cpu_mark);
	server->cpu_mark = cpu_mark_now();
	__atomic_store_n(&server->cpu_next_us, now_us + CPU_USAGE_INTERVAL_US, __ATOMIC_RELEASE);
	return usage;
}

static void
fail(struct lane *lane, struct xr_rpc_call *call, int error, const char *text)
{
	lane->errors++;
	xr_rpc_fail(call, error, text);
}

static void
serve(struct xr_rpc_call *call, void *arg)
{
	struct server *server = arg;
	struct lane *lane = &server->lanes[xr_lcore_id()];
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	bool echo;

	if (message_get_request(xr_rpc_call_message(call), &echo) != 0) {
		fail(lane, call, XR_RPC_EREQUEST, "not a test.PerfTestRequest");
		return;
	}
	if (message_put_response(&message, take_cpu_usage(server)) != 0 ||
	    (echo && xr_iobuf_move(&attachment, xr_rpc_call_attachment(call)) != 0)) {
		xr_iobuf_clear(&message);
		fail(lane, call, XR_RPC_EINTERNAL, "out of memory");
		return;
	}
	lane->calls++;
	lane->attachment_bytes += xr_iobuf_size(&attachment);
	xr_rpc_reply(call, &message, &attachment);
}

static int
make_lanes(struct server *server)
{
	unsigned lcore, count = 0;

	XR_LCORE_FOREACH (lcore)
		count = lcore + 1;
	server->lanes = aligned_alloc(64, count * sizeof server->lanes[0]);
	if (!server->lanes)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		server->lanes[i] = (struct lane){0};
	return 0;
}

static int
start(struct server *server)
{
	struct xr_rpc_server_opts opts = {.size = sizeof opts, .max_body_size = (uint64_t)g_common.max_body_size};
	int err;

	err = make_lanes(server);
	if (!err)
		err = xr_rpc_server_open(&opts, &server->rpc);
	if (!err)
		err = xr_rpc_server_add(server->rpc, PERF_SERVICE, PERF_METHOD, serve, server);
	if (!err)
		err = xr_rpc_server_listen(server->rpc, NULL, g_listen);
	if (err)
		fprintf(stderr, "xr-perf server: cannot listen on \"%s\": %s\n", g_listen, perf_address_error(err));
	return err;
}

static struct server_result
sum_up(const struct server *server, const struct cpu_mark *begin)
{
	struct server_result result = {
		.mode = xr_port_mode_name(xr_port_mode(xr_port_find(NULL))),
		.seconds = (double)(cpu_wall_ns() - begin->wall_ns) / 1e9,
		.cpu = cpu_usage_since(begin),
	};
	unsigned lcore;

	XR_LCORE_FOREACH (lcore) {
		const struct lane *lane = &server->lanes[lcore];

		result.calls += lane->calls;
		result.errors += lane->errors;
		result.attachment_bytes += lane->attachment_bytes;
	}
	return result;
}

static int
serve_until_stopped(struct server *server)
{
	struct cpu_mark begin = cpu_mark_now();
	struct server_result result;

	server->cpu_mark = begin;
	printf("listening on %s\n", xr_rpc_server_address(server->rpc, 0));
	fflush(stdout);
	xr_run();
	result = sum_up(server, &begin);
	report_server(&result);
	return g_common.json[0] == '\0' || report_server_json(&result, g_common.json) == 0 ? PERF_OK : PERF_FAILED;
}

static int
run(void)
{
	struct server server = {0};
	int status, err = start(&server);

	if (!err)
		status = serve_until_stopped(&server);
	else
		status = err == -EINVAL ? PERF_BAD_USAGE : PERF_FAILED;
	if (server.rpc)
		xr_rpc_server_close(server.rpc);
	free(server.lanes);
	return status;
}

const struct perf_command g_server_command = {
	.name = "server",
	.summary = "serve calls until SIGINT",
	.options = server_options,
	.run = run,
};
