/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"
#include <errno.h>
#include <xrdma/error.h>
#include <xrdma/rpc.h>

static void
test_protocol_numbers(void)
{
	static const int numbers[] = {
		XR_RPC_ENOSERVICE,   XR_RPC_ENOMETHOD, XR_RPC_EREQUEST,	 XR_RPC_ERPCTIMEDOUT, XR_RPC_EFAILEDSOCKET,
		XR_RPC_EOVERCROWDED, XR_RPC_EEOF,      XR_RPC_EINTERNAL, XR_RPC_ERESPONSE,    XR_RPC_ELOGOFF,
		XR_RPC_ELIMIT,	     XR_RPC_ECLOSE,    XR_ERDMA,	 XR_ERDMAMEM,
	};

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		CU_ASSERT(strcmp(xr_rpc_strerror(numbers[i]), "unknown error") != 0);
		for (size_t j = 0; j < i; j++)
			CU_ASSERT(strcmp(xr_rpc_strerror(numbers[i]), xr_rpc_strerror(numbers[j])) != 0);
	}
	ASSERT_STR(xr_rpc_strerror(XR_RPC_ENOSERVICE), "no such service");
}

static void
test_errno_numbers(void)
{
	ASSERT_STR(xr_rpc_strerror(-ECANCELED), "Operation canceled");
	ASSERT_STR(xr_rpc_strerror(ECONNREFUSED), "Connection refused");
}

static void
test_others(void)
{
	ASSERT_STR(xr_rpc_strerror(0), "");
	ASSERT_STR(xr_rpc_strerror(987654), "unknown error");
}

UNIT_SUITE("rpc error", {"each number of the protocol has a text of its own", test_protocol_numbers},
	   {"errno's numbers have errno's texts", test_errno_numbers},
	   {"success is empty, a stranger unknown", test_others});
