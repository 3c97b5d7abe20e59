/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/option.h"
#include "core/option_table.h"

#define COLUMNS	    100
#define TEXT_COLUMN 32

/* "--name=VALUE", with the letter in front where there is one. */
static void
format_label(const struct xr_option *row, char *label, size_t size)
{
	char letter[8] = "";
	const char *equals = row->placeholder ? "=" : "";
	const char *value = row->placeholder ? row->placeholder : "";

	if (row->letter && row->name[1] == '\0') {
		snprintf(label, size, "-%c %s", row->letter, value);
		return;
	}
	if (row->letter)
		snprintf(letter, sizeof letter, "-%c, ", row->letter);
	snprintf(label, size, "%s--%s%s%s", letter, row->name, equals, value);
}

static void
format_text(const struct xr_option *row, char *text, size_t size)
{
	char range[64] = "", value[128] = "";
	const char *live = row->live ? "live" : "";

	if (row->type == XR_OPTION_INT)
		snprintf(range, sizeof range, "%" PRId64 "..%" PRId64, row->min, row->max);
	if (row->default_value)
		snprintf(value, sizeof value, "default %s", row->default_value);
	if (!*range && !*value && !*live)
		snprintf(text, size, "%s", row->help);
	else
		snprintf(text, size, "%s (%s%s%s%s%s)", row->help, value, *value && (*range || *live) ? "; " : "",
			 range, *range && *live ? "; " : "", live);
}

/* How many bytes of text to print on one line of width: up to the last blank that fits, or the whole first word. */
static size_t
line_length(const char *text, size_t width)
{
	size_t length = strlen(text), cut = width;

	if (length <= width)
		return length;
	while (cut > 0 && text[cut] != ' ')
		cut--;
	return cut ? cut : strcspn(text, " ");
}

static void
print_row(const struct xr_option *row)
{
	char label[96], text[768];
	const char *rest = text, *left = label;

	format_label(row, label, sizeof label);
	format_text(row, text, sizeof text);
	if (strlen(label) + 4 > TEXT_COLUMN) {
		log_help("  %s", label);
		left = "";
	}
	while (*rest) {
		size_t length = line_length(rest, COLUMNS - TEXT_COLUMN);

		log_help("  %-*s%.*s", TEXT_COLUMN - 2, left, (int)length, rest);
		left = "";
		rest += length;
		rest += strspn(rest, " ");
	}
}

void
option_print_help(const char *program)
{
	const struct option_table *table;
	const char *heading = "";

	log_help("Usage: %s [options]", program);
	log_help("%s", "");
	log_help(
		"Options are written --name=value, --name value or -name=value; - and _ in a name are alike. One that");
	log_help("is true or false is --name or --noname. \"live\": may be changed while the program runs.");
	cds_list_for_each_entry (table, &g_option_tables, node) {
		if (strcmp(heading, table->heading) != 0) {
			heading = table->heading;
			log_help("%s", "");
			log_help("%s:", heading);
		}
		for (const struct xr_option *row = table->rows; row->name; row++)
			print_row(row);
	}
}
