/* SPDX-License-Identifier: Apache-2.0 */

/* The shares of a pool, each by itself. tests/unit/net/share_model_test.c has them at work. */

#include "net/share.h"
#include "tests/unit/unit.h"
#include <stdint.h>

#define MIB ((size_t)1 << 20)

static struct share_pool
pool_of_64(size_t available)
{
	return (struct share_pool){.capacity = 64 * MIB, .available = available};
}

/* The dynamic threshold: with n connections at their limits the free rest is what one of them has, sixteen times. */
static void
test_hoarders_leave_the_rest(void)
{
	static const unsigned hoarders[] = {1, 8, 64, 1000};

	for (unsigned i = 0; i < 4; i++) {
		struct share_pool pool = pool_of_64(64 * MIB);
		size_t taken = 0, free;

		/* Each takes a block when it may, until none may. */
		for (bool more = true; more;) {
			more = false;
			for (unsigned n = 0; n < hoarders[i]; n++) {
				if (taken / hoarders[i] + 8192 > share_of_free(&pool))
					continue;
				taken += 8192;
				pool.available -= 8192;
				more = true;
			}
		}
		free = 48 * MIB - taken;
		CU_ASSERT(pool.available >= 16 * MIB);
		CU_ASSERT(free >= 48 * MIB / (1 + hoarders[i] / 16 + 1));
		CU_ASSERT(hoarders[i] >= 1000 || taken >= 2 * MIB);
	}
}

static void
test_promises_are_not_free(void)
{
	struct share_pool pool = pool_of_64(48 * MIB);

	ASSERT_EQ(share_of_free(&pool), 32 * MIB / 16);
	pool.promised = 16 * MIB;
	ASSERT_EQ(share_of_free(&pool), 16 * MIB / 16);
	pool.promised = 40 * MIB;
	ASSERT_EQ(share_of_free(&pool), 0);
	pool.promised = 60 * MIB; /* figures may be a little old */
	ASSERT_EQ(share_of_free(&pool), 0);
	CU_ASSERT_FALSE(share_fits(&pool, 1, true));
}

static void
test_partial_stays_below_an_eighth(void)
{
	struct share_pool pool = pool_of_64(64 * MIB);
	unsigned count = 0;

	ASSERT_EQ(share_of_partial(&pool), 4 * MIB);
	/* One after the other takes all that it may. */
	for (size_t share; (share = share_of_partial(&pool)) > 0; count++)
		pool.partial += share;
	CU_ASSERT(pool.partial < 8 * MIB);
	CU_ASSERT(count > 20);
	pool.partial = 9 * MIB;
	ASSERT_EQ(share_of_partial(&pool), 0);
}

static void
test_blocks(void)
{
	ASSERT_EQ(share_blocks(0, BLOCK_DEFAULT), 0);
	ASSERT_EQ(share_blocks(1, BLOCK_DEFAULT), 8192);
	ASSERT_EQ(share_blocks(8160, BLOCK_DEFAULT), 8192);
	ASSERT_EQ(share_blocks(8161, BLOCK_DEFAULT), 16384);
	ASSERT_EQ(share_blocks(4 * MIB, BLOCK_HUGE), 6 * MIB);
	for (enum block_type type = 0; type < BLOCK_TYPES; type++) {
		ASSERT_EQ(share_blocks(SIZE_MAX, type), SIZE_MAX);
		CU_ASSERT(share_blocks(SIZE_MAX / 2, type) > SIZE_MAX / 2);
		CU_ASSERT(share_blocks(SIZE_MAX / 2 + 1, type) > SIZE_MAX / 2);
	}
}

static void
test_largest(void)
{
	struct share_pool pool = pool_of_64(64 * MIB);

	ASSERT_EQ(share_largest(&pool), 44 * MIB);
	CU_ASSERT(share_fits(&pool, 44 * MIB, true));
	pool.receives = 16 * MIB;
	pool.available -= 16 * MIB;
	ASSERT_EQ(share_largest(&pool), 28 * MIB);
	/* Beside all that may be partial, too. */
	pool.partial = 8 * MIB;
	pool.available -= 8 * MIB;
	CU_ASSERT(share_fits(&pool, 28 * MIB, true));
	CU_ASSERT_FALSE(share_fits(&pool, 28 * MIB + 1, true));
}

static void
test_room_is_kept(void)
{
	struct share_pool pool = pool_of_64(64 * MIB);

	CU_ASSERT(share_fits(&pool, 48 * MIB, false));
	CU_ASSERT_FALSE(share_fits(&pool, 48 * MIB + 1, false));
	CU_ASSERT(share_fits(&pool, 52 * MIB, true));
	CU_ASSERT_FALSE(share_fits(&pool, 52 * MIB + 1, true));
}

/* What is in use, perhaps for long, leaves a quarter of the free part to one message. */
static void
test_smaller_ones_pass_while_others_do_not_read(void)
{
	struct share_pool pool = pool_of_64(36 * MIB); /* 28 are used, 20 free beyond what is kept */

	CU_ASSERT(share_fits(&pool, 5 * MIB, false));
	CU_ASSERT_FALSE(share_fits(&pool, 5 * MIB + 1, false));
	pool = pool_of_64(60 * MIB); /* 4 and 44 */
	CU_ASSERT(share_fits(&pool, 40 * MIB, false));
	CU_ASSERT_FALSE(share_fits(&pool, 40 * MIB + 1, false));
	pool.promised = 10 * MIB; /* 14 and 34 */
	CU_ASSERT(share_fits(&pool, 20 * MIB, false));
	CU_ASSERT_FALSE(share_fits(&pool, 20 * MIB + 1, false));
}

static void
test_receives(void)
{
	struct share_pool pool = pool_of_64(64 * MIB);

	ASSERT_EQ(share_of_receives(&pool), 32 * MIB);
	pool.receives = 20 * MIB;
	pool.available -= 20 * MIB;
	ASSERT_EQ(share_of_receives(&pool), 12 * MIB);
	pool.available = 20 * MIB;
	ASSERT_EQ(share_of_receives(&pool), 4 * MIB);
	pool.promised = 3 * MIB;
	ASSERT_EQ(share_of_receives(&pool), MIB);
	pool.receives = 40 * MIB;
	ASSERT_EQ(share_of_receives(&pool), 0);
}

UNIT_SUITE("share", {"connections that never read leave the rest", test_hoarders_leave_the_rest},
	   {"what is promised is not free", test_promises_are_not_free},
	   {"all partial messages stay below an eighth", test_partial_stays_below_an_eighth},
	   {"bytes in blocks", test_blocks}, {"the largest reservation", test_largest},
	   {"room is kept, and more for urgent ones", test_room_is_kept},
	   {"smaller ones pass while others do not read", test_smaller_ones_pass_while_others_do_not_read},
	   {"what receive slots may have", test_receives});
