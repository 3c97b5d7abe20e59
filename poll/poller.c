/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/poller.h"

#include "poll/reactor_private.h"
#include <errno.h>

_Static_assert(sizeof(struct cds_list_head) == sizeof(((struct xr_poller *)0)->link_), "a poller embeds a list link");

static struct cds_list_head *
link_of(struct xr_poller *poller)
{
	return (struct cds_list_head *)poller->link_;
}

struct xr_poller *
poller_of(struct cds_list_head *link)
{
	return (struct xr_poller *)((char *)link - offsetof(struct xr_poller, link_));
}

static bool
added(struct xr_poller *poller)
{
	return link_of(poller)->next != NULL;
}

XR_API int
xr_poller_add(struct xr_poller *poller)
{
	struct reactor *reactor = reactor_current();

	if (!reactor)
		return -EINVAL;
	if (added(poller))
		return -EALREADY;
	cds_list_add_tail(link_of(poller), &reactor->pollers.list);
	if (!poller->may_sleep)
		reactor_hold_awake(reactor);
	return 0;
}

XR_API void
xr_poller_del(struct xr_poller *poller)
{
	struct reactor *reactor = reactor_current();

	if (!added(poller))
		return;
	if (reactor->pollers.cursor == link_of(poller))
		reactor->pollers.cursor = link_of(poller)->next;
	cds_list_del(link_of(poller));
	*link_of(poller) = (struct cds_list_head){NULL, NULL};
	if (!poller->may_sleep)
		reactor_let_sleep(reactor);
}

static int
pollers_poll(struct source *source, struct reactor *reactor)
{
	struct poller_source *pollers = cds_list_entry(source, struct poller_source, source);
	int work = 0;

	(void)reactor;
	pollers->cursor = pollers->list.next;
	while (pollers->cursor != &pollers->list) {
		struct xr_poller *poller = poller_of(pollers->cursor);
		int done;

		pollers->cursor = pollers->cursor->next;
		CALLBACK(poller->fn, done = poller->fn(poller));
		if (done > 0)
			work += done;
	}
	return work;
}

static const struct source_ops g_poller_ops = {.poll = pollers_poll};

void
poller_source_init(struct poller_source *pollers)
{
	pollers->source = (struct source){.name = "pollers", .ops = &g_poller_ops, .stage = SOURCE_POLLER};
	CDS_INIT_LIST_HEAD(&pollers->list);
	pollers->cursor = &pollers->list;
}
