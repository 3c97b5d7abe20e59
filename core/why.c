/* SPDX-License-Identifier: Apache-2.0 */
#include "core/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Small: it counts against the static TLS that a program which dlopens the library has left. */
static __thread char t_why[192] __attribute__((tls_model("initial-exec")));

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
