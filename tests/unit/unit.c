/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"
#include <CUnit/Basic.h>
#include <stdlib.h>

static unsigned g_skipped;

void
unit_skip(const char *why)
{
	g_skipped++;
	printf("skipped: %s\n", why);
}

static const char *
filter_of(int argc, char **argv)
{
	if (argc == 1)
		return NULL;
	if (argc == 3 && strcmp(argv[1], "-t") == 0)
		return argv[2];
	fprintf(stderr, "usage: %s [-t WORD]\n", argv[0]);
	exit(2);
}

static bool
add_tests(const char *suite_name, const struct unit_test *tests, size_t count, const char *filter)
{
	CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);

	if (!suite)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (filter && !strstr(tests[i].name, filter))
			continue;
		if (!CU_add_test(suite, tests[i].name, tests[i].fn))
			return false;
	}
	return true;
}

int
unit_main(int argc, char **argv, const char *suite, const struct unit_test *tests, size_t count)
{
	const char *filter = filter_of(argc, argv);
	unsigned run, failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS || !add_tests(suite, tests, count, filter)) {
		fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
		return EXIT_FAILURE;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	run = CU_get_number_of_tests_run();
	failed = CU_get_number_of_tests_failed();
	CU_cleanup_registry();
	printf("%s: %u passed, %u failed, %u skipped\n", suite, run - failed - g_skipped, failed, g_skipped);
	if (run == 0)
		fprintf(stderr, "no test ran\n");
	return failed || run == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
