/* SPDX-License-Identifier: Apache-2.0 */

/* The server as its owner sees it: opened, listening, closed. */

#include "net/rpc/server.h"
#include "net/conn.h"
#include "net/rpc/frame.h"
#include "net/rpc/rpc.h"
#include "poll/reactor.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/compiler.h>

/*
 * The servers that take connections. A connection that was accepted may open long after its server has been freed, and
 * nobody is told of one that never opens: so it carries the server's number, not its address.
 */
static pthread_mutex_t g_servers_lock = PTHREAD_MUTEX_INITIALIZER;
static CDS_LIST_HEAD(g_servers);
static uint64_t g_last_id;

static void close_here(struct xr_msg *msg, int status);

static void
publish(struct xr_rpc_server *server)
{
	pthread_mutex_lock(&g_servers_lock);
	server->id = ++g_last_id;
	cds_list_add(&server->link, &g_servers);
	pthread_mutex_unlock(&g_servers_lock);
}

static void
withdraw(struct xr_rpc_server *server)
{
	pthread_mutex_lock(&g_servers_lock);
	cds_list_del(&server->link);
	pthread_mutex_unlock(&g_servers_lock);
}

static void
hold(struct xr_rpc_server *server)
{
	__atomic_fetch_add(&server->refs, 1, __ATOMIC_RELAXED);
}

struct xr_rpc_server *
server_hold(uint64_t id)
{
	struct xr_rpc_server *server, *found = NULL;

	pthread_mutex_lock(&g_servers_lock);
	cds_list_for_each_entry (server, &g_servers, link) {
		if (server->id == id) {
			hold(server);
			found = server;
			break;
		}
	}
	pthread_mutex_unlock(&g_servers_lock);
	return found;
}

static void
free_server(struct xr_rpc_server *server)
{
	for (unsigned i = 0; i < server->slot_count; i++)
		if (server->slots[i].here)
			server_lcore_free(server->slots[i].here);
	for (unsigned i = 0; i < server->listener_count; i++)
		free(server->listeners[i].address);
	free(server->listeners);
	service_table_fini(&server->services);
	free(server);
}

void
server_put(struct xr_rpc_server *server)
{
	if (__atomic_sub_fetch(&server->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free_server(server);
}

int
xr_rpc_server_open(const struct xr_rpc_server_opts *opts, struct xr_rpc_server **out)
{
	struct xr_rpc_server_opts own = {0};
	unsigned count = lcore_count();
	struct xr_rpc_server *server;

	if (!out || !count || (opts && opts_copy(&own, sizeof own, opts, opts->size) != 0))
		return -EINVAL;
	server = calloc(1, sizeof *server + count * sizeof server->slots[0]);
	if (!server)
		return -ENOMEM;
	server->refs = 1;
	server->max_body_size = own.max_body_size ? own.max_body_size : FRAME_MAX_BODY;
	server->slot_count = count;
	for (unsigned i = 0; i < count; i++) {
		server->slots[i].server = server;
		server->slots[i].close = (struct xr_msg)XR_MSG_INIT(close_here);
	}
	publish(server);
	*out = server;
	return 0;
}

int
xr_rpc_server_add(struct xr_rpc_server *server, const char *service, const char *method, xr_rpc_handler *handler,
		  void *arg)
{
	if (server->listener_count)
		return -EBUSY;
	return service_add(&server->services, service, method, handler, arg);
}

/* What its connections carry until they open. */
static void *
server_conn_arg(const struct xr_rpc_server *server)
{
	return (void *)(uintptr_t)server->id;
}

/* Room for one more listener, with its address still to come. */
static int
reserve_listener(struct xr_rpc_server *server)
{
	struct server_listener *grown;

	grown = reallocarray(server->listeners, server->listener_count + 1, sizeof *grown);
	if (!grown)
		return -ENOMEM;
	server->listeners = grown;
	return 0;
}

int
xr_rpc_server_listen(struct xr_rpc_server *server, struct xr_port *port, const char *address)
{
	const struct xr_listen_opts opts = {
		.size = sizeof opts,
		.ops = &g_server_conn_ops,
		.arg = server_conn_arg(server),
		.peer_speaks_first = true,
	};
	struct server_listener entry;
	int error = reserve_listener(server);

	if (!error)
		error = xr_listen(port, address, &opts, &entry.listener);
	if (error)
		return error;
	entry.address = strdup(xr_listener_address(entry.listener));
	if (!entry.address) {
		xr_listener_close(entry.listener);
		return -ENOMEM;
	}
	server->listeners[server->listener_count++] = entry;
	return 0;
}

const char *
xr_rpc_server_address(const struct xr_rpc_server *server, unsigned n)
{
	return n < server->listener_count ? server->listeners[n].address : NULL;
}

/* Runs on each lcore; or, once that has stopped and with it all its connections, on the closing thread. */
static void
close_here(struct xr_msg *msg, int status)
{
	struct server_slot *slot = caa_container_of(msg, struct server_slot, close);
	struct xr_rpc_server *server = slot->server;

	if (status == 0)
		conn_end_unopened(&g_server_conn_ops, server_conn_arg(server));
	if (slot->here)
		server_lcore_close(slot->here);
	server_put(server);
}

/* xr_run() closes every listener itself when it ends. */
static void
close_listeners(struct xr_rpc_server *server)
{
	if (reactors_stopping())
		return;
	for (unsigned i = 0; i < server->listener_count; i++)
		xr_listener_close(server->listeners[i].listener);
}

void
xr_rpc_server_close(struct xr_rpc_server *server)
{
	withdraw(server);
	close_listeners(server);
	for (unsigned i = 0; i < server->slot_count; i++) {
		struct xr_msg *close = &server->slots[i].close;

		hold(server);
		if (xr_post(lcore_at(i)->id, close) != 0)
			close_here(close, -ECANCELED);
	}
	server_put(server);
}
