/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>

#include "tests/unit/core/log_capture.h"

#include "core/option.h"

static int64_t g_number;
static const char *g_text;

static int
accept(const char *value, const char **why)
{
	(void)value;
	(void)why;
	return 0;
}

static const struct xr_option g_rows[] = {
	{.name = "queue_depth",
	 .letter = 'q',
	 .type = XR_OPTION_INT,
	 .value = &g_number,
	 .default_value = "16",
	 .min = 1,
	 .max = 1024,
	 .live = true,
	 .placeholder = "N",
	 .help = "calls under way"},
	{.name = "l",
	 .letter = 'l',
	 .type = XR_OPTION_STRING,
	 .value = &g_text,
	 .placeholder = "LIST",
	 .help = "lcores"},
	{.name = "a_name_so_long_that_it_needs_a_line",
	 .type = XR_OPTION_BOOL,
	 .value = &g_number,
	 .default_value = "false",
	 .help = "set"},
	{.name = "port",
	 .type = XR_OPTION_CALL,
	 .placeholder = "NAME,...",
	 .help = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
		 "seventeen eighteen nineteen",
	 .set = accept},
	{.name = "unbroken",
	 .type = XR_OPTION_BOOL,
	 .value = &g_number,
	 .help = "short aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa end"},
	{0},
};

/* Index of the first line that begins with text, or of none. */
static unsigned
find_line(const char *text)
{
	unsigned i = 0;

	while (i < log_capture_count() && strncmp(log_capture_line(i), text, strlen(text)) != 0)
		i++;
	return i;
}

static void
print(void)
{
	ASSERT_FATAL(option_add_table("Tested things", g_rows) == 0);
	log_capture_start();
	option_print_help("my-program");
}

static void
done(void)
{
	log_capture_stop();
	option_fini();
}

static void
test_headings(void)
{
	print();
	ASSERT_STR(log_capture_line(0), "Usage: my-program [options]");
	CU_ASSERT(find_line("General:") < find_line("Tested things:"));
	CU_ASSERT(find_line("  -h, --help                    print this text") < find_line("Tested things:"));
	CU_ASSERT(find_line("Tested things:") < log_capture_count());
	done();
}

static void
test_rows(void)
{
	unsigned at;

	print();
	at = find_line("Tested things:");
	ASSERT_STR(log_capture_line(at + 1),
		   "  -q, --queue_depth=N           calls under way (default 16; 1..1024; live)");
	ASSERT_STR(log_capture_line(at + 2), "  -l LIST                       lcores");
	ASSERT_STR(log_capture_line(at + 3), "  --a_name_so_long_that_it_needs_a_line");
	ASSERT_STR(log_capture_line(at + 4), "                                set (default false)");
	ASSERT_STR(log_capture_line(at + 5), "  --port=NAME,...               one two three four five six seven eight "
					     "nine ten eleven twelve");
	ASSERT_STR(log_capture_line(at + 6), "                                thirteen fourteen fifteen sixteen "
					     "seventeen eighteen nineteen");
	done();
}

/* A program that registers its options in several tables has them under one heading. */
static void
test_one_heading(void)
{
	static const struct xr_option more[] = {
		{.name = "more", .type = XR_OPTION_BOOL, .value = &g_number, .help = "more"}, {0}};
	unsigned headings = 0;

	ASSERT_FATAL(option_add_table("Tested things", more) == 0);
	print();
	for (unsigned i = 0; i < log_capture_count(); i++)
		headings += strcmp(log_capture_line(i), "Tested things:") == 0;
	ASSERT_EQ(headings, 1);
	CU_ASSERT(find_line("  --more") < find_line("  -q, --queue_depth"));
	done();
}

/* All but what cannot be broken fits, and all of it is help: passed on at every level. */
static void
test_width(void)
{
	print();
	for (unsigned i = 0; i < log_capture_count(); i++) {
		ASSERT_EQ(log_capture_level(i), XR_LOG_HELP);
		if (!strstr(log_capture_line(i), "aaaa"))
			CU_ASSERT(strlen(log_capture_line(i)) <= 100);
	}
	ASSERT_STR(log_capture_last(), "                                end");
	done();
}

UNIT_SUITE("option_help", {"headings, and the usage first", test_headings}, {"rows", test_rows},
	   {"one heading for tables alike", test_one_heading}, {"100 columns", test_width});
