/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/net_fixture.h"
#include "net/address.h"
#include "net/turn.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_BYTES   65536u
#define WATCHDOG_MS 30000u

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static char g_log[LOG_BYTES], g_error[1100];
static size_t g_log_used;
static unsigned g_failures;
static int g_descriptors;

/* ---- checks and lines ---- */

bool
net_check(bool good, const char *file, int line, const char *what)
{
	if (good)
		return true;
	pthread_mutex_lock(&g_lock);
	g_failures++;
	printf("%s:%d: %s\n", file, line, what);
	pthread_mutex_unlock(&g_lock);
	return false;
}

static void
keep_line(enum xr_log_level level, const char *line, void *arg)
{
	size_t len = strlen(line);

	(void)arg;
	pthread_mutex_lock(&g_lock);
	if (level == XR_LOG_ERROR && !g_error[0])
		snprintf(g_error, sizeof g_error, "%s", line);
	if (g_log_used + len + 2 < LOG_BYTES) {
		memcpy(g_log + g_log_used, line, len);
		g_log_used += len;
		g_log[g_log_used++] = '\n';
		g_log[g_log_used] = '\0';
	}
	pthread_mutex_unlock(&g_lock);
}

bool
net_logged(const char *text)
{
	bool found;

	pthread_mutex_lock(&g_lock);
	found = strstr(g_log, text) != NULL;
	pthread_mutex_unlock(&g_lock);
	return found;
}

const char *
net_error_line(void)
{
	return g_error;
}

static int
count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	ASSERT_FATAL(dir != NULL);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* ---- up, run, down ---- */

static void
processors(char *text, size_t size)
{
	cpu_set_t cpus;
	size_t used = 0;

	CPU_ZERO(&cpus);
	ASSERT_FATAL(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < size; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			used += (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", cpu);
}

int
net_init(int argc, char **argv)
{
	g_log_used = 0;
	g_log[0] = g_error[0] = '\0';
	g_failures = 0;
	xr_log_set_sink(keep_line, NULL);
	g_descriptors = count_descriptors();
	return xr_init(argc, argv);
}

void
net_up(unsigned lcores, ...)
{
	char cpus[256], list[320];
	char *argv[24] = {"test", "--lcores",	list, "--rdma_memory_pool_initial_size_mb", "32", "--log_level",
			  "info", "--drain_ms", "0"};
	int argc = 9;
	va_list more;

	processors(cpus, sizeof cpus);
	snprintf(list, sizeof list, "(0-%u)@(%s)", lcores - 1, cpus);
	if (lcores == 1)
		snprintf(list, sizeof list, "0@(%s)", cpus);
	va_start(more, lcores);
	while ((argv[argc] = va_arg(more, char *)))
		argc++;
	va_end(more);
	ASSERT_FATAL(net_init(argc, argv) == argc);
}

struct watchdog {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static void *
watch_run(void *arg)
{
	struct watchdog *dog = arg;
	struct timespec until;
	int ret = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WATCHDOG_MS / 1000;
	pthread_mutex_lock(&dog->lock);
	while (!dog->done && ret == 0)
		ret = pthread_cond_timedwait(&dog->changed, &dog->lock, &until);
	if (!NET_CHECK(dog->done))
		xr_stop();
	pthread_mutex_unlock(&dog->lock);
	return NULL;
}

struct peer {
	void (*fn)(void *arg);
	void *arg;
};

static void *
run_peer(void *arg)
{
	struct peer *peer = arg;

	peer->fn(peer->arg);
	return NULL;
}

void
net_run(void (*fn)(void *arg), void *arg)
{
	struct watchdog dog = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
	struct peer peer = {fn, arg};
	pthread_t dog_thread, peer_thread;

	ASSERT_FATAL(pthread_create(&dog_thread, NULL, watch_run, &dog) == 0);
	if (fn)
		ASSERT_FATAL(pthread_create(&peer_thread, NULL, run_peer, &peer) == 0);
	ASSERT_EQ(xr_run(), 0);
	if (fn)
		pthread_join(peer_thread, NULL);
	pthread_mutex_lock(&dog.lock);
	dog.done = true;
	pthread_cond_signal(&dog.changed);
	pthread_mutex_unlock(&dog.lock);
	pthread_join(dog_thread, NULL);
}

void
net_run_against(struct xr_listener *listener, void (*fn)(void *address))
{
	char address[64];

	snprintf(address, sizeof address, "%s", xr_listener_address(listener));
	net_run(fn, address);
}

/* No connection has left anything in the sums that others' shares come from. */
static void
check_ledgers(void)
{
	ASSERT_EQ(g_ledgers_waiting, 0);
	for (unsigned i = 0; i < lcore_count(); i++) {
		const struct net_lcore *net = net_lcore_at(i);

		ASSERT_EQ(net->scarcity.waiting, 0);
		for (unsigned type = 0; type < BLOCK_TYPES; type++) {
			ASSERT_EQ(net->sums.promised[type], 0);
			ASSERT_EQ(net->sums.partial[type], 0);
		}
	}
}

void
net_down(void)
{
	ASSERT_EQ(net_counted(NET_CONNS_LIVE), 0);
	check_ledgers();
	xr_fini();
	xr_log_set_sink(NULL, NULL);
	CU_ASSERT_FALSE(net_logged("still in use"));
	ASSERT_EQ(count_descriptors(), g_descriptors);
	ASSERT_EQ(g_failures, 0);
}

uint64_t
net_counted(enum net_counter counter)
{
	return counter_read(&g_net_counters[counter], NULL);
}

void
net_sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* ---- probes ---- */

#define COUNT(field) __atomic_fetch_add(&(field), 1, __ATOMIC_ACQ_REL)

static void
probe_on_open(struct xr_conn *conn, int status)
{
	struct probe *probe = xr_conn_arg(conn);

	__atomic_store_n(&probe->open_status, status, __ATOMIC_RELEASE);
	if (probe->on_open)
		probe->on_open(probe, conn, status);
	COUNT(probe->opened);
}

static void
probe_on_data(struct xr_conn *conn, struct xr_iobuf *in)
{
	struct probe *probe = xr_conn_arg(conn);

	if (probe->on_data)
		probe->on_data(probe, conn, in);
	else
		__atomic_fetch_add(&probe->bytes, xr_iobuf_drop(in, SIZE_MAX), __ATOMIC_ACQ_REL);
	COUNT(probe->datas);
}

static void
probe_on_writable(struct xr_conn *conn)
{
	struct probe *probe = xr_conn_arg(conn);

	if (probe->on_writable)
		probe->on_writable(probe, conn);
	else
		xr_conn_resume(conn);
	COUNT(probe->writables);
}

static void
probe_on_close(struct xr_conn *conn, int reason)
{
	struct probe *probe = xr_conn_arg(conn);

	__atomic_store_n(&probe->close_reason, reason, __ATOMIC_RELEASE);
	if (probe->on_close)
		probe->on_close(probe, conn, reason);
	COUNT(probe->closed);
}

static void
probe_on_drain(struct xr_conn *conn)
{
	struct probe *probe = xr_conn_arg(conn);

	if (probe->on_drain)
		probe->on_drain(probe, conn);
	else
		xr_conn_close(conn);
	COUNT(probe->drains);
}

const struct xr_conn_ops g_probe_ops = {
	.size = sizeof g_probe_ops,
	.on_open = probe_on_open,
	.on_data = probe_on_data,
	.on_writable = probe_on_writable,
	.on_close = probe_on_close,
	.on_drain = probe_on_drain,
};

void
probe_echo(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)probe;
	if (xr_conn_send(conn, in) == -EAGAIN)
		xr_conn_pause(conn);
}

void
probe_stop_on_close(struct probe *probe, struct xr_conn *conn, int reason)
{
	(void)probe;
	(void)conn;
	(void)reason;
	xr_stop();
}

struct xr_listener *
probe_listen(struct probe *probe, const char *address)
{
	struct xr_listen_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = probe};
	struct xr_listener *listener = NULL;

	ASSERT_FATAL(xr_listen(NULL, address ? address : "127.0.0.1:0", &opts, &listener) == 0);
	return listener;
}

struct xr_conn *
probe_dial(struct probe *probe, const char *address, enum xr_use_rdma use_rdma)
{
	struct xr_dial_opts opts = {.size = sizeof opts, .ops = &g_probe_ops, .arg = probe, .use_rdma = use_rdma};

	NET_CHECK(xr_dial(NULL, address, &opts, &probe->conn) == 0);
	return probe->conn;
}

/* ---- patterns ---- */

static uint8_t
pattern_byte(uint64_t number)
{
	return (uint8_t)(number * 131 + (number >> 8) * 7);
}

void
fill_pattern(void *to, uint64_t first, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = pattern_byte(first + i);
}

int
send_pattern(struct xr_conn *conn, uint64_t first, size_t len)
{
	struct xr_iobuf out = XR_IOBUF_INIT;
	int ret = 0;

	while (ret == 0 && xr_iobuf_size(&out) < len) {
		uint8_t bytes[4096];
		size_t done = xr_iobuf_size(&out), n = len - done < sizeof bytes ? len - done : sizeof bytes;

		fill_pattern(bytes, first + done, n);
		ret = xr_iobuf_append(&out, bytes, n);
	}
	if (ret == 0)
		ret = xr_conn_send(conn, &out);
	NET_CHECK(ret || xr_iobuf_size(&out) == 0);
	xr_iobuf_clear(&out);
	return ret;
}

size_t
take_pattern(struct xr_iobuf *in, uint64_t first)
{
	size_t size = xr_iobuf_size(in), done = 0;
	struct iovec iov[16];
	int n;

	while ((n = xr_iobuf_iovec(in, done, iov, 16)) > 0)
		for (int i = 0; i < n; i++) {
			const uint8_t *bytes = iov[i].iov_base;

			for (size_t at = 0; at < iov[i].iov_len; at++, done++)
				if (!NET_CHECK(bytes[at] == pattern_byte(first + done)))
					return xr_iobuf_drop(in, size);
		}
	NET_CHECK(done == size);
	return xr_iobuf_drop(in, size);
}

/* ---- plain sockets ---- */

static int
raw_socket(const struct address *address)
{
	struct timeval patience = {.tv_sec = 5};
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NET_CHECK(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	return fd;
}

int
raw_connect(const char *text)
{
	struct address address;
	int fd;

	NET_CHECK(address_parse(text, &address) == 0);
	fd = raw_socket(&address);
	NET_CHECK(connect(fd, &address.any, address.len) == 0);
	return fd;
}

int
raw_listen(char text[64])
{
	struct address address;
	int fd;

	NET_CHECK(address_parse("127.0.0.1:0", &address) == 0);
	fd = raw_socket(&address);
	NET_CHECK(bind(fd, &address.any, address.len) == 0 && listen(fd, 16) == 0);
	NET_CHECK(getsockname(fd, &address.any, &address.len) == 0);
	address_format(&address, text);
	return fd;
}

int
raw_accept(int listener)
{
	struct timeval patience = {.tv_sec = 5};
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	NET_CHECK(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	return fd;
}

void
raw_send(int fd, const void *data, size_t len)
{
	NET_CHECK(send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len);
}

bool
raw_read(int fd, void *data, size_t len)
{
	return recv(fd, data, len, MSG_WAITALL) == (ssize_t)len;
}

int
raw_await_end(int fd)
{
	char bytes[65536];
	ssize_t got;

	do
		got = recv(fd, bytes, sizeof bytes, 0);
	while (got > 0);
	return got < 0 ? -errno : 0;
}

void
raw_reset(int fd)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
}
