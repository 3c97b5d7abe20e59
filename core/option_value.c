/* SPDX-License-Identifier: Apache-2.0 */
#include "core/option_value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/option.h"
#include "core/why.h"

bool
option_bool_word(const char *text, int64_t *value)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*value = (int64_t)(i % 2);
			return true;
		}
	}
	return false;
}

static int
parse_bool(const char *text, int64_t *value, const char **why)
{
	if (option_bool_word(text, value))
		return 0;
	if ((text[0] == '0' || text[0] == '1') && text[1] == '\0') {
		*value = text[0] - '0';
		return 0;
	}
	*why = "allowed are true or false";
	return -EINVAL;
}

/* Decimal or 0x, with nothing before or behind. strtoll alone would take blanks and read 010 as eight. */
static bool
scan_integer(const char *text, int64_t *value)
{
	const char *digits = text + (*text == '-' || *text == '+');
	int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
	char *end;

	if (!isdigit((unsigned char)digits[0]) || (base == 16 && !isxdigit((unsigned char)digits[2])))
		return false;
	errno = 0;
	*value = strtoll(text, &end, base);
	return *end == '\0' && (errno == 0 || errno == ERANGE);
}

static int
parse_int(const struct xr_option *row, const char *text, int64_t *value, const char **why)
{
	const char *wrong = NULL;

	if (!*text)
		wrong = "the value is empty";
	else if (!scan_integer(text, value))
		wrong = "not a whole number";
	else if (errno == ERANGE || *value < row->min || *value > row->max)
		wrong = "out of range";
	if (!wrong)
		return 0;
	*why = why_text("%s; allowed are %" PRId64 "..%" PRId64, wrong, row->min, row->max);
	return -EINVAL;
}

int
option_parse_number(const struct xr_option *row, const char *text, int64_t *value, const char **why)
{
	int64_t parsed;
	int rc = row->type == XR_OPTION_BOOL ? parse_bool(text, &parsed, why) : parse_int(row, text, &parsed, why);

	if (rc == 0)
		*value = parsed;
	return rc;
}

int
option_format_value(const struct xr_option *row, char *text, size_t size)
{
	const char *string;

	switch (row->type) {
	case XR_OPTION_BOOL:
		return snprintf(text, size, "%s", option_bool(row->value) ? "true" : "false");
	case XR_OPTION_INT:
		return snprintf(text, size, "%" PRId64, option_int(row->value));
	case XR_OPTION_STRING:
		string = __atomic_load_n((const char **)row->value, __ATOMIC_ACQUIRE);
		return snprintf(text, size, "%s", string ? string : "");
	default:
		return snprintf(text, size, "%s", "");
	}
}
