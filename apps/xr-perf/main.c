/* SPDX-License-Identifier: Apache-2.0 */
/* xr-perf: measures baidu_std calls between a server and a load client, as brpc's rdma_performance does. */

#include "descriptors.h"
#include "memory.h"
#include "perf.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024LL * 1024)

struct perf_common g_common = {.json = "", .counters = ""};

static const struct xr_option common_options[] = {
	{.name = "json",
	 .type = XR_OPTION_STRING,
	 .value = &g_common.json,
	 .placeholder = "FILE",
	 .help = "write the figures to this file as JSON (\"-\": to standard output)"},
	{.name = "counters",
	 .type = XR_OPTION_STRING,
	 .value = &g_common.counters,
	 .placeholder = "FILE",
	 .help = "write the library's counters to this file as JSON at the end (\"-\": to standard output)"},
	{.name = "memory",
	 .type = XR_OPTION_BOOL,
	 .value = &g_common.memory,
	 .default_value = "false",
	 .help = "print at the end what memory there is and where its blocks are"},
	{.name = "max_body_size",
	 .type = XR_OPTION_INT,
	 .value = &g_common.max_body_size,
	 .default_value = "67108864",
	 .min = 64,
	 .max = 2047 * MIB,
	 .placeholder = "BYTES",
	 .help = "largest frame that is taken from the peer; a larger one closes the connection"},
	{0},
};

const char *
perf_address_error(int err)
{
	return err == -EINVAL ? "must be numeric, such as 127.0.0.1:8002 or [::1]:8002" : xr_strerror(err);
}

static const struct perf_command *const commands[] = {&g_server_command, &g_client_command};

static void
print_usage(FILE *to)
{
	fprintf(to, "Usage: xr-perf COMMAND [OPTION]...\n"
		    "Measures RPCs over libxrdma-reactor; the peer may also be brpc's rdma_performance.\n"
		    "\n"
		    "Commands:\n");
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to, "\n"
		    "xr-perf COMMAND --help lists the options of a command and of the library.\n"
		    "\n"
		    "Example:\n"
		    "  xr-perf server -l 0 --port default,mode=poll &\n"
		    "  xr-perf client -l 1 --port default,mode=poll --queue_depth 16 --attachment_size 32 "
		    "--echo_attachment\n");
}

static const struct perf_command *
find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

/* xr_init() with the command's options; what it returns is the program's exit status, or -1 to go on. */
static int
init(const struct perf_command *command, int argc, char **argv)
{
	int next, err;

	err = xr_option_register(common_options);
	if (!err)
		err = xr_option_register(command->options);
	if (err) {
		fprintf(stderr, "xr-perf: cannot add the options of %s: %s\n", command->name, xr_strerror(err));
		return PERF_FAILED;
	}
	next = xr_init(argc, argv);
	if (next == XR_INIT_EXIT)
		return PERF_OK;
	if (next < 0)
		return next == -EINVAL ? PERF_BAD_USAGE : PERF_FAILED;
	if (next < argc) {
		fprintf(stderr, "xr-perf %s: \"%s\" is no option, and no other arguments are allowed\n", command->name,
			argv[next]);
		xr_fini();
		return PERF_BAD_USAGE;
	}
	return -1;
}

static int
run(const struct perf_command *command)
{
	int status, err = xr_handle_signals();

	if (err) {
		fprintf(stderr, "xr-perf: cannot handle signals: %s\n", xr_strerror(err));
		return PERF_FAILED;
	}
	status = command->run();
	if (g_common.memory)
		memory_print();
	if (g_common.counters[0] != '\0' && report_counters(g_common.counters) != 0 && status == PERF_OK)
		status = PERF_FAILED;
	return status;
}

int
main(int argc, char **argv)
{
	const struct perf_command *command;
	char program[32];
	int status;

	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		print_usage(stdout);
		return PERF_OK;
	}
	if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
		printf("xr-perf %s\n", xr_version());
		return PERF_OK;
	}
	command = argc >= 2 ? find_command(argv[1]) : NULL;
	if (!command) {
		fprintf(stderr,
			"xr-perf: the first argument must be a command, server or client; see xr-perf --help\n");
		return PERF_BAD_USAGE;
	}
	descriptors_allow_most();
	snprintf(program, sizeof program, "xr-perf %s", command->name);
	argv[1] = program;
	status = init(command, argc - 1, argv + 1);
	if (status >= 0)
		return status;
	status = run(command);
	xr_fini();
	return status;
}
