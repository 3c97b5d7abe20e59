/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XR_PERF_MESSAGE_H
#define XR_PERF_MESSAGE_H

/* The two protobuf messages of the service, to and from iobufs. */

#include <xrdma/iobuf.h>

/* Appends a request. -ENOMEM. */
int message_put_request(struct xr_iobuf *to, bool echo_attachment);

/* -EBADMSG: these bytes are no request. */
int message_get_request(const struct xr_iobuf *from, bool *echo_attachment);

/* Appends a response; cpu_usage in processors, negative for the empty text. -ENOMEM. */
int message_put_response(struct xr_iobuf *to, double cpu_usage);

/* *cpu_usage is negative when the server told none. -EBADMSG: these bytes are no response. */
int message_get_response(const struct xr_iobuf *from, double *cpu_usage);

#endif
