/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_REACTOR_H
#define POLL_REACTOR_H

/* One worker's loop, as `net` sees it. The struct itself is poll's own (poll/reactor_private.h). */

#include "core/lcore.h"
#include "poll/source.h"
#include <xrdma/option.h>
#include <xrdma/reactor.h>

struct reactor;

extern const struct xr_option g_reactor_options[]; /* --wait-cap-ms */

/* Allocates a reactor per lcore, on its node; registers counters must have happened. -ENOMEM, -EMFILE, ... */
int reactors_init(void);
void reactors_fini(void);

/* The poll floor's counters, for counter_add_table(). */
int reactor_counters_add(void);

struct reactor *reactor_current(void); /* of the calling worker (main thread before xr_run: the main one) */
struct reactor *reactor_of(const struct lcore *lcore);
struct lcore *reactor_lcore(const struct reactor *reactor);

/* How a port wants the lcores driven that it uses. */
enum wait_mode {
	WAIT_POLL,     /* never sleep */
	WAIT_EVENT,    /* sleep as soon as a turn found nothing */
	WAIT_ADAPTIVE, /* sleep after spin_us without work */
};

const char *wait_mode_name(enum wait_mode mode);

/*
 * Declares that a port uses this lcore. Poll wins over adaptive, adaptive over event; the longest spin_us counts. A
 * reactor without any port is driven by events. Before the reactor runs.
 */
void reactor_add_port(struct reactor *reactor, const char *port_name, enum wait_mode mode, uint64_t spin_us);

/* Runs on the reactor's own thread when its loop has ended, before the mailbox is emptied with -ECANCELED. What was
 * registered last runs first; at most 8 per reactor. */
void reactor_on_exit(struct reactor *reactor, void (*fn)(struct reactor *reactor, void *arg), void *arg);

/* The loop: returns after reactors_stop(). On the lcore's own thread; logs how it is driven, and why, when it begins.
 */
void reactor_run(struct reactor *reactor);

/*
 * In place of it, for a loop of the application's around xr_worker_progress(): what comes before the first turn, and
 * what follows the last. On the lcore's own thread.
 */
void reactor_embed(struct reactor *reactor);
void reactor_unembed(struct reactor *reactor);

/* Whether the call comes from inside of a turn. Its own thread. */
bool reactor_in_turn(const struct reactor *reactor);

/* Ends every loop. Any thread, async-signal-safe, may be repeated. */
void reactors_stop(void);
bool reactors_stopping(void);

/*
 * What remains when all workers have been joined: messages posted too late run with -ECANCELED on the calling thread.
 */
void reactors_drain(void);

/* A descriptor whose silence is normal (a liveness signal, a listener): alone it does not make a polling loop look at
 * sockets every turn. After xr_fd_add(), on its lcore. */
void fd_set_quiet(struct xr_fd *fd, bool quiet);

#endif
