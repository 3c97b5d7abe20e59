/* SPDX-License-Identifier: Apache-2.0 */

/* The protocol's error numbers in words. */

#include <xrdma/error.h>
#include <xrdma/rpc.h>

const char *
xr_rpc_strerror(int error_code)
{
	switch (error_code) {
	case 0:
		return "";
	case XR_RPC_ENOSERVICE:
		return "no such service";
	case XR_RPC_ENOMETHOD:
		return "no such method";
	case XR_RPC_EREQUEST:
		return "bad request";
	case 1004:
		return "authentication failed";
	case XR_RPC_ERPCTIMEDOUT:
		return "the call timed out";
	case XR_RPC_EFAILEDSOCKET:
		return "the connection failed";
	case XR_RPC_EOVERCROWDED:
		return "too much is queued on the connection";
	case XR_RPC_EEOF:
		return "the peer closed the connection";
	case XR_RPC_EINTERNAL:
		return "internal error of the server";
	case XR_RPC_ERESPONSE:
		return "bad response";
	case XR_RPC_ELOGOFF:
		return "the server is stopping";
	case XR_RPC_ELIMIT:
		return "too many calls at once";
	case XR_RPC_ECLOSE:
		return "the connection was closed on this side";
	default:
		return xr_strerror(error_code);
	}
}
