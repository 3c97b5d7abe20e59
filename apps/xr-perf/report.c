/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xrdma/xrdma.h>

#define MIB (1024.0 * 1024.0)

static double
per_second(uint64_t count, double seconds)
{
	return seconds > 0 ? (double)count / seconds : 0;
}

/* ---- tables ---- */

static double
client_mib_s(const struct client_result *result)
{
	return per_second(result->calls * (uint64_t)result->attachment, result->seconds) / MIB;
}

static double
latency_us(const struct client_result *result, double share)
{
	return (double)histogram_quantile(result->latency_ns, share) / 1e3;
}

static double
average_us(const struct histogram *latency_ns)
{
	return latency_ns->count > 0 ? (double)latency_ns->sum / (double)latency_ns->count / 1e3 : 0;
}

void
report_client(const struct client_result *result)
{
	printf("transport   %s%s%s%s to %s\n", result->transport, result->fallback_reason[0] ? " (" : "",
	       result->fallback_reason, result->fallback_reason[0] ? ")" : "", result->servers);
	printf("mode        %s\n", result->mode);
	printf("threads     %lld on %u lcore%s, %lld call%s in flight on each\n", (long long)result->threads,
	       result->lcores, result->lcores == 1 ? "" : "s", (long long)result->depth, result->depth == 1 ? "" : "s");
	printf("attachment  %lld bytes in %s memory%s\n", (long long)result->attachment, result->attachment_memory,
	       result->echo ? ", echoed and compared" : "");
	printf("calls       %llu in %.2f s, %llu error%s\n", (unsigned long long)result->calls, result->seconds,
	       (unsigned long long)result->errors, result->errors == 1 ? "" : "s");
	printf("rate        %.0f calls/s, %.1f MiB/s\n", per_second(result->calls, result->seconds),
	       client_mib_s(result));
	printf("latency/us  avg %.1f  p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f\n",
	       average_us(result->latency_ns), latency_us(result, 0.5), latency_us(result, 0.9),
	       latency_us(result, 0.99), latency_us(result, 0.999), (double)result->latency_ns->max / 1e3);
	printf("cpu         client %.1f %%", result->cpu_client * 100);
	if (result->cpu_server >= 0)
		printf(", server %.1f %%", result->cpu_server * 100);
	printf("\n");
	fflush(stdout);
}

void
report_server(const struct server_result *result)
{
	printf("served      %llu calls in %.2f s, %llu error%s\n", (unsigned long long)result->calls, result->seconds,
	       (unsigned long long)result->errors, result->errors == 1 ? "" : "s");
	printf("echoed      %.1f MiB\n", (double)result->attachment_bytes / MIB);
	printf("cpu         %.1f %%\n", result->cpu * 100);
	fflush(stdout);
}

/* ---- JSON ---- */

static int
write_text(const char *text, const char *file)
{
	bool to_stdout = strcmp(file, "-") == 0;
	FILE *to = to_stdout ? stdout : fopen(file, "w");
	int err = 0;

	if (!to || fprintf(to, "%s\n", text) < 0)
		err = -errno;
	if (to && (to_stdout ? fflush(to) : fclose(to)) != 0 && !err)
		err = -errno;
	if (err)
		fprintf(stderr, "xr-perf: cannot write \"%s\": %s\n", file, xr_strerror(err));
	return err;
}

/* Takes over the tree. cJSON leaves out what it has no memory for, so only the last step can tell. */
static int
write_json(cJSON *tree, const char *file)
{
	char *text = tree ? cJSON_Print(tree) : NULL;
	int err = -ENOMEM;

	if (text)
		err = write_text(text, file);
	else
		fprintf(stderr, "xr-perf: out of memory for \"%s\"\n", file);
	free(text);
	cJSON_Delete(tree);
	return err;
}

static void
add_latencies(cJSON *tree, const struct client_result *result)
{
	cJSON *latencies = cJSON_AddObjectToObject(tree, "lat_us");

	cJSON_AddNumberToObject(latencies, "avg", average_us(result->latency_ns));
	cJSON_AddNumberToObject(latencies, "p50", latency_us(result, 0.5));
	cJSON_AddNumberToObject(latencies, "p90", latency_us(result, 0.9));
	cJSON_AddNumberToObject(latencies, "p99", latency_us(result, 0.99));
	cJSON_AddNumberToObject(latencies, "p999", latency_us(result, 0.999));
	cJSON_AddNumberToObject(latencies, "max", (double)result->latency_ns->max / 1e3);
}

int
report_client_json(const struct client_result *result, const char *file)
{
	cJSON *tree = cJSON_CreateObject();

	cJSON_AddStringToObject(tree, "servers", result->servers);
	cJSON_AddStringToObject(tree, "transport", result->transport);
	cJSON_AddStringToObject(tree, "fallback_reason", result->fallback_reason);
	cJSON_AddStringToObject(tree, "mode", result->mode);
	cJSON_AddNumberToObject(tree, "lcores", result->lcores);
	cJSON_AddNumberToObject(tree, "threads", (double)result->threads);
	cJSON_AddNumberToObject(tree, "depth", (double)result->depth);
	cJSON_AddNumberToObject(tree, "attachment", (double)result->attachment);
	cJSON_AddStringToObject(tree, "attachment_memory", result->attachment_memory);
	cJSON_AddBoolToObject(tree, "echo", result->echo);
	cJSON_AddNumberToObject(tree, "seconds", result->seconds);
	cJSON_AddNumberToObject(tree, "calls", (double)result->calls);
	cJSON_AddNumberToObject(tree, "errors", (double)result->errors);
	cJSON_AddStringToObject(tree, "first_error", result->first_error);
	cJSON_AddNumberToObject(tree, "qps", per_second(result->calls, result->seconds));
	cJSON_AddNumberToObject(tree, "mib_s", client_mib_s(result));
	add_latencies(tree, result);
	cJSON_AddNumberToObject(tree, "cpu_client", result->cpu_client);
	if (result->cpu_server >= 0)
		cJSON_AddNumberToObject(tree, "cpu_server", result->cpu_server);
	else
		cJSON_AddNullToObject(tree, "cpu_server");
	cJSON_AddNumberToObject(tree, "request_wire_bytes", result->request_wire_bytes);
	cJSON_AddNumberToObject(tree, "response_wire_bytes", result->response_wire_bytes);
	return write_json(tree, file);
}

int
report_server_json(const struct server_result *result, const char *file)
{
	cJSON *tree = cJSON_CreateObject();

	cJSON_AddStringToObject(tree, "mode", result->mode);
	cJSON_AddNumberToObject(tree, "seconds", result->seconds);
	cJSON_AddNumberToObject(tree, "calls", (double)result->calls);
	cJSON_AddNumberToObject(tree, "errors", (double)result->errors);
	cJSON_AddNumberToObject(tree, "attachment_bytes", (double)result->attachment_bytes);
	cJSON_AddNumberToObject(tree, "cpu_server", result->cpu);
	return write_json(tree, file);
}

static void
add_counter(const char *name, const char *help, uint64_t value, void *arg)
{
	(void)help;
	cJSON_AddNumberToObject(arg, name, (double)value);
}

int
report_counters(const char *file)
{
	cJSON *tree = cJSON_CreateObject();

	xr_counter_foreach(XR_LCORE_NONE, add_counter, tree);
	memory_add(tree);
	return write_json(tree, file);
}
