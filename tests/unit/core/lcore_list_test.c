/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/fail_alloc.h"

#include "core/lcore_list.h"

typedef int parse_fn(const char *text, struct lcore_list *list, const char **why);

/* The list as "ID@CPUS ID@CPUS". */
static void
write_list(const struct lcore_list *list, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < list->count && used < size; i++) {
		const struct lcore_spec *spec = &list->specs[i];
		struct number_set cpus = {.items = spec->cpus, .count = spec->cpu_count};
		char ranges[128];

		number_set_format(&cpus, ranges, sizeof ranges);
		used += (size_t)snprintf(text + used, size - used, "%s%u@%s", i ? " " : "", spec->id, ranges);
	}
}

static void
assert_parsed(parse_fn *parse, const char *text, const char *expected)
{
	struct lcore_list list = {0};
	const char *why = "";
	char written[512];

	if (parse(text, &list, &why))
		printf("\"%s\": %s\n", text, why);
	write_list(&list, written, sizeof written);
	ASSERT_STR(written, expected);
	lcore_list_free(&list);
	CU_ASSERT(list.specs == NULL && list.count == 0);
}

static void
assert_refused(parse_fn *parse, const char *text, const char *reason)
{
	struct lcore_spec spec;
	struct lcore_list list = {.specs = &spec, .count = 1};
	const char *why = NULL;

	ASSERT_EQ(parse(text, &list, &why), -EINVAL);
	ASSERT_STR(why, reason);
	CU_ASSERT(list.specs == &spec && list.count == 1);
}

static void
test_cpus(void)
{
	assert_parsed(lcore_parse_cpus, "0", "0@0");
	assert_parsed(lcore_parse_cpus, "0-3,8", "0@0 1@1 2@2 3@3 8@8");
	assert_parsed(lcore_parse_cpus, "8,1", "1@1 8@8");
	assert_parsed(lcore_parse_cpus, "2047-2049", "2047@2047 2048@2048 2049@2049");
}

static void
test_cpus_refused(void)
{
	assert_refused(lcore_parse_cpus, "", "the list is empty");
	assert_refused(lcore_parse_cpus, "1-3-5", "1-3 goes on with another '-', a range is FIRST-LAST");
	assert_refused(lcore_parse_cpus, "3-1", "range 3-1 runs backwards");
	assert_refused(lcore_parse_cpus, "1,1", "1 occurs twice");
	assert_refused(lcore_parse_cpus, "(0-1)", "'(' stands where a number must be");
	assert_refused(lcore_parse_cpus, "0@1", "\"@1\" follows where only ',' or the end may");
}

static void
test_lcores(void)
{
	parse_fn *parse = lcore_parse_lcores;

	assert_parsed(parse, "0", "0@0");
	assert_parsed(parse, "0@2", "0@2");
	assert_parsed(parse, "0-3", "0@0 1@1 2@2 3@3");
	assert_parsed(parse, "(0-1)", "0@0-1 1@0-1");
	assert_parsed(parse, "(5)", "5@5");
	assert_parsed(parse, "(0,2)@(4-5),1@7", "0@4-5 1@7 2@4-5");
	assert_parsed(parse, "(1-3)@(4-7)", "1@4-7 2@4-7 3@4-7");
	assert_parsed(parse, "1-3@(4-7)", "1@4-7 2@4-7 3@4-7");
	assert_parsed(parse, "1-3@4-7", "1@4-7 2@4-7 3@4-7");
	assert_parsed(parse, "1-2@(5-7,9)", "1@5-7,9 2@5-7,9");
	assert_parsed(parse, "0@2,(1-3)@(4-7),5", "0@2 1@4-7 2@4-7 3@4-7 5@5");
	assert_parsed(parse, "1,2@(5-7),(3-5)@(0,2),(0,6),7-8", "0@0,6 1@1 2@5-7 3@0,2 4@0,2 5@0,2 6@0,6 7@7 8@8");
	assert_parsed(parse, "4096@1,1@4096", "1@4096 4096@1");
	assert_parsed(parse, " ( 0 , 2 ) @ ( 4 - 5 ) , 1 @ 7 ", "0@4-5 1@7 2@4-5");
	assert_parsed(parse, "( 0-1 ) , 4 ", "0@0-1 1@0-1 4@4");
	assert_parsed(parse, "0@3,1@3", "0@3 1@3");
}

static void
test_lcores_refused(void)
{
	parse_fn *parse = lcore_parse_lcores;

	assert_refused(parse, "", "the list is empty");
	assert_refused(parse, "0@", "a number is missing at the end");
	assert_refused(parse, "@0", "'@' stands where a number must be");
	assert_refused(parse, "0@1@2", "\"@2\" follows where only ',' or the end may");
	assert_refused(parse, "0,", "a number is missing at the end");
	assert_refused(parse, ",0", "',' stands where a number must be");
	assert_refused(parse, "0,,1", "',' stands where a number must be");
	assert_refused(parse, "1-3-5", "1-3 goes on with another '-', a range is FIRST-LAST");
	assert_refused(parse, "(2-4)@(2-4-6)", "2-4 goes on with another '-', a range is FIRST-LAST");
	assert_refused(parse, "1@3-2", "range 3-2 runs backwards");
	assert_refused(parse, "(", "a number is missing at the end");
	assert_refused(parse, "()", "() is empty");
	assert_refused(parse, "( )", "() is empty");
	assert_refused(parse, "0 1", "\"1\" follows where only ',' or the end may");
	assert_refused(parse, "0@()", "() is empty");
	assert_refused(parse, "(1,)", "')' stands where a number must be");
	assert_refused(parse, "(0-1", "a ')' is missing");
	assert_refused(parse, "0@(1", "a ')' is missing");
	assert_refused(parse, "(0@1)", "\"@1)\" follows where only ',' or ')' may");
	assert_refused(parse, "0)", "\")\" follows where only ',' or the end may");
	assert_refused(parse, "((0))", "'(' stands where a number must be");
	assert_refused(parse, "(0)(1)", "\"(1)\" follows where only ',' or the end may");
	assert_refused(parse, "(0,0)", "0 occurs twice");
	assert_refused(parse, "0@(1,1-2)", "1 occurs twice");
	assert_refused(parse, "0@1,0@2", "lcore 0 occurs twice");
	assert_refused(parse, "0-3,(2,9)@1", "lcore 2 occurs twice");
	assert_refused(parse, "0@1000001", "1000001... is too large, numbers end at 1000000");
}

/* The product of two sets that are allowed each must not become the memory that we allocate. */
static void
test_lcores_bounded(void)
{
	assert_refused(lcore_parse_lcores, "(0-9999)@(0-9999)", "lcores times their processors are more than 1048576");
	assert_refused(lcore_parse_lcores, "(0-1000000)", "lcores times their processors are more than 1048576");
}

/* A list that was accepted is sorted, has no lcore or processor twice, and none without a processor. */
static bool
list_is_sane(const struct lcore_list *list)
{
	bool sane = list->count > 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct lcore_spec *spec = &list->specs[i];

		sane = sane && spec->cpu_count > 0 && spec->id <= NUMBER_MAX;
		sane = sane && (i == 0 || spec[-1].id < spec->id);
		for (size_t j = 0; j < spec->cpu_count; j++) {
			sane = sane && spec->cpus[j] <= NUMBER_MAX;
			sane = sane && (j == 0 || spec->cpus[j - 1] < spec->cpus[j]);
		}
	}
	return sane;
}

/* False when the outcome is neither a sane list nor a refusal with a reason. */
static bool
outcome_is_sane(parse_fn *parse, const char *text, unsigned *accepted)
{
	struct lcore_list list = {0};
	const char *why = NULL;
	bool sane;
	int rc = parse(text, &list, &why);

	if (rc) {
		sane = rc == -EINVAL && why && *why && !list.specs && !list.count;
	} else {
		sane = list_is_sane(&list);
		++*accepted;
	}
	if (!sane)
		printf("\"%s\": rc %d, why %s\n", text, rc, why ? why : "(none)");
	lcore_list_free(&list);
	return sane;
}

/* A short random word of numbers and of the syntax's other bytes. */
static void
random_word(char *text, size_t size)
{
	static const char marks[] = "--,,,@@()() x";
	size_t used = 0;

	for (long pieces = 1 + random() % 12; pieces > 0; pieces--) {
		if (random() % 2)
			used += (size_t)snprintf(text + used, size - used, "%ld", random() % (random() % 4 ? 12 : 120));
		else
			used += (size_t)snprintf(text + used, size - used, "%c",
						 marks[(size_t)random() % (sizeof marks - 1)]);
	}
}

static void
test_random_words(void)
{
	unsigned accepted = 0, insane = 0;
	char text[64];

	srandom(20);
	for (int i = 0; i < 30000; i++) {
		random_word(text, sizeof text);
		insane += !outcome_is_sane(lcore_parse_lcores, text, &accepted);
		insane += !outcome_is_sane(lcore_parse_cpus, text, &accepted);
	}
	ASSERT_EQ(insane, 0);
	CU_ASSERT(accepted > 1000);
}

/* Lists that are right but for one byte: the neighbourhood in which parsers go wrong. */
static void
test_mutated_lists(void)
{
	static const char *const lists[] = {"0-3,8", "0@2,(1-3)@(4-7),5", "1,2@(5-7),(3-5)@(0,2),(0,6),7-8"};
	static const char bytes[] = "0123456789,-@()";
	unsigned accepted = 0, insane = 0;
	char text[64];

	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		for (size_t at = 0; at < strlen(lists[i]); at++) {
			for (size_t b = 0; b < sizeof bytes; b++) {
				snprintf(text, sizeof text, "%s", lists[i]);
				text[at] = bytes[b]; /* the last is the end of the text */
				insane += !outcome_is_sane(lcore_parse_lcores, text, &accepted);
				insane += !outcome_is_sane(lcore_parse_cpus, text, &accepted);
			}
		}
	}
	ASSERT_EQ(insane, 0);
	CU_ASSERT(accepted > 50);
}

/* Every allocation fails once; the last run has enough. */
static void
test_out_of_memory(void)
{
	struct lcore_list list = {0};
	const char *why = NULL;
	long after = 0;
	int rc;

	if (!FAIL_ALLOC) {
		unit_skip("the sanitizer brings its own allocator");
		return;
	}
	do {
		g_fail_alloc_after = after++;
		rc = lcore_parse_lcores("(0-1)@(0-19),2-20", &list, &why);
		g_fail_alloc_after = -1;
		if (rc) {
			ASSERT_EQ(rc, -ENOMEM);
			ASSERT_STR(why, "out of memory");
			CU_ASSERT(list.specs == NULL);
		}
	} while (rc && after < 100);
	ASSERT_EQ(rc, 0);
	ASSERT_EQ(list.count, 21);
	CU_ASSERT(after > 20);
	lcore_list_free(&list);
}

UNIT_SUITE("lcore_list", {"-l: lcore N on processor N", test_cpus}, {"-l: refusals", test_cpus_refused},
	   {"--lcores: DPDK's syntax", test_lcores}, {"--lcores: refusals", test_lcores_refused},
	   {"--lcores: the product is bounded", test_lcores_bounded},
	   {"random words parse sanely or give a reason", test_random_words},
	   {"one wrong byte parses sanely or gives a reason", test_mutated_lists},
	   {"out of memory", test_out_of_memory});
