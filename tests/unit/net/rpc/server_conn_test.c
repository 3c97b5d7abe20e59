/* SPDX-License-Identifier: Apache-2.0 */

/* Requests as they come over a plain socket, also those that no client would send. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include "tests/unit/vectors.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct xr_rpc_server *g_server;

/* Runs peer against an echo server on that many lcores. */
static void
with_server(unsigned lcores, void (*peer)(void *arg), void *arg)
{
	net_up(lcores, NULL);
	g_server = echo_server();
	net_run(peer, arg);
	xr_rpc_server_close(g_server);
	net_down();
}

static int
connect_to_server(void)
{
	return raw_connect(xr_rpc_server_address(g_server, 0));
}

/* Sends a request and checks the number of the error that answers it; text NULL: any. */
static void
expect_error(int fd, const struct raw_out *out, int error_code, const char *text)
{
	struct raw_in in;

	raw_send_frame(fd, out);
	if (NET_CHECK(raw_read_frame(fd, &in))) {
		NET_CHECK(in.meta.error_code == error_code);
		NET_CHECK(in.meta.correlation_id == out->id);
		NET_CHECK(in.message_size == 0 && in.attachment_size == 0);
		NET_CHECK(in.meta.error_text[0] != '\0');
		if (text)
			NET_CHECK(strcmp(in.meta.error_text, text) == 0);
	}
	raw_in_clear(&in);
}

static void
expect_echo(int fd, int64_t id, size_t attachment_size)
{
	uint8_t *attachment = malloc(attachment_size + 1);
	struct raw_out out = {.service = "test.Echo", .method = "Echo", .id = id, .message = "hi", .message_size = 2};
	struct raw_in in;

	memset(attachment, (int)id, attachment_size);
	out.attachment = attachment;
	out.attachment_size = attachment_size;
	raw_send_frame(fd, &out);
	if (NET_CHECK(raw_read_frame(fd, &in))) {
		NET_CHECK(in.meta.error_code == 0 && in.meta.correlation_id == id);
		NET_CHECK(in.message_size == 2 && memcmp(in.message, "hi", 2) == 0);
		NET_CHECK(in.attachment_size == attachment_size &&
			  memcmp(in.attachment, attachment, attachment_size) == 0);
	}
	raw_in_clear(&in);
	free(attachment);
}

/* ---- captured bytes ---- */

static void
serve_perf(struct xr_rpc_call *call, void *arg)
{
	struct xr_iobuf message = XR_IOBUF_INIT;

	(void)arg;
	NET_CHECK(xr_iobuf_append(&message,
				  "\x0a\x05"
				  "0.342",
				  7) == 0);
	xr_rpc_reply(call, &message, xr_rpc_call_attachment(call));
}

static void
replay(int fd, const char *request, const char *response, size_t piece)
{
	uint8_t sent[256], expected[256], got[256];
	size_t sent_size = vector_load(request, sent, sizeof sent);
	size_t expected_size = vector_load(response, expected, sizeof expected);

	for (size_t at = 0; at < sent_size; at += piece) {
		raw_send(fd, sent + at, sent_size - at < piece ? sent_size - at : piece);
		if (piece < sent_size)
			net_sleep_ms(1);
	}
	NET_CHECK(raw_read(fd, got, expected_size));
	NET_CHECK(memcmp(got, expected, expected_size) == 0);
}

static void
replay_captured(void *arg)
{
	int fd = connect_to_server();

	(void)arg;
	replay(fd, "rpc-warmup-request", "rpc-warmup-response", 256);
	replay(fd, "rpc-echo16-request", "rpc-echo16-response", 256);
	replay(fd, "rpc-echo16-request", "rpc-echo16-response", 1);
	replay(fd, "rpc-echo16-request", "rpc-echo16-response", 13);
	close(fd);
	xr_stop();
}

static void
test_captured_bytes(void)
{
	net_up(1, NULL);
	ASSERT_FATAL(xr_rpc_server_open(NULL, &g_server) == 0);
	ASSERT_EQ(xr_rpc_server_add(g_server, "test.PerfTestService", "Test", serve_perf, NULL), 0);
	ASSERT_FATAL(xr_rpc_server_listen(g_server, NULL, "127.0.0.1:0") == 0);
	net_run(replay_captured, NULL);
	xr_rpc_server_close(g_server);
	net_down();
}

/* ---- requests answered with an error: the connection goes on ---- */

static void
send_bad_requests(void *arg)
{
	struct raw_out out = {.service = "test.Echo", .method = "Echo", .id = 7, .message = "abcd", .message_size = 4};
	struct raw_out bad;
	int fd = connect_to_server();

	(void)arg;
	bad = out, bad.service = "Unknown";
	expect_error(fd, &bad, XR_RPC_ENOSERVICE, "no such service");
	bad = out, bad.service = "unknown.Echo";
	expect_error(fd, &bad, XR_RPC_ENOMETHOD, "no such method");
	bad = out, bad.service = "Echo", bad.method = "None";
	expect_error(fd, &bad, XR_RPC_ENOMETHOD, NULL);
	bad = out, bad.claimed_attachment = 5;
	expect_error(fd, &bad, XR_RPC_EREQUEST, "attachment_size does not fit into the frame");
	bad = out, bad.claimed_attachment = -1;
	expect_error(fd, &bad, XR_RPC_EREQUEST, NULL);
	bad = out, bad.claimed_attachment = INT32_MIN;
	expect_error(fd, &bad, XR_RPC_EREQUEST, NULL);
	bad = out, bad.compress_type = 2;
	expect_error(fd, &bad, XR_RPC_EREQUEST,
		     "compressed requests are not supported: compress_type must be 0 (none)");
	bad = out, bad.no_part = true;
	expect_error(fd, &bad, XR_RPC_EREQUEST, "the meta holds no request");
	bad = out, bad.id = INT64_MIN, bad.service = "X";
	expect_error(fd, &bad, XR_RPC_ENOSERVICE, NULL);
	expect_echo(fd, 8, 100);
	close(fd);
	xr_stop();
}

static void
test_bad_requests(void)
{
	with_server(1, send_bad_requests, NULL);
}

static void
send_failing(void *arg)
{
	static const struct {
		const char *message;
		int code;
		const char *text;
	} cases[] = {
		{"4242 own text", 4242, "own text"}, {"2004", 2004, "too many calls at once"},
		{"0 x", XR_RPC_EINTERNAL, "x"},	     {"-1 y", XR_RPC_EINTERNAL, "y"},
		{"112", 112, "Host is down"},
	};
	int fd = connect_to_server();

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct raw_out out = {.service = "Echo",
				      .method = "Fail",
				      .id = (int64_t)i,
				      .attachment = "zz",
				      .attachment_size = 2};

		out.message = cases[i].message;
		out.message_size = strlen(cases[i].message);
		expect_error(fd, &out, cases[i].code, cases[i].text);
	}
	NET_CHECK(rpc_counted(RPC_REQUESTS_FAILED) == 5);
	close(fd);
	xr_stop();
}

static void
test_errors_by_number(void)
{
	with_server(1, send_failing, NULL);
}

/* ---- what closes a connection, and only that one ---- */

struct hostile {
	const char *bytes;
	size_t size;
	const char *logged;
};

static const struct hostile hostile[] = {
	{"GET / HTTP/1.1\r\n\r\n", 18, "does not begin with PRPC"},
	{"X", 1, "does not begin with PRPC"},
	{"STRM\0\0\0\0\0\0\0\0", 12, "does not begin with PRPC"},
	{"PRPC\x80\0\0\0\0\0\0\x10", 12, "larger than max_body_size"},
	{"PRPC\0\0\0\1\0\0\0\2", 12, "the meta is larger than the body"},
	{"PRPC\0\0\0\2\0\0\0\2\x20\xff", 14, "RpcMeta does not decode"},
	{"PRPC\0\0\0\2\0\0\0\2\x0a\0", 14, "RpcMeta does not decode"},
	{"PRPC\0\2\0\0\0\1\0\1", 12, "the meta is larger than 64 KiB"},
};

static void
be_hostile(void *arg)
{
	const struct hostile *what = arg;
	int good = connect_to_server(), bad = connect_to_server();

	expect_echo(good, 1, 10);
	raw_send(bad, what->bytes, what->size);
	NET_CHECK(raw_await_end(bad) != -EAGAIN);
	expect_echo(good, 2, 10);
	NET_CHECK(net_logged(what->logged));
	NET_CHECK(rpc_counted(RPC_FRAMES_REFUSED) == 1);
	close(bad);
	close(good);
	xr_stop();
}

static void
test_hostile(void)
{
	for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++)
		with_server(1, be_hostile, (void *)&hostile[i]);
}

static void
end_within_a_frame(void *arg)
{
	struct raw_out out = {.service = "test.Echo", .method = "Echo", .id = 1, .message = "abc", .message_size = 3};
	int good = connect_to_server();
	size_t size;
	uint8_t *bytes = raw_frame(&out, &size);

	(void)arg;
	for (size_t len = 1; len < size; len++) {
		int fd = connect_to_server();

		raw_send(fd, bytes, len);
		close(fd);
	}
	expect_echo(good, 2, 10);
	free(bytes);
	close(good);
	xr_stop();
}

static void
test_end_within_a_frame(void)
{
	with_server(2, end_within_a_frame, NULL);
}

static void
exceed_limit(void *arg)
{
	int fd = connect_to_server();
	uint8_t attachment[1000] = {0};
	struct raw_out out = {.service = "test.Echo", .method = "Echo", .id = 1, .attachment = attachment};

	(void)arg;
	expect_echo(fd, 1, 900);
	out.attachment_size = sizeof attachment;
	raw_send_frame(fd, &out);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	xr_stop();
}

static void
echo_simply(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	xr_rpc_reply(call, xr_rpc_call_message(call), xr_rpc_call_attachment(call));
}

static void
test_max_body_size(void)
{
	const struct xr_rpc_server_opts opts = {.size = sizeof opts, .max_body_size = 1000};

	net_up(1, NULL);
	ASSERT_FATAL(xr_rpc_server_open(&opts, &g_server) == 0);
	ASSERT_EQ(xr_rpc_server_add(g_server, "test.Echo", "Echo", echo_simply, NULL), 0);
	ASSERT_FATAL(xr_rpc_server_listen(g_server, NULL, "127.0.0.1:0") == 0);
	net_run(exceed_limit, NULL);
	xr_rpc_server_close(g_server);
	net_down();
}

/* ---- streams ---- */

/* A frame larger than conn_input_limit_kb must not wait for ever. */
static void
send_large(void *arg)
{
	int fd = connect_to_server();

	(void)arg;
	expect_echo(fd, 1, 4 << 20);
	expect_echo(fd, 2, 0);
	expect_echo(fd, 3, 3 << 20);
	close(fd);
	xr_stop();
}

static void
test_larger_than_the_input_limit(void)
{
	with_server(1, send_large, NULL);
}

#define PIPELINED 2000

static void
pipeline(void *arg)
{
	int fd = connect_to_server();
	uint8_t *all = malloc(PIPELINED * 256);
	size_t used = 0;

	(void)arg;
	for (int i = 0; i < PIPELINED; i++) {
		struct raw_out out = {
			.service = "test.Echo", .method = "Echo", .id = i, .message = &i, .message_size = sizeof i};
		size_t size;
		uint8_t *bytes = raw_frame(&out, &size);

		memcpy(all + used, bytes, size);
		used += size;
		free(bytes);
	}
	raw_send(fd, all, used);
	for (int i = 0; i < PIPELINED; i++) {
		struct raw_in in;

		NET_CHECK(raw_read_frame(fd, &in) && in.meta.correlation_id == i && in.message_size == sizeof i &&
			  memcmp(in.message, &i, sizeof i) == 0);
		raw_in_clear(&in);
	}
	NET_CHECK(rpc_counted(RPC_REQUESTS) == PIPELINED);
	free(all);
	close(fd);
	xr_stop();
}

static void
test_pipelined(void)
{
	with_server(1, pipeline, NULL);
}

#define SLOW_CALLS 300
#define SLOW_BYTES (128 << 10)

static void *
send_slowly(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *attachment = calloc(1, SLOW_BYTES);

	for (int i = 0; i < SLOW_CALLS; i++) {
		struct raw_out out = {.service = "test.Echo",
				      .method = "Echo",
				      .id = i,
				      .attachment = attachment,
				      .attachment_size = SLOW_BYTES};

		raw_send_frame(fd, &out);
	}
	free(attachment);
	return NULL;
}

/* The client sends 37 MiB and reads nothing until the server can queue no more answers. */
static void
read_late(void *arg)
{
	int fd = connect_to_server();
	pthread_t sender;

	(void)arg;
	NET_CHECK(pthread_create(&sender, NULL, send_slowly, &fd) == 0);
	NET_AWAIT(net_counted(NET_OUTPUT_FULL) > 0);
	NET_CHECK(rpc_counted(RPC_REQUESTS) < SLOW_CALLS);
	for (int i = 0; i < SLOW_CALLS; i++) {
		struct raw_in in;

		NET_CHECK(raw_read_frame(fd, &in) && in.meta.correlation_id == i && in.attachment_size == SLOW_BYTES);
		raw_in_clear(&in);
	}
	pthread_join(sender, NULL);
	expect_echo(fd, 99, 10);
	close(fd);
	xr_stop();
}

static void
test_slow_reader(void)
{
	with_server(1, read_late, NULL);
}

static void *
send_until_it_ends(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *attachment = calloc(1, SLOW_BYTES);
	struct raw_out out = {
		.service = "test.Echo", .method = "Echo", .attachment = attachment, .attachment_size = SLOW_BYTES};
	size_t size;
	uint8_t *bytes = raw_frame(&out, &size);

	while (send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size)
		;
	free(bytes);
	free(attachment);
	return NULL;
}

static void
never_read(void *arg)
{
	int fd = connect_to_server();
	pthread_t sender;

	(void)arg;
	NET_CHECK(pthread_create(&sender, NULL, send_until_it_ends, &fd) == 0);
	NET_AWAIT(net_counted(NET_OUTPUT_FULL) > 0);
	xr_stop();
	pthread_join(sender, NULL);
	close(fd);
}

static void
test_stop_with_answers_held_back(void)
{
	with_server(1, never_read, NULL);
}

UNIT_SUITE("rpc server conn", {"captured requests get the captured responses", test_captured_bytes},
	   {"bad requests are answered, the connection goes on", test_bad_requests},
	   {"errors go by their number", test_errors_by_number},
	   {"what is no frame closes its connection alone", test_hostile},
	   {"connections may end within a frame", test_end_within_a_frame},
	   {"max_body_size is a server's own", test_max_body_size},
	   {"frames larger than the input limit pass", test_larger_than_the_input_limit},
	   {"thousands of requests in one write", test_pipelined}, {"a slow reader loses nothing", test_slow_reader},
	   {"the run may end with answers held back", test_stop_with_answers_held_back});
