/* SPDX-License-Identifier: Apache-2.0 */

/* Two threads, a queue pair each, asleep on their channels: everything from several threads, and no wake-up lost. */

#include "tests/unit/fakeverbs/pair.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#define ROUNDS	2000
#define SEND_AT 32768

struct player {
	pthread_t thread;
	struct end *end;
	bool serves;
	unsigned received, bad;
};

/* The event is waited for in ibv_get_cq_event() itself. */
static void
sleep_until_event(struct end *end)
{
	struct ibv_cq *cq;
	void *arg;

	if (ibv_get_cq_event(end->channel, &cq, &arg) == 0)
		ibv_ack_cq_events(cq, 1);
}

static bool
receive(struct player *player)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(player->end->recv_cq, 1, &wc) == 0) {
		if (ibv_req_notify_cq(player->end->recv_cq, 1) != 0)
			return false;
		if (ibv_poll_cq(player->end->recv_cq, 1, &wc) == 1)
			break;
		sleep_until_event(player->end);
	}
	return wc.status == IBV_WC_SUCCESS && wc.byte_len == 8 && recv_one(player->end, 0, 1024, 0) == 0;
}

static bool
serve(struct player *player, unsigned n)
{
	struct ibv_wc wc;

	memset(player->end->memory + SEND_AT, (int)n, 8);
	return send_one(player->end, SEND_AT, 8, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, n) == 0 &&
	       ibv_poll_cq(player->end->send_cq, 1, &wc) == 1;
}

static void *
play(void *arg)
{
	struct player *player = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		bool good = player->serves ? serve(player, i) && receive(player) : receive(player) && serve(player, i);

		player->bad += !good;
		player->received += good;
	}
	return NULL;
}

static void
test_ping_pong(void)
{
	struct pair pair;
	struct player players[2] = {{.end = &pair.a, .serves = true}, {.end = &pair.b}};

	pair_open(&pair, &(struct pair_want){.device_b = 1});
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_EQ(fcntl(players[i].end->channel->fd, F_SETFL, 0), 0);
		ASSERT_EQ(recv_one(players[i].end, 0, 1024, 0), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		ASSERT_EQ(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_EQ(pthread_join(players[i].thread, NULL), 0);
		ASSERT_EQ(players[i].received, ROUNDS);
		ASSERT_EQ(players[i].bad, 0);
	}
	pair_close(&pair);
}

UNIT_SUITE("fakeverbs/threads", {"ping-pong", test_ping_pong});
