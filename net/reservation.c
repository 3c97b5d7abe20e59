/* SPDX-License-Identifier: Apache-2.0 */

#include "net/reservation.h"

void
reservations_init(struct reservations *all)
{
	CDS_INIT_LIST_HEAD(&all->urgent);
	CDS_INIT_LIST_HEAD(&all->others);
	all->waiting = all->granted = 0;
}

void
reservations_ask(struct reservations *all, struct reservation *new)
{
	cds_list_add_tail(&new->link, new->urgent ? &all->urgent : &all->others);
	all->waiting++;
}

void
reservations_end(struct reservations *all, struct reservation *old, bool granted)
{
	if (granted) {
		all->granted--;
		return;
	}
	cds_list_del(&old->link);
	all->waiting--;
}

static struct reservation *
first(struct cds_list_head *list)
{
	return cds_list_empty(list) ? NULL : cds_list_first_entry(list, struct reservation, link);
}

static struct reservation *
first_that_fits(struct cds_list_head *list, const struct share_pool *pool)
{
	struct reservation *each;

	cds_list_for_each_entry (each, list, link)
		if (share_fits(pool, each->bytes, true))
			return each;
	return NULL;
}

static struct reservation *
choose(struct reservations *all, const struct share_pool *pool)
{
	struct reservation *next = first(&all->urgent);

	if (!next)
		next = first(&all->others);
	if (next && share_fits(pool, next->bytes, next->urgent))
		return next;
	if (all->granted)
		return NULL;
	next = first_that_fits(&all->urgent, pool);
	return next ? next : first_that_fits(&all->others, pool);
}

struct reservation *
reservations_grant(struct reservations *all, const struct share_pool *pool)
{
	struct reservation *next = choose(all, pool);

	if (next) {
		cds_list_del(&next->link);
		all->waiting--;
		all->granted++;
	}
	return next;
}
