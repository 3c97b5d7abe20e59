/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_POLLER_H
#define POLL_POLLER_H

/* The application's pollers, together one source of the reactor. */

#include "poll/source.h"
#include <xrdma/reactor.h>

struct poller_source {
	struct source source;
	struct cds_list_head list;
	struct cds_list_head *cursor; /* the next to run; deleting that one moves it on */
};

void poller_source_init(struct poller_source *pollers);

/* The poller whose link in the list this is. */
struct xr_poller *poller_of(struct cds_list_head *link);

#endif
