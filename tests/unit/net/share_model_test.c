/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool, connections that receive messages of every size into it, applications that keep them for a while and allocate
 * besides: in thousands of random orders, by the rules of net/share.h and net/reservation.h alone. Each message becomes
 * whole in the end, as long as peers send and applications let go some day; what is promised can be had always.
 *
 * A step is one block, and every figure is exact: net/input.c and net/ledger.c do the same a turn at a time. The first
 * block of a message is read before anything is known of it; pools are large enough for one of each connection beside
 * all the rest.
 */

#include "net/reservation.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

#define BLOCK	  8192u
#define CONNS_MAX 20u
#define SEEDS	  4000u

struct peer {
	struct reservation reservation;
	bool waits, granted;
	unsigned need, have; /* blocks of the message under way; need 0: none */
	unsigned left;	     /* messages still to come */
	unsigned kept;	     /* blocks of whole messages, in the application's hands */
};

struct world {
	unsigned seed, capacity, free, receives, allocated, to_allocate, conns, largest;
	unsigned promised, partial; /* blocks */
	struct reservations queue;
	struct peer peers[CONNS_MAX];
};

static unsigned
draw(struct world *world, unsigned below)
{
	return (unsigned)rand_r(&world->seed) % below;
}

static struct share_pool
look(const struct world *world)
{
	return (struct share_pool){
		.capacity = (size_t)world->capacity * BLOCK,
		.available = (size_t)world->free * BLOCK,
		.receives = (size_t)world->receives * BLOCK,
		.promised = (size_t)world->promised * BLOCK,
		.partial = (size_t)world->partial * BLOCK,
	};
}

static void
grant_what_can_be(struct world *world)
{
	struct reservation *next;
	struct share_pool pool;

	while ((pool = look(world), next = reservations_grant(&world->queue, &pool))) {
		struct peer *peer = caa_container_of(next, struct peer, reservation);

		peer->waits = false;
		peer->granted = true;
		world->partial -= peer->have;
		world->promised += peer->need - peer->have;
	}
}

/* ---- steps: false when it can't be taken ---- */

static bool
begin(struct world *world, struct peer *peer)
{
	if (peer->need || peer->left == 0)
		return false;
	peer->left--;
	peer->need = 1 + draw(world, draw(world, 3) ? world->capacity / 16 : world->largest);
	return true;
}

static bool
may_read(struct world *world, struct peer *peer)
{
	struct share_pool pool = look(world);

	if (peer->granted)
		return true;
	if (peer->waits)
		return false;
	if ((size_t)peer->have * BLOCK <= share_of_partial(&pool))
		return true;
	peer->reservation = (struct reservation){
		.bytes = (size_t)(peer->need - peer->have) * BLOCK,
		.urgent = (peer - world->peers) % 4 == 0,
	};
	peer->waits = true;
	reservations_ask(&world->queue, &peer->reservation);
	grant_what_can_be(world);
	return peer->granted;
}

static void
become_whole(struct world *world, struct peer *peer)
{
	if (peer->granted || peer->waits)
		reservations_end(&world->queue, &peer->reservation, peer->granted);
	world->partial -= peer->granted ? 0 : peer->have;
	peer->granted = peer->waits = false;
	peer->kept += peer->have;
	peer->need = peer->have = 0;
	grant_what_can_be(world);
}

static bool
receive(struct world *world, struct peer *peer)
{
	if (peer->need == 0 || !may_read(world, peer) || world->free == 0)
		return false;
	world->free--;
	world->promised -= peer->granted;
	world->partial += !peer->granted;
	if (++peer->have == peer->need)
		become_whole(world, peer);
	return true;
}

/* What was received leaves, in one piece or bit by bit, as an echo does. */
static bool
let_go(struct world *world, struct peer *peer)
{
	unsigned blocks = peer->kept ? 1 + draw(world, peer->kept) : 0;

	peer->kept -= blocks;
	world->free += blocks;
	grant_what_can_be(world);
	return blocks > 0;
}

/* The reserve of the pool is out of an application's reach. */
static bool
allocate(struct world *world)
{
	if (world->free <= world->capacity / 8 || world->to_allocate == 0)
		return false;
	world->free--;
	world->to_allocate--;
	world->allocated++;
	return true;
}

static bool
drop(struct world *world)
{
	if (world->allocated == 0)
		return false;
	world->allocated--;
	world->free++;
	grant_what_can_be(world);
	return true;
}

static bool
step(struct world *world, unsigned what, struct peer *peer)
{
	switch (what) {
	case 0:
		return begin(world, peer);
	case 1:
		return let_go(world, peer);
	case 2:
		return drop(world);
	case 3:
		return allocate(world);
	default:
		return receive(world, peer);
	}
}

/* Takes any step but an allocation: false when there is none, which is a deadlock or the end. */
static bool
any_step(struct world *world)
{
	static const unsigned kinds[] = {4, 0, 1, 2};

	for (unsigned w = 0; w < 4; w++)
		for (unsigned i = 0; i < world->conns; i++)
			if (step(world, kinds[w], &world->peers[i]))
				return true;
	return false;
}

/* ---- */

static void
make(struct world *world, unsigned seed)
{
	struct share_pool pool;

	*world = (struct world){.seed = seed};
	world->conns = 1 + draw(world, CONNS_MAX);
	world->capacity = 64 + 16 * world->conns + draw(world, 200);
	world->to_allocate = world->capacity;
	world->receives = draw(world, world->capacity / 2 + 1);
	world->free = world->capacity - world->receives;
	reservations_init(&world->queue);
	pool = look(world);
	world->largest = (unsigned)(share_largest(&pool) / BLOCK) - world->conns;
	for (unsigned i = 0; i < world->conns; i++)
		world->peers[i].left = 1 + draw(world, 2);
}

static bool
is_over(const struct world *world)
{
	for (unsigned i = 0; i < world->conns; i++)
		if (world->peers[i].left || world->peers[i].need || world->peers[i].kept)
			return false;
	return world->queue.waiting == 0 && world->queue.granted == 0;
}

/* Partial messages stay within their part, but for the block that each read before it looked. */
static bool
is_sound(const struct world *world)
{
	struct share_pool pool = look(world);

	return pool.partial <= pool.capacity / 16 * 2 + (size_t)world->conns * BLOCK;
}

static bool
run_seed(unsigned seed, bool hoarding)
{
	struct world world;
	unsigned idle = 0;

	make(&world, seed);
	while (idle < 200) {
		struct peer *peer = &world.peers[draw(&world, world.conns)];
		unsigned what = draw(&world, 10);

		/* Applications that hoard let go only when nothing else can be done. */
		if (hoarding && (what == 1 || what == 2))
			what = 3;
		idle = step(&world, what, peer) ? 0 : idle + 1;
		if (!is_sound(&world))
			return false;
		if (idle == 200 && any_step(&world))
			idle = 0;
	}
	if (!is_over(&world))
		printf("seed %u: %u of %u blocks free, %u waiting, %u granted\n", seed, world.free, world.capacity,
		       world.queue.waiting, world.queue.granted);
	return is_over(&world);
}

static void
run(bool hoarding)
{
	unsigned failed = 0;

	for (unsigned seed = 1; seed <= SEEDS / 2 && failed < 5; seed++)
		failed += !run_seed(seed, hoarding);
	ASSERT_EQ(failed, 0);
}

static void
test_every_message_becomes_whole(void)
{
	run(false);
}

static void
test_applications_that_hoard(void)
{
	run(true);
}

UNIT_SUITE("share model", {"every message becomes whole", test_every_message_becomes_whole},
	   {"also when applications hoard as long as they can", test_applications_that_hoard});
