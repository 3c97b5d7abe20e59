/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_OPTION_VALUE_H
#define CORE_OPTION_VALUE_H

/* Text to number and back, for one row of an option table. No state. */

#include <xrdma/option.h>

/* true/false, yes/no, on/off in any case. False: text is none of them. */
bool option_bool_word(const char *text, int64_t *value);

/* A bool's or an int's value; 1 and 0 are bools too. -EINVAL with *why saying what was wrong and what is allowed. */
int option_parse_number(const struct xr_option *row, const char *text, int64_t *value, const char **why);

/* The value as text, as snprintf. A CALL has none and gives "". */
int option_format_value(const struct xr_option *row, char *text, size_t size);

#endif
