/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The yardstick: what a bare epoll loop over TCP loopback does with the same bytes that a call puts on the wire. The
 * server answers each REQUEST bytes with RESPONSE bytes and looks at none of them; the client keeps DEPTH requests
 * outstanding on one connection. Neither allocates, parses or keeps time beyond one clock read per exchange.
 *
 *   echo_epoll server MODE CPU REQUEST RESPONSE                       prints the port, serves until its stdin ends
 *   echo_epoll client MODE CPU REQUEST RESPONSE PORT DEPTH SECONDS    prints "p50_us calls_per_s"
 *
 * MODE is polling (epoll_wait with timeout 0, for ever) or blocking.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (256 * 1024)
#define EVENTS	     16
#define WARM_UP_NS   UINT64_C(200000000)
#define SAMPLES_MAX  (1u << 22)

struct yardstick {
	bool polling;
	size_t request, response;
	int epoll;
};

static char g_in[BUFFER_BYTES], g_out[BUFFER_BYTES];

static void
die(const char *what)
{
	fprintf(stderr, "echo_epoll: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
pin(unsigned cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
		die("sched_setaffinity");
}

static void
watch(const struct yardstick *yard, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(yard->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		die("epoll_ctl");
}

static void
set_nodelay(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
		die("TCP_NODELAY");
}

/* Whole messages only, in as few calls as the socket takes. */
static void
send_bytes(int fd, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, g_out, len < sizeof g_out ? len : sizeof g_out, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			die("send");
		if (sent > 0)
			len -= (size_t)sent;
	}
}

/* What one read brings; 0 at the end. */
static size_t
receive_bytes(int fd)
{
	ssize_t got = recv(fd, g_in, sizeof g_in, MSG_DONTWAIT);

	if (got < 0 && errno != EAGAIN && errno != ECONNRESET)
		die("recv");
	if (got < 0 && errno == EAGAIN)
		return SIZE_MAX;
	return got > 0 ? (size_t)got : 0;
}

static int
wait_events(const struct yardstick *yard, struct epoll_event *events)
{
	int n = epoll_wait(yard->epoll, events, EVENTS, yard->polling ? 0 : -1);

	if (n < 0 && errno != EINTR)
		die("epoll_wait");
	return n;
}

/* ---- server ---- */

static int
listen_anywhere(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 8) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		die("listen");
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

/* One connection after the other. */
struct served {
	int listener, conn;
	size_t partial; /* what has come of the request that is not whole yet */
};

static void
accept_next(const struct yardstick *yard, struct served *served)
{
	served->conn = accept4(served->listener, NULL, NULL, SOCK_CLOEXEC);
	if (served->conn < 0)
		die("accept");
	set_nodelay(served->conn);
	watch(yard, served->conn);
	served->partial = 0;
}

static void
answer(const struct yardstick *yard, struct served *served)
{
	size_t got = receive_bytes(served->conn);

	if (got == 0)
		close(served->conn);
	if (got == 0 || got == SIZE_MAX)
		return;
	served->partial += got;
	send_bytes(served->conn, served->partial / yard->request * yard->response);
	served->partial %= yard->request;
}

static void
serve(const struct yardstick *yard)
{
	struct served served = {.listener = listen_anywhere(), .conn = -1};

	watch(yard, served.listener);
	watch(yard, STDIN_FILENO);
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = wait_events(yard, events);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == STDIN_FILENO)
				return;
			if (events[i].data.fd == served.listener)
				accept_next(yard, &served);
			else
				answer(yard, &served);
		}
	}
}

/* ---- client ---- */

static int
connect_to(uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		die("connect");
	set_nodelay(fd);
	return fd;
}

/* What the client has seen since it was warm. */
struct measured {
	uint32_t *samples; /* nanoseconds; the first SAMPLES_MAX of them */
	size_t sample_count;
	uint64_t exchanges;
};

static void
measure(struct measured *measured, uint64_t latency_ns)
{
	if (measured->sample_count < SAMPLES_MAX)
		measured->samples[measured->sample_count++] = (uint32_t)latency_ns;
	measured->exchanges++;
}

static int
compare_samples(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static double
median_us(struct measured *measured)
{
	size_t middle = measured->sample_count / 2;

	if (measured->sample_count == 0)
		return 0;
	qsort(measured->samples, measured->sample_count, sizeof measured->samples[0], compare_samples);
	return (double)measured->samples[middle] / 1e3;
}

/* Answers come in the order of the requests: a ring of start times is all that a latency needs. */
static void
exchange(const struct yardstick *yard, int conn, size_t depth, uint64_t run_ns, struct measured *measured)
{
	uint64_t *starts = calloc(depth, sizeof *starts), begin = now_ns(), answered = 0;
	size_t partial = 0;

	if (!starts)
		die("calloc");
	for (size_t i = 0; i < depth; i++)
		starts[i] = begin;
	send_bytes(conn, depth * yard->request);
	for (uint64_t now = begin; now < begin + WARM_UP_NS + run_ns;) {
		struct epoll_event events[EVENTS];
		size_t got = wait_events(yard, events) > 0 ? receive_bytes(conn) : SIZE_MAX, whole;

		if (got == 0)
			die("the server closed");
		if (got == SIZE_MAX)
			continue;
		partial += got;
		whole = partial / yard->response;
		partial %= yard->response;
		now = now_ns();
		for (size_t i = 0; i < whole; i++, answered++) {
			if (now > begin + WARM_UP_NS)
				measure(measured, now - starts[answered % depth]);
			starts[answered % depth] = now;
		}
		send_bytes(conn, whole * yard->request);
	}
	free(starts);
}

static void
call(const struct yardstick *yard, uint16_t port, size_t depth, uint64_t seconds)
{
	struct measured measured = {.samples = malloc(SAMPLES_MAX * sizeof measured.samples[0])};
	int conn = connect_to(port);

	if (!measured.samples)
		die("malloc");
	watch(yard, conn);
	exchange(yard, conn, depth, seconds * 1000000000u, &measured);
	close(conn);
	printf("%.3f %.1f\n", median_us(&measured), (double)measured.exchanges / (double)seconds);
	free(measured.samples);
}

static unsigned
number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value > UINT32_MAX) {
		fprintf(stderr, "echo_epoll: \"%s\" is not a number\n", text);
		exit(2);
	}
	return (unsigned)value;
}

int
main(int argc, char **argv)
{
	bool client = argc == 9 && strcmp(argv[1], "client") == 0;
	struct yardstick yard;

	if (!client && !(argc == 6 && strcmp(argv[1], "server") == 0)) {
		fprintf(stderr, "usage: echo_epoll server MODE CPU REQUEST RESPONSE\n"
				"       echo_epoll client MODE CPU REQUEST RESPONSE PORT DEPTH SECONDS\n");
		return 2;
	}
	yard = (struct yardstick){
		.polling = strcmp(argv[2], "polling") == 0,
		.request = number(argv[4]),
		.response = number(argv[5]),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
	};
	if (yard.epoll < 0)
		die("epoll_create1");
	pin(number(argv[3]));
	if (client)
		call(&yard, (uint16_t)number(argv[6]), number(argv[7]), number(argv[8]));
	else
		serve(&yard);
	return 0;
}
