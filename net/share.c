/* SPDX-License-Identifier: Apache-2.0 */

#include "net/share.h"
#include <stdint.h>

/* Parts of a pool, in sixteenths. */
#define PART(pool, sixteenths) ((pool)->capacity / 16 * (sixteenths))
#define PARTIAL		       2u /* for messages that are not whole and have no reservation */
#define KEPT                                                                                                     \
	4u /* out of the reach of all other waiting bytes: for what applications allocate, and for receive slots \
	    */
#define KEPT_URGENT 3u /* and out of an urgent one's: a bit more than the reserve that mem/pressure.h speaks of */
#define RECEIVES    8u /* for receive slots, at most */

#define FREE_PARTS 16u /* of what is free beyond what is kept, one is a connection's */

static size_t
less(size_t from, size_t bytes)
{
	return from > bytes ? from - bytes : 0;
}

static size_t
unpromised(const struct share_pool *pool)
{
	return less(pool->available, pool->promised);
}

size_t
share_of_free(const struct share_pool *pool)
{
	return less(unpromised(pool), PART(pool, KEPT)) / FREE_PARTS;
}

/* Half of what is left: n messages at their limits have n/(n + 2) of that part. */
size_t
share_of_partial(const struct share_pool *pool)
{
	return less(PART(pool, PARTIAL), pool->partial) / 2;
}

size_t
share_blocks(size_t bytes, enum block_type type)
{
	size_t payload = block_payload_bytes(type);

	if (bytes > SIZE_MAX / 2)
		return SIZE_MAX;
	return (bytes + payload - 1) / payload * block_bytes(type);
}

size_t
share_largest(const struct share_pool *pool)
{
	return less(pool->capacity, pool->receives + PART(pool, PARTIAL + KEPT_URGENT));
}

/* In connections' queues and in the application's hands, with messages that have a reservation, or promised to those.
 */
static size_t
used(const struct share_pool *pool)
{
	return less(pool->capacity, pool->available + pool->receives + pool->partial) + pool->promised;
}

/*
 * What is used may be so for long, by peers that do not read their answers. So what is left is divided: one message
 * gets no more of it than leaves as much as is used, or a quarter, and the rest is left to smaller ones.
 */
bool
share_fits(const struct share_pool *pool, size_t bytes, bool urgent)
{
	size_t free = less(unpromised(pool), PART(pool, urgent ? KEPT_URGENT : KEPT));

	return bytes <= free / 4 || bytes + used(pool) <= free;
}

size_t
share_of_receives(const struct share_pool *pool)
{
	size_t left = less(PART(pool, RECEIVES), pool->receives), free = less(unpromised(pool), PART(pool, KEPT));

	return left < free ? left : free;
}
