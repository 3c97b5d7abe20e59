/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/fault.h"
#include "core/log.h"
#include "net/verbs/device.h"
#include "net/verbs/endpoint_private.h"
#include <stdio.h>
#include <xrdma/error.h>

#define FAULT_TEXT_BYTES 256

const char *
fault_hint(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return "; the peer is gone, or the path drops packets: UDP port 4791 blocked, PFC or ECN not set up";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "; the peer had no receive posted, so it broke flow control";
	case IBV_WC_WR_FLUSH_ERR:
		return "; the queue pair had failed before, without saying why";
	case IBV_WC_LOC_LEN_ERR:
		return "; the peer sent more than a block of ours holds";
	case IBV_WC_LOC_PROT_ERR:
		return "; memory that is not registered with this device";
	case IBV_WC_REM_INV_REQ_ERR:
		return "; the peer could not take the message: larger than its blocks?";
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_OP_ERR:
		return "; the peer's queue pair has failed";
	case IBV_WC_LOC_QP_OP_ERR:
		return "; the device could not send: is its network interface down?";
	default:
		return "; the kernel's log may tell more of the device";
	}
}

void
fault_note(struct endpoint *endpoint, int error, const char *what)
{
	if (!endpoint->fault.error)
		endpoint->fault = (struct fault){.error = error, .what = what};
}

static const char *
request_name(const struct ibv_wc *wc)
{
	switch (wr_id_kind(wc->wr_id)) {
	case WR_SEND:
		return "a send";
	case WR_ACK:
		return "a pure ACK";
	default:
		return "a receive";
	}
}

void
fault_note_completion(struct endpoint *endpoint, const struct ibv_wc *wc)
{
	struct fault *fault = &endpoint->fault;
	bool flushed = fault->error && !fault->what && fault->status == IBV_WC_WR_FLUSH_ERR;

	if (fault->error && (!flushed || wc->status == IBV_WC_WR_FLUSH_ERR))
		return;
	*fault = (struct fault){
		.error = -XR_ERDMA,
		.status = wc->status,
		.vendor_err = wc->vendor_err,
		.request = request_name(wc),
	};
}

static void
describe(const struct fault *fault, char *text, size_t room)
{
	if (fault->what)
		snprintf(text, room, "%s", fault->what);
	else
		snprintf(text, room, "%s ended with %s, vendor 0x%x%s", fault->request,
			 ibv_wc_status_str(fault->status), fault->vendor_err, fault_hint(fault->status));
}

/* Peers can cause this at will: who wants a line for each connection gets one, others at most one a second. */
void
fault_tell(const struct endpoint *endpoint)
{
	static struct log_limit limit;
	const char *device = cq_device(endpoint->cq)->name;
	unsigned gid_index = endpoint->local.index, qp_num = endpoint->qp.qp->qp_num;
	char peer[ADDRESS_TEXT_BYTES], what[FAULT_TEXT_BYTES];

	address_format(&endpoint->conn->peer, peer);
	describe(&endpoint->fault, what, sizeof what);
	if (log_enabled(XR_LOG_INFO))
		log_error("RDMA connection with %s failed (device %s, GID index %u, QP 0x%x): %s", peer, device,
			  gid_index, qp_num, what);
	else
		log_limited(&limit, XR_LOG_ERROR,
			    "RDMA connection with %s failed (device %s, GID index %u, QP 0x%x): %s", peer, device,
			    gid_index, qp_num, what);
}
