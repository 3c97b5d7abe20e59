/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_FAIL_ALLOC_H
#define TESTS_UNIT_FAIL_ALLOC_H

/*
 * Lets allocations of the including test program fail at will. A sanitizer brings an allocator of its own: there
 * FAIL_ALLOC is 0 and nothing fails.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIL_ALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAIL_ALLOC 0
#endif
#endif
#ifndef FAIL_ALLOC
#define FAIL_ALLOC 1
#endif

/* How many allocations still succeed; negative: all do. */
static long g_fail_alloc_after = -1;

/* How many have failed. */
static long g_fail_alloc_failed __attribute__((unused));

#if FAIL_ALLOC

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static bool
fail_alloc_now(void)
{
	if (g_fail_alloc_after < 0)
		return false;
	if (g_fail_alloc_after > 0) {
		g_fail_alloc_after--;
		return false;
	}
	g_fail_alloc_failed++;
	errno = ENOMEM;
	return true;
}

void *
malloc(size_t size)
{
	return fail_alloc_now() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	return fail_alloc_now() ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
	return fail_alloc_now() ? NULL : __libc_realloc(old, size);
}

void *
reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc(old, bytes);
}

void *
aligned_alloc(size_t align, size_t size)
{
	return fail_alloc_now() ? NULL : __libc_memalign(align, size);
}

#endif
#endif
