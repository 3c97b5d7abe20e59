/* SPDX-License-Identifier: Apache-2.0 */
#include "core/processor.h"

#include <errno.h>
#include <numa.h>
#include <stdio.h>
#include <string.h>

#define BITS_START 1024u
#define BITS_MAX   (1u << 22)

static int
mask_alloc(struct processor_mask *mask, size_t bits)
{
	mask->cpus = CPU_ALLOC(bits);
	mask->size = CPU_ALLOC_SIZE(bits);
	if (!mask->cpus)
		return -ENOMEM;
	CPU_ZERO_S(mask->size, mask->cpus);
	return 0;
}

/* The kernel refuses a mask shorter than its own with EINVAL and does not say how long that is. */
int
processor_mask_of_thread(struct processor_mask *mask)
{
	for (size_t bits = BITS_START; bits <= BITS_MAX; bits *= 2) {
		int rc = mask_alloc(mask, bits);

		if (rc)
			return rc;
		if (sched_getaffinity(0, mask->size, mask->cpus) == 0)
			return 0;
		rc = -errno;
		processor_mask_free(mask);
		if (rc != -EINVAL)
			return rc;
	}
	return -EINVAL;
}

int
processor_mask_from(const unsigned *cpus, size_t count, struct processor_mask *mask)
{
	unsigned last = 0;
	int rc;

	for (size_t i = 0; i < count; i++)
		last = cpus[i] > last ? cpus[i] : last;
	rc = mask_alloc(mask, (size_t)last + 1);
	for (size_t i = 0; i < count && rc == 0; i++)
		CPU_SET_S(cpus[i], mask->size, mask->cpus);
	return rc;
}

void
processor_mask_free(struct processor_mask *mask)
{
	if (mask->cpus)
		CPU_FREE(mask->cpus);
	memset(mask, 0, sizeof *mask);
}

int
processor_mask_numbers(const struct processor_mask *mask, struct number_set *numbers)
{
	const char *why;
	int rc = 0;

	memset(numbers, 0, sizeof *numbers);
	for (unsigned cpu = 0; cpu < 8 * mask->size && rc == 0; cpu++) {
		if (CPU_ISSET_S(cpu, mask->size, mask->cpus))
			rc = number_set_add(numbers, cpu, cpu, &why);
	}
	if (rc)
		number_set_free(numbers);
	return rc;
}

/* False only when the kernel's list could be read and lacks the processor. */
static bool
sysfs_lists(const char *path, unsigned cpu)
{
	struct number_set listed;
	const char *why;
	char text[4096];
	FILE *file = fopen(path, "re");
	bool read, lists;

	if (!file)
		return true;
	read = fgets(text, sizeof text, file) != NULL;
	fclose(file);
	if (!read)
		return true;
	text[strcspn(text, "\n")] = '\0';
	if (number_set_parse(text, &listed, &why))
		return true;
	lists = number_set_has(&listed, cpu);
	number_set_free(&listed);
	return lists;
}

const char *
processor_refusal(unsigned cpu)
{
	if (!sysfs_lists("/sys/devices/system/cpu/present", cpu))
		return "does not exist";
	if (!sysfs_lists("/sys/devices/system/cpu/online", cpu))
		return "is offline";
	return "is not among those that this process may use";
}

int
processor_numa_node(unsigned cpu)
{
	int node = numa_available() < 0 ? 0 : numa_node_of_cpu((int)cpu);

	return node < 0 ? 0 : node;
}
