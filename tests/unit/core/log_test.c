/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <unistd.h>

#include "tests/unit/core/log_capture.h"

#include "core/clock.h"
#include "core/lcore.h"
#include "core/log.h"

static void
test_level(void)
{
	log_capture_start();
	xr_log_set_level(XR_LOG_WARNING);
	log_notice("too much");
	xr_log(XR_LOG_NOTICE, "too much");
	ASSERT_EQ(log_capture_count(), 0);
	log_warning("w %d", 1);
	log_error("e %d", 2);
	log_help("h %d", 3);
	ASSERT_EQ(log_capture_count(), 3);
	ASSERT_STR(log_capture_line(0), "w 1");
	ASSERT_EQ(log_capture_level(0), XR_LOG_WARNING);
	ASSERT_EQ(log_capture_level(1), XR_LOG_ERROR);
	ASSERT_EQ(log_capture_level(2), XR_LOG_HELP);
	xr_log_set_level(XR_LOG_DEBUG);
	log_debug("d");
	log_info("i");
	ASSERT_EQ(log_capture_count(), 5);
	xr_log_set_level(XR_LOG_NOTICE);
	log_capture_stop();
}

static int g_evaluated;

static int
evaluate(void)
{
	return ++g_evaluated;
}

static void
test_arguments_not_evaluated(void)
{
	log_debug("%d", evaluate());
	ASSERT_EQ(g_evaluated, 0);
}

static void
assert_logged(const char *text, const char *expected)
{
	log_capture_start();
	log_error("%s", text);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_STR(log_capture_last(), expected);
	log_capture_stop();
}

static void
test_escapes(void)
{
	assert_logged("", "");
	assert_logged("plain", "plain");
	assert_logged("peer said: x\n12:00:00.000 notice all is well",
		      "peer said: x\\n12:00:00.000 notice all is well");
	assert_logged("\r\t\x1b[2J\x7f\x01", "\\x0d\\x09\\x1b[2J\\x7f\\x01");
	assert_logged("100% \\n", "100% \\n");
}

/* UTF-8 passes; the control characters that it can spell do not. */
static void
test_escapes_utf8(void)
{
	assert_logged("Zürich – 東京", "Zürich – 東京");
	assert_logged("\xc2\x9b"
		      "31m",
		      "\xc2\\x9b31m");
	assert_logged("a\x9b"
		      "b",
		      "a\\x9b"
		      "b");
}

static void
assert_cut(char fill, size_t expected_length)
{
	char text[3000];
	const char *line;
	size_t length;

	memset(text, fill, sizeof text - 1);
	text[sizeof text - 1] = '\0';
	log_capture_start();
	log_error("%s", text);
	line = log_capture_last();
	length = strlen(line);
	ASSERT_EQ(length, expected_length);
	ASSERT_STR(line + length - 3, "...");
	CU_ASSERT(line[length - 4] != '.');
	log_capture_stop();
}

static void
test_cut(void)
{
	assert_cut('a', 1023);
	assert_cut('\n', 1023);
	assert_cut('\x01', 1023);
}

/* The longest line that is not cut. */
static void
test_not_cut(void)
{
	char text[1021];

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_logged(text, text);
}

static void
test_limit(void)
{
	struct log_limit limit = {0};
	uint64_t left_out = 99;

	CU_ASSERT(log_limit_pass(&limit, &left_out));
	ASSERT_EQ(left_out, 0);
	limit.next_us = clock_now_us() + 3600000000u; /* so that a slow machine does not pass */
	for (int i = 0; i < 5; i++)
		CU_ASSERT(!log_limit_pass(&limit, &left_out));
	limit.next_us = clock_now_us();
	CU_ASSERT(log_limit_pass(&limit, &left_out));
	ASSERT_EQ(left_out, 5);
	CU_ASSERT(limit.next_us > clock_now_us());
}

static void
test_limited_line(void)
{
	struct log_limit limit = {.next_us = UINT64_MAX};

	log_capture_start();
	log_limited(&limit, XR_LOG_ERROR, "garbage from %s", "peer");
	log_limited(&limit, XR_LOG_ERROR, "garbage from %s", "peer");
	ASSERT_EQ(log_capture_count(), 0);
	limit.next_us = 0;
	log_limited(&limit, XR_LOG_ERROR, "garbage from %s", "peer");
	ASSERT_STR(log_capture_last(), "garbage from peer (and 2 like it)");
	limit.next_us = 0;
	log_limited(&limit, XR_LOG_ERROR, "garbage");
	ASSERT_STR(log_capture_last(), "garbage");
	log_capture_stop();
}

#define THREADS	 4
#define ATTEMPTS 20000

static struct log_limit g_limit;
static uint64_t g_passed, g_left_out;

static void *
attempt(void *arg)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		uint64_t left_out;

		if (log_limit_pass(&g_limit, &left_out)) {
			__atomic_fetch_add(&g_passed, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&g_left_out, left_out, __ATOMIC_RELAXED);
		}
	}
	return arg;
}

/* Every attempt is a line or is counted by one. */
static void
test_limit_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ASSERT_FATAL(pthread_create(&threads[i], NULL, attempt, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT(g_passed >= 1);
	ASSERT_EQ(g_passed + g_left_out + g_limit.left_out, THREADS * ATTEMPTS);
}

static int
set_level(const char *name, const char **why)
{
	return g_log_options[0].set(name, why);
}

static void
test_level_option(void)
{
	static const char *const names[] = {"error", "warning", "notice", "info", "debug"};
	const char *why = NULL;

	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(set_level(names[i], &why), 0);
		ASSERT_EQ(g_log_level, XR_LOG_ERROR + i);
	}
	ASSERT_EQ(set_level("help", &why), -EINVAL);
	ASSERT_STR(why, "allowed are error, warning, notice, info and debug");
	ASSERT_EQ(set_level("", &why), -EINVAL);
	ASSERT_EQ(set_level("Notice", &why), -EINVAL);
	ASSERT_EQ(g_log_level, XR_LOG_DEBUG);
	CU_ASSERT(g_log_options[0].live);
	CU_ASSERT(g_log_options[1].name == NULL);
	xr_log_set_level(XR_LOG_NOTICE);
}

/* What the default sink writes to a standard stream while fn runs. */
static void
capture_stream(FILE *stream, void (*fn)(void), char *text, size_t size)
{
	int old = dup(fileno(stream)), ends[2] = {-1, -1};
	ssize_t got;

	ASSERT_FATAL(old >= 0 && pipe(ends) == 0);
	fflush(stream);
	dup2(ends[1], fileno(stream));
	close(ends[1]);
	fn();
	fflush(stream);
	dup2(old, fileno(stream));
	close(old);
	got = read(ends[0], text, size - 1);
	text[got > 0 ? got : 0] = '\0';
	close(ends[0]);
}

static bool
matches(const char *text, const char *pattern)
{
	regex_t regex;
	bool matched;

	ASSERT_FATAL(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0);
	matched = regexec(&regex, text, 0, NULL, 0) == 0;
	regfree(&regex);
	if (!matched)
		printf("\"%s\" does not match %s\n", text, pattern);
	return matched;
}

static void
log_as_lcore(void)
{
	struct lcore lcore = {.id = 17};

	log_error("off the workers");
	t_lcore = &lcore;
	log_warning("two\nlines");
	t_lcore = NULL;
}

static void
test_default_sink(void)
{
	char text[512];

	capture_stream(stderr, log_as_lcore, text, sizeof text);
	CU_ASSERT(matches(text, "^[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} error off the workers\n"
				"[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} warning \\[lcore 17\\] two\\\\nlines\n$"));
}

static void
print_help(void)
{
	log_help("  --name=VALUE  what it does");
}

static void
test_default_sink_help(void)
{
	char text[512];

	capture_stream(stdout, print_help, text, sizeof text);
	ASSERT_STR(text, "  --name=VALUE  what it does\n");
}

UNIT_SUITE("log", {"levels", test_level}, {"a level that is off costs no arguments", test_arguments_not_evaluated},
	   {"control characters are escaped", test_escapes}, {"UTF-8 passes, its controls do not", test_escapes_utf8},
	   {"a long line is cut", test_cut}, {"one that just fits is not", test_not_cut},
	   {"a limit passes one and counts the others", test_limit},
	   {"a limited line tells the count", test_limited_line},
	   {"a limit shared by threads loses none", test_limit_threads}, {"--log-level", test_level_option},
	   {"the default sink: time, level, lcore", test_default_sink},
	   {"the default sink: help to standard output", test_default_sink_help});
