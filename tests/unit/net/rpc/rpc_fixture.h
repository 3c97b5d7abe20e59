/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_RPC_FIXTURE_H
#define TESTS_RPC_FIXTURE_H

/* RPC over the library's own process (tests/unit/net/net_fixture.h), and frames for plain sockets on the other side. */

#include "net/rpc/call.h"
#include "net/rpc/frame.h"
#include "net/rpc/rpc.h"
#include "tests/unit/net/net_fixture.h"

uint64_t rpc_counted(enum rpc_counter counter);

/* ---- frames over plain sockets ---- */

/* A frame to be sent; what is not set is absent or 0. */
struct raw_out {
	const char *service, *method; /* of a request; NULL: a response */
	int64_t id;
	const void *message, *attachment;
	size_t message_size, attachment_size;
	int error_code;
	const char *error_text;
	/* What no side of this library would send. */
	int32_t compress_type;
	int32_t claimed_attachment; /* instead of attachment_size, when not 0 */
	bool no_part;		    /* neither request nor response */
};

/* The frame's bytes, malloc'd. */
uint8_t *raw_frame(const struct raw_out *out, size_t *size);
void raw_send_frame(int fd, const struct raw_out *out);

/* A frame that came. */
struct raw_in {
	struct arena arena;
	struct meta meta;
	uint8_t *body;
	const uint8_t *message, *attachment;
	size_t message_size, attachment_size;
};

/* Reads one frame; false when the stream ended or what came was none. raw_in_clear() in either case. */
bool raw_read_frame(int fd, struct raw_in *in);
void raw_in_clear(struct raw_in *in);

/* ---- a server ---- */

/*
 * test.Echo on 127.0.0.1, a port of the system's choice:
 *   Echo   answers with message and attachment as they came
 *   Fail   answers with error code and text as they stand in the message: "1234 text"
 *   Hold   is kept until held_take()
 */
struct xr_rpc_server *echo_server(void);

/* The oldest call that Hold keeps, waiting for it up to 5 seconds on a thread that is no worker; NULL: none came. */
struct xr_rpc_call *held_take(void);
unsigned held_count(void);

/* ---- calls ---- */

/* What became of one call; written by its lcore. */
struct outcome {
	unsigned done; /* how often */
	int error_code;
	char error_text[256];
	struct xr_iobuf message, attachment; /* taken from the response; to be cleared by outcome_clear() */
	xr_rpc_id id;
	void (*then)(struct outcome *outcome); /* runs at the end of done */
	void *arg;
};

void outcome_clear(struct outcome *outcome);

struct xr_rpc_channel *channel_to(const char *address);

/* Calls test.Echo with a message and an attachment of these sizes, patterned; xr_rpc_call()'s result. */
int call_echo(struct xr_rpc_channel *channel, struct outcome *outcome, const char *method, size_t message_size,
	      size_t attachment_size, int timeout_ms);

/* Asserts that both came back as call_echo() sent them. */
void check_echoed(const struct outcome *outcome, size_t message_size, size_t attachment_size);

/* Runs fn(arg) on an lcore and waits until it has run; on a thread that is no worker. */
void on_lcore(unsigned lcore, void (*fn)(void *arg), void *arg);

#endif
