/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For limit.py: connections that send calls of xr-perf's and read no answer until they are told to. Says "stuck" once
 * nothing leaves any more; after SIGUSR1 it reads, compares every answer, says how many there were, and ends.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xrdma/xrdma.h>

#define LOOK_US	    20000
#define QUIET_LOOKS 25
#define HEADER	    12u
#define PERIOD	    251u /* of the attachments' bytes */

static const char *g_server;
static int64_t g_connections, g_calls, g_attachment, g_use_rdma;

static const struct xr_option g_options[] = {
	{.name = "server",
	 .type = XR_OPTION_STRING,
	 .value = &g_server,
	 .default_value = "",
	 .placeholder = "ADDRESS:PORT",
	 .help = "its address"},
	{.name = "connections",
	 .type = XR_OPTION_INT,
	 .value = &g_connections,
	 .default_value = "8",
	 .min = 1,
	 .max = 1024,
	 .placeholder = "N",
	 .help = "how many"},
	{.name = "calls",
	 .type = XR_OPTION_INT,
	 .value = &g_calls,
	 .default_value = "256",
	 .min = 1,
	 .max = 1 << 20,
	 .placeholder = "N",
	 .help = "on each connection"},
	{.name = "attachment",
	 .type = XR_OPTION_INT,
	 .value = &g_attachment,
	 .default_value = "65536",
	 .min = 128,
	 .max = 1 << 24,
	 .placeholder = "N",
	 .help = "bytes of each call's"},
	{.name = "use_rdma", .type = XR_OPTION_BOOL, .value = &g_use_rdma, .default_value = "false", .help = "not TCP"},
	{0},
};

struct reader {
	struct xr_conn *conn;
	unsigned number;
	int64_t sent, answered;
	bool over;
};

static struct reader *g_readers;
static unsigned char *g_pattern; /* an attachment begins at some place in the first period */
static char *g_seen;
static volatile sig_atomic_t g_read_now;
static bool g_reading, g_said_stuck;
static int64_t g_open, g_answers, g_over, g_progress;
static unsigned g_quiet;
static const char *g_fault;

static const unsigned char *
attachment_of(const struct reader *reader, int64_t call)
{
	return g_pattern + ((uint64_t)reader->number * 17 + (uint64_t)call * 5) % PERIOD;
}

static void
fail(const char *what)
{
	if (!g_fault)
		g_fault = what;
	xr_stop();
}

/* ---- calls ---- */

static size_t
put_varint(unsigned char *to, uint64_t value)
{
	size_t len = 0;

	for (; value > 0x7F; value >>= 7)
		to[len++] = (unsigned char)(value | 0x80);
	to[len++] = (unsigned char)value;
	return len;
}

/* Header, meta and message of a call whose attachment is to come back. */
static size_t
put_front(unsigned char *to, int64_t call)
{
	static const char service[] = "\x0a\x1c\x0a\x14test.PerfTestService\x12\x04Test";
	unsigned char *at = to + HEADER;
	uint32_t size;

	memcpy(at, service, sizeof service - 1);
	at += sizeof service - 1;
	*at++ = 0x20;
	at += put_varint(at, (uint64_t)call + 1);
	*at++ = 0x28;
	at += put_varint(at, (uint64_t)g_attachment);
	size = htonl((uint32_t)(at - to - HEADER));
	memcpy(to + 8, &size, 4);
	memcpy(at, "\x08\x01", 2);
	at += 2;
	size = htonl((uint32_t)((size_t)(at - to) - HEADER + (size_t)g_attachment));
	memcpy(to, "PRPC", 4);
	memcpy(to + 4, &size, 4);
	return (size_t)(at - to);
}

static int
send_call(struct reader *reader)
{
	struct xr_iobuf frame = XR_IOBUF_INIT;
	unsigned char front[128];
	int ret = xr_iobuf_append(&frame, front, put_front(front, reader->sent));

	if (ret == 0)
		ret = xr_iobuf_append(&frame, attachment_of(reader, reader->sent), (size_t)g_attachment);
	if (ret == 0)
		ret = xr_conn_send(reader->conn, &frame);
	xr_iobuf_clear(&frame);
	return ret;
}

static void
send_calls(struct reader *reader)
{
	int ret = 0;

	while (ret == 0 && reader->sent < g_calls) {
		ret = send_call(reader);
		reader->sent += ret == 0;
	}
	if (ret && ret != -EAGAIN)
		fail(xr_strerror(ret));
}

/* ---- answers ---- */

/* The attachment is what a frame ends with. */
static bool
take_answer(struct reader *reader, struct xr_iobuf *in)
{
	unsigned char header[HEADER];
	size_t body;

	if (xr_iobuf_copy_out(in, 0, header, sizeof header) < sizeof header)
		return false;
	body = (size_t)header[4] << 24 | (size_t)header[5] << 16 | (size_t)header[6] << 8 | header[7];
	xr_conn_need(reader->conn, HEADER + body);
	if (xr_iobuf_size(in) < HEADER + body)
		return false;
	xr_conn_need(reader->conn, 1);
	if (memcmp(header, "PRPC", 4) != 0 || body < (size_t)g_attachment) {
		fail("this is no answer");
		return false;
	}
	xr_iobuf_copy_out(in, HEADER + body - (size_t)g_attachment, g_seen, (size_t)g_attachment);
	if (memcmp(g_seen, attachment_of(reader, reader->answered), (size_t)g_attachment) != 0)
		fail("an attachment differs");
	xr_iobuf_drop(in, HEADER + body);
	reader->answered++;
	g_answers++;
	return true;
}

static void
on_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	struct reader *reader = xr_conn_arg(conn);

	while (take_answer(reader, in))
		;
	if (reader->answered == g_calls)
		xr_conn_close(conn);
}

/* ---- their lives ---- */

static void
on_open(struct xr_conn *conn, int status)
{
	struct xr_conn_info info = {.size = sizeof info};

	if (status) {
		fail(xr_strerror(status));
		return;
	}
	xr_conn_info(conn, &info);
	if (g_use_rdma && strcmp(info.transport, "rdma") != 0)
		fail("a connection is not on RDMA");
	g_open++;
	xr_conn_pause(conn);
	send_calls(xr_conn_arg(conn));
}

static void
on_writable(struct xr_conn *conn)
{
	send_calls(xr_conn_arg(conn));
}

static void
on_close(struct xr_conn *conn, int reason)
{
	struct reader *reader = xr_conn_arg(conn);

	reader->over = true;
	if (reason || reader->answered < g_calls)
		fail(reason ? xr_strerror(reason) : "closed before all answers had come");
	if (++g_over == g_connections)
		xr_stop();
}

static const struct xr_conn_ops g_ops = {
	.size = sizeof(struct xr_conn_ops),
	.on_open = on_open,
	.on_data = on_data,
	.on_writable = on_writable,
	.on_close = on_close,
};

static int64_t
left_so_far(void)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < g_connections; i++) {
		struct xr_conn_info info = {.size = sizeof info};

		xr_conn_info(g_readers[i].conn, &info);
		sum += (int64_t)info.bytes_out;
	}
	return sum;
}

static void
look_for_stillness(void)
{
	int64_t left = left_so_far();

	g_quiet = left == g_progress && g_open == g_connections ? g_quiet + 1 : 0;
	g_progress = left;
	if (g_quiet < QUIET_LOOKS)
		return;
	g_said_stuck = true;
	printf("stuck with %lld KiB sent\n", (long long)left >> 10);
	fflush(stdout);
}

static void
look(struct xr_timer *timer)
{
	(void)timer;
	if (!g_said_stuck)
		look_for_stillness();
	if (g_reading || !g_read_now)
		return;
	g_reading = true;
	for (int64_t i = 0; i < g_connections; i++)
		if (!g_readers[i].over)
			xr_conn_resume(g_readers[i].conn);
}

static void
read_now(int number)
{
	(void)number;
	g_read_now = 1;
}

static int
dial_all(void)
{
	struct xr_dial_opts opts = {
		.size = sizeof opts,
		.ops = &g_ops,
		.use_rdma = g_use_rdma ? XR_RDMA_AUTO : XR_RDMA_NO,
		.connect_timeout_ms = 60000,
	};
	int ret = 0;

	for (int64_t i = 0; i < g_connections && ret == 0; i++) {
		g_readers[i].number = (unsigned)i;
		opts.arg = &g_readers[i];
		ret = xr_dial(NULL, g_server, &opts, &g_readers[i].conn);
	}
	return ret;
}

static int
run(void)
{
	struct xr_timer timer = XR_TIMER_INIT(look);
	int ret;

	g_readers = calloc((size_t)g_connections, sizeof *g_readers);
	g_pattern = malloc((size_t)g_attachment + PERIOD);
	g_seen = malloc((size_t)g_attachment);
	if (!g_readers || !g_pattern || !g_seen)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)g_attachment + PERIOD; i++)
		g_pattern[i] = (unsigned char)(i % PERIOD);
	xr_timer_arm(&timer, LOOK_US, LOOK_US);
	ret = dial_all();
	return ret ? ret : xr_run();
}

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = read_now};
	int ret;

	xr_option_register(g_options);
	ret = xr_init(argc, argv);
	if (ret < 0)
		return 2;
	sigaction(SIGUSR1, &action, NULL);
	xr_handle_signals();
	ret = run();
	if (ret && !g_fault)
		g_fault = xr_strerror(ret);
	if (g_fault)
		fprintf(stderr, "late_reader: %s\n", g_fault);
	printf("%lld answers compared\n", (long long)g_answers);
	xr_fini();
	free(g_readers);
	free(g_pattern);
	free(g_seen);
	return g_fault ? 1 : 0;
}
