/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_LOG_H
#define XRDMA_LOG_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

enum xr_log_level {
	XR_LOG_HELP,	/**< text that the user asked for (--help, --version): always passed on, without a prefix */
	XR_LOG_ERROR,	/**< something failed that was asked for */
	XR_LOG_WARNING, /**< something works less well than asked for */
	XR_LOG_NOTICE,	/**< what an operator wants to see once (the default level) */
	XR_LOG_INFO,	/**< one line per connection */
	XR_LOG_DEBUG,	/**< for the library's developers */
};

/**
 * Takes one finished line, without a newline. Called on whichever thread logs, also on several at once: it must be
 * thread-safe and must not call back into the library.
 */
typedef void xr_log_sink(enum xr_log_level level, const char *line, void *arg);

/**
 * Replaces the sink. NULL restores the default: HELP to standard output, everything else to standard error with time,
 * level and lcore in front. Call before xr_init() or while no other thread logs. Does not block.
 */
XR_API void xr_log_set_sink(xr_log_sink *sink, void *arg);

/** Lines above this level are dropped before they are formatted (option --log-level). Any thread; does not block. */
XR_API void xr_log_set_level(enum xr_log_level level);

/** Logs one line of the application's through the library's sink. Any thread; blocks as long as the sink does. */
XR_API void xr_log(enum xr_log_level level, const char *format, ...) XR_PRINTF(2, 3);

XR_END_DECLS

#endif
