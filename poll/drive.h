/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_DRIVE_H
#define POLL_DRIVE_H

/* How one reactor is driven: what its ports ask for, and who keeps it awake. */

#include "poll/reactor.h"
#include "poll/stat.h"

struct drive {
	enum wait_mode mode;
	uint64_t spin_us;	      /* adaptive: this long without work before it sleeps */
	const char *port_name;	      /* the port that decided; NULL without ports */
	unsigned holds;		      /* sources and pollers that keep it awake */
	bool announced;		      /* the log has said how it is driven */
	enum reactor_stat counted_as; /* STAT_DRIVEN_..., since then */
};

void drive_init(struct drive *drive);

/* A source or a poller comes that has no way to wake a sleeper, or goes. */
void reactor_hold_awake(struct reactor *reactor);
void reactor_let_sleep(struct reactor *reactor);

/* Logs how the reactor is driven, and why when it never sleeps. */
void drive_announce(struct reactor *reactor);

#endif
