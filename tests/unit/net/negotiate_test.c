/* SPDX-License-Identifier: Apache-2.0 */

/* How a connection comes to its transport: hellos, refusals, deadlines, and peers that answer none. */

#include "net/negotiate.h"
#include "net/rdma_provider.h"
#include "net/turn.h"
#include "tests/unit/net/net_fixture.h"
#include "tests/unit/vectors.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xrdma/error.h>

static uint8_t g_hello[HELLO_V2_BYTES], g_refusal[HELLO_V2_BYTES];
static const uint8_t g_no_ack[HELLO_ACK_BYTES];

static void
load_messages(void)
{
	ASSERT_EQ(vector_load("hello-v2-client", g_hello, sizeof g_hello), sizeof g_hello);
	hello_v2_encode_refusal(g_refusal);
}

static void
run_server(struct probe *server, void (*peer)(void *address))
{
	load_messages();
	net_run_against(probe_listen(server, NULL), peer);
}

/* ---- a server without RDMA ---- */

static void
expect_echo(int fd, const char *text)
{
	char answer[64];
	size_t len = strlen(text);

	NET_CHECK(raw_read(fd, answer, len) && memcmp(answer, text, len) == 0);
}

static void
expect_refusal(int fd)
{
	uint8_t answer[HELLO_V2_BYTES];

	NET_CHECK(raw_read(fd, answer, sizeof answer) && memcmp(answer, g_refusal, sizeof answer) == 0);
}

static void
one_refusal(void *address)
{
	int fd = raw_connect(address);

	raw_send(fd, g_hello, sizeof g_hello);
	expect_refusal(fd);
	NET_CHECK(net_counted(NET_CONNS_OPENED) == 0);
	raw_send(fd, g_no_ack, sizeof g_no_ack);
	raw_send(fd, "service", 7);
	expect_echo(fd, "service");
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static struct xr_conn_info g_info;

static void
echo_and_info(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	g_info.size = sizeof g_info;
	xr_conn_info(conn, &g_info);
	probe_echo(probe, conn, in);
}

static void
test_refusal_then_service(void)
{
	struct probe server = {.on_data = echo_and_info};

	net_up(1, "--port", "default,mode=event", NULL);
	run_server(&server, one_refusal);
	ASSERT_EQ(server.opened, 1);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_STR(g_info.transport, "tcp");
	ASSERT_STR(g_info.state, "FALLBACK_TCP");
	ASSERT_STR(g_info.fallback_reason, rdma_provider()->reason);
	ASSERT_EQ(net_counted(NET_HANDSHAKES), 1);
	ASSERT_EQ(net_counted(NET_HANDSHAKES_REFUSED), 1);
	ASSERT_EQ(net_counted(NET_FALLBACKS), 1);
	net_down();
}

#define CUT_BYTES (HELLO_V2_BYTES + HELLO_ACK_BYTES + 6)

static void
send_in_two(const char *address, const uint8_t *bytes, size_t cut)
{
	uint64_t before = net_counted(NET_BYTES_IN);
	int fd = raw_connect(address);

	raw_send(fd, bytes, cut);
	NET_AWAIT(net_counted(NET_BYTES_IN) == before + cut);
	raw_send(fd, bytes + cut, CUT_BYTES - cut);
	expect_refusal(fd);
	expect_echo(fd, "behind");
	close(fd);
}

static void
every_cut(void *address)
{
	uint8_t bytes[CUT_BYTES];

	memcpy(bytes, g_hello, HELLO_V2_BYTES);
	memcpy(bytes + HELLO_V2_BYTES, g_no_ack, HELLO_ACK_BYTES);
	memcpy(bytes + HELLO_V2_BYTES + HELLO_ACK_BYTES, "behind", 6);
	for (size_t cut = 1; cut < CUT_BYTES; cut++)
		send_in_two(address, bytes, cut);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_every_cut(void)
{
	struct probe server = {.on_data = probe_echo};

	net_up(1, "--port", "default,mode=event", NULL);
	run_server(&server, every_cut);
	ASSERT_EQ(server.opened, CUT_BYTES - 1);
	net_down();
}

/* A hello of the allowed 4096 bytes: the tail is skipped. */
static void
long_hello(void *address)
{
	static uint8_t hello[HELLO_V2_MAX + 1];
	int fd = raw_connect(address);

	memcpy(hello, g_hello, sizeof g_hello);
	hello[4] = HELLO_V2_MAX >> 8;
	hello[5] = HELLO_V2_MAX & 0xff;
	raw_send(fd, hello, HELLO_V2_MAX);
	expect_refusal(fd);
	raw_send(fd, g_no_ack, sizeof g_no_ack);
	raw_send(fd, "service", 7);
	expect_echo(fd, "service");
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_longest_hello(void)
{
	struct probe server = {.on_data = probe_echo};

	net_up(1, NULL);
	run_server(&server, long_hello);
	ASSERT_EQ(server.opened, 1);
	net_down();
}

/* ---- bad peers, and a good one beside them that notices nothing ---- */

static int g_good;

static void
begin_good(const char *address)
{
	g_good = raw_connect(address);
	raw_send(g_good, "good", 4);
	expect_echo(g_good, "good");
}

static void
end_good(void)
{
	raw_send(g_good, "still", 5);
	expect_echo(g_good, "still");
	close(g_good);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_bad_peer(void (*peer)(void *address), const char *logged, unsigned failed)
{
	struct probe server = {.on_data = probe_echo};

	net_up(1, "--rdma_handshake_timeout_ms", "60", "--port", "default,mode=event", NULL);
	run_server(&server, peer);
	ASSERT_EQ(net_counted(NET_HANDSHAKES_FAILED), failed);
	if (!net_logged(logged))
		CU_FAIL("the reason was not logged");
	CU_ASSERT_TRUE(!failed || net_logged("connection from 127.0.0.1:"));
	ASSERT_EQ(server.opened, 1 + (failed == 0));
	net_down();
}

static void
absurd_length(void *address)
{
	int fd;

	begin_good(address);
	fd = raw_connect(address);
	raw_send(fd, "RDMA\xff\xff", 6);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	end_good();
}

static void
test_absurd_length(void)
{
	test_bad_peer(absurd_length, "a hello whose length is not 40 to 4096 bytes", 1);
}

static void
half_a_hello(void *address)
{
	int fd;

	begin_good(address);
	fd = raw_connect(address);
	raw_send(fd, g_hello, 20);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	end_good();
}

static void
test_half_a_hello(void)
{
	test_bad_peer(half_a_hello, "the peer's hello was not whole in time", 1);
}

static void
one_byte_of_magic(void *address)
{
	int fd;

	begin_good(address);
	fd = raw_connect(address);
	raw_send(fd, "R", 1);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	end_good();
}

static void
test_one_byte_of_magic(void)
{
	test_bad_peer(one_byte_of_magic, "did not come in time", 1);
}

static void
no_ack(void *address)
{
	int fd;

	begin_good(address);
	fd = raw_connect(address);
	raw_send(fd, g_hello, sizeof g_hello);
	expect_refusal(fd);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	end_good();
}

static void
test_no_ack(void)
{
	test_bad_peer(no_ack, "the peer's ACK did not come in time", 1);
}

static void
ack_for_rdma(void *address)
{
	static const uint8_t ack[HELLO_ACK_BYTES] = {0, 0, 0, 1};
	int fd;

	begin_good(address);
	fd = raw_connect(address);
	raw_send(fd, g_hello, sizeof g_hello);
	expect_refusal(fd);
	raw_send(fd, ack, sizeof ack);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	end_good();
}

static void
test_ack_for_rdma(void)
{
	test_bad_peer(ack_for_rdma, "goes on with RDMA although it was refused", 1);
}

static void
end_within_hello(void *address)
{
	int fd;

	begin_good(address);
	fd = raw_connect(address);
	raw_send(fd, g_hello, 39);
	shutdown(fd, SHUT_WR);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	end_good();
}

static void
test_end_within_hello(void)
{
	test_bad_peer(end_within_hello, "the peer closed within its hello", 1);
}

/* No hello at all is the application's, whatever it is; and silence from the start is no handshake that is late. */
static void
garbage_and_silence(void *address)
{
	int silent, fd;

	begin_good(address);
	silent = raw_connect(address);
	fd = raw_connect(address);
	raw_send(fd, "RDMB", 4);
	expect_echo(fd, "RDMB");
	net_sleep_ms(150);
	NET_CHECK(net_counted(NET_CONNS_LIVE) == 3);
	close(fd);
	close(silent);
	end_good();
}

static void
test_garbage_and_silence(void)
{
	test_bad_peer(garbage_and_silence, "", 0);
}

/* ---- rdma=off ---- */

static void
hello_as_data(void *address)
{
	uint8_t answer[sizeof g_hello];
	int fd = raw_connect(address);

	NET_AWAIT(net_counted(NET_CONNS_OPENED) == 1);
	raw_send(fd, g_hello, sizeof g_hello);
	NET_CHECK(raw_read(fd, answer, sizeof answer) && memcmp(answer, g_hello, sizeof answer) == 0);
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_port_without_rdma(void)
{
	struct probe server = {.on_data = echo_and_info};

	net_up(1, "--port", "default,rdma=off", NULL);
	run_server(&server, hello_as_data);
	ASSERT_STR(g_info.fallback_reason, "the port has rdma=off");
	ASSERT_EQ(net_counted(NET_HANDSHAKES), 0);
	net_down();
}

/* Where the peer speaks first there is time to see that its bytes are a hello. */
static void
run_refusing_port(void (*peer)(void *address))
{
	struct probe server = {.on_data = echo_and_info};
	struct xr_listen_opts opts = {
		.size = sizeof opts, .ops = &g_probe_ops, .arg = &server, .peer_speaks_first = true};
	struct xr_listener *listener;

	load_messages();
	net_up(1, "--port", "default,rdma=off", NULL);
	ASSERT_FATAL(xr_listen(NULL, "127.0.0.1:0", &opts, &listener) == 0);
	net_run_against(listener, peer);
	ASSERT_EQ(server.opened, 1);
	ASSERT_EQ(server.close_reason, 0);
	ASSERT_STR(g_info.transport, "tcp");
	ASSERT_STR(g_info.fallback_reason, "the port has rdma=off");
	net_down();
}

static void
service_at_once(void *address)
{
	int fd = raw_connect(address);

	raw_send(fd, "service", 7);
	expect_echo(fd, "service");
	close(fd);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	NET_CHECK(net_counted(NET_HANDSHAKES) == 0);
	xr_stop();
}

static void
test_port_without_rdma_refuses(void)
{
	run_refusing_port(one_refusal);
	run_refusing_port(service_at_once);
}

/* ---- a client of a process without RDMA ---- */

static void
say_and_close(struct probe *probe, struct xr_conn *conn, int status)
{
	g_info.size = sizeof g_info;
	xr_conn_info(conn, &g_info);
	(void)probe;
	if (status == 0) {
		NET_CHECK(send_pattern(conn, 0, 10) == 0);
		xr_conn_close(conn);
	}
}

static void
client_without_rdma(const char *port, enum xr_use_rdma use_rdma, int status, const char *reason)
{
	struct probe server = {0}, client = {.on_open = say_and_close, .on_close = probe_stop_on_close};

	net_up(1, "--port", port, NULL);
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), use_rdma);
	ASSERT_EQ(client.opened, 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.open_status, status);
	ASSERT_EQ(client.close_reason, status);
	ASSERT_STR(g_info.fallback_reason, reason ? reason : rdma_provider()->reason);
	ASSERT_EQ(net_counted(NET_HANDSHAKES), 0);
	ASSERT_EQ(net_counted(NET_FALLBACKS), status == 0 && use_rdma == XR_RDMA_AUTO);
	net_down();
}

static void
test_client_without_rdma(void)
{
	client_without_rdma("default", XR_RDMA_NO, 0, "not asked for");
	client_without_rdma("default", XR_RDMA_AUTO, 0, NULL);
	client_without_rdma("default", XR_RDMA_REQUIRE, -EPROTONOSUPPORT, NULL);
	client_without_rdma("default,rdma=require", XR_RDMA_NO, -EPROTONOSUPPORT, NULL);
	client_without_rdma("default,rdma=off", XR_RDMA_AUTO, 0, "the port has rdma=off");
	client_without_rdma("default,rdma=off", XR_RDMA_REQUIRE, -EPROTONOSUPPORT, "the port has rdma=off");
}

/* ---- a client with a provider of RDMA, against plain servers ---- */

static int g_alloc_ret, g_bring_up_ret, g_attach_ret;

static int
fake_alloc(void *arg, struct hello *own, const char **why)
{
	const struct xr_conn *conn = arg;

	NET_CHECK(conn->state == CONN_NEGOTIATING);
	own->block_size = 8160;
	own->sq_size = own->rq_size = 128;
	own->gid[15] = 1;
	own->qp_num = 17;
	if (g_alloc_ret)
		*why = "no queue pair left";
	return g_alloc_ret;
}

static int
fake_bring_up(void *arg, const struct hello *peer, const char **why)
{
	(void)arg;
	NET_CHECK(peer->qp_num != 0);
	if (g_bring_up_ret)
		*why = "no route";
	return g_bring_up_ret;
}

static const struct handshake_ops g_fake_ops = {.alloc = fake_alloc, .bring_up = fake_bring_up};

/* The bytes still go over the socket; what counts is that the connection asks this link. */
static struct link_ops g_fake_link;

static int
fake_attach(struct xr_conn *conn)
{
	g_fake_link = g_tcp_link;
	g_fake_link.transport = "rdma";
	if (g_attach_ret == 0)
		conn->link = &g_fake_link;
	return g_attach_ret;
}

static const struct rdma_provider g_fake_provider = {.ops = &g_fake_ops, .reason = "", .attach = fake_attach};

/* A server that is played by a thread: what it does with each connection in turn. */
struct script {
	char address[64];
	int listener;
	void (*play[4])(int fd);
};

static void
play(void *arg)
{
	struct script *script = arg;

	for (int i = 0; i < 4 && script->play[i]; i++) {
		int fd = raw_accept(script->listener);

		script->play[i](fd);
		close(fd);
	}
}

static void
expect_hello(int fd)
{
	uint8_t hello[HELLO_V2_BYTES];

	NET_CHECK(raw_read(fd, hello, sizeof hello) && memcmp(hello, "RDMA\0\x28\0\2\0\1", 10) == 0);
}

static void
expect_data_and_end(int fd)
{
	uint8_t data[10];

	NET_CHECK(raw_read(fd, data, sizeof data));
	NET_CHECK(memcmp(data, "RDMA", 4) != 0);
	NET_CHECK(raw_await_end(fd) == 0);
}

static void
refuse(int fd)
{
	uint8_t ack[HELLO_ACK_BYTES];

	expect_hello(fd);
	raw_send(fd, g_refusal, sizeof g_refusal);
	NET_CHECK(raw_read(fd, ack, sizeof ack) && memcmp(ack, g_no_ack, sizeof ack) == 0);
	expect_data_and_end(fd);
}

static void
accept_rdma(int fd)
{
	uint8_t ack[HELLO_ACK_BYTES];

	expect_hello(fd);
	raw_send(fd, g_hello, sizeof g_hello);
	NET_CHECK(raw_read(fd, ack, sizeof ack));
	if (ack[3] == 0)
		expect_data_and_end(fd);
	else
		NET_CHECK(raw_await_end(fd) != -EAGAIN);
}

static void
answer_nonsense(int fd)
{
	expect_hello(fd);
	raw_send(fd, "HTTP/1.1 400 Bad Request", 24);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
}

static void
close_at_hello(int fd)
{
	expect_hello(fd);
}

static void
reset_at_hello(int fd)
{
	char byte;

	NET_CHECK(raw_read(fd, &byte, 1));
}

static void
stay_silent(int fd)
{
	expect_hello(fd);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
}

static void
begin_script(struct script *script, struct probe *client, enum xr_use_rdma use_rdma)
{
	load_messages();
	net_up(1, "--rdma_handshake_timeout_ms", "60", NULL);
	rdma_provider_set(&g_fake_provider);
	script->listener = raw_listen(script->address);
	probe_dial(client, script->address, use_rdma);
}

static void
end_script(struct script *script)
{
	close(script->listener);
	net_down();
	g_alloc_ret = g_bring_up_ret = g_attach_ret = 0;
}

static void
dial_script(enum xr_use_rdma use_rdma, void (*first)(int fd), void (*second)(int fd), int status, const char *reason)
{
	struct probe client = {.on_open = say_and_close, .on_close = probe_stop_on_close};
	struct script script = {.play = {first, second}};

	begin_script(&script, &client, use_rdma);
	net_run(play, &script);
	ASSERT_EQ(client.opened, 1);
	ASSERT_EQ(client.open_status, status);
	ASSERT_EQ(client.close_reason, status);
	ASSERT_STR(g_info.fallback_reason, reason);
	if (status == 0) {
		ASSERT_STR(g_info.state, "FALLBACK_TCP");
		ASSERT_EQ(net_counted(NET_FALLBACKS), 1);
	}
	end_script(&script);
}

static void
test_client_is_refused(void)
{
	const char *why;
	struct hello refusal;
	size_t used;

	load_messages();
	ASSERT_EQ(hello_v2_decode(g_refusal, sizeof g_refusal, &refusal, &used), HELLO_GOT);
	CU_ASSERT_FALSE(hello_v2_negotiable(&refusal, &why));
	dial_script(XR_RDMA_AUTO, refuse, NULL, 0, why);
}

static void
refuse_and_await_end(int fd)
{
	expect_hello(fd);
	raw_send(fd, g_refusal, sizeof g_refusal);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
}

static void
test_refused_and_required(void)
{
	struct probe client = {.on_open = say_and_close, .on_close = probe_stop_on_close};
	struct script script = {.play = {refuse_and_await_end}};

	begin_script(&script, &client, XR_RDMA_REQUIRE);
	net_run(play, &script);
	ASSERT_EQ(client.open_status, -EPROTONOSUPPORT);
	ASSERT_EQ(client.close_reason, -EPROTONOSUPPORT);
	end_script(&script);
}

static void
test_alloc_fails(void)
{
	g_alloc_ret = -ENOMEM;
	dial_script(XR_RDMA_AUTO, expect_data_and_end, NULL, 0, "no queue pair left");
}

static void
test_bring_up_fails(void)
{
	g_bring_up_ret = -ENETUNREACH;
	dial_script(XR_RDMA_AUTO, accept_rdma, NULL, 0, "no route");
}

static void
test_nonsense_for_a_hello(void)
{
	dial_script(XR_RDMA_AUTO, answer_nonsense, NULL, -EPROTO, "the peer answered the hello with something else");
}

/* ---- peers that answer no hello are dialled anew, and remembered ---- */

static void
test_closed_at_hello(void)
{
	dial_script(XR_RDMA_AUTO, close_at_hello, expect_data_and_end, 0, "the peer answered no hello");
}

static void
test_reset_at_hello(void)
{
	dial_script(XR_RDMA_AUTO, reset_at_hello, expect_data_and_end, 0, "the peer answered no hello");
}

static void
test_silent_at_hello(void)
{
	dial_script(XR_RDMA_AUTO, stay_silent, expect_data_and_end, 0, "the peer answered no hello");
}

static void
test_closed_and_required(void)
{
	dial_script(XR_RDMA_REQUIRE, close_at_hello, NULL, -ECONNRESET,
		    "the peer closed instead of answering the hello");
}

static void
test_silent_and_required(void)
{
	dial_script(XR_RDMA_REQUIRE, stay_silent, NULL, -ETIMEDOUT, "the peer did not answer the hello in time");
}

/* The second dial begins when the first has ended. */
static void
dial_again(struct probe *probe, struct xr_conn *conn, int reason)
{
	struct probe *second = probe->arg;
	struct xr_conn_info info = {.size = sizeof info};

	NET_CHECK(reason == 0);
	xr_conn_info(conn, &info);
	probe_dial(second, info.peer, XR_RDMA_AUTO);
}

static void
test_remembered(void)
{
	struct probe second = {.on_open = say_and_close, .on_close = probe_stop_on_close};
	struct probe first = {.on_open = say_and_close, .on_close = dial_again, .arg = &second};
	struct script script = {.play = {close_at_hello, expect_data_and_end, expect_data_and_end}};

	begin_script(&script, &first, XR_RDMA_AUTO);
	net_run(play, &script);
	ASSERT_EQ(second.close_reason, 0);
	ASSERT_EQ(net_counted(NET_HANDSHAKES), 1);
	ASSERT_EQ(net_counted(NET_FALLBACKS), 2);
	end_script(&script);
}

/* ---- both ends with a provider ---- */

static void
close_when_rdma(struct probe *probe, struct xr_conn *conn, int status)
{
	struct xr_conn_info info = {.size = sizeof info};

	(void)probe;
	NET_CHECK(status == 0);
	xr_conn_info(conn, &info);
	NET_CHECK(strcmp(info.transport, "rdma") == 0 && strcmp(info.fallback_reason, "") == 0);
	NET_CHECK(strcmp(info.state, "ESTABLISHED") == 0);
}

static void
close_server_later(struct probe *probe, struct xr_conn *conn, int status)
{
	close_when_rdma(probe, conn, status);
	xr_conn_close(conn);
}

static void
test_established(void)
{
	struct probe server = {.on_open = close_server_later};
	struct probe client = {.on_open = close_when_rdma, .on_close = probe_stop_on_close};

	net_up(1, NULL);
	rdma_provider_set(&g_fake_provider);
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_AUTO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.opened, 1);
	ASSERT_EQ(server.opened, 1);
	ASSERT_EQ(client.close_reason, 0);
	ASSERT_EQ(net_counted(NET_HANDSHAKES), 2);
	ASSERT_EQ(net_counted(NET_FALLBACKS), 0);
	net_down();
}

static void
test_attach_fails(void)
{
	struct probe server = {0}, client = {.on_close = probe_stop_on_close};

	net_up(1, NULL);
	rdma_provider_set(&g_fake_provider);
	g_attach_ret = -XR_ERDMA;
	probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_AUTO);
	net_run(NULL, NULL);
	ASSERT_EQ(client.open_status, -XR_ERDMA);
	ASSERT_EQ(client.close_reason, -XR_ERDMA);
	g_attach_ret = 0;
	net_down();
}

UNIT_SUITE("negotiate", {"a refusal, then service", test_refusal_then_service}, {"every cut", test_every_cut},
	   {"the longest hello", test_longest_hello}, {"an absurd length", test_absurd_length},
	   {"half a hello and silence", test_half_a_hello}, {"one byte of the magic", test_one_byte_of_magic},
	   {"no ACK", test_no_ack}, {"an ACK for RDMA that was refused", test_ack_for_rdma},
	   {"the end within a hello", test_end_within_hello}, {"garbage, and silence", test_garbage_and_silence},
	   {"a port without RDMA", test_port_without_rdma},
	   {"a port without RDMA refuses", test_port_without_rdma_refuses},
	   {"a client without RDMA", test_client_without_rdma}, {"a client is refused", test_client_is_refused},
	   {"refused and required", test_refused_and_required}, {"alloc fails", test_alloc_fails},
	   {"bring-up fails", test_bring_up_fails}, {"nonsense for a hello", test_nonsense_for_a_hello},
	   {"closed at the hello", test_closed_at_hello}, {"reset at the hello", test_reset_at_hello},
	   {"silent at the hello", test_silent_at_hello}, {"closed and required", test_closed_and_required},
	   {"silent and required", test_silent_and_required}, {"remembered", test_remembered},
	   {"established", test_established}, {"attach fails", test_attach_fails});
