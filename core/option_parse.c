/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/log.h"
#include "core/option.h"
#include "core/option_table.h"
#include "core/option_value.h"

/* How much of a user's word is repeated in an error: enough to know it again, and the reason still fits the line. */
#define SHOWN 80

static int64_t g_asked_help;
static int64_t g_asked_version;

const struct xr_option g_option_builtin[] = {
	{.name = "help",
	 .letter = 'h',
	 .type = XR_OPTION_BOOL,
	 .value = &g_asked_help,
	 .help = "print this text and end"},
	{.name = "version", .type = XR_OPTION_BOOL, .value = &g_asked_version, .help = "print the version and end"},
	{0},
};

struct command_line {
	int argc;
	char **argv;
	int next; /* the argument to look at next */
};

/* One option as it was written, and what it turned out to be. */
struct use {
	const char *word;   /* the whole argument */
	const char *name;   /* behind the dashes */
	size_t name_length; /* up to the '=' or the end */
	const char *value;  /* behind the '=', or NULL */
	bool one_dash;
	const struct xr_option *row;
	bool negated; /* --noname */
};

static void
split_word(const char *word, struct use *use)
{
	const char *equals;

	memset(use, 0, sizeof *use);
	use->word = word;
	use->one_dash = word[1] != '-';
	use->name = word + (use->one_dash ? 1 : 2);
	equals = strchr(use->name, '=');
	use->name_length = equals ? (size_t)(equals - use->name) : strlen(use->name);
	use->value = equals ? equals + 1 : NULL;
}

static int
refuse_unknown(const struct use *use)
{
	const char *near = option_suggest(use->name, use->name_length);

	if (near)
		log_error("unknown option \"%.*s\"; did you mean --%s?", SHOWN, use->word, near);
	else
		log_error("unknown option \"%.*s\"; --help lists those that are allowed", SHOWN, use->word);
	return -EINVAL;
}

static bool
resolve_name(struct use *use)
{
	use->row = option_find(use->name, use->name_length);
	return use->row != NULL;
}

/* `--noname` and `--no-name` of a bool. */
static bool
resolve_negated(struct use *use)
{
	const char *name = use->name + 2;
	size_t length = use->name_length - 2;

	if (use->name_length < 3 || strncmp(use->name, "no", 2) != 0)
		return false;
	if (*name == '-' || *name == '_') {
		name++;
		length--;
	}
	use->row = option_find(name, length);
	use->negated = use->row && use->row->type == XR_OPTION_BOOL;
	return use->negated;
}

/* `-l`, `-l=0-3` and, but for a bool, `-l0-3`. */
static bool
resolve_letter(struct use *use)
{
	const char *rest = use->name + 1;

	if (!use->one_dash || use->name_length == 0)
		return false;
	use->row = option_find_letter(use->name[0]);
	if (!use->row || use->name_length == 1)
		return use->row != NULL;
	/* A known letter with letters behind it may as well be a long name with an error in it. */
	if (use->row->type == XR_OPTION_BOOL ||
	    (isalpha((unsigned char)*rest) && option_suggest(use->name, use->name_length)))
		return false;
	use->value = rest;
	return true;
}

/* The next argument when it can be this option's value, which is then used up. */
static const char *
take_next(struct command_line *line, const struct xr_option *row)
{
	const char *next = line->next < line->argc ? line->argv[line->next] : NULL;
	int64_t ignored;

	if (!next || (row->type == XR_OPTION_BOOL ? !option_bool_word(next, &ignored) : strncmp(next, "--", 2) == 0))
		return NULL;
	line->next++;
	return next;
}

static int
refuse_missing(const struct use *use)
{
	if (use->row->type == XR_OPTION_INT)
		log_error("option \"%.*s\" needs a value: %s, %lld..%lld", SHOWN, use->word, use->row->placeholder,
			  (long long)use->row->min, (long long)use->row->max);
	else
		log_error("option \"%.*s\" needs a value: %s, %s", SHOWN, use->word, use->row->placeholder,
			  use->row->help);
	return -EINVAL;
}

static int
apply(const struct use *use, const char *value, bool separate)
{
	const char *why;
	int rc = option_set(use->row, value, &why);

	if (rc && separate)
		log_error("option \"%.*s %.*s\": %s", SHOWN, use->word, SHOWN, value, why);
	else if (rc)
		log_error("option \"%.*s\": %s", SHOWN, use->word, why);
	return rc;
}

static int
apply_negated(const struct use *use)
{
	if (!use->value)
		return apply(use, "false", false);
	log_error("option \"%.*s\": allowed is --no%s without a value, or --%s=true or false", SHOWN, use->word,
		  use->row->name, use->row->name);
	return -EINVAL;
}

static int
parse_option(struct command_line *line, const char *word)
{
	const char *next;
	struct use use;

	split_word(word, &use);
	if (!resolve_name(&use) && !resolve_negated(&use) && !resolve_letter(&use))
		return refuse_unknown(&use);
	if (use.negated)
		return apply_negated(&use);
	if (use.value)
		return apply(&use, use.value, false);
	next = take_next(line, use.row);
	if (next)
		return apply(&use, next, true);
	return use.row->type == XR_OPTION_BOOL ? apply(&use, "true", false) : refuse_missing(&use);
}

static int
parse_all(struct command_line *line)
{
	while (line->next < line->argc) {
		const char *word = line->argv[line->next];
		int rc;

		if (word[0] != '-' || word[1] == '\0')
			break;
		line->next++;
		if (strcmp(word, "--") == 0)
			break;
		rc = parse_option(line, word);
		if (rc)
			return rc;
	}
	return line->next;
}

int
option_parse(int argc, char **argv, bool *asked_help, bool *asked_version)
{
	struct command_line line = {.argc = argc, .argv = argv, .next = 1};
	int rc;

	g_asked_help = 0;
	g_asked_version = 0;
	rc = parse_all(&line);
	*asked_help = g_asked_help;
	*asked_version = g_asked_version;
	return rc;
}
