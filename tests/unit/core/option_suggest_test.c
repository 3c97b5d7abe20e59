/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "core/option.h"
#include "core/option_table.h"

static int64_t g_value;

#define BOOL_ROW(row_name)                                                                 \
	{                                                                                  \
		.name = (row_name), .type = XR_OPTION_BOOL, .value = &g_value, .help = "x" \
	}

static const struct xr_option g_rows[] = {
	BOOL_ROW("thread_num"),
	BOOL_ROW("thread_nums"),
	BOOL_ROW("port"),
	BOOL_ROW("a_name_that_is_longer_than_sixty_four_bytes_and_is_never_suggested_here"),
	{0},
};

static void
assert_suggests(const char *word, const char *expected)
{
	const char *got = option_suggest(word, strlen(word));

	ASSERT_STR(got ? got : "(none)", expected);
}

static void
test_suggestions(void)
{
	ASSERT_FATAL(option_add_table("Test", g_rows) == 0);
	assert_suggests("thread_num", "thread_num");
	assert_suggests("thread-num", "thread_num");
	assert_suggests("thread_nun", "thread_num");
	assert_suggests("thread_numss", "thread_nums"); /* the nearer one */
	assert_suggests("htread_nmu", "thread_num");
	assert_suggests("tread_nm", "thread_num");
	assert_suggests("tred_nm", "(none)");
	assert_suggests("prot", "port");
	assert_suggests("por", "port");
	assert_suggests("ports", "port");
	assert_suggests("rt", "(none)"); /* half of it is not near */
	assert_suggests("", "(none)");
	option_fini();
}

static void
test_long_words(void)
{
	char word[200];

	memset(word, 'a', sizeof word);
	CU_ASSERT(option_suggest(word, 64) == NULL);
	CU_ASSERT(option_suggest(word, 65) == NULL);
	CU_ASSERT(option_suggest(word, sizeof word) == NULL);
}

UNIT_SUITE("option_suggest", {"near names", test_suggestions}, {"long words", test_long_words});
