/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

/* Log lines of the library's own. A line costs one relaxed load when its level is off. */

#include <xrdma/log.h>
#include <xrdma/option.h>

extern int g_log_level;

static inline bool
log_enabled(enum xr_log_level level)
{
	return (int)level <= __atomic_load_n(&g_log_level, __ATOMIC_RELAXED);
}

#define log_at(level, ...)                            \
	do {                                          \
		if (log_enabled(level))               \
			xr_log((level), __VA_ARGS__); \
	} while (0)

#define log_help(...)	 log_at(XR_LOG_HELP, __VA_ARGS__)
#define log_error(...)	 log_at(XR_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(XR_LOG_WARNING, __VA_ARGS__)
#define log_notice(...)	 log_at(XR_LOG_NOTICE, __VA_ARGS__)
#define log_info(...)	 log_at(XR_LOG_INFO, __VA_ARGS__)
#define log_debug(...)	 log_at(XR_LOG_DEBUG, __VA_ARGS__)

/* At most one line a second for what a peer can cause at will; says how many were left out since. */
struct log_limit {
	uint64_t next_us;
	uint64_t left_out;
};

bool log_limit_pass(struct log_limit *limit, uint64_t *left_out);

#define log_limited(limit, level, format, ...)                                               \
	do {                                                                                 \
		uint64_t left_out_;                                                          \
		if (log_enabled(level) && log_limit_pass((limit), &left_out_)) {             \
			if (left_out_)                                                       \
				xr_log((level), format " (and %llu like it)", ##__VA_ARGS__, \
				       (unsigned long long)left_out_);                       \
			else                                                                 \
				xr_log((level), format, ##__VA_ARGS__);                      \
		}                                                                            \
	} while (0)

/* The rows of --log-level; env lists every floor's table. */
extern const struct xr_option g_log_options[];

#endif
