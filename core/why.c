/* SPDX-License-Identifier: Apache-2.0 */
#include "core/why.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Small: it counts against the static TLS that a program which dlopens the library has left. */
#define WHY_BYTES 192

static __thread char t_why[WHY_BYTES] __attribute__((tls_model("initial-exec")));

/* Only ever added to, so that a text stays where it is. */
static pthread_mutex_t g_kept_lock = PTHREAD_MUTEX_INITIALIZER;
static char g_kept[32][WHY_BYTES];
static size_t g_kept_count;

const char *
why_text(const char *format, ...)
{
	char text[sizeof t_why];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	memcpy(t_why, text, sizeof text);
	return t_why;
}

static const char *
find_or_add(const char *text)
{
	for (size_t i = 0; i < g_kept_count; i++)
		if (strncmp(g_kept[i], text, WHY_BYTES - 1) == 0)
			return g_kept[i];
	if (g_kept_count == sizeof g_kept / sizeof g_kept[0])
		return NULL;
	snprintf(g_kept[g_kept_count], WHY_BYTES, "%s", text);
	return g_kept[g_kept_count++];
}

const char *
why_keep(const char *text, const char *otherwise)
{
	const char *kept;

	pthread_mutex_lock(&g_kept_lock);
	kept = find_or_add(text);
	pthread_mutex_unlock(&g_kept_lock);
	return kept ? kept : otherwise;
}
