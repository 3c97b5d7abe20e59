/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_H
#define XR_PERF_H

/* What the parts of xr-perf share: the two commands, and the options that both know. */

#include <xrdma/xrdma.h>

#define PERF_SERVICE "test.PerfTestService"
#define PERF_METHOD  "Test"

enum perf_exit {
	PERF_OK = 0,
	PERF_FAILED = 1,    /* the work was begun and went wrong */
	PERF_BAD_USAGE = 2, /* an option or address that makes no sense: nothing was begun */
};

struct perf_command {
	const char *name, *summary;
	const struct xr_option *options;
	/* Runs between xr_init() and xr_fini(); returns one of enum perf_exit. */
	int (*run)(void);
};

extern const struct perf_command g_server_command, g_client_command;

struct perf_common {
	const char *json, *counters; /* file names, "" for none */
	int64_t max_body_size;
	int64_t memory; /* print its figures at the end */
};

extern struct perf_common g_common;

/* What went wrong with an address, also when it makes no sense. */
const char *perf_address_error(int err);

#endif
