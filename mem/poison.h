/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEM_POISON_H
#define MEM_POISON_H

/*
 * Under the address sanitizer free blocks are poisoned, header and all, so that a use after the last drop is reported
 * like one of malloc'd memory. Nothing otherwise.
 */

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_POISONED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_IS_POISONED 1
#endif
#endif

#ifdef MEMORY_IS_POISONED
#include <sanitizer/asan_interface.h>
#endif

static inline void
memory_poison(const void *addr, size_t bytes)
{
#ifdef MEMORY_IS_POISONED
	ASAN_POISON_MEMORY_REGION(addr, bytes);
#else
	(void)addr;
	(void)bytes;
#endif
}

static inline void
memory_unpoison(const void *addr, size_t bytes)
{
#ifdef MEMORY_IS_POISONED
	ASAN_UNPOISON_MEMORY_REGION(addr, bytes);
#else
	(void)addr;
	(void)bytes;
#endif
}

#endif
