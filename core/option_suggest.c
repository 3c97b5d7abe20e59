/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/option_table.h"

#define WORD_MAX 64
#define NEAR	 2 /* edits: a letter more, less or other, or two swapped */

static unsigned
smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance, row by row; both at most WORD_MAX long. */
static unsigned
edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned rows[3][WORD_MAX + 1];

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			unsigned replaced = above[j - 1] + (a[i - 1] != b[j - 1]);

			row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = smaller(row[j], above_that[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

const char *
option_suggest(const char *word, size_t length)
{
	char folded[WORD_MAX];
	const struct option_table *table;
	const struct xr_option *row;
	const char *nearest = NULL;
	size_t best = NEAR + 1;

	if (length > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < length; i++)
		folded[i] = option_fold(word[i]);
	option_for_each_row(table, row)
	{
		size_t name_length = strlen(row->name);
		size_t distance;

		if (name_length > WORD_MAX)
			continue;
		distance = edit_distance(folded, length, row->name, name_length);
		/* Of a short name, two edits leave nothing. */
		if (distance < best && 2 * distance < name_length) {
			best = distance;
			nearest = row->name;
		}
	}
	return nearest;
}
