/* SPDX-License-Identifier: Apache-2.0 */

/* What a plain socket answers, or does not, and what becomes of the calls. */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLS 3

/* The scene: a channel to a plain listener, whose side is played by a thread. */
static struct {
	char address[64];
	int listener;
	struct xr_rpc_channel *channel;
	struct outcome outcomes[CALLS + 1];
	int timeout_ms;
} g;

static struct outcome *
outcome(int n)
{
	return &g.outcomes[n];
}

static unsigned
done(int n)
{
	return __atomic_load_n(&g.outcomes[n].done, __ATOMIC_ACQUIRE);
}

static void
make_call(void *arg)
{
	struct outcome *one = arg;

	NET_CHECK(call_echo(g.channel, one, "Echo", 5, 10, g.timeout_ms) == 0);
}

/* The first calls, made on lcore 0 before the run begins. */
static void
play(unsigned calls, int timeout_ms, void (*peer)(void *arg))
{
	memset(&g, 0, sizeof g);
	net_up(1, NULL);
	g.listener = raw_listen(g.address);
	g.timeout_ms = timeout_ms;
	g.channel = channel_to(g.address);
	for (unsigned i = 0; i < calls; i++)
		make_call(outcome((int)i));
	net_run(peer, NULL);
	xr_rpc_channel_close(g.channel);
	for (int i = 0; i <= CALLS; i++)
		outcome_clear(outcome(i));
	close(g.listener);
	net_down();
}

static void
expect(int n, int error_code, const char *text)
{
	NET_AWAIT(done(n) == 1);
	NET_CHECK(outcome(n)->error_code == error_code);
	NET_CHECK(strstr(outcome(n)->error_text, text) != NULL);
	NET_CHECK(xr_iobuf_size(&outcome(n)->message) == 0 && xr_iobuf_size(&outcome(n)->attachment) == 0);
}

static void
read_request(int fd, struct raw_in *in)
{
	NET_CHECK(raw_read_frame(fd, in));
	NET_CHECK(in->meta.has_request);
	NET_CHECK(strcmp(in->meta.service, "test.Echo") == 0 && strcmp(in->meta.method, "Echo") == 0);
	NET_CHECK(in->message_size == 5 && in->attachment_size == 10);
}

static int64_t
read_id(int fd)
{
	struct raw_in in;
	int64_t id;

	read_request(fd, &in);
	id = in.meta.correlation_id;
	raw_in_clear(&in);
	return id;
}

static void
echo_one(int fd)
{
	struct raw_out out = {0};
	struct raw_in in;

	read_request(fd, &in);
	out.id = in.meta.correlation_id;
	out.message = in.message;
	out.message_size = in.message_size;
	out.attachment = in.attachment;
	out.attachment_size = in.attachment_size;
	raw_send_frame(fd, &out);
	raw_in_clear(&in);
}

/* One more call, which finds the channel in order. */
static void
one_more(int fd)
{
	on_lcore(0, make_call, outcome(CALLS));
	echo_one(fd);
	NET_AWAIT(done(CALLS) == 1);
	check_echoed(outcome(CALLS), 5, 10);
}

/* ---- answers ---- */

static void
answer_backwards(void *arg)
{
	int fd = raw_accept(g.listener);
	struct raw_in in[CALLS];

	(void)arg;
	for (int i = 0; i < CALLS; i++)
		read_request(fd, &in[i]);
	for (int i = CALLS - 1; i >= 0; i--) {
		struct raw_out out = {.id = in[i].meta.correlation_id,
				      .message = in[i].message,
				      .message_size = 5,
				      .attachment = in[i].attachment,
				      .attachment_size = 10};

		NET_CHECK(done(i) == 0);
		raw_send_frame(fd, &out);
		NET_AWAIT(done(i) == 1);
		check_echoed(outcome(i), 5, 10);
		raw_in_clear(&in[i]);
	}
	close(fd);
	xr_stop();
}

static void
test_any_order(void)
{
	play(CALLS, 0, answer_backwards);
}

/* Responses byte by byte, and several in one segment. */
static void
answer_in_pieces(void *arg)
{
	int fd = raw_accept(g.listener);
	uint8_t *frames[CALLS], all[1024];
	size_t sizes[CALLS], used = 0;

	(void)arg;
	for (int i = 0; i < CALLS; i++) {
		struct raw_out out = {.id = read_id(fd), .error_code = 100 + i, .error_text = "piece"};

		frames[i] = raw_frame(&out, &sizes[i]);
	}
	for (size_t at = 0; at < sizes[0]; at++) {
		raw_send(fd, frames[0] + at, 1);
		net_sleep_ms(1);
	}
	for (int i = 1; i < CALLS; i++) {
		memcpy(all + used, frames[i], sizes[i]);
		used += sizes[i];
	}
	raw_send(fd, all, used);
	for (int i = 0; i < CALLS; i++) {
		expect(i, 100 + i, "piece");
		free(frames[i]);
	}
	close(fd);
	xr_stop();
}

static void
test_pieces(void)
{
	play(CALLS, 0, answer_in_pieces);
}

static void
answer_badly(void *arg)
{
	int fd = raw_accept(g.listener);
	struct raw_out out = {.message = "abc", .message_size = 3};

	(void)arg;
	out.id = read_id(fd), out.claimed_attachment = 4;
	raw_send_frame(fd, &out);
	expect(0, XR_RPC_ERESPONSE, "attachment_size");
	out.id = read_id(fd), out.claimed_attachment = -1;
	raw_send_frame(fd, &out);
	expect(1, XR_RPC_ERESPONSE, "attachment_size");
	out.id = read_id(fd), out.claimed_attachment = 0, out.compress_type = 1;
	raw_send_frame(fd, &out);
	expect(2, XR_RPC_ERESPONSE, "compressed");
	one_more(fd);
	close(fd);
	xr_stop();
}

static void
test_bad_answers(void)
{
	play(CALLS, 0, answer_badly);
}

static void
answer_with_errors(void *arg)
{
	int fd = raw_accept(g.listener);
	struct raw_out out = {.message = "dropped", .message_size = 7};

	(void)arg;
	out.id = read_id(fd), out.error_code = XR_RPC_ELIMIT, out.error_text = NULL;
	raw_send_frame(fd, &out);
	expect(0, XR_RPC_ELIMIT, "too many calls");
	out.id = read_id(fd), out.error_code = -ECANCELED, out.error_text = "minus";
	raw_send_frame(fd, &out);
	expect(1, XR_RPC_EINTERNAL, "minus");
	out.id = read_id(fd), out.error_code = 112, out.error_text = "";
	raw_send_frame(fd, &out);
	expect(2, 112, "Host is down");
	NET_CHECK(rpc_counted(RPC_CALLS_FAILED) == 3);
	close(fd);
	xr_stop();
}

static void
test_error_answers(void)
{
	play(CALLS, 0, answer_with_errors);
}

/* Responses that nobody waits for are counted and dropped; so is one whose meta does not decode. */
static void
answer_strangers(void *arg)
{
	static const char undecodable[] = "PRPC\0\0\0\3\0\0\0\2\x20\xffz";
	int fd = raw_accept(g.listener);
	struct raw_out out = {.message = "x", .message_size = 1};
	int64_t id = read_id(fd);

	(void)arg;
	out.id = -1;
	raw_send_frame(fd, &out);
	out.id = 0;
	raw_send_frame(fd, &out);
	out.id = id + 1;
	raw_send_frame(fd, &out);
	out.id = id + (1 << CALL_SLOT_BITS);
	raw_send_frame(fd, &out);
	raw_send(fd, undecodable, sizeof undecodable - 1);
	NET_AWAIT(rpc_counted(RPC_RESPONSES_DROPPED) == 5);
	NET_CHECK(done(0) == 0);
	out.id = id;
	raw_send_frame(fd, &out);
	NET_AWAIT(done(0) == 1);
	raw_send_frame(fd, &out);
	NET_AWAIT(rpc_counted(RPC_RESPONSES_DROPPED) == 6);
	NET_CHECK(done(0) == 1 && outcome(0)->error_code == 0);
	one_more(fd);
	close(fd);
	xr_stop();
}

static void
test_strangers(void)
{
	play(1, 0, answer_strangers);
}

/* ---- no answer ---- */

static void
stay_silent(void *arg)
{
	int fd = raw_accept(g.listener);
	struct raw_out out = {.id = read_id(fd)};

	(void)arg;
	expect(0, XR_RPC_ERPCTIMEDOUT, "no answer within 30 ms");
	NET_CHECK(strstr(outcome(0)->error_text, g.address) == NULL);
	raw_send_frame(fd, &out);
	NET_AWAIT(rpc_counted(RPC_RESPONSES_DROPPED) == 1);
	NET_CHECK(rpc_counted(RPC_CALLS_TIMED_OUT) == 1);
	g.timeout_ms = -1;
	one_more(fd);
	close(fd);
	xr_stop();
}

static void
test_timeout(void)
{
	play(1, 30, stay_silent);
}

static void
close_on_all(void *arg)
{
	int fd = raw_accept(g.listener);

	(void)arg;
	for (int i = 0; i < CALLS; i++)
		read_id(fd);
	close(fd);
	for (int i = 0; i < CALLS; i++)
		expect(i, XR_RPC_EEOF, "closed by the peer");
	on_lcore(0, make_call, outcome(CALLS));
	fd = raw_accept(g.listener);
	echo_one(fd);
	NET_AWAIT(done(CALLS) == 1);
	check_echoed(outcome(CALLS), 5, 10);
	close(fd);
	xr_stop();
}

static void
test_peer_closes(void)
{
	play(CALLS, 0, close_on_all);
}

static void
reset_all(void *arg)
{
	int fd = raw_accept(g.listener);

	(void)arg;
	for (int i = 0; i < CALLS; i++)
		read_id(fd);
	raw_reset(fd);
	for (int i = 0; i < CALLS; i++)
		expect(i, XR_RPC_EFAILEDSOCKET, "Connection reset");
	xr_stop();
}

static void
test_peer_resets(void)
{
	play(CALLS, 0, reset_all);
}

static void
refuse(void *arg)
{
	(void)arg;
	expect(0, XR_RPC_EFAILEDSOCKET, "can't connect: ");
	expect(1, XR_RPC_EFAILEDSOCKET, "Connection refused");
	xr_stop();
}

static void
test_refused(void)
{
	memset(&g, 0, sizeof g);
	net_up(1, NULL);
	close(raw_listen(g.address));
	g.channel = channel_to(g.address);
	make_call(outcome(0));
	make_call(outcome(1));
	net_run(refuse, NULL);
	xr_rpc_channel_close(g.channel);
	net_down();
}

/* ---- nonsense ---- */

static const struct nonsense {
	const char *bytes;
	size_t size;
	const char *text;
} nonsense[] = {
	{"HTTP/1.1 400\r\n", 14, "does not begin with PRPC"},
	{"PRPC\x80\0\0\0\0\0\0\1", 12, "larger than max_body_size"},
	{"PRPC\0\0\0\1\0\0\0\2", 12, "the meta is larger than the body"},
};

static const struct nonsense *g_nonsense;

static void
talk_nonsense(void *arg)
{
	int fd = raw_accept(g.listener);

	(void)arg;
	for (int i = 0; i < CALLS; i++)
		read_id(fd);
	raw_send(fd, g_nonsense->bytes, g_nonsense->size);
	for (int i = 0; i < CALLS; i++)
		expect(i, XR_RPC_EFAILEDSOCKET, g_nonsense->text);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	NET_CHECK(net_logged(g_nonsense->text));
	close(fd);
	on_lcore(0, make_call, outcome(CALLS));
	fd = raw_accept(g.listener);
	echo_one(fd);
	NET_AWAIT(done(CALLS) == 1);
	check_echoed(outcome(CALLS), 5, 10);
	close(fd);
	xr_stop();
}

static void
test_nonsense(void)
{
	for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
		g_nonsense = &nonsense[i];
		play(CALLS, 0, talk_nonsense);
	}
}

/* A response larger than conn_input_limit_kb must not wait for ever. */
static void
answer_much(void *arg)
{
	int fd = raw_accept(g.listener);
	size_t size = 3 << 20;
	uint8_t *bytes = calloc(1, size);
	struct raw_out out = {.id = read_id(fd),
			      .message = bytes,
			      .message_size = size,
			      .attachment = bytes,
			      .attachment_size = size};

	(void)arg;
	raw_send_frame(fd, &out);
	NET_AWAIT(done(0) == 1);
	NET_CHECK(xr_iobuf_size(&outcome(0)->message) == size);
	NET_CHECK(xr_iobuf_size(&outcome(0)->attachment) == size);
	one_more(fd);
	free(bytes);
	close(fd);
	xr_stop();
}

static void
test_larger_than_the_input_limit(void)
{
	play(1, 0, answer_much);
}

UNIT_SUITE("rpc client conn", {"answers in any order", test_any_order}, {"answers in pieces and together", test_pieces},
	   {"answers that make no sense", test_bad_answers}, {"errors go by their number", test_error_answers},
	   {"answers nobody waits for", test_strangers}, {"no answer in time", test_timeout},
	   {"the peer closes", test_peer_closes}, {"the peer resets", test_peer_resets},
	   {"nobody listens", test_refused}, {"nonsense ends the connection", test_nonsense},
	   {"answers larger than the input limit", test_larger_than_the_input_limit});
