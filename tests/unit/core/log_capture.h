/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_LOG_CAPTURE_H
#define TESTS_UNIT_LOG_CAPTURE_H

/* Keeps what is logged instead of printing it, so that a test can say which line it expects. One thread logs. */

#include <xrdma/log.h>

/* Starts over with no lines. */
void log_capture_start(void);
void log_capture_stop(void);

unsigned log_capture_count(void);

/* A line by its number, "" when there is none. */
const char *log_capture_line(unsigned index);
enum xr_log_level log_capture_level(unsigned index);

/* The last line; "" when nothing was logged. */
const char *log_capture_last(void);

#endif
