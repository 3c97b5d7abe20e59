/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_VECTORS_H
#define TESTS_VECTORS_H

/* Messages of real peers, from tests/vectors. The tests run in the repository's root. */

#include <stddef.h>
#include <stdint.h>

/*
 * Puts the bytes of tests/vectors/NAME.hex into out, which has room for size of them, and returns how many there are.
 * A file that is missing, is not hex or does not fit ends the running test as failed.
 */
size_t vector_load(const char *name, uint8_t *out, size_t size);

#endif
