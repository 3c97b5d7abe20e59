/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_OPTION_H
#define CORE_OPTION_H

/* The option registry: tables in, command line parsed, values out. Main thread only, but for option_int/option_bool. */

#include <xrdma/option.h>

/* A relaxed read of a live number; what a hot path does at most once a turn. */
static inline int64_t
option_int(const int64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static inline bool
option_bool(const int64_t *value)
{
	return option_int(value) != 0;
}

/* Adds a floor's table under a heading for --help. -EEXIST, -EINVAL, -ENOMEM as xr_option_register(). */
int option_add_table(const char *heading, const struct xr_option *rows);

/* Puts every option to its default. Before parsing; a default that does not parse is a programming error (-EINVAL). */
int option_set_defaults(void);

/*
 * Parses argv[1..]: the index of the first argument that is no option (argc when all were), or -EINVAL (-ENOMEM) after
 * one log line that names the option, what was wrong and what is allowed. "--" ends the options. *asked_help and
 * *asked_version are set when --help/-h or --version occurred; nothing is printed here.
 */
int option_parse(int argc, char **argv, bool *asked_help, bool *asked_version);

/* The text of --help through the log sink, a table after the other with its heading. */
void option_print_help(const char *program);

/* From now on only live options change (true), or all do (false). */
void option_freeze(bool frozen);

/* Forgets tables and frees strings. */
void option_fini(void);

#endif
