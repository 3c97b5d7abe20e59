/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/fault.h"
#include "core/log.h"
#include "net/verbs/device.h"
#include "net/verbs/endpoint_private.h"
#include <xrdma/error.h>

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
	default:
		return "";
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

void
fault_tell(const struct endpoint *endpoint)
{
	const struct fault *fault = &endpoint->fault;
	const char *device = cq_device(endpoint->cq)->name;
	unsigned gid_index = endpoint->local.index, qp_num = endpoint->qp.qp->qp_num;
	char peer[ADDRESS_TEXT_BYTES];

	address_format(&endpoint->conn->peer, peer);
	if (fault->what)
		log_error("RDMA connection with %s failed (device %s, GID index %u, QP 0x%x): %s", peer, device,
			  gid_index, qp_num, fault->what);
	else
		log_error(
			"RDMA connection with %s failed (device %s, GID index %u, QP 0x%x): %s ended with %s, vendor 0x%x%s",
			peer, device, gid_index, qp_num, fault->request, ibv_wc_status_str(fault->status),
			fault->vendor_err, fault_hint(fault->status));
}
