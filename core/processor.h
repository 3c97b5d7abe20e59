/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PROCESSOR_H
#define CORE_PROCESSOR_H

/* The machine's processors: which there are, which the calling thread may use, which NUMA node they belong to. */

#include <sched.h>

#include "core/number_set.h"

/* A processor mask of any size. */
struct processor_mask {
	cpu_set_t *cpus; /* CPU_ALLOC'd */
	size_t size;	 /* bytes */
};

/* -ENOMEM, or what the kernel said. */
int processor_mask_of_thread(struct processor_mask *mask);
int processor_mask_from(const unsigned *cpus, size_t count, struct processor_mask *mask);
void processor_mask_free(struct processor_mask *mask);

/* The numbers in a mask, ascending. -ENOMEM. */
int processor_mask_numbers(const struct processor_mask *mask, struct number_set *numbers);

/* Why a processor outside the thread's mask cannot be used: "does not exist", "is offline", ... */
const char *processor_refusal(unsigned cpu);

/* 0 on a machine without NUMA. */
int processor_numa_node(unsigned cpu);

#endif
