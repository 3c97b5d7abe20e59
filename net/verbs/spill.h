/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_SPILL_H
#define NET_VERBS_SPILL_H

/*
 * Ordinary memory for messages that came when the pool had no block: counted per connection, as nothing else limits it.
 * It is in nobody's hurry, so malloc will do. Iobufs may outlive the connection and end on other threads.
 */

#include "mem/block.h"
#include <stdbool.h>
#include <xrdma/iobuf.h>

struct spill;

/* Appends a copy. *spill is made when it is NULL. -EDQUOT: more than limit bytes would be out; -ENOMEM. */
int spill_append(struct spill **spill, size_t limit, const void *data, size_t len, struct xr_iobuf *to);

/* Whether the piece's block is such memory. */
bool spill_owns(struct xr_block *block);

/* The connection is over; NULL is allowed. */
void spill_leave(struct spill *spill);

#endif
