/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "core/processor.h"

/* ---- another machine ---- */

/* What its kernel would tell; NULL: this one's does. */
static const char *g_present, *g_online;
static const unsigned *g_affinity;
static size_t g_affinity_count, g_kernel_mask_bytes;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cpus);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cpus);

FILE *
__wrap_fopen(const char *path, const char *mode)
{
	const char *text = NULL;

	if (strcmp(path, "/sys/devices/system/cpu/present") == 0)
		text = g_present;
	if (strcmp(path, "/sys/devices/system/cpu/online") == 0)
		text = g_online;
	return text ? fmemopen((char *)(uintptr_t)text, strlen(text), "r") : __real_fopen(path, mode);
}

int
__wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cpus)
{
	if (!g_affinity)
		return __real_sched_getaffinity(pid, size, cpus);
	if (size < g_kernel_mask_bytes) {
		errno = EINVAL;
		return -1;
	}
	CPU_ZERO_S(size, cpus);
	for (size_t i = 0; i < g_affinity_count; i++)
		CPU_SET_S(g_affinity[i], size, cpus);
	return 0;
}

/* ---- tests ---- */

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
test_offline(void)
{
	g_present = "0-7,64\n";
	g_online = "0-2,4-7\n";
	ASSERT_STR(processor_refusal(3), "is offline");
	ASSERT_STR(processor_refusal(64), "is offline");
	ASSERT_STR(processor_refusal(8), "does not exist");
	ASSERT_STR(processor_refusal(5), "is not among those that this process may use");
	/* A kernel that does not tell leaves what is sure. */
	g_present = g_online = "nonsense\n";
	ASSERT_STR(processor_refusal(3), "is not among those that this process may use");
	g_present = g_online = NULL;
}

/* A kernel that is made for more processors than a plain cpu_set_t holds, and refuses a mask as short as that. */
static void
test_large_kernel(void)
{
	static const unsigned affinity[] = {7, 1023, 1024, 4097, 8191};
	struct processor_mask mask;
	struct number_set numbers;
	char text[64];

	g_affinity = affinity;
	g_affinity_count = 5;
	g_kernel_mask_bytes = 8192 / 8;
	ASSERT_FATAL(processor_mask_of_thread(&mask) == 0);
	ASSERT_FATAL(processor_mask_numbers(&mask, &numbers) == 0);
	number_set_format(&numbers, text, sizeof text);
	ASSERT_STR(text, "7,1023-1024,4097,8191");
	number_set_free(&numbers);
	processor_mask_free(&mask);
	/* Not without end. */
	g_kernel_mask_bytes = SIZE_MAX;
	ASSERT_EQ(processor_mask_of_thread(&mask), -EINVAL);
	g_affinity = NULL;
}

static void
test_numa_node(void)
{
	CU_ASSERT(processor_numa_node((unsigned)sched_getcpu()) >= 0);
	ASSERT_EQ(processor_numa_node(NUMBER_MAX), 0);
}

UNIT_SUITE("processor", {"the thread's own mask", test_own_mask}, {"numbers beyond 1024", test_large_numbers},
	   {"why a processor cannot be used", test_refusal}, {"offline", test_offline},
	   {"a kernel for thousands", test_large_kernel}, {"a processor's NUMA node", test_numa_node});
