/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_REACTOR_H
#define XRDMA_REACTOR_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

/**
 * What an application hangs into a worker's loop. The objects are the caller's, placed where it likes, initialised
 * with their XR_..._INIT, and must stay where they are while they are in use. But for xr_post(), every call is made on
 * the lcore that owns the object (before xr_run() the main thread is the main lcore), from any callback, and none of
 * them blocks.
 */

/**
 * The time of this turn of the loop, CLOCK_MONOTONIC in microseconds: read once a turn, so that it costs a load. On a
 * thread that is no worker the clock itself.
 */
XR_API uint64_t xr_now_us(void);

/* ---- a loop of the application's own ---- */

/**
 * An application that has a loop already (libuv, libevent, GLib, its own epoll) drives the main lcore's worker from it,
 * between xr_worker_begin() and xr_worker_end() of <xrdma/env.h> and on the thread of these:
 *
 *	while ((work = xr_worker_progress()) != -ESHUTDOWN)
 *		if (xr_worker_prepare_wait(&timeout_us) == 0)
 *			wait until xr_worker_fd() is readable or timeout_us have passed
 *
 * What the application calls on that thread outside of callbacks (xr_conn_send(), xr_timer_arm(), ...) is done by the
 * next xr_worker_progress(), and the wait that was prepared before knows nothing of it. So prepare last, right before
 * each wait: a libuv program does it in a uv_prepare_t (apps/examples/uv-echo.c). From other threads xr_post() wakes
 * the loop as it wakes any worker: the descriptor becomes readable.
 */

/** A timeout that is none. */
#define XR_WAIT_FOREVER UINT64_MAX

/**
 * One turn of the worker: takes what has come, runs callbacks, sends. It does a bounded amount and does not block. The
 * first one after a wait also ends that, whoever or whatever has ended it.
 *
 * Returns the work done, 0 for none; when it is above 0 there may be more. Errors: -ESHUTDOWN the loops are to end,
 * after xr_stop() and what that lets finish: no turn was done, and xr_worker_end() is to be called; -EINVAL called on
 * another thread, from inside a callback, or not between xr_worker_begin() and xr_worker_end().
 */
XR_API int xr_worker_progress(void);

/**
 * Makes everything that can happen wake the caller, and looks once more whether it has happened already; callbacks may
 * run. Does not block.
 *
 * 0: from now on all that happens makes xr_worker_fd() readable. The caller may wait for that, up to *timeout_us
 * microseconds (XR_WAIT_FOREVER: without end; a loop that counts milliseconds rounds up), and then calls
 * xr_worker_progress(). It may as well call that without having waited.
 *
 * -EBUSY: there is or may be something to do, or the worker never sleeps (a port in poll mode, a poller that does not
 * let it; in adaptive mode until spin_us have passed without work), or the last 0 has not been followed by
 * xr_worker_progress(): call that, and then this again. -EINVAL as above. *timeout_us is set with 0 only.
 */
XR_API int xr_worker_prepare_wait(uint64_t *timeout_us);

/**
 * The descriptor to wait on, for POLLIN: an epoll set, good for poll(), select(), and other epoll sets, in which it is
 * to be level-triggered. It stays the same until xr_worker_end(); it is not to be read or closed. -EINVAL as above, but
 * it may be called from callbacks.
 */
XR_API int xr_worker_fd(void);

/* ---- messages ---- */

struct xr_msg {
	/**
	 * Runs once on the lcore that the message was posted to, with status 0; or at stop with -ECANCELED on a thread
	 * of the library's. The message is free again when this begins, and may be posted anew or released by it.
	 */
	void (*fn)(struct xr_msg *msg, int status);
	void *node_;	  /* private */
	uint32_t queued_; /* private */
};

#define XR_MSG_INIT(function)       \
	{                           \
		(function), NULL, 0 \
	}

/**
 * Sends a message to an lcore, which wakes up when it sleeps. Any thread. Messages from one thread to one lcore run in
 * their order.
 * Errors: -EALREADY the message is still queued (its effect will come), -EINVAL no such lcore, -ESHUTDOWN the lcore has
 * stopped. After an error fn is not called for this post.
 */
XR_API int xr_post(unsigned lcore, struct xr_msg *msg);

/* ---- timers ---- */

struct xr_timer {
	void (*fn)(struct xr_timer *timer); /**< may re-arm, cancel or release the timer */
	uint64_t due_us_, period_us_;	    /* private */
	void *link_[2];			    /* private */
	uint32_t bucket_;		    /* private */
};

#define XR_TIMER_INIT(function)                   \
	{                                         \
		(function), 0, 0, {NULL, NULL}, 0 \
	}

/**
 * Arms a timer, or arms it anew: it fires first after_us microseconds from the turn's time (0: in this turn or the
 * next) and then, unless period_us is 0, every period_us after that; periods missed are left out, not made up for. When
 * xr_run() returns no timer is armed any more.
 */
XR_API void xr_timer_arm(struct xr_timer *timer, uint64_t after_us, uint64_t period_us);

/** After this fn is not called any more. A timer that is not armed is left as it is. */
XR_API void xr_timer_cancel(struct xr_timer *timer);

XR_API bool xr_timer_armed(const struct xr_timer *timer);

/* ---- file descriptors ---- */

struct xr_fd {
	int fd;		 /**< stays the caller's: not closed by the library */
	uint32_t events; /**< EPOLLIN, EPOLLOUT, ... of <sys/epoll.h>; level-triggered */
	/** revents: what is ready, with EPOLLERR and EPOLLHUP whether asked for or not. May delete and release itself.
	 */
	void (*fn)(struct xr_fd *fd, uint32_t revents);
	uint32_t state_; /* private */
};

#define XR_FD_INIT(descriptor, wanted, function)      \
	{                                             \
		(descriptor), (wanted), (function), 0 \
	}

/**
 * Watches a descriptor. Errors: -EALREADY it is added, -EINVAL called on no worker, and epoll_ctl's: -EBADF, -EPERM
 * (a regular file), -EEXIST, -ENOMEM, -ENOSPC.
 */
XR_API int xr_fd_add(struct xr_fd *fd);

/** Changes what is watched for; 0 keeps it added and waits for errors only. Errors: -ENOENT, and epoll_ctl's. */
XR_API int xr_fd_set_events(struct xr_fd *fd, uint32_t events);

/** After this fn is not called any more, also not for what this turn has already found. Delete before closing. */
XR_API void xr_fd_del(struct xr_fd *fd);

/* ---- pollers ---- */

struct xr_poller {
	/** Runs once a turn; returns how much work it did (0: none), which is what the busy figures count. */
	int (*fn)(struct xr_poller *poller);
	const char *name; /**< named in the log when it keeps its worker awake */
	/** True: the worker may sleep although this poller is there (something else will wake it when it has work). */
	bool may_sleep;
	void *link_[2]; /* private */
};

#define XR_POLLER_INIT(function, poller_name, sleep_allowed) \
	{                                                    \
		(function), (poller_name), (sleep_allowed),  \
		{                                            \
			NULL, NULL                           \
		}                                            \
	}

/** Errors: -EALREADY it is added, -EINVAL called on no worker. */
XR_API int xr_poller_add(struct xr_poller *poller);

/** After this fn is not called any more. */
XR_API void xr_poller_del(struct xr_poller *poller);

XR_END_DECLS

#endif
