/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>

#include "tests/unit/core/log_capture.h"
#include "tests/unit/fail_alloc.h"

#include "core/option.h"

static int64_t g_size, g_on;
static const char *g_name, *g_checked;
static char g_calls[64];

static int
check_name(const char *value, const char **why)
{
	if (strcmp(value, "good") == 0 || strcmp(value, "better") == 0)
		return 0;
	*why = "allowed are good and better";
	return -EINVAL;
}

static int
add_call(const char *value, const char **why)
{
	if (strcmp(value, "mute") == 0)
		return -EINVAL;
	if (strlen(g_calls) + strlen(value) + 2 > sizeof g_calls) {
		*why = "too many";
		return -EINVAL;
	}
	strcat(strcat(g_calls, value), ";");
	return 0;
}

static const struct xr_option g_rows[] = {
	{.name = "ring_size",
	 .letter = 'r',
	 .type = XR_OPTION_INT,
	 .value = &g_size,
	 .default_value = "0x80",
	 .min = 16,
	 .max = 4096,
	 .live = true,
	 .placeholder = "N",
	 .help = "entries of the ring"},
	{.name = "on", .type = XR_OPTION_BOOL, .value = &g_on, .default_value = "true", .help = "switch"},
	{.name = "name",
	 .type = XR_OPTION_STRING,
	 .value = &g_name,
	 .default_value = "",
	 .live = true,
	 .placeholder = "TEXT",
	 .help = "any text"},
	{.name = "checked",
	 .type = XR_OPTION_STRING,
	 .value = &g_checked,
	 .placeholder = "TEXT",
	 .help = "good or better",
	 .set = check_name},
	{.name = "call", .type = XR_OPTION_CALL, .placeholder = "WORD", .help = "a word", .set = add_call},
	{0},
};

static void
setup(void)
{
	g_calls[0] = '\0';
	log_capture_start();
	ASSERT_FATAL(option_add_table("Test", g_rows) == 0);
	ASSERT_FATAL(option_set_defaults() == 0);
}

static void
teardown(void)
{
	option_fini();
	log_capture_stop();
}

static void
assert_value(const char *name, const char *expected)
{
	char text[64];

	ASSERT_EQ(xr_option_get(name, text, sizeof text), strlen(expected));
	ASSERT_STR(text, expected);
}

static void
test_defaults(void)
{
	setup();
	assert_value("ring_size", "128");
	assert_value("on", "true");
	assert_value("name", "");
	assert_value("checked", "");
	CU_ASSERT(g_name != NULL && *g_name == '\0');
	CU_ASSERT(g_checked == NULL); /* no default: left as it is */
	ASSERT_STR(g_calls, "");
	ASSERT_EQ(xr_option_set("ring_size", "64", NULL), 0);
	ASSERT_EQ(option_set_defaults(), 0);
	assert_value("ring_size", "128");
	teardown();
}

static void
test_set(void)
{
	const char *why = NULL;

	setup();
	ASSERT_EQ(xr_option_set("ring-size", "4096", &why), 0);
	ASSERT_EQ(option_int(&g_size), 4096);
	ASSERT_EQ(xr_option_set("on", "off", &why), 0);
	CU_ASSERT(!option_bool(&g_on));
	ASSERT_EQ(xr_option_set("name", "x y", &why), 0);
	ASSERT_STR(g_name, "x y");
	ASSERT_EQ(xr_option_set("checked", "better", &why), 0);
	ASSERT_STR(g_checked, "better");
	ASSERT_EQ(xr_option_set("call", "a", &why), 0);
	ASSERT_EQ(xr_option_set("call", "b", &why), 0);
	ASSERT_STR(g_calls, "a;b;");
	ASSERT_EQ(log_capture_count(), 0);
	teardown();
}

static void
assert_refused(const char *name, const char *value, int error, const char *reason)
{
	const char *why = NULL;

	ASSERT_EQ(xr_option_set(name, value, &why), error);
	ASSERT_STR(why, reason);
	ASSERT_EQ(xr_option_set(name, value, NULL), error);
}

static void
test_refused(void)
{
	setup();
	assert_refused("ring_size", "4097", -EINVAL, "out of range; allowed are 16..4096");
	assert_refused("on", "maybe", -EINVAL, "allowed are true or false");
	assert_refused("checked", "bad", -EINVAL, "allowed are good and better");
	assert_refused("call", "mute", -EINVAL, "not allowed");
	assert_refused("ring_siez", "20", -ENOENT, "no such option; did you mean ring_size");
	assert_refused("Ring_size", "20", -ENOENT, "no such option; did you mean ring_size");
	assert_refused("quite_other", "20", -ENOENT, "no such option");
	assert_refused("", "20", -ENOENT, "no such option");
	assert_refused("ring_size=", "20", -ENOENT, "no such option; did you mean ring_size");
	assert_value("ring_size", "128");
	assert_value("on", "true");
	CU_ASSERT(g_checked == NULL);
	ASSERT_EQ(xr_option_get("nix", NULL, 0), -ENOENT);
	teardown();
}

static void
test_frozen(void)
{
	static const struct xr_option more[] = {
		{.name = "more", .type = XR_OPTION_BOOL, .value = &g_on, .help = "more"}, {0}};

	setup();
	option_freeze(true);
	assert_refused("on", "false", -EPERM, "it cannot be changed while the program runs");
	assert_value("on", "true");
	ASSERT_EQ(xr_option_set("ring_size", "64", NULL), 0);
	assert_value("ring_size", "64");
	ASSERT_EQ(xr_option_register(more), -EBUSY);
	option_freeze(false);
	ASSERT_EQ(xr_option_set("on", "false", NULL), 0);
	ASSERT_EQ(xr_option_register(more), 0);
	teardown();
	ASSERT_EQ(xr_option_register(more), 0); /* fini thaws */
	option_fini();
}

/* Readers of a string may hold it for as long as the library lives. */
static void
test_old_text_stays(void)
{
	const char *first, *second;
	char text[16];

	setup();
	ASSERT_EQ(xr_option_set("name", "first", NULL), 0);
	first = g_name;
	ASSERT_EQ(xr_option_set("name", strcpy(text, "second"), NULL), 0);
	second = g_name;
	memset(text, 'x', sizeof text);
	ASSERT_STR(first, "first");
	ASSERT_STR(second, "second");
	ASSERT_EQ(xr_option_set("name", "first", NULL), 0);
	CU_ASSERT(g_name == first); /* and setting it for ever does not grow */
	teardown();
	CU_ASSERT(g_name == NULL);
}

static void
test_get_cut(void)
{
	char text[4];

	setup();
	ASSERT_EQ(xr_option_set("name", "abcdef", NULL), 0);
	ASSERT_EQ(xr_option_get("name", text, sizeof text), 6);
	ASSERT_STR(text, "abc");
	ASSERT_EQ(xr_option_get("name", NULL, 0), 6);
	teardown();
}

static void
assert_table_refused(const struct xr_option *row, int error, const char *line)
{
	struct xr_option table[] = {*row, {0}};

	log_capture_start();
	ASSERT_EQ(xr_option_register(table), error);
	ASSERT_EQ(log_capture_count(), 1);
	ASSERT_STR(log_capture_last(), line);
}

static void
test_names_once(void)
{
	static struct xr_option row = {.name = "fresh", .type = XR_OPTION_BOOL, .value = &g_on, .help = "x"};
	static struct xr_option twice[] = {
		{.name = "fresh", .type = XR_OPTION_BOOL, .value = &g_on, .help = "x"},
		{.name = "fresh", .type = XR_OPTION_BOOL, .value = &g_on, .help = "x"},
		{0},
	};

	setup();
	row.name = "on";
	assert_table_refused(&row, -EEXIST, "option table: row \"on\": the name or its letter is taken already");
	row.name = "help";
	assert_table_refused(&row, -EEXIST, "option table: row \"help\": the name or its letter is taken already");
	row.name = "fresh";
	row.letter = 'r';
	assert_table_refused(&row, -EEXIST, "option table: row \"fresh\": the name or its letter is taken already");
	row.letter = 'h';
	assert_table_refused(&row, -EEXIST, "option table: row \"fresh\": the name or its letter is taken already");
	ASSERT_EQ(xr_option_register(twice), -EEXIST);
	ASSERT_EQ(xr_option_get("fresh", NULL, 0), -ENOENT);
	teardown();
}

static void
test_malformed_rows(void)
{
	static const struct xr_option name = {.name = "Bad-Name", .type = XR_OPTION_BOOL, .value = &g_on, .help = "x"};
	static const struct xr_option empty = {.name = "", .type = XR_OPTION_BOOL, .value = &g_on, .help = "x"};
	static const struct xr_option range = {.name = "range",
					       .type = XR_OPTION_INT,
					       .value = &g_size,
					       .min = 2,
					       .max = 1,
					       .placeholder = "N",
					       .help = "x"};
	static const struct xr_option nowhere = {.name = "nowhere", .type = XR_OPTION_BOOL, .help = "x"};
	static const struct xr_option no_call = {
		.name = "no_call", .type = XR_OPTION_CALL, .placeholder = "X", .help = "x"};
	static const struct xr_option no_help = {.name = "no_help", .type = XR_OPTION_BOOL, .value = &g_on};
	static const struct xr_option no_placeholder = {
		.name = "no_placeholder", .type = XR_OPTION_STRING, .value = &g_name, .help = "x"};

	assert_table_refused(&name, -EINVAL,
			     "option table: row \"Bad-Name\": its name must be lower-case words with '_' between them");
	assert_table_refused(&empty, -EINVAL,
			     "option table: row \"\": its name must be lower-case words with '_' between them");
	assert_table_refused(&range, -EINVAL, "option table: row \"range\": its min is above its max");
	assert_table_refused(&nowhere, -EINVAL, "option table: row \"nowhere\": it has nowhere to put its value");
	assert_table_refused(&no_call, -EINVAL, "option table: row \"no_call\": it has nowhere to put its value");
	assert_table_refused(&no_help, -EINVAL, "option table: row \"no_help\": it lacks its help text or placeholder");
	assert_table_refused(&no_placeholder, -EINVAL,
			     "option table: row \"no_placeholder\": it lacks its help text or placeholder");
	log_capture_stop();
	option_fini();
}

static void
test_bad_default(void)
{
	static const struct xr_option table[] = {{.name = "low",
						  .type = XR_OPTION_INT,
						  .value = &g_size,
						  .default_value = "0",
						  .min = 1,
						  .max = 2,
						  .placeholder = "N",
						  .help = "x"},
						 {0}};

	log_capture_start();
	ASSERT_EQ(option_add_table("Bad", table), 0);
	ASSERT_EQ(option_set_defaults(), -EINVAL);
	ASSERT_STR(log_capture_last(), "option table: row \"low\": its default 0: out of range; allowed are 1..2");
	option_fini();
	log_capture_stop();
}

#define ROUNDS 2000

static void *
write_values(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		xr_option_set("ring_size", i % 2 ? "100" : "200", NULL);
		xr_option_set("name", i % 2 ? "aaaa" : "bbbb", NULL);
	}
	return arg;
}

/* Readers of live values see one of those that were set, whole. */
static void
test_threads(void)
{
	pthread_t writers[2];
	unsigned torn = 0;

	setup();
	xr_option_set("ring_size", "100", NULL);
	xr_option_set("name", "aaaa", NULL);
	option_freeze(true);
	for (int i = 0; i < 2; i++)
		ASSERT_FATAL(pthread_create(&writers[i], NULL, write_values, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		int64_t size = option_int(&g_size);
		char text[16];

		xr_option_get("name", text, sizeof text);
		torn += size != 100 && size != 200;
		torn += strcmp(text, "aaaa") != 0 && strcmp(text, "bbbb") != 0;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(writers[i], NULL);
	ASSERT_EQ(torn, 0);
	teardown();
}

static void
test_out_of_memory(void)
{
	static const struct xr_option more[] = {
		{.name = "more", .type = XR_OPTION_BOOL, .value = &g_on, .help = "more"}, {0}};
	const char *why = NULL;
	int rc;

	if (!FAIL_ALLOC) {
		unit_skip("the sanitizer brings its own allocator");
		return;
	}
	setup();
	g_fail_alloc_after = 0;
	rc = xr_option_set("name", "never seen", &why);
	g_fail_alloc_after = -1;
	ASSERT_EQ(rc, -ENOMEM);
	ASSERT_STR(why, "out of memory");
	assert_value("name", "");
	g_fail_alloc_after = 0;
	rc = xr_option_register(more);
	g_fail_alloc_after = -1;
	ASSERT_EQ(rc, -ENOMEM);
	ASSERT_EQ(xr_option_get("more", NULL, 0), -ENOENT);
	teardown();
}

UNIT_SUITE("option", {"defaults", test_defaults}, {"set and get by name", test_set},
	   {"refusals leave the value alone", test_refused}, {"frozen: live ones only", test_frozen},
	   {"replaced text stays valid", test_old_text_stays}, {"get cuts and tells the length", test_get_cut},
	   {"a name or letter is taken once", test_names_once}, {"malformed rows", test_malformed_rows},
	   {"a default that is not allowed", test_bad_default}, {"set and read by several threads", test_threads},
	   {"out of memory", test_out_of_memory});
