/* SPDX-License-Identifier: Apache-2.0 */

/* Peers whose messages want all of the pool: nobody is lost, nobody waits for ever, and small ones are not stopped. */

#include "mem/block.h"
#include "mem/pool.h"
#include "net/scarcity.h"
#include "tests/unit/net/net_fixture.h"
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS	   10
#define MESSAGE	   ((uint32_t)6 << 20) /* of which the pool, of 32 MiB, holds no more than three at a time */
#define SMALL_POOL "--rdma_memory_pool_initial_size_mb=32", "--rdma_memory_pool_max_regions=1"

static char g_bytes[1 << 16];

/* 'm' and a size of four bytes begin a message of that size, answered with one byte; all else is sent back. */
static void
take_or_echo(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	struct xr_iobuf answer = XR_IOBUF_INIT;
	unsigned char head[5];
	uint32_t size;

	if (xr_iobuf_copy_out(in, 0, head, sizeof head) < sizeof head)
		return;
	if (head[0] != 'm') {
		probe_echo(probe, conn, in);
		return;
	}
	memcpy(&size, head + 1, sizeof size);
	xr_conn_need(conn, size);
	if (xr_iobuf_size(in) < size)
		return;
	xr_iobuf_drop(in, size);
	xr_conn_need(conn, 1);
	NET_CHECK(xr_iobuf_append(&answer, "k", 1) == 0);
	NET_CHECK(xr_conn_send(conn, &answer) == 0);
}

static void
send_bytes(int fd, size_t len)
{
	for (size_t part; len; len -= part) {
		part = len < sizeof g_bytes ? len : sizeof g_bytes;
		raw_send(fd, g_bytes, part);
	}
}

static void
begin_message(int fd, uint32_t size)
{
	char head[5] = "m";

	memcpy(head + 1, &size, sizeof size);
	raw_send(fd, head, sizeof head);
}

/* As much of it as the other side takes within a moment; how much. */
static size_t
send_some(int fd, size_t most)
{
	size_t sent = 0;

	for (unsigned idle = 0; sent < most && idle < 50;) {
		ssize_t n = send(fd, g_bytes, most - sent < sizeof g_bytes ? most - sent : sizeof g_bytes,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			sent += (size_t)n;
			idle = 0;
			continue;
		}
		net_sleep_ms(1);
		idle++;
	}
	return sent;
}

static void
expect_echo(const char *address)
{
	char answer[6] = "";
	int fd = raw_connect(address);

	raw_send(fd, "i echo", 6);
	NET_CHECK(raw_read(fd, answer, 6) && memcmp(answer, "i echo", 6) == 0);
	close(fd);
}

static void
expect_answer(int fd)
{
	char answer = 0;

	NET_CHECK(raw_read(fd, &answer, 1) && answer == 'k');
}

static void
run(unsigned lcores, const char *option, void (*peer)(void *address))
{
	struct probe probe = {.on_data = take_or_echo};

	net_up(lcores, SMALL_POOL, "--port", "default,mode=event", option, NULL);
	net_run_against(probe_listen(&probe, NULL), peer);
}

/* ---- halves of messages that are more than the pool ---- */

struct rest {
	pthread_t thread;
	int fd;
	size_t bytes;
};

static void *
send_rest(void *arg)
{
	struct rest *rest = arg;

	send_bytes(rest->fd, rest->bytes);
	expect_answer(rest->fd);
	return NULL;
}

static void
halves(void *address)
{
	struct rest rests[PEERS];

	for (int i = 0; i < PEERS; i++) {
		rests[i].fd = raw_connect(address);
		begin_message(rests[i].fd, MESSAGE);
		rests[i].bytes = MESSAGE - 5;
		rests[i].bytes -= send_some(rests[i].fd, MESSAGE / 2);
	}
	NET_AWAIT(net_counted(NET_RESERVATIONS_WAITED) > 0);
	expect_echo(address);
	/* The last ones first, so that those with a reservation come to their ends last. */
	for (int i = PEERS - 1; i >= 0; i--)
		NET_CHECK(pthread_create(&rests[i].thread, NULL, send_rest, &rests[i]) == 0);
	for (int i = 0; i < PEERS; i++) {
		pthread_join(rests[i].thread, NULL);
		close(rests[i].fd);
	}
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
run_halves(unsigned lcores)
{
	run(lcores, NULL, halves);
	ASSERT_EQ(net_counted(NET_GIVEN_UP), 0);
	ASSERT_EQ(net_counted(NET_READ_STARVED), 0);
	net_down();
}

static void
test_halves_on_one_lcore(void)
{
	run_halves(1);
}

static void
test_halves_on_several(void)
{
	run_halves(4);
}

/* ---- peers that stop ---- */

/* Small messages are served meanwhile, and a large one once those that keep its memory for nothing have been ended. */
static void
stopped(void *address)
{
	int fds[PEERS], honest;

	for (int i = 0; i < PEERS; i++) {
		fds[i] = raw_connect(address);
		begin_message(fds[i], MESSAGE);
		send_some(fds[i], MESSAGE / 2);
	}
	expect_echo(address);
	honest = raw_connect(address);
	begin_message(honest, MESSAGE);
	send_bytes(honest, MESSAGE - 5);
	expect_answer(honest);
	NET_CHECK(net_counted(NET_GIVEN_UP) > 0);
	NET_CHECK(net_logged("it has sent less than 1/16 of a message of 6291456 bytes"));
	for (int i = 0; i < PEERS; i++)
		close(fds[i]);
	close(honest);
	xr_stop();
}

static void
test_peers_that_stop(void)
{
	run(2, "--conn_starved_ms=300", stopped);
	net_down();
}

/* Nor does a byte now and then keep it. Who has waited for it longer than that is not taken for silent. */
static void
trickling(void *address)
{
	uint32_t size = 3 * MESSAGE;
	struct rest honest[2];
	int fd = raw_connect(address);

	begin_message(fd, size);
	send_bytes(fd, MESSAGE);
	NET_AWAIT(net_counted(NET_RESERVATIONS) == 1);
	for (int i = 0; i < 2; i++) {
		honest[i].fd = raw_connect(address);
		honest[i].bytes = size - 5;
		begin_message(honest[i].fd, size);
		NET_CHECK(pthread_create(&honest[i].thread, NULL, send_rest, &honest[i]) == 0);
	}
	for (int i = 0; i < 5000 && net_counted(NET_GIVEN_UP) == 0; i++) {
		(void)!send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		net_sleep_ms(1);
	}
	NET_CHECK(net_counted(NET_GIVEN_UP) == 1);
	for (int i = 0; i < 2; i++) {
		pthread_join(honest[i].thread, NULL);
		close(honest[i].fd);
	}
	close(fd);
	xr_stop();
}

static void
test_trickling_peer(void)
{
	run(2, "--conn_starved_ms=1000", trickling);
	ASSERT_EQ(net_counted(NET_GIVEN_UP), 1);
	net_down();
}

/* As long as nobody waits for its memory, a peer may take its time. */
static void
slow(void *address)
{
	int fd = raw_connect(address);

	begin_message(fd, MESSAGE);
	send_bytes(fd, MESSAGE / 2);
	NET_AWAIT(net_counted(NET_RESERVATIONS) == 1);
	net_sleep_ms(400);
	send_bytes(fd, MESSAGE - MESSAGE / 2 - 5);
	expect_answer(fd);
	close(fd);
	xr_stop();
}

/* Who needs less for a while has still what it was granted. */
static void
take_or_shrink(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	take_or_echo(probe, conn, in);
	if (net_counted(NET_RESERVATIONS) && xr_iobuf_size(in) && ++probe->writables % 2)
		xr_conn_need(conn, xr_iobuf_size(in) + 1);
}

static void
test_need_that_shrinks(void)
{
	struct probe probe = {.on_data = take_or_shrink};

	net_up(1, SMALL_POOL, NULL);
	net_run_against(probe_listen(&probe, NULL), slow);
	CU_ASSERT(probe.writables > 2);
	net_down();
}

static void
test_slow_peer(void)
{
	run(1, "--conn_starved_ms=50", slow);
	ASSERT_EQ(net_counted(NET_GIVEN_UP), 0);
	net_down();
}

/* ---- peers that stop while the application has paused ---- */

static void
take_and_pause(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	take_or_echo(probe, conn, in);
	if (xr_iobuf_size(in) >= MESSAGE / 8)
		xr_conn_pause(conn);
}

/* Paused or not: what is reserved for a peer that sends nothing is what the others wait for. */
static void
stopped_and_paused(void *address)
{
	int fds[PEERS];

	for (int i = 0; i < PEERS; i++) {
		fds[i] = raw_connect(address);
		begin_message(fds[i], MESSAGE);
		send_some(fds[i], MESSAGE / 2);
	}
	NET_AWAIT(net_counted(NET_RESERVATIONS_WAITED) > 0);
	NET_AWAIT(net_counted(NET_GIVEN_UP) > 0);
	for (int i = 0; i < PEERS; i++)
		close(fds[i]);
	xr_stop();
}

static void
test_peers_that_stop_while_paused(void)
{
	struct probe probe = {.on_data = take_and_pause};

	net_up(2, SMALL_POOL, "--port", "default,mode=event", "--conn_starved_ms=300", NULL);
	net_run_against(probe_listen(&probe, NULL), stopped_and_paused);
	net_down();
}

/* ---- halves that paused applications leave there ---- */

#define PAUSED 80

static void
need_and_pause(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	char first = 0;

	take_or_echo(probe, conn, in);
	if (xr_iobuf_copy_out(in, 0, &first, 1) == 1 && first == 'm')
		xr_conn_pause(conn);
}

/* Together they are more than the pool, and have less than an eighth of it. */
static void
paused_halves(void *address)
{
	int fds[PAUSED];

	for (int i = 0; i < PAUSED; i++) {
		fds[i] = raw_connect(address);
		begin_message(fds[i], MESSAGE);
	}
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < PAUSED; i++)
			while (send(fds[i], g_bytes, sizeof g_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
				;
	expect_echo(address);
	NET_CHECK(net_counted(NET_READ_STARVED) == 0);
	NET_CHECK(net_counted(NET_BYTES_IN) < (size_t)8 << 20);
	for (int i = 0; i < PAUSED; i++)
		raw_reset(fds[i]);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_paused_halves(void)
{
	struct probe probe = {.on_data = need_and_pause};

	net_up(2, SMALL_POOL, "--port", "default,mode=event", NULL);
	net_run_against(probe_listen(&probe, NULL), paused_halves);
	net_down();
}

/* ---- what is needed by who has ended ---- */

/* Held back, as nothing is taken; and looked at once more. */
static void
abort_then_need(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	(void)probe;
	xr_conn_resume(conn);
	if (net_counted(NET_INPUT_HELD) == 0)
		return;
	xr_conn_abort(conn, 0);
	xr_conn_need(conn, xr_iobuf_size(in) + (1 << 20));
}

static void
send_until_the_end(void *address)
{
	int fd = raw_connect(address);

	begin_message(fd, MESSAGE);
	send_some(fd, 2 << 20);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	xr_stop();
}

static void
test_need_after_the_end(void)
{
	struct probe probe = {.on_data = abort_then_need};

	net_up(1, SMALL_POOL, "--conn_input_limit_kb=64", NULL);
	net_run_against(probe_listen(&probe, NULL), send_until_the_end);
	ASSERT_EQ(net_counted(NET_INPUT_HELD), 1);
	net_down();
}

/* ---- all of it at random ---- */

#define GUESTS 6
#define VISITS 40

/* Now and then an application thinks better of it. */
static void
take_or_waver(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	static __thread unsigned seed = 7;

	switch (rand_r(&seed) % 64) {
	case 0:
		xr_conn_abort(conn, 0);
		xr_conn_need(conn, MESSAGE);
		return;
	case 1:
		xr_conn_pause(conn);
		xr_conn_resume(conn);
		return;
	default:
		take_or_echo(probe, conn, in);
	}
}

/* A message, or a part of it; and an end to it. What the other side has ended takes nothing, which is all the same. */
static void
visit(const char *address, unsigned *seed)
{
	uint32_t size = rand_r(seed) % 4 ? MESSAGE : 1000 + (unsigned)rand_r(seed) % 100000;
	char head[5] = "m", answer;
	int fd = raw_connect(address), how = rand_r(seed) % 4;
	size_t left = how ? (unsigned)rand_r(seed) % size : size - sizeof head;

	memcpy(head + 1, &size, sizeof size);
	if (send(fd, head, sizeof head, MSG_NOSIGNAL) != (ssize_t)sizeof head)
		left = 0;
	while (left) {
		ssize_t sent = send(fd, g_bytes, left < sizeof g_bytes ? left : sizeof g_bytes, MSG_NOSIGNAL);

		if (sent <= 0)
			break;
		left -= (size_t)sent;
	}
	if (how == 0)
		(void)!recv(fd, &answer, 1, 0);
	if (how == 1)
		raw_reset(fd);
	else
		close(fd);
}

struct guest {
	pthread_t thread;
	const char *address;
	unsigned seed;
};

static void *
visit_often(void *arg)
{
	struct guest *guest = arg;

	for (unsigned i = 0; i < VISITS; i++)
		visit(guest->address, &guest->seed);
	return NULL;
}

static void
guests(void *address)
{
	struct guest guests[GUESTS];

	for (unsigned i = 0; i < GUESTS; i++) {
		guests[i] = (struct guest){.address = address, .seed = i + 1};
		NET_CHECK(pthread_create(&guests[i].thread, NULL, visit_often, &guests[i]) == 0);
	}
	for (unsigned i = 0; i < GUESTS; i++)
		pthread_join(guests[i].thread, NULL);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_at_random(void)
{
	struct probe probe = {.on_data = take_or_waver};

	net_up(3, SMALL_POOL, "--port", "default,mode=event", NULL);
	net_run_against(probe_listen(&probe, NULL), guests);
	CU_ASSERT(net_counted(NET_RESERVATIONS) > 0);
	net_down();
}

/* ---- a message that can't be ---- */

static void
too_large(void *address)
{
	int fd = raw_connect(address);

	begin_message(fd, (uint32_t)60 << 20);
	send_some(fd, 8 << 20);
	NET_CHECK(raw_await_end(fd) != -EAGAIN);
	close(fd);
	expect_echo(address);
	xr_stop();
}

static void
test_too_large(void)
{
	run(1, NULL, too_large);
	ASSERT_EQ(net_counted(NET_MESSAGES_TOO_LARGE), 1);
	CU_ASSERT(net_logged("its message of 62914560 bytes needs 61"));
	CU_ASSERT(net_logged("and of 32768 KiB no more than 22528 can be had for one"));
	net_down();
}

/* ---- no block at all ---- */

#define SOCKETS 20

static struct xr_block *g_blocks[8192];
static unsigned g_taken;
static bool g_done;

static void
take_all_blocks(struct xr_msg *msg, int status)
{
	unsigned got;

	(void)msg;
	(void)status;
	while ((got = block_alloc_bulk(BLOCK_DEFAULT, g_blocks + g_taken, 8192 - g_taken)) > 0)
		g_taken += got;
	__atomic_store_n(&g_done, true, __ATOMIC_RELEASE);
}

static void
give_blocks_back(struct xr_msg *msg, int status)
{
	(void)msg;
	(void)status;
	while (g_taken)
		block_drop(g_blocks[--g_taken]);
	__atomic_store_n(&g_done, true, __ATOMIC_RELEASE);
}

static void
on_the_other_lcore(void (*fn)(struct xr_msg *msg, int status))
{
	static struct xr_msg msg;

	msg = (struct xr_msg)XR_MSG_INIT(fn);
	__atomic_store_n(&g_done, false, __ATOMIC_RELEASE);
	NET_CHECK(xr_post(1, &msg) == 0);
	NET_AWAIT(__atomic_load_n(&g_done, __ATOMIC_ACQUIRE));
}

/* An lcore that sleeps with starved sockets is woken when another one lets go of the blocks. */
static void
starved(void *address)
{
	char answer[4];
	int fds[SOCKETS];

	for (int i = 0; i < SOCKETS; i++)
		fds[i] = raw_connect(address);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == SOCKETS);
	on_the_other_lcore(take_all_blocks);
	for (int i = 0; i < SOCKETS; i++)
		raw_send(fds[i], "wait", 4);
	NET_AWAIT(net_counted(NET_READ_STARVED) >= SOCKETS);
	NET_CHECK(net_counted(NET_BYTES_IN) == 0);
	on_the_other_lcore(give_blocks_back);
	for (int i = 0; i < SOCKETS; i++) {
		NET_CHECK(raw_read(fds[i], answer, 4) && memcmp(answer, "wait", 4) == 0);
		close(fds[i]);
	}
	NET_CHECK(counter_read(&g_pool_counters[POOL_WAKES], NULL) > 0);
	NET_AWAIT(net_counted(NET_CONNS_LIVE) == 0);
	xr_stop();
}

static void
test_woken_by_another_lcore(void)
{
	struct probe probe = {.on_data = probe_echo};

	net_up(2, SMALL_POOL, "--port", "default,mode=event,lcores=0", "--rdma_memory_pool_tls_cache_num=16", NULL);
	net_run_against(probe_listen(&probe, NULL), starved);
	ASSERT_EQ(net_counted(NET_CONNS_FAILED), 0);
	net_down();
}

UNIT_SUITE("scarcity", {"halves of messages wait for each other's end", test_halves_on_one_lcore},
	   {"halves on several lcores", test_halves_on_several}, {"peers that stop are ended", test_peers_that_stop},
	   {"peers that stop are ended, paused or not", test_peers_that_stop_while_paused},
	   {"peers that send a byte now and then are ended", test_trickling_peer},
	   {"a slow peer that nobody waits for", test_slow_peer}, {"a need that shrinks", test_need_that_shrinks},
	   {"halves that paused applications leave there", test_paused_halves},
	   {"who has ended needs nothing", test_need_after_the_end},
	   {"whatever comes and goes leaves nothing behind", test_at_random},
	   {"a message that the pool can't hold", test_too_large},
	   {"starved sockets are woken by another lcore", test_woken_by_another_lcore});
