/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/async.h"
#include "core/lcore.h"
#include "core/log.h"
#include "net/verbs/cq.h"
#include "poll/reactor.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* ---- to the lcores ---- */

#define EVERY_ENDPOINT UINT32_MAX /* no handle is that (handle.h) */

/* An event on its way to an lcore that may have endpoints which it concerns. */
struct notice {
	struct xr_msg msg;
	struct device *device;
	uint32_t handle; /* or EVERY_ENDPOINT */
	enum ibv_event_type type;
};

static void
notice_arrived(struct xr_msg *msg, int status)
{
	struct notice *notice = caa_container_of(msg, struct notice, msg);

	if (status == 0 && notice->handle == EVERY_ENDPOINT)
		cq_event(notice->device, notice->type);
	else if (status == 0)
		cq_event_of(notice->device, notice->handle, notice->type);
	free(notice);
}

static void
notify(struct device *device, unsigned lcore_index, uint32_t handle, enum ibv_event_type type)
{
	struct notice *notice = malloc(sizeof *notice);

	if (!notice) {
		log_error("RDMA device %s: %s could not be passed on: no memory", device->name,
			  ibv_event_type_str(type));
		return;
	}
	*notice = (struct notice){XR_MSG_INIT(notice_arrived), device, handle, type};
	if (xr_post(lcore_at(lcore_index)->id, &notice->msg))
		free(notice); /* the lcore has stopped, and its endpoints with it */
}

static void
notify_all(struct device *device, enum ibv_event_type type)
{
	for (unsigned i = 0; i < lcore_count(); i++)
		notify(device, i, EVERY_ENDPOINT, type);
}

/* ---- what they mean ---- */

static void
refresh_gids(const struct device *device)
{
	if (gid_table_refresh())
		log_error("RDMA device %s: its GIDs could not be read anew: no memory", device->name);
}

static void
device_failed(struct device *device, const char *why)
{
	if (!device_usable(device))
		return;
	__atomic_store_n(&device->failed, true, __ATOMIC_RELAXED);
	log_error("RDMA device %s has failed (%s): its connections end, new ones use what else there is", device->name,
		  why);
	refresh_gids(device);
	notify_all(device, IBV_EVENT_DEVICE_FATAL);
}

/* Which queue it concerns, by what async_..._context() has put into it. */
struct target {
	enum {
		TARGET_NONE,
		TARGET_QP,
		TARGET_CQ,
	} kind;
	uintptr_t context;
};

/* Before the event is acknowledged: its queue may go right after. */
static struct target
target_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		return (struct target){TARGET_QP,
				       (uintptr_t)__atomic_load_n(&event->element.qp->qp_context, __ATOMIC_RELAXED)};
	case IBV_EVENT_CQ_ERR:
		return (struct target){TARGET_CQ, (uintptr_t)event->element.cq->cq_context};
	default:
		return (struct target){TARGET_NONE, 0};
	}
}

static void
queue_failed(struct device *device, enum ibv_event_type type, struct target target)
{
	bool qp = target.kind == TARGET_QP;
	unsigned lcore_index = (unsigned)(qp ? target.context >> 32 : target.context);

	/* An endpoint says more of it than is known here. */
	log_at(qp ? XR_LOG_DEBUG : XR_LOG_ERROR, "RDMA device %s: %s on lcore %u", device->name,
	       ibv_event_type_str(type), lcore_at(lcore_index)->id);
	notify(device, lcore_index, qp ? (uint32_t)target.context : EVERY_ENDPOINT, type);
}

/* True when the table of GIDs is out of date. Connections that a port carries find out by themselves if it stays down.
 */
static bool
device_changed(struct device *device, const struct ibv_async_event *event)
{
	enum ibv_event_type type = event->event_type;

	switch (type) {
	case IBV_EVENT_DEVICE_FATAL:
		device_failed(device, ibv_event_type_str(type));
		return false;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		log_notice("RDMA device %s port %d: %s", device->name, event->element.port_num,
			   ibv_event_type_str(type));
		return true;
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_PKEY_CHANGE:
		log_info("RDMA device %s port %d: %s", device->name, event->element.port_num, ibv_event_type_str(type));
		return true;
	default:
		log_debug("RDMA device %s: %s", device->name, ibv_event_type_str(type));
		return false;
	}
}

/* ---- from the device ---- */

/* One event taken and acknowledged. False: there is none, and errno says why. */
static bool
take_event(struct device *device, bool *gids_changed)
{
	struct ibv_async_event event;
	struct target target;

	if (ibv_get_async_event(device->context, &event))
		return false;
	target = target_of(&event);
	ibv_ack_async_event(&event);
	if (target.kind != TARGET_NONE)
		queue_failed(device, event.event_type, target);
	else
		*gids_changed |= device_changed(device, &event);
	return true;
}

static void
events_ready(struct xr_fd *fd, uint32_t revents)
{
	struct device *device = caa_container_of(fd, struct device, events);
	bool gids_changed = false;

	while (take_event(device, &gids_changed))
		;
	/* A device that was pulled out has no more events to read but stays ready for ever. */
	if (errno != EAGAIN || (revents & EPOLLERR)) {
		async_unwatch(device);
		device_failed(device, "it is gone");
	} else if (gids_changed) {
		refresh_gids(device);
	}
}

int
async_watch(struct device *device)
{
	int fd = device->context->async_fd;
	int flags = fcntl(fd, F_GETFL);
	int ret;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	device->events = (struct xr_fd)XR_FD_INIT(fd, EPOLLIN, events_ready);
	ret = xr_fd_add(&device->events);
	if (ret == 0)
		fd_set_quiet(&device->events, true);
	return ret;
}

void
async_unwatch(struct device *device)
{
	xr_fd_del(&device->events);
}
