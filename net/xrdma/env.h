/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_ENV_H
#define XRDMA_ENV_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

/** xr_init() has printed --help or --version: the program should end with status 0. Outside errno's range. */
#define XR_INIT_EXIT (-10000)

/**
 * Parses the library's options and those registered by xr_option_register(), from argv[1] on; makes the lcores, the
 * memory pool and the ports; starts the worker threads, which wait for xr_run(); and pins the calling thread, which
 * counts as the main lcore until xr_run(). Main thread, once; blocks while memory is mapped.
 *
 * Returns the index of the first argument that is no option (argc when all are), or
 * XR_INIT_EXIT after --help or --version,
 * -EINVAL    an option is unknown or its value is not allowed (one log line says which and what is allowed),
 * -EALREADY  called twice,
 * -ENOMEM, -EMFILE, -EAGAIN, ... what the system lacked (one log line). After an error nothing is left running.
 */
XR_API int xr_init(int argc, char **argv);

/**
 * Runs the workers until xr_stop(): the calling thread, the one that called xr_init(), is the main lcore's. When it
 * returns, every listener is closed, every connection has had its on_close, and no callback runs any more.
 * Returns 0. Errors: -EINVAL before xr_init() or on another thread than that, -EALREADY when it has run before.
 */
XR_API int xr_run(void);

/**
 * In place of xr_run(), for an application with a loop of its own: from here on the other lcores run on their threads,
 * and the application drives the main lcore's worker with xr_worker_progress() and what stands beside it in
 * <xrdma/reactor.h>. The thread that called xr_init(); does not block.
 * Errors: -EINVAL before xr_init() or on another thread, -EALREADY when this or xr_run() was called before.
 */
XR_API int xr_worker_begin(void);

/**
 * What xr_run() does before it returns: stops the lcores if xr_stop() has not, closes what is open, and waits for the
 * other lcores' ends. Afterwards no callback runs any more. The thread of xr_worker_begin(), not inside a callback;
 * blocks. xr_fini() does it when it was left out. Errors: -EINVAL there is nothing to end, on another thread, or inside
 * a callback.
 */
XR_API int xr_worker_end(void);

/**
 * Ends xr_run(), and lets xr_worker_progress() return -ESHUTDOWN, when what is in work has ended. Any thread, also a
 * signal handler; also before xr_run().
 *
 * The first call drains, for --drain_ms at most: listeners close and nothing new begins (xr_dial(), xr_listen() and
 * xr_rpc_call() give -ESHUTDOWN). RPC calls in work are answered, on either side, and each connection is closed behind
 * its last one; a server answers requests that come meanwhile with ELOGOFF. Other connections have their on_drain, or
 * are closed. Timers, pollers and messages go on as ever. The loops end with the last connection, which takes some
 * milliseconds when nothing was in work. A second call ends them at once, and so does the first with --drain_ms=0: what
 * is left is cut off with -ECANCELED.
 */
XR_API void xr_stop(void);

/**
 * For work that is no connection's: fn runs once on the main lcore when a drain has begun. NULL: none. Main thread,
 * before xr_run(); it stays for the next xr_init().
 */
XR_API void xr_on_drain(void (*fn)(void *arg), void *arg);

/**
 * A drain does not end, but for its deadline, before every hold has been released. Between xr_init() and xr_fini(), any
 * thread; the last release of a drain ends the loops, so a hold is taken by who knows that they run: in fn above, in an
 * on_drain, in any work that is not finished.
 */
XR_API void xr_drain_hold(void);
XR_API void xr_drain_release(void);

/** Undoes xr_init(), also when xr_run() was never called. Main thread, after xr_run(). */
XR_API void xr_fini(void);

/**
 * Opt-in: SIGINT and SIGTERM call xr_stop(), so that the first drains and a second one stops at once; SIGPIPE is
 * ignored. Main thread, after xr_init(); xr_fini() restores what was there. Errors: -EINVAL before xr_init(), and
 * sigaction's.
 */
XR_API int xr_handle_signals(void);

/** "0.1.0" */
XR_API const char *xr_version(void);

XR_END_DECLS

#endif
