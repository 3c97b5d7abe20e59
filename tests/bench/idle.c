/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server that says what its connections cost it in memory, and a client that opens some and leaves them idle
 * once each has had an echo; for tests/bench/idle.
 *
 *   idle server [OPTION]... ADDRESS:PORT          prints the address; then, for each line that it reads, one with
 *                                                 {"connections": N, "rss_kib": N, "blocks": N, "recv_slots": N}:
 *                                                 resident memory beside the pool's, blocks in use beside its slots
 *   idle client [OPTION]... ADDRESS:PORT COUNT    prints the transport, and stays until its input ends
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <xrdma/xrdma.h>

static const char g_hello[] = "the same sixty-four bytes for each, more than a few, but not many";

static unsigned g_open, g_echoed, g_wanted;

/* ---- standard input ---- */

static void (*g_on_line)(void);

static void
read_input(struct xr_fd *fd, uint32_t revents)
{
	char line[64];

	(void)revents;
	if (read(STDIN_FILENO, line, sizeof line) > 0) {
		if (g_on_line)
			g_on_line();
		return;
	}
	xr_fd_del(fd);
	xr_stop();
}

static struct xr_fd g_input = XR_FD_INIT(STDIN_FILENO, EPOLLIN, read_input);

/* ---- the server ---- */

static void
count_opened(struct xr_conn *conn, int status)
{
	(void)conn;
	g_open += status == 0;
}

static void
count_closed(struct xr_conn *conn, int reason)
{
	(void)conn;
	(void)reason;
	g_open--;
}

static void
send_back(struct xr_conn *conn, struct xr_iobuf *in)
{
	xr_conn_send(conn, in);
}

static const struct xr_conn_ops g_server_ops = {
	.size = sizeof g_server_ops,
	.on_open = count_opened,
	.on_data = send_back,
	.on_close = count_closed,
};

static size_t
rss_kib(void)
{
	char line[128];
	size_t kib = 0;
	FILE *file = fopen("/proc/self/status", "r");

	if (!file)
		return 0;
	while (fgets(line, sizeof line, file))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtoul(line + 6, NULL, 10);
	fclose(file);
	return kib;
}

static void
print_figures(void)
{
	struct xr_mem_info info;
	size_t in_use = 0, slots = 0, pool_kib = 0;

	for (unsigned i = 0; xr_mem_info(i, &info) == 0; i++) {
		in_use += info.in_use;
		slots += info.recv_slots;
		pool_kib += info.region_bytes / 1024;
	}
	printf("{\"connections\": %u, \"rss_kib\": %zu, \"blocks\": %zu, \"recv_slots\": %zu}\n", g_open,
	       rss_kib() - pool_kib, in_use, slots);
	fflush(stdout);
}

static int
serve(const char *address)
{
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_server_ops};
	struct xr_listener *listener;
	int err = xr_listen(NULL, address, &opts, &listener);

	if (err)
		return err;
	printf("%s\n", xr_listener_address(listener));
	fflush(stdout);
	g_on_line = print_figures;
	return 0;
}

/* ---- the client ---- */

static void
say_hello(struct xr_conn *conn, int status)
{
	struct xr_iobuf out = XR_IOBUF_INIT;

	if (status || xr_iobuf_append(&out, g_hello, sizeof g_hello) || xr_conn_send(conn, &out))
		xr_stop();
}

static void
await_echo(struct xr_conn *conn, struct xr_iobuf *in)
{
	struct xr_conn_info info = {.size = sizeof info};

	if (xr_iobuf_size(in) < sizeof g_hello)
		return;
	xr_iobuf_clear(in);
	if (++g_echoed < g_wanted)
		return;
	xr_conn_info(conn, &info);
	printf("%s\n", info.transport);
	fflush(stdout);
}

static const struct xr_conn_ops g_client_ops = {
	.size = sizeof g_client_ops,
	.on_open = say_hello,
	.on_data = await_echo,
};

static int
dial(const char *address)
{
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_client_ops, .use_rdma = XR_RDMA_AUTO};
	struct xr_conn *conn;
	int err = 0;

	for (unsigned i = 0; i < g_wanted && !err; i++)
		err = xr_dial(NULL, address, &opts, &conn);
	return err;
}

/* ---- the program ---- */

static int
begin(const char *role, int argc, char **argv)
{
	if (strcmp(role, "server") == 0 && argc == 1)
		return serve(argv[0]);
	if (strcmp(role, "client") != 0 || argc != 2)
		return -1;
	g_wanted = (unsigned)strtoul(argv[1], NULL, 10);
	return dial(argv[0]);
}

int
main(int argc, char **argv)
{
	int next, err;

	if (argc < 2)
		return 2;
	next = xr_init(argc - 1, argv + 1);
	if (next < 0)
		return 2;
	err = begin(argv[1], argc - 1 - next, argv + 1 + next);
	if (!err)
		err = xr_fd_add(&g_input);
	if (!err)
		err = xr_run();
	xr_fini();
	return err ? 1 : 0;
}
