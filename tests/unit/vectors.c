/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/vectors.h"
#include "tests/unit/unit.h"
#include <ctype.h>
#include <stdlib.h>

#define LINE_BYTES 1024

/* The file's one line, without its newline. */
static void
read_line(const char *name, char line[LINE_BYTES])
{
	char path[256];
	FILE *file;

	line[0] = '\0';
	snprintf(path, sizeof path, "tests/vectors/%s.hex", name);
	file = fopen(path, "r");
	if (!file) {
		printf("%s: not found; tests run in the repository's root\n", path);
		CU_FAIL_FATAL("no vector");
		return;
	}
	if (fgets(line, LINE_BYTES, file))
		line[strcspn(line, "\n")] = '\0';
	fclose(file);
}

static bool
is_hex(const char *line, size_t digits)
{
	for (size_t i = 0; i < digits; i++)
		if (!isxdigit((unsigned char)line[i]))
			return false;
	return digits > 0 && digits % 2 == 0;
}

size_t
vector_load(const char *name, uint8_t *out, size_t size)
{
	char line[LINE_BYTES];
	size_t digits;

	read_line(name, line);
	digits = strlen(line);
	ASSERT_FATAL(is_hex(line, digits) && digits / 2 <= size);
	for (size_t i = 0; i < digits / 2; i++) {
		char byte[3] = {line[2 * i], line[2 * i + 1], '\0'};

		out[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return digits / 2;
}
