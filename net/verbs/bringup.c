/* SPDX-License-Identifier: Apache-2.0 */

/* How an endpoint is made in the steps of the handshake, and taken back, from any of them. */

#include "core/log.h"
#include "mem/pool.h"
#include "net/ledger.h"
#include "net/port.h"
#include "net/turn.h"
#include "net/verbs/ending.h"
#include "net/verbs/endpoint_private.h"
#include "net/verbs/figures.h"
#include "net/verbs/flags.h"
#include "net/verbs/qp_pool.h"
#include "net/verbs/trace.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HUGE_BLOCKS_RQ 16 /* 32 MiB of receive blocks a connection are enough */
#define MESSAGE_MAX    ((uint32_t)2 << 20)

/* ---- what is wanted ---- */

static int
wish_for_device(const struct xr_port *port, struct gid_wish *wish, const char **why)
{
	const char *name = port->verbs.device[0] ? port->verbs.device : g_rdma_device;
	const struct device *device;

	wish->device = -1;
	if (!*name)
		return 0;
	device = device_find(name);
	if (!device) {
		*why = "the device that the port asks for can't be used";
		return -ENODEV;
	}
	wish->device = (int)device->number;
	return 0;
}

static int
find_gid(const struct xr_conn *conn, struct gid_entry *found, const char **why)
{
	const struct port_verbs *verbs = &conn->port->verbs;
	struct gid_wish wish = {
		.ib_port = verbs->ib_port ? verbs->ib_port : (int)option_int(&g_rdma_port),
		.gid_index = verbs->gid_index >= 0 ? verbs->gid_index : (int)option_int(&g_rdma_gid_index),
	};
	int ret = wish_for_device(conn->port, &wish, why);

	return ret ? ret : gid_find(&conn->local.any, &wish, found, why);
}

static enum block_type
block_type_of(const struct xr_port *port)
{
	return port->verbs.block_type >= 0 ? (enum block_type)port->verbs.block_type : mem_recv_block_type();
}

static struct qp_want
queues_of(const struct xr_port *port)
{
	uint16_t rq_size = block_type_of(port) == BLOCK_HUGE ? HUGE_BLOCKS_RQ : flags_queue_size(&g_rdma_rq_size);

	return (struct qp_want){
		.sq_size = port->verbs.sq_size ? port->verbs.sq_size : flags_queue_size(&g_rdma_sq_size),
		.rq_size = port->verbs.rq_size ? port->verbs.rq_size : rq_size,
		.inline_bytes = QP_INLINE_BYTES,
	};
}

/* That there can be none is said by the pool. */
static void
warm(enum block_type type, int node)
{
	pool_grow(pool_of(node > 0 ? (unsigned)node : 0, type));
}

void
endpoints_warm(void)
{
	for (const struct xr_port *port = port_next(NULL); port; port = port_next(port))
		for (unsigned i = 0; i < port->lcore_count && port->rdma != PORT_RDMA_OFF; i++)
			warm(block_type_of(port), lcore_at(port->lcores[i])->numa_node);
}

/* ---- the endpoint and its arrays, in one piece ---- */

struct arrays {
	uint64_t *ends;
	struct xr_block **blocks;
	uint32_t *carried;
	uint16_t *idle;
};

static uint16_t
depth_of(uint16_t sq_size)
{
	return sq_size + sq_size / 4;
}

static struct endpoint *
endpoint_new(const struct qp_want *want, struct arrays *arrays)
{
	size_t ends = want->rq_size * sizeof *arrays->ends, blocks = want->rq_size * sizeof(struct xr_block *);
	size_t carried = depth_of(want->sq_size) * sizeof *arrays->carried, idle = want->rq_size * sizeof *arrays->idle;
	char *memory = calloc(1, sizeof(struct endpoint) + ends + blocks + carried + idle);

	if (!memory)
		return NULL;
	arrays->ends = (uint64_t *)(memory + sizeof(struct endpoint));
	arrays->blocks = (struct xr_block **)((char *)arrays->ends + ends);
	arrays->carried = (uint32_t *)((char *)arrays->blocks + blocks);
	arrays->idle = (uint16_t *)((char *)arrays->carried + carried);
	return (struct endpoint *)memory;
}

/* ---- alloc ---- */

static int
join_queues(struct endpoint *endpoint, const struct qp_want *want, const char **why)
{
	endpoint->cq = cq_join(device_at(endpoint->local.device), endpoint, depth_of(want->sq_size), want->rq_size,
			       &endpoint->handle, why);
	if (!endpoint->cq)
		return -ENODEV;
	endpoint->admitted_send = depth_of(want->sq_size);
	endpoint->admitted_recv = want->rq_size;
	return 0;
}

/* The connection's own words for why, with figures in them. */
static void explain(struct xr_conn *conn, const char **why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
explain(struct xr_conn *conn, const char **why, const char *format, ...)
{
	va_list args;

	free(conn->no_rdma_text);
	va_start(args, format);
	if (vasprintf(&conn->no_rdma_text, format, args) < 0)
		conn->no_rdma_text = NULL;
	va_end(args);
	*why = conn->no_rdma_text ? conn->no_rdma_text : "the pool has no blocks for it to receive into";
}

/* Those that wait for memory go first; what they and the open connections need is not taken away. */
static size_t
bytes_to_be_had(enum block_type type)
{
	struct share_pool pool;

	if (ledger_waited_for(type))
		return 0;
	ledger_look(type, &pool);
	return share_of_receives(&pool);
}

static int
take_blocks(struct endpoint *endpoint, enum block_type type, const struct arrays *arrays, const char **why)
{
	static struct log_limit limit;
	uint16_t slots = endpoint->qp.rq_size;
	size_t needed = slots * block_bytes(type), left = bytes_to_be_had(type);

	if (needed <= left && recv_init(&endpoint->recv, type, slots, arrays->blocks, arrays->idle) == 0)
		return 0;
	explain(endpoint->conn, why,
		"the pool has no blocks for it to receive into: %zu KiB needed (%u %s blocks), %zu KiB available for that "
		"(--pool_max_mb, --rdma_memory_pool_max_regions)",
		needed >> 10, slots, block_type_name(type), left >> 10);
	log_limited(&limit, XR_LOG_WARNING, "an RDMA connection goes to TCP: %s", *why);
	return -ENOMEM;
}

static int
make_queue_pair(struct endpoint *endpoint, const struct qp_want *want, const struct arrays *arrays, const char **why)
{
	int ret = qp_pool_get(endpoint->cq, want, endpoint->handle, &endpoint->qp, why);

	if (ret)
		return ret;
	send_init(&endpoint->send, arrays->carried, endpoint->qp.depth);
	endpoint->recv.credit.ends = arrays->ends;
	return qp_init(&endpoint->qp, endpoint->local.ib_port, why);
}

/* Each step may fail; what the ones before it made goes with endpoint_discard(). */
static int
make(struct endpoint *endpoint, const struct qp_want *want, const struct arrays *arrays, const char **why)
{
	int ret = join_queues(endpoint, want, why);

	if (ret == 0)
		ret = make_queue_pair(endpoint, want, arrays, why);
	return ret ? ret : take_blocks(endpoint, block_type_of(endpoint->conn->port), arrays, why);
}

static void
describe(const struct endpoint *endpoint, struct hello *own)
{
	own->block_size = (uint32_t)block_payload_bytes(endpoint->recv.type);
	own->sq_size = endpoint->qp.sq_size;
	own->rq_size = endpoint->qp.rq_size;
	own->lid = endpoint->local.lid;
	memcpy(own->gid, endpoint->local.gid.raw, sizeof own->gid);
	own->qp_num = endpoint->qp.qp->qp_num;
}

static int
alloc(void *arg, struct hello *own, const char **why)
{
	struct xr_conn *conn = arg;
	struct qp_want want = queues_of(conn->port);
	struct gid_entry local;
	struct arrays arrays;
	int ret = find_gid(conn, &local, why);

	if (ret)
		return trace_failed(conn, "no device", *why, ret);
	conn->endpoint = endpoint_new(&want, &arrays);
	if (!conn->endpoint) {
		*why = "no memory";
		return -ENOMEM;
	}
	conn->endpoint->conn = conn;
	conn->endpoint->local = local;
	ret = make(conn->endpoint, &want, &arrays, why);
	if (ret) {
		endpoint_discard(conn);
		return trace_failed(conn, "no queue pair", *why, ret);
	}
	describe(conn->endpoint, own);
	trace_hello(conn, "own", own);
	return 0;
}

/* ---- bring_up ---- */

/*
 * Before it was known to be RDMA, anything could be queued and was accepted: user memory that the device does not know
 * is copied this once. A pool that has no room for it leaves TCP, which can send it all.
 */
static int
fit_queued(struct xr_conn *conn, const char **why)
{
	int ret = send_adopt(conn->endpoint);

	if (ret)
		*why = "user memory is queued that the device does not know, and the pool has no room for a copy";
	return ret;
}

static void
open_windows(struct endpoint *endpoint, const struct hello *peer)
{
	const struct qp *qp = &endpoint->qp;
	struct credit *credit = &endpoint->recv.credit;

	window_init(&endpoint->send.window, qp->sq_size, qp->rq_size, qp->depth, peer->sq_size, peer->rq_size);
	credit_init(credit, credit_capacity(qp->rq_size, peer->sq_size), credit->ends);
	endpoint->send.message_max = peer->block_size < MESSAGE_MAX ? peer->block_size : MESSAGE_MAX;
	endpoint->peer_qp_num = peer->qp_num;
	recv_review(endpoint);
}

static int
connect_queue_pair(struct endpoint *endpoint, const struct hello *peer, const char **why)
{
	if (endpoint->fault.error) {
		*why = "the device failed during the handshake";
		return -EIO;
	}
	open_windows(endpoint, peer);
	if (recv_post(endpoint)) {
		*why = "the device refuses the receives";
		return -EIO;
	}
	return qp_connect(&endpoint->qp, &endpoint->local, peer, why);
}

static int
bring_up(void *arg, const struct hello *peer, const char **why)
{
	struct xr_conn *conn = arg;
	int ret = fit_queued(conn, why);

	trace_hello(conn, "peer's", peer);
	if (ret == 0)
		ret = connect_queue_pair(conn->endpoint, peer, why);
	if (ret == 0)
		return 0;
	endpoint_discard(conn);
	return trace_failed(conn, "the queue pair is not up", *why, ret);
}

const struct handshake_ops g_endpoint_handshake_ops = {.alloc = alloc, .bring_up = bring_up};

/* ---- the end of the handshake ---- */

int
endpoint_attach(struct xr_conn *conn)
{
	struct endpoint *endpoint = conn->endpoint;

	conn->link = &g_rdma_link;
	conn->in_type = endpoint->recv.type;
	endpoint->state = ENDPOINT_OPEN;
	tcp_go_silent(conn, ending_begin);
	figure_count(RDMA_CONNECTIONS, 1);
	trace_open(conn);
	return recv_open(endpoint);
}

/* A queue pair that the device keeps may still write: its blocks are lost, since they can't be used for anything else.
 */
static void
give_back(struct endpoint *endpoint)
{
	int ret = qp_pool_put(endpoint->cq, &endpoint->qp, endpoint->fault.error == 0);

	if (ret) {
		log_error("RDMA device %s keeps QP 0x%x: %s; %u receive blocks are lost", cq_device(endpoint->cq)->name,
			  endpoint->qp.qp->qp_num, strerror(-ret), endpoint->recv.slots);
		return;
	}
	recv_clear(&endpoint->recv);
	send_clear(&endpoint->send);
}

void
endpoint_discard(struct xr_conn *conn)
{
	struct endpoint *endpoint = conn->endpoint;

	if (!endpoint)
		return;
	conn->endpoint = NULL;
	hunger_leave(&endpoint->recv.hunger, &conn->home->scarcity);
	conn->hungry = false;
	xr_timer_cancel(&endpoint->flushing);
	give_back(endpoint);
	if (endpoint->admitted_recv)
		cq_dismiss(endpoint->cq, endpoint->handle, endpoint->admitted_send, endpoint->admitted_recv);
	free(endpoint);
}
