/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_NUMBER_SET_H
#define CORE_NUMBER_SET_H

/*
 * A set of numbers as people and the kernel write it: `0-3,8`. Numbers and ascending ranges, no number twice; blanks
 * around them mean nothing.
 *
 * Calls that return an int give 0, or -EINVAL or -ENOMEM with *why set (core/why.h's buffer).
 */

#include <stdbool.h>
#include <stddef.h>

#define NUMBER_MAX 1000000u

struct number_set {
	unsigned *items; /* malloc'd; ascending once closed */
	size_t count;
	size_t capacity;
};

/* The whole text is one set. After an error *set is untouched. */
int number_set_parse(const char *text, struct number_set *set, const char **why);

/* The pieces for a syntax around it: appends the `N` or `N-M` at *at and moves on behind it and the blanks there. */
int number_set_scan_range(struct number_set *set, const char **at, const char **why);

void number_skip_blanks(const char **at);

/* A number with *at in front of it, moved on behind it. */
int number_scan(const char **at, unsigned *number, const char **why);

/* Appends first..last. */
int number_set_add(struct number_set *set, unsigned first, unsigned last, const char **why);

/* Sorts; refuses a number that occurs twice. */
int number_set_close(struct number_set *set, const char **why);

void number_set_free(struct number_set *set);

/* Closed sets only. */
bool number_set_has(const struct number_set *set, unsigned number);

/* Writes the set as ranges, cut with "..." where size ends. */
void number_set_format(const struct number_set *set, char *text, size_t size);

#endif
