/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

/*
 * A fuzz target: tests/fuzz/NAME_fuzz.c defines LLVMFuzzerTestOneInput(), asserts what must hold whatever the input
 * is, and returns 0. mk/fuzz.mk builds and runs it.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_ASSERT(condition)                                                                  \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

/* Bytes in a piece of memory of exactly their length, so that the sanitizer sees a read behind the last. To be freed.
 */
static inline uint8_t *
fuzz_copy(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	FUZZ_ASSERT(copy);
	if (len)
		memcpy(copy, data, len);
	return copy;
}

#endif
