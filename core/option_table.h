/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_OPTION_TABLE_H
#define CORE_OPTION_TABLE_H

/* The registered tables, for what walks them: the command line, the suggestions and --help. */

#include <urcu/list.h>
#include <xrdma/option.h>

struct option_table {
	struct cds_list_head node;
	const char *heading;
	const struct xr_option *rows;
};

/* In the order of --help. */
extern struct cds_list_head g_option_tables;

/* --help and --version: always there, always first. */
extern const struct xr_option g_option_builtin[];

#define option_for_each_row(table, row)                           \
	cds_list_for_each_entry ((table), &g_option_tables, node) \
		for ((row) = (table)->rows; (row)->name != NULL; (row)++)

/* In a name as the user writes it, `-` and `_` are alike. */
static inline char
option_fold(char byte)
{
	if (byte == '-')
		return '_';
	return byte;
}

/* The row whose name is the first length bytes of word, NULL: none. */
const struct xr_option *option_find(const char *word, size_t length);
const struct xr_option *option_find_letter(char letter);

/* The name that a misspelt word may have meant, NULL: none is near. */
const char *option_suggest(const char *word, size_t length);

/* As xr_option_set(), for a row that is known. */
int option_set(const struct xr_option *row, const char *value, const char **why);

#endif
