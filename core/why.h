/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_WHY_H
#define CORE_WHY_H

/* The reason of a refusal, made where it is known and said where the user's own words are known. */

#include <xrdma/types.h>

/*
 * Formats into the calling thread's one buffer, which the next call on this thread overwrites; cut at its end. The
 * arguments may be an earlier reason: why_text("%s; more", why).
 */
const char *why_text(const char *format, ...) XR_PRINTF(1, 2);

/*
 * The text for as long as the process lives, for who may be asked for the reason much later. There is room for few
 * different ones: when there are more it is `otherwise`, static text that says less. Any thread.
 */
const char *why_keep(const char *text, const char *otherwise);

#endif
