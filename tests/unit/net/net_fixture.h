/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_FIXTURE_H
#define TESTS_NET_FIXTURE_H

/*
 * The whole library in the test's own process: lcores 0..n-1, each allowed on every processor, and plain sockets on
 * threads of the test's for the other side. Each test ends with the number of descriptors that it began with, without a
 * block left in use, and before its watchdog.
 */

#include "net/net.h"
#include "tests/unit/unit.h"
#include <stdint.h>
#include <xrdma/xrdma.h>

/* For callbacks and threads, where CUnit must not be called: remembered, and asserted by net_down(). */
#define NET_CHECK(condition) net_check((condition), __FILE__, __LINE__, #condition)
bool net_check(bool good, const char *file, int line, const char *what);

/*
 * xr_init() with that many lcores and with further arguments, a NULL ends them. Asserts that it worked. A stop is one
 * at once, unless --drain_ms is among them.
 */
void net_up(unsigned lcores, ...) __attribute__((sentinel));

/* xr_init() alone, with arguments; for those that are refused. Lines are captured as below. */
int net_init(int argc, char **argv);

/* xr_run() under a watchdog, while peer (NULL: none) runs on a thread of its own. Whoever is done calls xr_stop(). */
void net_run(void (*peer)(void *arg), void *arg);

/* The same with the address of a listener for an argument: a copy, which outlives the listener. */
void net_run_against(struct xr_listener *listener, void (*peer)(void *address));

/* xr_fini(), and the checks of the test's end. */
void net_down(void);

/* Whether a line that contains text has been logged since the last net_up() or net_init(). Any thread. */
bool net_logged(const char *text);

/* The first error line since then; "" for none. */
const char *net_error_line(void);

uint64_t net_counted(enum net_counter counter);

/* Waits until the condition holds, up to 5 seconds, on a thread that is no worker. */
#define NET_AWAIT(condition)                                      \
	do {                                                      \
		for (int i_ = 0; i_ < 5000 && !(condition); i_++) \
			net_sleep_ms(1);                          \
		NET_CHECK(condition);                             \
	} while (0)

void net_sleep_ms(unsigned ms);

/* ---- a connection's callbacks, counted ---- */

/* Counts are written by the connection's lcore and may be read by any thread. hooks may be NULL; arg is theirs. */
struct probe {
	unsigned opened, closed, datas, writables, drains;
	int open_status, close_reason;
	uint64_t bytes; /* taken by the default on_data, which drops everything */
	struct xr_conn *conn;
	void (*on_open)(struct probe *probe, struct xr_conn *conn, int status);
	void (*on_data)(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in);
	void (*on_writable)(struct probe *probe, struct xr_conn *conn);
	void (*on_close)(struct probe *probe, struct xr_conn *conn, int reason);
	void (*on_drain)(struct probe *probe, struct xr_conn *conn); /* the default closes */
	void *arg;
};

#define PROBE_READ(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)

extern const struct xr_conn_ops g_probe_ops;

/* Sends back what comes, waiting for room where there is none. */
void probe_echo(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in);
/* Ends the run. */
void probe_stop_on_close(struct probe *probe, struct xr_conn *conn, int reason);

/* Both assert that it worked. NULL address: 127.0.0.1, and a port of the system's choice. */
struct xr_listener *probe_listen(struct probe *probe, const char *address);
struct xr_conn *probe_dial(struct probe *probe, const char *address, enum xr_use_rdma use_rdma);

/* The pattern from number `first` on. */
void fill_pattern(void *to, uint64_t first, size_t len);
/* Sends a pattern of len bytes that begins at number `first`. 0 or xr_conn_send()'s error. */
int send_pattern(struct xr_conn *conn, uint64_t first, size_t len);
/* Takes everything and checks that it is the pattern from number `first` on; how much it was. */
size_t take_pattern(struct xr_iobuf *in, uint64_t first);

/* ---- the other side as a plain socket ---- */

int raw_connect(const char *address);
int raw_listen(char address[64]);
int raw_accept(int listener);
void raw_send(int fd, const void *data, size_t len);
/* Exactly len bytes; false when the stream ended before. */
bool raw_read(int fd, void *data, size_t len);
/* What ends the stream, read to it: 0 for an orderly end, -ECONNRESET, -EAGAIN for none within 5 seconds. */
int raw_await_end(int fd);
/* Closes with a reset. */
void raw_reset(int fd);

#endif
