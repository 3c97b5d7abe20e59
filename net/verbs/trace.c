/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/trace.h"
#include "core/log.h"
#include "net/verbs/endpoint_private.h"
#include "net/verbs/flags.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <xrdma/error.h>

/* "handshake with 10.0.0.1:8002 in C_ALLOC_QPCQ" */
static const char *
subject(const struct xr_conn *conn, char text[160])
{
	char peer[ADDRESS_TEXT_BYTES];

	address_format(&conn->peer, peer);
	snprintf(text, 160, "RDMA handshake %s %s in %s", conn->dialled ? "to" : "from", peer,
		 handshake_state_name(conn->hs.state));
	return text;
}

void
trace_hello(const struct xr_conn *conn, const char *whose, const struct hello *hello)
{
	char text[160], gid[INET6_ADDRSTRLEN];

	if (!option_bool(&g_rdma_trace_verbose))
		return;
	inet_ntop(AF_INET6, hello->gid, gid, sizeof gid);
	log_notice("%s: %s hello: versions %u.%u, block %u, sq %u, rq %u, lid %u, gid %s, qp 0x%x", subject(conn, text),
		   whose, hello->hello_ver, hello->impl_ver, hello->block_size, hello->sq_size, hello->rq_size,
		   hello->lid, gid, hello->qp_num);
}

int
trace_failed(const struct xr_conn *conn, const char *what, const char *why, int ret)
{
	char text[160];

	if (option_bool(&g_rdma_trace_verbose))
		log_notice("%s: %s: %s (%s)", subject(conn, text), what, why, xr_strerror(ret));
	return ret;
}

void
trace_open(const struct xr_conn *conn)
{
	const struct endpoint *endpoint = conn->endpoint;
	char text[160];

	if (!option_bool(&g_rdma_trace_verbose))
		return;
	log_notice("%s: open: device %s port %u GID index %u, qp 0x%x to 0x%x, windows %u out of %u deep, %u in, "
		   "inline %u bytes, %u pieces",
		   subject(conn, text), cq_device(endpoint->cq)->name, endpoint->local.ib_port, endpoint->local.index,
		   endpoint->qp.qp->qp_num, endpoint->peer_qp_num, endpoint->send.window.remote_capacity,
		   endpoint->qp.depth, endpoint->recv.credit.capacity, endpoint->qp.inline_bytes, endpoint->qp.max_sge);
}
