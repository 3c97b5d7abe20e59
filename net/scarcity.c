/* SPDX-License-Identifier: Apache-2.0 */

#include "net/scarcity.h"
#include "core/lcore.h"
#include "core/log.h"
#include "net/conn.h"
#include "net/net.h"
#include "net/turn.h"
#include <errno.h>

/* The application may be about to let go of what it holds; but once one had to be given up, more will have to be. */
#define PATIENCE_US	  500000u
#define PATIENCE_AGAIN_US 50000u
#define AGAIN_US	  1000000u

#define RETRY_MIN_US 1000u
#define RETRY_MAX_US 20000u

/* Bytes of blocks that it holds and that nothing on this side can set free. */
static size_t
stuck_bytes(const struct xr_conn *conn)
{
	size_t bytes = 0;

	if (conn->state == CONN_OPEN && !conn->paused && xr_iobuf_size(&conn->in) < conn->need)
		bytes += iobuf_pool_bytes(&conn->in);
	if (conn->state != CONN_ENDED && conn->link->full && conn->link->full(conn))
		bytes += iobuf_pool_bytes(&conn->out);
	return bytes;
}

static void
give_up(struct xr_conn *conn, size_t bytes)
{
	static struct log_limit limit;
	char peer[ADDRESS_TEXT_BYTES];

	address_format(&conn->peer, peer);
	log_limited(&limit, XR_LOG_WARNING,
		    "connection with %s is given up: no block is left, and it holds %zu KiB of unfinished messages",
		    peer, bytes / 1024);
	net_count(NET_GIVEN_UP, 1);
	xr_conn_abort(conn, -ENOMEM);
}

/* False: none on this lcore holds anything. */
static bool
give_up_largest(struct net_lcore *net)
{
	struct xr_conn *conn, *largest = NULL;
	size_t most = 0;

	cds_list_for_each_entry (conn, &net->conns, all) {
		size_t bytes = stuck_bytes(conn);

		if (bytes > most) {
			most = bytes;
			largest = conn;
		}
	}
	if (largest)
		give_up(largest, most);
	return largest != NULL;
}

static void
relieve(struct xr_msg *msg, int status)
{
	struct net_lcore *net = caa_container_of(msg, struct net_lcore, scarcity.relieve);

	if (status == 0)
		give_up_largest(net);
}

static void
ask_others(const struct net_lcore *net)
{
	for (unsigned i = 0; i < lcore_count(); i++) {
		struct net_lcore *other = net_lcore_at(i);

		if (other != net)
			xr_post(other->lcore->id, &other->scarcity.relieve);
	}
}

void
scarcity_init(struct scarcity *scarcity)
{
	*scarcity = (struct scarcity){.relieve = XR_MSG_INIT(relieve)};
}

static bool
out_of_patience(const struct scarcity *scarcity, uint64_t now_us)
{
	bool again = scarcity->gave_up_us && now_us - scarcity->gave_up_us < AGAIN_US;

	return now_us - scarcity->since_us >= (again ? PATIENCE_AGAIN_US : PATIENCE_US);
}

uint64_t
scarcity_wait(struct xr_conn *conn)
{
	struct net_lcore *net = conn->home;
	struct scarcity *scarcity = &net->scarcity;
	uint64_t now_us = xr_now_us(), retry_us;

	if (!scarcity->since_us)
		scarcity->since_us = now_us;
	retry_us = (now_us - scarcity->since_us) / 4;
	if (out_of_patience(scarcity, now_us)) {
		if (!give_up_largest(net))
			ask_others(net);
		scarcity->since_us = scarcity->gave_up_us = now_us;
	}
	return retry_us < RETRY_MIN_US ? RETRY_MIN_US : retry_us > RETRY_MAX_US ? RETRY_MAX_US : retry_us;
}
