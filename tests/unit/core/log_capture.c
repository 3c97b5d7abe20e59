/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/log_capture.h"

#include <stdio.h>

#define LINES 256

static struct {
	enum xr_log_level level;
	char text[1100];
} g_lines[LINES];
static unsigned g_count;

static void
keep_line(enum xr_log_level level, const char *line, void *arg)
{
	(void)arg;
	if (g_count < LINES) {
		g_lines[g_count].level = level;
		snprintf(g_lines[g_count].text, sizeof g_lines[g_count].text, "%s", line);
	}
	g_count++;
}

void
log_capture_start(void)
{
	g_count = 0;
	xr_log_set_sink(keep_line, NULL);
}

void
log_capture_stop(void)
{
	xr_log_set_sink(NULL, NULL);
}

unsigned
log_capture_count(void)
{
	return g_count;
}

const char *
log_capture_line(unsigned index)
{
	return index < g_count && index < LINES ? g_lines[index].text : "";
}

enum xr_log_level
log_capture_level(unsigned index)
{
	return index < g_count && index < LINES ? g_lines[index].level : XR_LOG_HELP;
}

const char *
log_capture_last(void)
{
	return g_count ? log_capture_line(g_count - 1) : "";
}
