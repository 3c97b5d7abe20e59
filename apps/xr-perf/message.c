/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include "apps/xr-perf/perf.pb-c.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xrdma/protobuf.h>

/*
 * A request is two bytes, and so is a response without a CPU figure: the tag of field 1 and a bool, or a length of 0.
 * These are recognised and written as they are; everything else goes through protobuf.
 */
#define REQUEST_TAG  0x08
#define RESPONSE_TAG 0x0a
#define SHORT_SIZE   2

/* Longer messages are not worth a heap: no field of these is that large. */
#define MESSAGE_MAX 256

int
message_put_request(struct xr_iobuf *to, bool echo_attachment)
{
	const uint8_t bytes[SHORT_SIZE] = {REQUEST_TAG, echo_attachment};

	return xr_iobuf_append(to, bytes, sizeof bytes);
}

int
message_get_request(const struct xr_iobuf *from, bool *echo_attachment)
{
	Test__PerfTestRequest *request;
	uint8_t scratch[MESSAGE_MAX];
	size_t size = xr_iobuf_size(from);
	const uint8_t *bytes;

	if (size > sizeof scratch)
		return -EBADMSG;
	bytes = xr_iobuf_peek(from, 0, size, scratch);
	if (size == SHORT_SIZE && bytes[0] == REQUEST_TAG && bytes[1] <= 1) {
		*echo_attachment = bytes[1];
		return 0;
	}
	request = test__perf_test_request__unpack(NULL, size, bytes);
	if (!request)
		return -EBADMSG;
	*echo_attachment = request->echo_attachment;
	test__perf_test_request__free_unpacked(request, NULL);
	return 0;
}

int
message_put_response(struct xr_iobuf *to, double cpu_usage)
{
	static const uint8_t empty[SHORT_SIZE] = {RESPONSE_TAG, 0};
	Test__PerfTestResponse response = TEST__PERF_TEST_RESPONSE__INIT;
	char text[32];

	if (cpu_usage < 0)
		return xr_iobuf_append(to, empty, sizeof empty);
	snprintf(text, sizeof text, "%.3f", cpu_usage);
	response.cpu_usage = text;
	return xr_protobuf_pack(to, &response.base);
}

int
message_get_response(const struct xr_iobuf *from, double *cpu_usage)
{
	Test__PerfTestResponse *response;
	uint8_t scratch[MESSAGE_MAX];
	size_t size = xr_iobuf_size(from);
	const uint8_t *bytes;

	if (size > sizeof scratch)
		return -EBADMSG;
	bytes = xr_iobuf_peek(from, 0, size, scratch);
	if (size == SHORT_SIZE && bytes[0] == RESPONSE_TAG && bytes[1] == 0) {
		*cpu_usage = -1;
		return 0;
	}
	response = test__perf_test_response__unpack(NULL, size, bytes);
	if (!response)
		return -EBADMSG;
	*cpu_usage = response->cpu_usage[0] ? strtod(response->cpu_usage, NULL) : -1;
	test__perf_test_response__free_unpacked(response, NULL);
	return 0;
}
