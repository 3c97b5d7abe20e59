/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <unistd.h>

#include "core/processor.h"

static void
test_own_mask(void)
{
	struct processor_mask mask;
	struct number_set numbers;

	ASSERT_FATAL(processor_mask_of_thread(&mask) == 0);
	ASSERT_FATAL(processor_mask_numbers(&mask, &numbers) == 0);
	ASSERT_EQ(numbers.count, CPU_COUNT_S(mask.size, mask.cpus));
	CU_ASSERT(numbers.count >= 1);
	CU_ASSERT(number_set_has(&numbers, (unsigned)sched_getcpu()));
	number_set_free(&numbers);
	processor_mask_free(&mask);
	CU_ASSERT(mask.cpus == NULL);
	processor_mask_free(&mask);
}

/* Beyond what a plain cpu_set_t holds. */
static void
test_large_numbers(void)
{
	static const unsigned cpus[] = {5000, 3, 1024};
	struct processor_mask mask;
	struct number_set numbers;
	char text[64];

	ASSERT_FATAL(processor_mask_from(cpus, 3, &mask) == 0);
	ASSERT_EQ(CPU_COUNT_S(mask.size, mask.cpus), 3);
	ASSERT_FATAL(processor_mask_numbers(&mask, &numbers) == 0);
	number_set_format(&numbers, text, sizeof text);
	ASSERT_STR(text, "3,1024,5000");
	number_set_free(&numbers);
	processor_mask_free(&mask);
}

static void
test_refusal(void)
{
	ASSERT_STR(processor_refusal(NUMBER_MAX), "does not exist");
	ASSERT_STR(processor_refusal((unsigned)sched_getcpu()), "is not among those that this process may use");
}

static void
test_numa_node(void)
{
	CU_ASSERT(processor_numa_node((unsigned)sched_getcpu()) >= 0);
	ASSERT_EQ(processor_numa_node(NUMBER_MAX), 0);
}

UNIT_SUITE("processor", {"the thread's own mask", test_own_mask}, {"numbers beyond 1024", test_large_numbers},
	   {"why a processor cannot be used", test_refusal}, {"a processor's NUMA node", test_numa_node});
