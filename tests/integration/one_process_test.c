/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server and client in one process, through the public headers alone: attachments and plain streams echoed and
 * compared, on one lcore and on two, in each mode. The library starts once a process, so each case has its own. What
 * XR_CLIENT_PORT holds (",rdma=require") is added to the client's port.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xrdma/xrdma.h>

#define CASE_S	   60 /* a case that takes longer has hung: SIGALRM ends it */
#define CALLS	   20 /* of each size */
#define IN_FLIGHT  4
#define STREAM	   (8u << 20)
#define STREAM_PUT 100000u

static const size_t sizes[] = {0, 1, 64, 511, 512, 8160, 8161, 65536, 4u << 20};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* What a case's process says by its exit status. */
enum {
	GOOD,
	BAD_SETUP,
	BAD_CALL,
	BAD_DATA,
	BAD_END,
};

static int g_outcome = GOOD;

static void
give_up(int outcome, const char *what, const char *why)
{
	fprintf(stderr, "one_process: %s: %s\n", what, why);
	if (g_outcome == GOOD)
		g_outcome = outcome;
	xr_stop();
}

static int
must(int err, const char *what)
{
	if (err)
		give_up(BAD_SETUP, what, xr_strerror(err));
	return err;
}

/* Bytes that differ with the place and with the seed. */
static int
append_pattern(struct xr_iobuf *buf, size_t from, size_t len, unsigned seed)
{
	for (size_t done = 0; done < len;) {
		size_t got;
		uint8_t *room = xr_iobuf_reserve(buf, len - done, &got);

		if (!room)
			return -errno;
		for (size_t i = 0; i < got; i++)
			room[i] = (uint8_t)((from + done + i) * 131 + (from + done + i) / 251 + seed);
		xr_iobuf_commit(buf, got);
		done += got;
	}
	return 0;
}

/* ---- calls ---- */

struct rpc_case {
	struct xr_msg start;
	struct xr_rpc_server *server;
	struct xr_rpc_channel *channel;
	size_t size_at;		 /* index into sizes */
	unsigned begun, pending; /* calls of this size */
};

struct rpc_slot {
	struct rpc_case *rpc;
	struct xr_iobuf sent;
};

static void next_calls(struct rpc_case *rpc);

static void
echo_call(struct xr_rpc_call *call, void *arg)
{
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;

	(void)arg;
	if (xr_iobuf_move(&message, xr_rpc_call_message(call)) != 0 ||
	    xr_iobuf_move(&attachment, xr_rpc_call_attachment(call)) != 0)
		xr_rpc_fail(call, XR_RPC_EINTERNAL, "out of memory");
	else
		xr_rpc_reply(call, &message, &attachment);
}

static void
call_done(const struct xr_rpc_response *response, void *arg)
{
	struct rpc_slot *slot = arg;
	struct rpc_case *rpc = slot->rpc;

	rpc->pending--;
	if (response->error_code != 0)
		give_up(BAD_CALL, "call", response->error_text);
	else if (!xr_iobuf_equal(response->attachment, &slot->sent))
		give_up(BAD_DATA, "call", "the attachment differs");
	xr_iobuf_clear(&slot->sent);
	free(slot);
	next_calls(rpc);
}

static int
begin_call(struct rpc_case *rpc)
{
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	struct xr_rpc_request request = {
		.size = sizeof request,
		.service = "test.Echo",
		.method = "Echo",
		.message = &message,
		.attachment = &attachment,
	};
	struct rpc_slot *slot = calloc(1, sizeof *slot);
	int err = slot ? 0 : -ENOMEM;

	if (!err)
		err = append_pattern(&slot->sent, 0, sizes[rpc->size_at], rpc->begun);
	if (!err)
		err = xr_iobuf_share(&attachment, &slot->sent);
	if (!err)
		err = xr_iobuf_append(&message, "hello", 5);
	if (!err) {
		slot->rpc = rpc;
		err = xr_rpc_call(rpc->channel, &request, call_done, slot, NULL);
	}
	if (err) {
		xr_iobuf_clear(&message);
		xr_iobuf_clear(&attachment);
		if (slot)
			xr_iobuf_clear(&slot->sent);
		free(slot);
	}
	return err;
}

/* Keeps calls of one size in flight, then goes on to the next size, then ends. */
static void
next_calls(struct rpc_case *rpc)
{
	if (g_outcome != GOOD)
		return;
	if (rpc->begun == CALLS && rpc->pending == 0) {
		rpc->begun = 0;
		if (++rpc->size_at == COUNT_OF(sizes)) {
			xr_stop();
			return;
		}
	}
	while (rpc->pending < IN_FLIGHT && rpc->begun < CALLS) {
		int err = begin_call(rpc);

		if (err == -EAGAIN && rpc->pending > 0)
			return;
		if (err) {
			give_up(BAD_CALL, "xr_rpc_call", xr_strerror(err));
			return;
		}
		rpc->begun++;
		rpc->pending++;
	}
}

static void
start_calls(struct xr_msg *msg, int status)
{
	struct rpc_case *rpc = (struct rpc_case *)(void *)msg;

	if (status == 0)
		next_calls(rpc);
}

static void
rpc_set_up(struct rpc_case *rpc, unsigned client_lcore)
{
	/* Far above what a sanitizer on a busy machine takes: no test here is about the time of a call. */
	struct xr_rpc_channel_opts opts = {
		.size = sizeof opts,
		.port = xr_port_find("client"),
		.timeout_ms = 20000,
	};

	if (must(xr_rpc_server_open(NULL, &rpc->server), "xr_rpc_server_open") ||
	    must(xr_rpc_server_add(rpc->server, "test.Echo", "Echo", echo_call, NULL), "xr_rpc_server_add") ||
	    must(xr_rpc_server_listen(rpc->server, xr_port_find("server"), "127.0.0.1:0"), "xr_rpc_server_listen"))
		return;
	opts.address = xr_rpc_server_address(rpc->server, 0);
	if (must(xr_rpc_channel_open(&opts, &rpc->channel), "xr_rpc_channel_open"))
		return;
	rpc->start = (struct xr_msg)XR_MSG_INIT(start_calls);
	must(xr_post(client_lcore, &rpc->start), "xr_post");
}

static void
run_rpc(unsigned client_lcore)
{
	struct rpc_case rpc = {0};

	rpc_set_up(&rpc, client_lcore);
	must(xr_run(), "xr_run");
	if (g_outcome == GOOD && rpc.size_at != COUNT_OF(sizes))
		give_up(BAD_END, "calls", "ended early");
	if (rpc.channel)
		xr_rpc_channel_close(rpc.channel);
	if (rpc.server)
		xr_rpc_server_close(rpc.server);
}

/* ---- streams ---- */

struct stream_case {
	struct xr_msg start;
	struct xr_listener *listener;
	size_t sent, received;
	bool opened;
};

/* The server sends back what it gets; what its queue does not take waits in the input. */
static void
echo_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	int err = xr_conn_send(conn, in);

	if (err && err != -EAGAIN)
		xr_conn_abort(conn, err);
}

static const struct xr_conn_ops echo_ops = {
	.size = sizeof echo_ops,
	.on_data = echo_data,
	.on_writable = xr_conn_resume,
};

static void
send_more(struct xr_conn *conn)
{
	struct stream_case *stream = xr_conn_arg(conn);

	while (stream->sent < STREAM) {
		struct xr_iobuf out = XR_IOBUF_INIT;
		size_t len = STREAM - stream->sent < STREAM_PUT ? STREAM - stream->sent : STREAM_PUT;
		int err = append_pattern(&out, stream->sent, len, 7);

		if (!err)
			err = xr_conn_send(conn, &out);
		xr_iobuf_clear(&out);
		if (err == -EAGAIN)
			return;
		if (err) {
			give_up(BAD_CALL, "xr_conn_send", xr_strerror(err));
			return;
		}
		stream->sent += len;
	}
}

static void
stream_open(struct xr_conn *conn, int status)
{
	struct stream_case *stream = xr_conn_arg(conn);

	if (status != 0) {
		give_up(BAD_SETUP, "xr_dial", xr_strerror(status));
		return;
	}
	stream->opened = true;
	send_more(conn);
}

static void
check_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	struct stream_case *stream = xr_conn_arg(conn);
	struct xr_iobuf expected = XR_IOBUF_INIT;
	int err = append_pattern(&expected, stream->received, xr_iobuf_size(in), 7);

	if (err)
		give_up(BAD_CALL, "pattern", xr_strerror(err));
	else if (!xr_iobuf_equal(in, &expected))
		give_up(BAD_DATA, "stream", "the bytes differ");
	xr_iobuf_clear(&expected);
	stream->received += xr_iobuf_size(in);
	xr_iobuf_clear(in);
	if (stream->received == STREAM)
		xr_conn_close(conn);
}

static void
stream_closed(struct xr_conn *conn, int reason)
{
	struct stream_case *stream = xr_conn_arg(conn);

	if (reason != 0 || stream->received != STREAM)
		give_up(BAD_END, "stream", xr_strerror(reason));
	xr_stop();
}

static const struct xr_conn_ops stream_ops = {
	.size = sizeof stream_ops,
	.on_open = stream_open,
	.on_data = check_data,
	.on_writable = send_more,
	.on_close = stream_closed,
};

static void
start_stream(struct xr_msg *msg, int status)
{
	struct stream_case *stream = (struct stream_case *)(void *)msg;
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &stream_ops, .arg = stream};
	struct xr_conn *conn;

	if (status == 0)
		must(xr_dial(xr_port_find("client"), xr_listener_address(stream->listener), &opts, &conn), "xr_dial");
}

static void
run_stream(unsigned client_lcore)
{
	struct stream_case stream = {.start = XR_MSG_INIT(start_stream)};
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &echo_ops};

	if (!must(xr_listen(xr_port_find("server"), "127.0.0.1:0", &opts, &stream.listener), "xr_listen"))
		must(xr_post(client_lcore, &stream.start), "xr_post");
	must(xr_run(), "xr_run");
	if (g_outcome == GOOD && (!stream.opened || stream.received != STREAM))
		give_up(BAD_END, "stream", "ended early");
}

/* ---- cases ---- */

/* In a process of its own: lcores "0@A,1@B", or lcore 0 alone for both sides. */
static int
run_case(void (*run)(unsigned client_lcore), const char *mode, const unsigned cpus[2])
{
	bool apart = cpus[0] != cpus[1];
	const char *more = getenv("XR_CLIENT_PORT");
	char lcores[64], standard[64], server[64], client[128];
	char *argv[] = {"one_process", "--lcores", lcores,   "--port", standard,
			"--port",      server,	   "--port", client,   NULL};

	snprintf(lcores, sizeof lcores, apart ? "0@%u,1@%u" : "0@%u", cpus[0], cpus[1]);
	/* The default port is on every lcore, whether it is used or not, and has a say in how it waits. */
	snprintf(standard, sizeof standard, "default,mode=%s", mode);
	snprintf(server, sizeof server, "server,mode=%s,lcores=0", mode);
	snprintf(client, sizeof client, "client,mode=%s,lcores=%d%s", mode, apart ? 1 : 0, more ? more : "");
	alarm(CASE_S);
	if (xr_init((int)COUNT_OF(argv) - 1, argv) < 0)
		return BAD_SETUP;
	run(apart ? 1 : 0);
	xr_fini();
	return g_outcome;
}

/* The first and the last processor that this process may use. */
static void
find_cpus(unsigned cpus[2])
{
	cpu_set_t allowed;
	bool found = false;

	cpus[0] = cpus[1] = 0;
	if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		return;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		if (!found)
			cpus[0] = cpu;
		cpus[1] = cpu;
		found = true;
	}
}

static void
check_case(void (*run)(unsigned client_lcore), const char *mode, bool apart)
{
	unsigned cpus[2];
	int status = -1;
	pid_t child;

	find_cpus(cpus);
	if (apart && cpus[0] == cpus[1]) {
		unit_skip("needs two processors");
		return;
	}
	if (!apart)
		cpus[1] = cpus[0];
	fflush(NULL);
	child = fork();
	ASSERT_FATAL(child >= 0);
	if (child == 0)
		exit(run_case(run, mode, cpus));
	ASSERT_EQ(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status));
	ASSERT_EQ(WEXITSTATUS(status), GOOD);
}

#define CASES(name, run, apart)                         \
	static void name##_poll(void)                   \
	{                                               \
		check_case((run), "poll", (apart));     \
	}                                               \
	static void name##_event(void)                  \
	{                                               \
		check_case((run), "event", (apart));    \
	}                                               \
	static void name##_adaptive(void)               \
	{                                               \
		check_case((run), "adaptive", (apart)); \
	}

CASES(calls_together, run_rpc, false)
CASES(calls_apart, run_rpc, true)
CASES(stream_together, run_stream, false)
CASES(stream_apart, run_stream, true)

UNIT_SUITE("one_process", {"calls on one lcore, poll", calls_together_poll},
	   {"calls on one lcore, event", calls_together_event},
	   {"calls on one lcore, adaptive", calls_together_adaptive},
	   {"calls between two lcores, poll", calls_apart_poll}, {"calls between two lcores, event", calls_apart_event},
	   {"calls between two lcores, adaptive", calls_apart_adaptive},
	   {"a stream on one lcore, poll", stream_together_poll},
	   {"a stream on one lcore, event", stream_together_event},
	   {"a stream on one lcore, adaptive", stream_together_adaptive},
	   {"a stream between two lcores, poll", stream_apart_poll},
	   {"a stream between two lcores, event", stream_apart_event},
	   {"a stream between two lcores, adaptive", stream_apart_adaptive});
