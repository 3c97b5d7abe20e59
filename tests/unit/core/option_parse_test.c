/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/unit/core/log_capture.h"

#include "core/option.h"

static int64_t g_number, g_flag, g_note;
static const char *g_list, *g_word;
static char g_ports[128];

static int
add_port(const char *value, const char **why)
{
	if (!*value) {
		*why = "a port has a name: NAME,key=value";
		return -EINVAL;
	}
	strcat(strcat(g_ports, value), ";");
	return 0;
}

static const struct xr_option g_rows[] = {
	{.name = "l",
	 .letter = 'l',
	 .type = XR_OPTION_STRING,
	 .value = &g_list,
	 .placeholder = "LIST",
	 .help = "lcores"},
	{.name = "queue_depth",
	 .letter = 'q',
	 .type = XR_OPTION_INT,
	 .value = &g_number,
	 .default_value = "0",
	 .min = -10,
	 .max = 1024,
	 .placeholder = "N",
	 .help = "calls under way"},
	{.name = "use_rdma",
	 .letter = 'u',
	 .type = XR_OPTION_BOOL,
	 .value = &g_flag,
	 .default_value = "false",
	 .help = "try RDMA"},
	{.name = "note", .type = XR_OPTION_BOOL, .value = &g_note, .default_value = "false", .help = "begins with no"},
	{.name = "server_name", .type = XR_OPTION_STRING, .value = &g_word, .placeholder = "NAME", .help = "a name"},
	{.name = "port", .type = XR_OPTION_CALL, .placeholder = "PORT", .help = "adds a port", .set = add_port},
	{0},
};

static bool g_help, g_version;

/* Parses one command line, its words separated by blanks; "''" is an empty word. */
static int
parse(const char *line)
{
	static char text[512];
	char *argv[33] = {"program"};
	int argc = 1;

	option_fini();
	g_ports[0] = '\0';
	g_help = g_version = true;
	ASSERT_FATAL(option_add_table("Test", g_rows) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
	log_capture_start();
	snprintf(text, sizeof text, "%s", line);
	for (char *word = strtok(text, " "); word && argc < 32; word = strtok(NULL, " "))
		argv[argc++] = strcmp(word, "''") == 0 ? "" : word;
	return option_parse(argc, argv, &g_help, &g_version);
}

static void
done(void)
{
	log_capture_stop();
	option_fini();
}

static void
assert_number(const char *line, int64_t expected)
{
	CU_ASSERT(parse(line) > 0);
	if (g_number != expected)
		printf("\"%s\": %s\n", line, log_capture_last());
	ASSERT_EQ(g_number, expected);
	ASSERT_EQ(log_capture_count(), 0);
}

static void
test_value_forms(void)
{
	assert_number("", 0);
	assert_number("--queue_depth=7", 7);
	assert_number("--queue_depth 7", 7);
	assert_number("-queue_depth=7", 7);
	assert_number("-queue_depth 7", 7);
	assert_number("--queue-depth=7", 7);
	assert_number("-queue-depth 7", 7);
	assert_number("-q 7", 7);
	assert_number("-q=7", 7);
	assert_number("-q7", 7);
	assert_number("-q-7", -7);
	assert_number("-q -7", -7);
	assert_number("--queue_depth -7", -7);
	assert_number("--queue_depth=0x10", 16);
	assert_number("--queue_depth=7 --queue_depth=8", 8);
	done();
}

static void
assert_flag(const char *line, int64_t expected, int next)
{
	ASSERT_EQ(parse(line), next);
	ASSERT_EQ(g_flag, expected);
	ASSERT_EQ(log_capture_count(), 0);
}

static void
test_bool_forms(void)
{
	assert_flag("--use_rdma", 1, 2);
	assert_flag("-use-rdma", 1, 2);
	assert_flag("-u", 1, 2);
	assert_flag("-u=no", 0, 2);
	assert_flag("--use_rdma=1", 1, 2);
	assert_flag("--use_rdma=false", 0, 2);
	assert_flag("--use_rdma true", 1, 3);
	assert_flag("--use_rdma off", 0, 3);
	assert_flag("--use_rdma yes server", 1, 3);
	assert_flag("-u on", 1, 3);
	assert_flag("--use_rdma server", 1, 2); /* somebody else's word */
	assert_flag("--use_rdma 0", 1, 2);
	assert_flag("--use_rdma --nouse_rdma", 0, 3);
	assert_flag("--use_rdma -nouse-rdma", 0, 3);
	assert_flag("--use_rdma --no-use-rdma", 0, 3);
	assert_flag("--nouse_rdma --use_rdma", 1, 3);
	done();
}

/* A name that begins with "no" is itself before it is a negation. */
static void
test_negation_of_note(void)
{
	ASSERT_EQ(parse("--note"), 2);
	ASSERT_EQ(g_note, 1);
	ASSERT_EQ(parse("--note --nonote"), 3);
	ASSERT_EQ(g_note, 0);
	done();
}

static void
test_strings(void)
{
	ASSERT_EQ(parse("-l 0-3,8"), 3);
	ASSERT_STR(g_list, "0-3,8");
	ASSERT_EQ(parse("-l0-3"), 2);
	ASSERT_STR(g_list, "0-3");
	ASSERT_EQ(parse("-l=0-3"), 2);
	ASSERT_STR(g_list, "0-3");
	ASSERT_EQ(parse("--l 0"), 3);
	ASSERT_STR(g_list, "0");
	ASSERT_EQ(parse("-l(0,2)@1"), 2);
	ASSERT_STR(g_list, "(0,2)@1");
	ASSERT_EQ(parse("-l0=1"), 2); /* the rest of a letter's word is its value, whatever it holds */
	ASSERT_STR(g_list, "0=1");
	ASSERT_EQ(parse("--server_name=a=b"), 2);
	ASSERT_STR(g_word, "a=b");
	ASSERT_EQ(parse("--server_name="), 2);
	ASSERT_STR(g_word, "");
	ASSERT_EQ(parse("--server_name ''"), 3);
	ASSERT_STR(g_word, "");
	ASSERT_EQ(parse("--server_name -x"), 3);
	ASSERT_STR(g_word, "-x");
	ASSERT_EQ(parse("--server_name=--x"), 2);
	ASSERT_STR(g_word, "--x");
	done();
}

static void
test_calls_in_order(void)
{
	ASSERT_EQ(parse("--port a,mode=poll -port=b --port c"), 6);
	ASSERT_STR(g_ports, "a,mode=poll;b;c;");
	done();
}

static void
test_where_it_stops(void)
{
	ASSERT_EQ(parse("client --queue_depth=7"), 1);
	ASSERT_EQ(g_number, 0);
	ASSERT_EQ(parse("--queue_depth=7 client --queue_depth=8"), 2);
	ASSERT_EQ(g_number, 7);
	ASSERT_EQ(parse("--queue_depth=7 -- --queue_depth=8"), 3);
	ASSERT_EQ(g_number, 7);
	ASSERT_EQ(parse("--"), 2);
	ASSERT_EQ(parse("- x"), 1); /* by custom standard input, not an option */
	ASSERT_EQ(parse("'' x"), 1);
	done();
}

static void
test_no_arguments(void)
{
	char *none[] = {NULL};

	parse("");
	ASSERT_EQ(option_parse(0, none, &g_help, &g_version), 1);
	done();
}

static void
test_help_and_version(void)
{
	CU_ASSERT(parse("") > 0 && !g_help && !g_version);
	CU_ASSERT(parse("--help") > 0 && g_help && !g_version);
	CU_ASSERT(parse("-h") > 0 && g_help);
	CU_ASSERT(parse("-help") > 0 && g_help);
	CU_ASSERT(parse("--version --queue_depth=7") > 0 && g_version && !g_help);
	ASSERT_EQ(g_number, 7);
	ASSERT_EQ(log_capture_count(), 0);
	done();
}

static void
assert_refused(const char *line, const char *reason)
{
	ASSERT_EQ(parse(line), -EINVAL);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_EQ(log_capture_level(0), XR_LOG_ERROR);
	ASSERT_STR(log_capture_last(), reason);
}

static void
test_refused_values(void)
{
	assert_refused("--queue_depth=1025", "option \"--queue_depth=1025\": out of range; allowed are -10..1024");
	assert_refused("-queue-depth x", "option \"-queue-depth x\": not a whole number; allowed are -10..1024");
	assert_refused("--queue_depth=", "option \"--queue_depth=\": the value is empty; allowed are -10..1024");
	assert_refused("-q7x", "option \"-q7x\": not a whole number; allowed are -10..1024");
	assert_refused("--use-rdma=2", "option \"--use-rdma=2\": allowed are true or false");
	assert_refused("--use-rdma=", "option \"--use-rdma=\": allowed are true or false");
	assert_refused("--port=", "option \"--port=\": a port has a name: NAME,key=value");
	assert_refused("--port ''", "option \"--port \": a port has a name: NAME,key=value");
	assert_refused("--nouse_rdma=true", "option \"--nouse_rdma=true\": allowed is --nouse_rdma without a value, or "
					    "--use_rdma=true or false");
	done();
}

static void
test_refused_missing(void)
{
	assert_refused("--queue_depth", "option \"--queue_depth\" needs a value: N, -10..1024");
	assert_refused("-q", "option \"-q\" needs a value: N, -10..1024");
	assert_refused("--server_name --use_rdma", "option \"--server_name\" needs a value: NAME, a name");
	assert_refused("-l --", "option \"-l\" needs a value: LIST, lcores");
	done();
}

static void
test_refused_unknown(void)
{
	assert_refused("--qeue_depth=7", "unknown option \"--qeue_depth=7\"; did you mean --queue_depth?");
	assert_refused("-use-rmda", "unknown option \"-use-rmda\"; did you mean --use_rdma?");
	assert_refused("--prot x", "unknown option \"--prot\"; did you mean --port?");
	assert_refused("--hepl", "unknown option \"--hepl\"; did you mean --help?");
	assert_refused("--frobnicate", "unknown option \"--frobnicate\"; --help lists those that are allowed");
	assert_refused("--noserver_name", "unknown option \"--noserver_name\"; did you mean --server_name?");
	assert_refused("--no", "unknown option \"--no\"; --help lists those that are allowed");
	assert_refused("--no-", "unknown option \"--no-\"; --help lists those that are allowed");
	assert_refused("--q 7", "unknown option \"--q\"; --help lists those that are allowed");
	assert_refused("-uy", "unknown option \"-uy\"; --help lists those that are allowed");
	assert_refused("-z", "unknown option \"-z\"; --help lists those that are allowed");
	assert_refused("-5", "unknown option \"-5\"; --help lists those that are allowed");
	assert_refused("-=7", "unknown option \"-=7\"; --help lists those that are allowed");
	assert_refused("--=7", "unknown option \"--=7\"; --help lists those that are allowed");
	assert_refused("---queue_depth=7", "unknown option \"---queue_depth=7\"; did you mean --queue_depth?");
	assert_refused("--Queue_depth=7", "unknown option \"--Queue_depth=7\"; did you mean --queue_depth?");
	/* A letter's word that is nearer to a long name. */
	assert_refused("-queue_dept 7", "unknown option \"-queue_dept\"; did you mean --queue_depth?");
	done();
}

/* However long the user's word, the reason is on the line. */
static void
test_long_words(void)
{
	char line[400] = "--queue_depth=";
	size_t used = strlen(line);

	memset(line + used, '9', 300);
	line[used + 300] = '\0';
	ASSERT_EQ(parse(line), -EINVAL);
	CU_ASSERT(strstr(log_capture_last(), "out of range; allowed are -10..1024") != NULL);
	memset(line + 2, 'a', 300);
	line[302] = '\0';
	ASSERT_EQ(parse(line), -EINVAL);
	CU_ASSERT(strstr(log_capture_last(), "--help lists those that are allowed") != NULL);
	done();
}

/* The first error ends it: what stands behind is not looked at. */
static void
test_first_error(void)
{
	ASSERT_EQ(parse("--queue_depth=7 --frobnicate --queue_depth=8"), -EINVAL);
	ASSERT_EQ(g_number, 7);
	ASSERT_EQ(log_capture_count(), 1);
	done();
}

UNIT_SUITE("option_parse", {"the ways to give a value", test_value_forms}, {"the ways to give a bool", test_bool_forms},
	   {"a bool whose name begins with no", test_negation_of_note}, {"strings and letters", test_strings},
	   {"calls, once per occurrence and in order", test_calls_in_order}, {"where options end", test_where_it_stops},
	   {"no arguments at all", test_no_arguments}, {"--help and --version", test_help_and_version},
	   {"values that are not allowed", test_refused_values}, {"values that are missing", test_refused_missing},
	   {"unknown options", test_refused_unknown}, {"long words", test_long_words},
	   {"the first error ends it", test_first_error});
