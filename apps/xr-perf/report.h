/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_REPORT_H
#define XR_PERF_REPORT_H

/* The figures, as a table for people and as JSON for programs. */

#include "histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct client_result {
	const char *servers;
	const char *transport;	     /* "rdma", "tcp", "mixed" when connections differ, "none" when none opened */
	const char *fallback_reason; /* of the first connection that is not RDMA, "" without one */
	const char *mode;
	const char *first_error; /* "" without one */
	const char *attachment_memory;
	int64_t threads, depth, attachment;
	unsigned lcores;
	bool echo;
	double seconds;
	uint64_t calls, errors;
	const struct histogram *latency_ns;
	double cpu_client, cpu_server;			/* in processors; cpu_server negative: not told */
	double request_wire_bytes, response_wire_bytes; /* a call's bytes on the wire, on average */
};

struct server_result {
	const char *mode;
	double seconds;
	uint64_t calls, errors, attachment_bytes;
	double cpu; /* in processors */
};

void report_client(const struct client_result *result);
void report_server(const struct server_result *result);

/* To a file, or to standard output for "-". After an error, which has been told on stderr, a negative errno. */
int report_client_json(const struct client_result *result, const char *file);
int report_server_json(const struct server_result *result, const char *file);

/* All of the library's counters, summed over the lcores, and its memory. */
int report_counters(const char *file);

#endif
