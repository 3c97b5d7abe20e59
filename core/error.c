/* SPDX-License-Identifier: Apache-2.0 */
#include <xrdma/error.h>

#include <limits.h>
#include <string.h>

XR_API const char *
xr_strerror(int error)
{
	const char *text = NULL;

	if (error < 0 && error != INT_MIN)
		error = -error;
	switch (error) {
	case XR_ERDMA:
		return "RDMA connection failed";
	case XR_ERDMAMEM:
		return "memory not registered for RDMA";
	default:
		text = strerrordesc_np(error);
		return text ? text : "unknown error";
	}
}
