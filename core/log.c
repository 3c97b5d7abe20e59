/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/lcore.h"
#include "core/why.h"

#define LINE_BYTES 1024 /* of one finished line, with its end */
#define LIMIT_US   1000000u

static const char *const g_level_names[] = {"help", "error", "warning", "notice", "info", "debug"};

static xr_log_sink default_sink;

int g_log_level = XR_LOG_NOTICE;
static const char *g_level_option;
static xr_log_sink *g_sink = default_sink;
static void *g_sink_arg;

/* One stdio call a line: stderr is unbuffered, so that it becomes one write(2) and lines of threads do not mix. */
static void
default_sink(enum xr_log_level level, const char *line, void *arg)
{
	const struct lcore *lcore = t_lcore;
	struct timespec now;
	struct tm tm;
	char where[32] = "";

	(void)arg;
	if (level == XR_LOG_HELP) {
		printf("%s\n", line);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	if (lcore)
		snprintf(where, sizeof where, " [lcore %u]", lcore->id);
	fprintf(stderr, "%02d:%02d:%02d.%03ld %s%s %s\n", tm.tm_hour, tm.tm_min, tm.tm_sec, now.tv_nsec / 1000000,
		g_level_names[level], where, line);
}

XR_API void
xr_log_set_sink(xr_log_sink *sink, void *arg)
{
	g_sink = sink ? sink : default_sink;
	g_sink_arg = arg;
}

XR_API void
xr_log_set_level(enum xr_log_level level)
{
	__atomic_store_n(&g_log_level, (int)level, __ATOMIC_RELAXED);
}

/*
 * Control characters, also those of ISO 6429's second set (0x80..0x9f, in UTF-8 behind 0xc2): a terminal would obey
 * them. Within a longer UTF-8 sequence the same bytes are letters.
 */
static bool
is_control(unsigned char before, unsigned char byte)
{
	if (byte < 0x20 || byte == 0x7f)
		return true;
	return byte >= 0x80 && byte < 0xa0 && (before < 0x80 || before == 0xc2);
}

/* Copies text with its control characters as \n or \xNN, so that what a peer sent cannot look like a line of ours. */
static void
escape_line(const char *text, char *line, size_t size)
{
	size_t used = 0;
	unsigned char before = 0;

	for (; *text; before = (unsigned char)*text++) {
		char escaped[8];
		size_t length;

		if (!is_control(before, (unsigned char)*text))
			length = (size_t)snprintf(escaped, sizeof escaped, "%c", *text);
		else if (*text == '\n')
			length = (size_t)snprintf(escaped, sizeof escaped, "\\n");
		else
			length = (size_t)snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)*text);
		if (used + length + sizeof "..." > size) {
			memcpy(line + used, "...", 3);
			used += 3;
			break;
		}
		memcpy(line + used, escaped, length);
		used += length;
	}
	line[used] = '\0';
}

XR_API void
xr_log(enum xr_log_level level, const char *format, ...)
{
	char text[LINE_BYTES], line[LINE_BYTES];
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	escape_line(text, line, sizeof line);
	g_sink(level, line, g_sink_arg);
}

bool
log_limit_pass(struct log_limit *limit, uint64_t *left_out)
{
	uint64_t now = clock_now_us();
	uint64_t next = __atomic_load_n(&limit->next_us, __ATOMIC_RELAXED);

	if (now < next || !__atomic_compare_exchange_n(&limit->next_us, &next, now + LIMIT_US, false, __ATOMIC_RELAXED,
						       __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&limit->left_out, 1, __ATOMIC_RELAXED);
		return false;
	}
	*left_out = __atomic_exchange_n(&limit->left_out, 0, __ATOMIC_RELAXED);
	return true;
}

static int
set_level(const char *name, const char **why)
{
	for (int level = XR_LOG_ERROR; level <= XR_LOG_DEBUG; level++) {
		if (strcmp(name, g_level_names[level]) == 0) {
			xr_log_set_level((enum xr_log_level)level);
			return 0;
		}
	}
	*why = "allowed are error, warning, notice, info and debug";
	return -EINVAL;
}

/* No default: what xr_log_set_level() chose before xr_init() stands. */
const struct xr_option g_log_options[] = {
	{.name = "log_level",
	 .type = XR_OPTION_STRING,
	 .value = &g_level_option,
	 .live = true,
	 .placeholder = "LEVEL",
	 .help = "log lines up to this level: error, warning, notice (unless the program chose another), info or debug",
	 .set = set_level},
	{0},
};
