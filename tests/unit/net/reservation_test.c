/* SPDX-License-Identifier: Apache-2.0 */
#include "net/reservation.h"
#include "tests/unit/unit.h"

#define MIB ((size_t)1 << 20)

static struct share_pool
pool_of_64(void)
{
	return (struct share_pool){.capacity = 64 * MIB, .available = 64 * MIB};
}

/* What the ledger does: counts what was granted as promised. */
static struct reservation *
grant(struct reservations *all, struct share_pool *pool)
{
	struct reservation *next = reservations_grant(all, pool);

	if (next)
		pool->promised += next->bytes;
	return next;
}

static void
test_first_come_first_served(void)
{
	struct reservation r[5];
	struct reservations all;
	struct share_pool pool = pool_of_64();

	reservations_init(&all);
	CU_ASSERT_PTR_NULL(grant(&all, &pool));
	for (unsigned i = 0; i < 5; i++) {
		r[i] = (struct reservation){.bytes = 12 * MIB};
		reservations_ask(&all, &r[i]);
	}
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &r[0]);
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &r[1]);
	CU_ASSERT_PTR_NULL(grant(&all, &pool));
	ASSERT_EQ(all.waiting, 3);
	ASSERT_EQ(all.granted, 2);
	reservations_end(&all, &r[3], false); /* its connection has ended */
	reservations_end(&all, &r[1], true);
	pool.promised -= 12 * MIB;
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &r[2]);
	reservations_end(&all, &r[0], true);
	pool.promised -= 12 * MIB;
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &r[4]);
	ASSERT_EQ(all.waiting, 0);
	ASSERT_EQ(all.granted, 2);
}

/* As long as somebody has one, a large one that waits is not passed by. */
static void
test_large_is_not_passed(void)
{
	struct reservation first = {.bytes = 30 * MIB}, large = {.bytes = 40 * MIB}, small = {.bytes = MIB};
	struct reservations all;
	struct share_pool pool = pool_of_64();

	reservations_init(&all);
	reservations_ask(&all, &first);
	reservations_ask(&all, &large);
	reservations_ask(&all, &small);
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &first);
	CU_ASSERT_PTR_NULL(grant(&all, &pool));
	reservations_end(&all, &first, true);
	pool.promised = 0;
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &large);
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &small);
}

/* When nobody has one, whoever fits goes. */
static void
test_who_fits_goes(void)
{
	struct reservation large = {.bytes = 40 * MIB}, small = {.bytes = MIB};
	struct reservations all;
	struct share_pool pool = pool_of_64();

	pool.available = 30 * MIB;
	reservations_init(&all);
	reservations_ask(&all, &large);
	reservations_ask(&all, &small);
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &small);
	CU_ASSERT_PTR_NULL(grant(&all, &pool));
	reservations_end(&all, &small, true);
	pool.promised = 0;
	pool.available = 64 * MIB;
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &large);
}

static void
test_urgent_ones_first(void)
{
	struct reservation request = {.bytes = 8 * MIB}, answer = {.bytes = 8 * MIB, .urgent = true};
	struct reservations all;
	struct share_pool pool = pool_of_64();

	reservations_init(&all);
	reservations_ask(&all, &request);
	reservations_ask(&all, &answer);
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &answer);
	CU_ASSERT_PTR_EQUAL(grant(&all, &pool), &request);
	ASSERT_EQ(all.waiting, 0);
}

UNIT_SUITE("reservation", {"first come, first served", test_first_come_first_served},
	   {"a large one is not passed", test_large_is_not_passed},
	   {"when nobody has one, who fits goes", test_who_fits_goes},
	   {"answers to own calls go first", test_urgent_ones_first});
