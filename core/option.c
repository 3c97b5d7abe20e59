/* SPDX-License-Identifier: Apache-2.0 */
#include "core/option.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/option_table.h"
#include "core/option_value.h"
#include "core/why.h"

/* A string option's text. Kept until option_fini(), since a reader may still hold it after it was replaced. */
struct owned_text {
	struct cds_list_head node;
	char text[];
};

static struct option_table g_builtin = {
	.node = {&g_option_tables, &g_option_tables},
	.heading = "General",
	.rows = g_option_builtin,
};

struct cds_list_head g_option_tables = {&g_builtin.node, &g_builtin.node};

static CDS_LIST_HEAD(g_texts);
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER; /* values, g_texts, g_frozen */
static bool g_frozen;

static bool
name_is(const char *name, const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (name[i] == '\0' || name[i] != option_fold(word[i]))
			return false;
	}
	return name[length] == '\0';
}

const struct xr_option *
option_find(const char *word, size_t length)
{
	const struct option_table *table;
	const struct xr_option *row;

	option_for_each_row(table, row)
	{
		if (name_is(row->name, word, length))
			return row;
	}
	return NULL;
}

const struct xr_option *
option_find_letter(char letter)
{
	const struct option_table *table;
	const struct xr_option *row;

	option_for_each_row(table, row)
	{
		if (letter && row->letter == letter)
			return row;
	}
	return NULL;
}

/* What is wrong with a row as its author wrote it; NULL: nothing. */
static const char *
row_fault(const struct xr_option *row)
{
	size_t length = strlen(row->name);

	if (length == 0 || strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
		return "its name must be lower-case words with '_' between them";
	if (row->type == XR_OPTION_CALL ? !row->set : !row->value)
		return "it has nowhere to put its value";
	if (row->type == XR_OPTION_INT && row->min > row->max)
		return "its min is above its max";
	if (!row->help || (row->type != XR_OPTION_BOOL && !row->placeholder))
		return "it lacks its help text or placeholder";
	return NULL;
}

/* Against all tables, and against the rows before it in its own. */
static bool
row_taken(const struct xr_option *table, const struct xr_option *row)
{
	if (option_find(row->name, strlen(row->name)) || option_find_letter(row->letter))
		return true;
	for (const struct xr_option *other = table; other < row; other++) {
		if (strcmp(other->name, row->name) == 0 || (row->letter && other->letter == row->letter))
			return true;
	}
	return false;
}

static int
check_table(const struct xr_option *table)
{
	for (const struct xr_option *row = table; row->name; row++) {
		const char *fault = row_fault(row);

		if (fault) {
			log_error("option table: row \"%s\": %s", row->name, fault);
			return -EINVAL;
		}
		if (row_taken(table, row)) {
			log_error("option table: row \"%s\": the name or its letter is taken already", row->name);
			return -EEXIST;
		}
	}
	return 0;
}

int
option_add_table(const char *heading, const struct xr_option *rows)
{
	struct option_table *table;
	int rc = check_table(rows);

	if (rc)
		return rc;
	table = malloc(sizeof *table);
	if (!table)
		return -ENOMEM;
	table->heading = heading;
	table->rows = rows;
	cds_list_add_tail(&table->node, &g_option_tables);
	return 0;
}

XR_API int
xr_option_register(const struct xr_option *table)
{
	return g_frozen ? -EBUSY : option_add_table("Application", table);
}

/* The kept copy of a text: one for each different text, so that setting the same ones for ever does not grow. */
static const char *
keep_text(const char *text)
{
	size_t size = strlen(text) + 1;
	struct owned_text *owned;

	cds_list_for_each_entry (owned, &g_texts, node) {
		if (strcmp(owned->text, text) == 0)
			return owned->text;
	}
	owned = malloc(sizeof *owned + size);
	if (!owned)
		return NULL;
	memcpy(owned->text, text, size);
	cds_list_add(&owned->node, &g_texts);
	return owned->text;
}

static int
set_number(const struct xr_option *row, const char *text, const char **why)
{
	int64_t number;
	int rc = option_parse_number(row, text, &number, why);

	if (rc == 0)
		__atomic_store_n((int64_t *)row->value, number, __ATOMIC_RELAXED);
	return rc;
}

static int
set_string(const struct xr_option *row, const char *text, const char **why)
{
	const char *kept = keep_text(text);
	int rc;

	if (!kept) {
		*why = "out of memory";
		return -ENOMEM;
	}
	rc = row->set ? row->set(kept, why) : 0;
	if (rc == 0)
		__atomic_store_n((const char **)row->value, kept, __ATOMIC_RELEASE);
	return rc;
}

static int
set_value(const struct xr_option *row, const char *text, const char **why)
{
	switch (row->type) {
	case XR_OPTION_BOOL:
	case XR_OPTION_INT:
		return set_number(row, text, why);
	case XR_OPTION_STRING:
		return set_string(row, text, why);
	default:
		return row->set(text, why);
	}
}

int
option_set(const struct xr_option *row, const char *value, const char **why)
{
	int rc;

	*why = "not allowed"; /* for a set() that does not say more */
	pthread_mutex_lock(&g_lock);
	if (g_frozen && !row->live) {
		*why = "it cannot be changed while the program runs";
		rc = -EPERM;
	} else {
		rc = set_value(row, value, why);
	}
	pthread_mutex_unlock(&g_lock);
	return rc;
}

XR_API int
xr_option_set(const char *name, const char *value, const char **why)
{
	const struct xr_option *row = option_find(name, strlen(name));
	const char *unsaid;

	if (!why)
		why = &unsaid;
	if (!row) {
		const char *near = option_suggest(name, strlen(name));

		*why = near ? why_text("no such option; did you mean %s", near) : "no such option";
		return -ENOENT;
	}
	return option_set(row, value, why);
}

XR_API int
xr_option_get(const char *name, char *buf, size_t size)
{
	const struct xr_option *row = option_find(name, strlen(name));

	return row ? option_format_value(row, buf, size) : -ENOENT;
}

int
option_set_defaults(void)
{
	const struct option_table *table;
	const struct xr_option *row;
	const char *why;

	option_for_each_row(table, row)
	{
		int rc = row->default_value ? option_set(row, row->default_value, &why) : 0;

		if (rc) {
			log_error("option table: row \"%s\": its default %s: %s", row->name, row->default_value, why);
			return rc;
		}
	}
	return 0;
}

void
option_freeze(bool frozen)
{
	pthread_mutex_lock(&g_lock);
	g_frozen = frozen;
	pthread_mutex_unlock(&g_lock);
}

/* Takes kept texts out of their options before they are freed. */
static void
forget_strings(const struct xr_option *row)
{
	const struct owned_text *owned;

	for (; row->name; row++) {
		const char **value = row->value;

		if (row->type != XR_OPTION_STRING)
			continue;
		cds_list_for_each_entry (owned, &g_texts, node) {
			if (*value == owned->text)
				*value = NULL;
		}
	}
}

void
option_fini(void)
{
	struct option_table *table, *next_table;
	struct owned_text *owned, *next_owned;

	cds_list_for_each_entry_safe (table, next_table, &g_option_tables, node) {
		if (table == &g_builtin)
			continue;
		forget_strings(table->rows);
		cds_list_del(&table->node);
		free(table);
	}
	cds_list_for_each_entry_safe (owned, next_owned, &g_texts, node) {
		cds_list_del(&owned->node);
		free(owned);
	}
	g_frozen = false;
}
