/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/rpc/rpc_fixture.h"
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>

uint64_t
rpc_counted(enum rpc_counter counter)
{
	return counter_read(&g_rpc_counters[counter], NULL);
}

/* ---- frames over plain sockets ---- */

static void
make_meta(const struct raw_out *out, struct meta_out *meta)
{
	uint32_t attachment_size = (uint32_t)out->attachment_size;

	if (out->service)
		meta_out_request(meta, out->service, out->method, 0, out->id, attachment_size);
	else
		meta_out_response(meta, out->error_code, out->error_text, out->id, attachment_size);
	if (out->no_part) {
		meta->meta.request = NULL;
		meta->meta.response = NULL;
	}
	meta->meta.compress_type = out->compress_type;
	if (out->claimed_attachment) {
		meta->meta.has_attachment_size = true;
		meta->meta.attachment_size = out->claimed_attachment;
	}
}

uint8_t *
raw_frame(const struct raw_out *out, size_t *size)
{
	size_t payload = out->message_size + out->attachment_size, meta_size;
	struct meta_out meta;
	uint32_t header[3];
	uint8_t *bytes;

	make_meta(out, &meta);
	meta_size = meta_out_size(&meta);
	*size = sizeof header + meta_size + payload;
	bytes = malloc(*size);
	memcpy(&header[0], "PRPC", 4);
	header[1] = htobe32((uint32_t)(meta_size + payload));
	header[2] = htobe32((uint32_t)meta_size);
	memcpy(bytes, header, sizeof header);
	meta_out_pack(&meta, bytes + sizeof header);
	if (out->message_size)
		memcpy(bytes + sizeof header + meta_size, out->message, out->message_size);
	if (out->attachment_size)
		memcpy(bytes + *size - out->attachment_size, out->attachment, out->attachment_size);
	return bytes;
}

void
raw_send_frame(int fd, const struct raw_out *out)
{
	size_t size;
	uint8_t *bytes = raw_frame(out, &size);

	raw_send(fd, bytes, size);
	free(bytes);
}

static bool
split(struct raw_in *in, uint32_t body_size, uint32_t meta_size)
{
	size_t payload = body_size - meta_size;

	if (meta_decode(in->body, meta_size, &in->arena, &in->meta) != 0)
		return false;
	if (in->meta.attachment_size < 0 || (size_t)in->meta.attachment_size > payload)
		return false;
	in->attachment_size = (size_t)in->meta.attachment_size;
	in->message_size = payload - in->attachment_size;
	in->message = in->body + meta_size;
	in->attachment = in->message + in->message_size;
	return true;
}

bool
raw_read_frame(int fd, struct raw_in *in)
{
	uint32_t header[3], body_size, meta_size;

	arena_init(&in->arena);
	in->body = NULL;
	if (!raw_read(fd, header, sizeof header) || memcmp(header, "PRPC", 4) != 0)
		return false;
	body_size = be32toh(header[1]);
	meta_size = be32toh(header[2]);
	if (meta_size > body_size || body_size > FRAME_MAX_BODY)
		return false;
	in->body = malloc(body_size + 1);
	return raw_read(fd, in->body, body_size) && split(in, body_size, meta_size);
}

void
raw_in_clear(struct raw_in *in)
{
	arena_fini(&in->arena);
	free(in->body);
	in->body = NULL;
}

/* ---- a server ---- */

#define HELD_MAX 4096

static struct {
	pthread_mutex_t lock;
	struct xr_rpc_call *calls[HELD_MAX];
	unsigned first, end;
} g_held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
serve_echo(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	xr_rpc_reply(call, xr_rpc_call_message(call), xr_rpc_call_attachment(call));
}

static void
serve_fail(struct xr_rpc_call *call, void *arg)
{
	char text[256] = "", *rest;
	long code;

	(void)arg;
	xr_iobuf_copy_out(xr_rpc_call_message(call), 0, text, sizeof text - 1);
	code = strtol(text, &rest, 10);
	xr_rpc_fail(call, (int)code, *rest ? rest + 1 : NULL);
}

static void
serve_hold(struct xr_rpc_call *call, void *arg)
{
	(void)arg;
	pthread_mutex_lock(&g_held.lock);
	if (NET_CHECK(g_held.end < HELD_MAX))
		g_held.calls[g_held.end++] = call;
	pthread_mutex_unlock(&g_held.lock);
}

unsigned
held_count(void)
{
	unsigned count;

	pthread_mutex_lock(&g_held.lock);
	count = g_held.end - g_held.first;
	pthread_mutex_unlock(&g_held.lock);
	return count;
}

static struct xr_rpc_call *
try_take(void)
{
	struct xr_rpc_call *call = NULL;

	pthread_mutex_lock(&g_held.lock);
	if (g_held.first < g_held.end)
		call = g_held.calls[g_held.first++];
	pthread_mutex_unlock(&g_held.lock);
	return call;
}

struct xr_rpc_call *
held_take(void)
{
	struct xr_rpc_call *call = try_take();

	for (int i = 0; i < 5000 && !call; i++) {
		net_sleep_ms(1);
		call = try_take();
	}
	NET_CHECK(call != NULL);
	return call;
}

struct xr_rpc_server *
echo_server(void)
{
	struct xr_rpc_server *server = NULL;

	g_held.first = g_held.end = 0;
	ASSERT_FATAL(xr_rpc_server_open(NULL, &server) == 0);
	ASSERT_EQ(xr_rpc_server_add(server, "test.Echo", "Echo", serve_echo, NULL), 0);
	ASSERT_EQ(xr_rpc_server_add(server, "test.Echo", "Fail", serve_fail, NULL), 0);
	ASSERT_EQ(xr_rpc_server_add(server, "test.Echo", "Hold", serve_hold, NULL), 0);
	ASSERT_FATAL(xr_rpc_server_listen(server, NULL, "127.0.0.1:0") == 0);
	return server;
}

/* ---- calls ---- */

static uint8_t
pattern(size_t at, uint8_t salt)
{
	return (uint8_t)(at * 7 + (at >> 8) * 13 + salt);
}

static int
fill(struct xr_iobuf *buf, size_t size, uint8_t salt)
{
	uint8_t *bytes = malloc(size + 1);
	int error;

	for (size_t i = 0; i < size; i++)
		bytes[i] = pattern(i, salt);
	error = xr_iobuf_append(buf, bytes, size);
	free(bytes);
	return error;
}

static void
check_filled(const struct xr_iobuf *buf, size_t size, uint8_t salt)
{
	uint8_t *bytes = malloc(size + 1);
	size_t good = 0;

	NET_CHECK(xr_iobuf_size(buf) == size);
	xr_iobuf_copy_out(buf, 0, bytes, size);
	while (good < size && bytes[good] == pattern(good, salt))
		good++;
	NET_CHECK(good == size);
	free(bytes);
}

static void
on_done(const struct xr_rpc_response *response, void *arg)
{
	struct outcome *outcome = arg;

	outcome->error_code = response->error_code;
	snprintf(outcome->error_text, sizeof outcome->error_text, "%s", response->error_text);
	NET_CHECK(xr_iobuf_move(&outcome->message, response->message) == 0);
	NET_CHECK(xr_iobuf_move(&outcome->attachment, response->attachment) == 0);
	__atomic_fetch_add(&outcome->done, 1, __ATOMIC_RELEASE);
	if (outcome->then)
		outcome->then(outcome);
}

void
outcome_clear(struct outcome *outcome)
{
	xr_iobuf_clear(&outcome->message);
	xr_iobuf_clear(&outcome->attachment);
}

struct xr_rpc_channel *
channel_to(const char *address)
{
	const struct xr_rpc_channel_opts opts = {.size = sizeof opts, .address = address};
	struct xr_rpc_channel *channel = NULL;

	NET_CHECK(xr_rpc_channel_open(&opts, &channel) == 0);
	return channel;
}

int
call_echo(struct xr_rpc_channel *channel, struct outcome *outcome, const char *method, size_t message_size,
	  size_t attachment_size, int timeout_ms)
{
	struct xr_iobuf message = XR_IOBUF_INIT, attachment = XR_IOBUF_INIT;
	const struct xr_rpc_request request = {
		.size = sizeof request,
		.service = "test.Echo",
		.method = method,
		.message = &message,
		.attachment = &attachment,
		.timeout_ms = timeout_ms,
	};
	int error;

	NET_CHECK(fill(&message, message_size, 1) == 0);
	NET_CHECK(fill(&attachment, attachment_size, 2) == 0);
	error = xr_rpc_call(channel, &request, on_done, outcome, &outcome->id);
	if (error) {
		NET_CHECK(xr_iobuf_size(&message) == message_size);
		NET_CHECK(xr_iobuf_size(&attachment) == attachment_size);
	} else {
		NET_CHECK(xr_iobuf_size(&message) == 0 && xr_iobuf_size(&attachment) == 0);
	}
	xr_iobuf_clear(&message);
	xr_iobuf_clear(&attachment);
	return error;
}

void
check_echoed(const struct outcome *outcome, size_t message_size, size_t attachment_size)
{
	NET_CHECK(outcome->done == 1);
	NET_CHECK(outcome->error_code == 0);
	NET_CHECK(outcome->error_text[0] == '\0');
	check_filled(&outcome->message, message_size, 1);
	check_filled(&outcome->attachment, attachment_size, 2);
}

/* ---- elsewhere ---- */

struct errand {
	struct xr_msg msg;
	void (*fn)(void *arg);
	void *arg;
	bool done;
};

static void
run_errand(struct xr_msg *msg, int status)
{
	struct errand *errand = (struct errand *)msg;

	NET_CHECK(status == 0);
	errand->fn(errand->arg);
	__atomic_store_n(&errand->done, true, __ATOMIC_RELEASE);
}

void
on_lcore(unsigned lcore, void (*fn)(void *arg), void *arg)
{
	struct errand errand = {XR_MSG_INIT(run_errand), fn, arg, false};

	if (NET_CHECK(xr_post(lcore, &errand.msg) == 0))
		while (!__atomic_load_n(&errand.done, __ATOMIC_ACQUIRE))
			net_sleep_ms(1);
}
