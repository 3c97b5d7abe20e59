/* SPDX-License-Identifier: Apache-2.0 */

/* Answers given within the handler, later, and on other threads. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static struct xr_rpc_server *g_server;

static void
with_server(unsigned lcores, void (*peer)(void *arg))
{
	net_up(lcores, NULL);
	g_server = echo_server();
	net_run(peer, NULL);
	xr_rpc_server_close(g_server);
	net_down();
}

static int
connect_to_server(void)
{
	return raw_connect(xr_rpc_server_address(g_server, 0));
}

static void
send_request(int fd, const char *method, int64_t id, size_t attachment_size)
{
	uint8_t *attachment = malloc(attachment_size + 1);
	const struct raw_out out = {
		.service = "test.Echo",
		.method = method,
		.id = id,
		.message = &id,
		.message_size = sizeof id,
		.attachment = attachment,
		.attachment_size = attachment_size,
	};

	memset(attachment, (int)id, attachment_size);
	raw_send_frame(fd, &out);
	free(attachment);
}

/* The answer to send_request(): its id, or -1. */
static int64_t
expect_echo(int fd, size_t attachment_size)
{
	struct raw_in in;
	int64_t id = -1;

	if (NET_CHECK(raw_read_frame(fd, &in))) {
		id = in.meta.correlation_id;
		NET_CHECK(in.meta.error_code == 0);
		NET_CHECK(in.message_size == sizeof id && memcmp(in.message, &id, sizeof id) == 0);
		NET_CHECK(in.attachment_size == attachment_size);
		for (size_t i = 0; i < in.attachment_size; i++)
			if (!NET_CHECK(in.attachment[i] == (uint8_t)id))
				break;
	}
	raw_in_clear(&in);
	return id;
}

static void
reply_echo(struct xr_rpc_call *call)
{
	xr_rpc_reply(call, xr_rpc_call_message(call), xr_rpc_call_attachment(call));
}

/* ---- on a thread that is no worker ---- */

static void
answer_in_another_order(void *arg)
{
	int fd = connect_to_server();
	struct xr_rpc_call *calls[3];

	(void)arg;
	for (int i = 0; i < 3; i++) {
		send_request(fd, "Hold", i, 100);
		calls[i] = held_take();
	}
	send_request(fd, "Echo", 7, 100);
	NET_CHECK(expect_echo(fd, 100) == 7);
	reply_echo(calls[2]);
	NET_CHECK(expect_echo(fd, 100) == 2);
	reply_echo(calls[0]);
	NET_CHECK(expect_echo(fd, 100) == 0);
	reply_echo(calls[1]);
	NET_CHECK(expect_echo(fd, 100) == 1);
	close(fd);
	xr_stop();
}

static void
test_any_order(void)
{
	with_server(1, answer_in_another_order);
}

#define ANSWERERS     4
#define CALLS_OF_EACH 200
#define FOREIGN_CALLS (ANSWERERS * CALLS_OF_EACH)
#define FOREIGN_BYTES 9000

static void *
answer_some(void *arg)
{
	(void)arg;
	for (int i = 0; i < CALLS_OF_EACH; i++)
		reply_echo(held_take());
	return NULL;
}

static void
answer_on_many_threads(void *arg)
{
	pthread_t threads[ANSWERERS];
	bool seen[FOREIGN_CALLS] = {false};
	int fd = connect_to_server();

	(void)arg;
	for (int i = 0; i < ANSWERERS; i++)
		NET_CHECK(pthread_create(&threads[i], NULL, answer_some, NULL) == 0);
	for (int i = 0; i < FOREIGN_CALLS; i++) {
		send_request(fd, "Hold", i, FOREIGN_BYTES);
		if (i >= 50) {
			int64_t id = expect_echo(fd, FOREIGN_BYTES);

			if (NET_CHECK(id >= 0 && id < FOREIGN_CALLS && !seen[id]))
				seen[id] = true;
		}
	}
	for (int i = 0; i < 50; i++)
		NET_CHECK(expect_echo(fd, FOREIGN_BYTES) >= 0);
	for (int i = 0; i < ANSWERERS; i++)
		pthread_join(threads[i], NULL);
	close(fd);
	xr_stop();
}

static void
test_many_threads(void)
{
	with_server(1, answer_on_many_threads);
	with_server(2, answer_on_many_threads);
}

static void
fail_from_elsewhere(void *arg)
{
	struct raw_in in;
	int fd = connect_to_server();

	(void)arg;
	send_request(fd, "Hold", 5, 0);
	xr_rpc_fail(held_take(), 0, "a text of a stack that is gone soon");
	NET_CHECK(raw_read_frame(fd, &in) && in.meta.error_code == XR_RPC_EINTERNAL);
	NET_CHECK(strcmp(in.meta.error_text, "a text of a stack that is gone soon") == 0);
	raw_in_clear(&in);
	close(fd);
	xr_stop();
}

static void
test_fail_from_elsewhere(void)
{
	with_server(1, fail_from_elsewhere);
}

static void
answer_nothing(void *arg)
{
	struct raw_in in;
	int fd = connect_to_server();

	(void)arg;
	send_request(fd, "Hold", 5, 1000);
	xr_rpc_reply(held_take(), NULL, NULL);
	NET_CHECK(raw_read_frame(fd, &in) && in.meta.error_code == 0);
	NET_CHECK(in.message_size == 0 && in.attachment_size == 0);
	raw_in_clear(&in);
	close(fd);
	xr_stop();
}

static void
test_answer_nothing(void)
{
	with_server(1, answer_nothing);
}

/* ---- on another lcore, and later on its own ---- */

static void
reply_of_errand(void *arg)
{
	reply_echo(arg);
}

static void
answer_on_lcores(void *arg)
{
	int fds[4];

	(void)arg;
	for (int i = 0; i < 4; i++)
		fds[i] = connect_to_server();
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < 4; i++) {
			send_request(fds[i], "Hold", i, 8160);
			on_lcore((unsigned)round % 2, reply_of_errand, held_take());
			NET_CHECK(expect_echo(fds[i], 8160) == i);
		}
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	xr_stop();
}

static void
test_lcores(void)
{
	with_server(2, answer_on_lcores);
}

/* ---- calls that outlive their connection ---- */

static void
answer_the_dead(void *arg)
{
	struct xr_rpc_call *calls[3];
	int fd = connect_to_server(), other = connect_to_server();

	(void)arg;
	for (int i = 0; i < 3; i++) {
		send_request(fd, "Hold", i, 5000);
		calls[i] = held_take();
	}
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 2);
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 1);
	reply_echo(calls[0]);
	on_lcore(0, reply_of_errand, calls[1]);
	xr_rpc_fail(calls[2], 1, NULL);
	NET_AWAIT(rpc_counted(RPC_ANSWERS_DROPPED) == 3);
	send_request(other, "Echo", 9, 10);
	NET_CHECK(expect_echo(other, 10) == 9);
	close(other);
	xr_stop();
}

static void
test_connection_gone(void)
{
	with_server(1, answer_the_dead);
	with_server(2, answer_the_dead);
}

/* ---- what the client says about itself ---- */

static int64_t g_log_id;
static int32_t g_timeout_ms;

static void
serve_told(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	g_log_id = xr_rpc_call_log_id(call);
	g_timeout_ms = xr_rpc_call_timeout_ms(call);
	xr_rpc_reply(call, NULL, NULL);
}

static void
tell(void *arg)
{
	/* test.Told/Tell, log_id 77, timeout_ms 500 */
	static const char request[] =
		"PRPC\0\0\0\x1a\0\0\0\x1a\x0a\x16\x0a\x09test.Told\x12\x04Tell\x18\x4d\x40\xf4\x03"
		"\x20\x01";
	struct raw_in in;
	int fd = connect_to_server();

	(void)arg;
	raw_send(fd, request, sizeof request - 1);
	NET_CHECK(raw_read_frame(fd, &in) && in.meta.error_code == 0 && in.meta.correlation_id == 1);
	NET_CHECK(g_log_id == 77 && g_timeout_ms == 500);
	raw_in_clear(&in);
	close(fd);
	xr_stop();
}

static void
test_told(void)
{
	net_up(1, NULL);
	ASSERT_FATAL(xr_rpc_server_open(NULL, &g_server) == 0);
	ASSERT_EQ(xr_rpc_server_add(g_server, "test.Told", "Tell", serve_told, NULL), 0);
	ASSERT_FATAL(xr_rpc_server_listen(g_server, NULL, "127.0.0.1:0") == 0);
	net_run(tell, NULL);
	xr_rpc_server_close(g_server);
	net_down();
}

/* ---- no memory for an answer ---- */

static struct xr_iobuf g_hoard;

/* Until nothing can be written any more, not even to the end of a block. */
static void
take_all_memory(void *arg)
{
	static const char bytes[8160];

	(void)arg;
	for (size_t len = sizeof bytes; len; len /= 2)
		while (xr_iobuf_append(&g_hoard, bytes, len) == 0)
			;
}

static void
give_memory_back(void *arg)
{
	(void)arg;
	xr_iobuf_clear(&g_hoard);
}

/* Answers and errors wait, the connection lives, and both come in the end. */
static void
answer_later(void *arg)
{
	int fd = connect_to_server(), other = connect_to_server();
	struct raw_in in;

	(void)arg;
	send_request(fd, "Echo", 1, 10);
	NET_CHECK(expect_echo(fd, 10) == 1);
	on_lcore(0, take_all_memory, NULL);
	send_request(fd, "Echo", 2, 20);
	send_request(fd, "Echo", 3, 30);
	send_request(other, "Nothing", 4, 0);
	NET_AWAIT(rpc_counted(RPC_ANSWERS_HELD_BACK) == 2);
	NET_CHECK(net_counted(NET_CONNS_LIVE) == 2);
	on_lcore(0, give_memory_back, NULL);
	NET_CHECK(expect_echo(fd, 20) == 2);
	NET_CHECK(expect_echo(fd, 30) == 3);
	NET_CHECK(raw_read_frame(other, &in) && in.meta.error_code == XR_RPC_ENOMETHOD && in.meta.correlation_id == 4);
	raw_in_clear(&in);
	close(fd);
	close(other);
	xr_stop();
}

static void
with_little_memory(void (*peer)(void *arg))
{
	net_up(1, "--pool_max_mb", "32", "--rdma_memory_pool_initial_size_mb", "32", NULL);
	g_server = echo_server();
	net_run(peer, NULL);
	xr_rpc_server_close(g_server);
	net_down();
}

static void
test_answers_wait_for_memory(void)
{
	with_little_memory(answer_later);
}

/* Who waits may go. */
static void
leave_while_waiting(void *arg)
{
	int fd = connect_to_server();

	(void)arg;
	on_lcore(0, take_all_memory, NULL);
	send_request(fd, "Echo", 1, 10);
	NET_AWAIT(rpc_counted(RPC_ANSWERS_HELD_BACK) == 1);
	raw_reset(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	NET_CHECK(rpc_counted(RPC_ANSWERS_DROPPED) == 1);
	on_lcore(0, give_memory_back, NULL);
	xr_stop();
}

static void
test_leaving_while_waiting(void)
{
	with_little_memory(leave_while_waiting);
}

UNIT_SUITE("rpc server call", {"answers in any order", test_any_order}, {"answers of many threads", test_many_threads},
	   {"an error from another thread", test_fail_from_elsewhere}, {"an answer of nothing", test_answer_nothing},
	   {"answers of other lcores", test_lcores}, {"answers to a connection that is gone", test_connection_gone},
	   {"log_id and timeout are told", test_told}, {"answers wait for memory", test_answers_wait_for_memory},
	   {"who waits for an answer may go", test_leaving_while_waiting});
