/* SPDX-License-Identifier: Apache-2.0 */
#include "core/why.h"

#include <stdarg.h>
#include <stdio.h>

/* Small: it counts against the static TLS that a program which dlopens the library has left. */
static __thread char t_why[192] __attribute__((tls_model("initial-exec")));

const char *
why_text(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t_why, sizeof t_why, format, args);
	va_end(args);
	return t_why;
}
