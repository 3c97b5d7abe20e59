/* SPDX-License-Identifier: Apache-2.0 */
#include "core/number_set.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/why.h"

static int
refuse_byte(char byte, const char **why)
{
	if (byte == '\0')
		*why = "a number is missing at the end";
	else if (isgraph((unsigned char)byte))
		*why = why_text("'%c' stands where a number must be", byte);
	else
		*why = why_text("byte 0x%02x stands where a number must be", (unsigned char)byte);
	return -EINVAL;
}

int
number_scan(const char **at, unsigned *number, const char **why)
{
	const char *digit = *at;
	unsigned value = 0;

	if (!isdigit((unsigned char)*digit))
		return refuse_byte(*digit, why);
	for (; isdigit((unsigned char)*digit); digit++) {
		value = value * 10 + (unsigned)(*digit - '0');
		if (value > NUMBER_MAX) {
			*why = why_text("%.12s... is too large, numbers end at %u", *at, NUMBER_MAX);
			return -EINVAL;
		}
	}
	*number = value;
	*at = digit;
	return 0;
}

static int
reserve(struct number_set *set, size_t count, const char **why)
{
	size_t capacity = set->capacity ? set->capacity : 16;
	unsigned *items;

	if (count <= set->capacity)
		return 0;
	while (capacity < count)
		capacity *= 2;
	items = realloc(set->items, capacity * sizeof *items);
	if (!items) {
		*why = "out of memory";
		return -ENOMEM;
	}
	set->items = items;
	set->capacity = capacity;
	return 0;
}

int
number_set_add(struct number_set *set, unsigned first, unsigned last, const char **why)
{
	size_t count = set->count + (last - first) + 1;
	int rc;

	if (count > (size_t)NUMBER_MAX + 1) {
		*why = "numbers occur twice";
		return -EINVAL;
	}
	rc = reserve(set, count, why);
	if (rc)
		return rc;
	for (unsigned number = first; number <= last; number++)
		set->items[set->count++] = number;
	return 0;
}

void
number_skip_blanks(const char **at)
{
	while (isblank((unsigned char)**at))
		++*at;
}

/* A number and the blanks around it. */
static int
scan_end(const char **at, unsigned *number, const char **why)
{
	int rc;

	number_skip_blanks(at);
	rc = number_scan(at, number, why);
	if (rc == 0)
		number_skip_blanks(at);
	return rc;
}

int
number_set_scan_range(struct number_set *set, const char **at, const char **why)
{
	unsigned first = 0, last;
	int rc = scan_end(at, &first, why);

	if (rc)
		return rc;
	last = first;
	if (**at == '-') {
		++*at;
		rc = scan_end(at, &last, why);
		if (rc)
			return rc;
		if (**at == '-') {
			*why = why_text("%u-%u goes on with another '-', a range is FIRST-LAST", first, last);
			return -EINVAL;
		}
		if (first > last) {
			*why = why_text("range %u-%u runs backwards", first, last);
			return -EINVAL;
		}
	}
	return number_set_add(set, first, last, why);
}

static int
compare_numbers(const void *left, const void *right)
{
	unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;

	return (a > b) - (a < b);
}

int
number_set_close(struct number_set *set, const char **why)
{
	if (set->count)
		qsort(set->items, set->count, sizeof *set->items, compare_numbers);
	for (size_t i = 1; i < set->count; i++) {
		if (set->items[i] == set->items[i - 1]) {
			*why = why_text("%u occurs twice", set->items[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int
scan_whole(struct number_set *set, const char *text, const char **why)
{
	const char *at = text;
	int rc;

	if (!*at) {
		*why = "the list is empty";
		return -EINVAL;
	}
	while ((rc = number_set_scan_range(set, &at, why)) == 0 && *at == ',')
		at++;
	if (rc)
		return rc;
	if (*at) {
		*why = why_text("\"%.32s\" follows where only ',' or the end may", at);
		return -EINVAL;
	}
	return number_set_close(set, why);
}

int
number_set_parse(const char *text, struct number_set *set, const char **why)
{
	struct number_set parsed = {0};
	int rc = scan_whole(&parsed, text, why);

	if (rc)
		number_set_free(&parsed);
	else
		*set = parsed;
	return rc;
}

void
number_set_free(struct number_set *set)
{
	free(set->items);
	memset(set, 0, sizeof *set);
}

bool
number_set_has(const struct number_set *set, unsigned number)
{
	return set->count && bsearch(&number, set->items, set->count, sizeof number, compare_numbers);
}

void
number_set_format(const struct number_set *set, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0, end; i < set->count; i = end) {
		char range[32];
		size_t length;

		for (end = i + 1; end < set->count && set->items[end] == set->items[end - 1] + 1;)
			end++;
		snprintf(range, sizeof range, end - i > 1 ? "%s%u-%u" : "%s%u", i ? "," : "", set->items[i],
			 set->items[end - 1]);
		length = strlen(range);
		if (used + length + sizeof ",..." > size) {
			snprintf(text + used, size - used, ",...");
			return;
		}
		memcpy(text + used, range, length + 1);
		used += length;
	}
}
