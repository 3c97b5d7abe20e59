/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_REACTOR_PRIVATE_H
#define POLL_REACTOR_PRIVATE_H

/* The reactor as the poll floor's files see it: the parts of one worker's loop, together. */

#include "core/clock.h"
#include "core/option.h"
#include "poll/drive.h"
#include "poll/fd.h"
#include "poll/mailbox.h"
#include "poll/poller.h"
#include "poll/reactor.h"
#include "poll/source_list.h"
#include "poll/stall.h"
#include "poll/stat.h"
#include "poll/switches.h"
#include "poll/timer.h"
#include "poll/wait.h"

#define EXIT_HOOKS 8

struct exit_hook {
	void (*fn)(struct reactor *reactor, void *arg);
	void *arg;
};

struct reactor {
	struct lcore *lcore;
	bool running;		  /* inside a turn, or between two of reactor_run(): now_us is the turn's time */
	bool lent;		  /* an application's loop waits: wait_take_back() and wait_finish() are due */
	bool embedded;		  /* an application's loop drives it */
	int last_work;		  /* of the last turn, for embedded ones */
	uint64_t now_us;	  /* read once a turn */
	uint64_t worked_us;	  /* when a turn last found work */
	enum reactor_stat spends; /* the figure that the time since now_us belongs to */
	struct source_list sources;
	struct drive drive;
	struct wait wait;
	struct exit_hook exit_hooks[EXIT_HOOKS];
	unsigned exit_hook_count;
	struct stall stall;
	struct switches switches;
	/* The sources that every reactor has. */
	struct mailbox mailbox;
	struct fd_source fds;
	struct poller_source pollers;
	struct timer_heap timers;
};

extern int64_t g_wait_cap_ms;

/* The reactor whose thread this is, NULL elsewhere. */
extern __thread struct reactor *t_reactor __attribute__((tls_model("initial-exec")));

/* Brings now_us up to date and books the time since the last reading. Never goes back. */
void reactor_read_clock(struct reactor *reactor);

/* Polls each source of the choice once and books the work. The work done. */
int reactor_poll(struct reactor *reactor, enum source_choice choice);

/* What comes before the first turn, and what follows the last. */
void reactor_begin(struct reactor *reactor);
void reactor_end(struct reactor *reactor);

/* One turn of the loop. The work done. */
int reactor_turn(struct reactor *reactor);

/* The first turn after a sleep. */
int reactor_turn_woken(struct reactor *reactor, enum wake_cause cause);

/* The turn's time; outside of reactor_run() there are no turns, and it is the clock's. */
static inline uint64_t
reactor_now_us(const struct reactor *reactor)
{
	return __builtin_expect(reactor->running, 1) ? reactor->now_us : clock_now_us();
}

#endif
