/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/async.h"
#include "core/lcore.h"
#include "core/log.h"
#include "net/verbs/cq.h"
#include "poll/reactor.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* ---- to the lcores ---- */

#define EVERY_ENDPOINT UINT32_MAX

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

/* ---- from the device ---- */

static void
device_failed(struct device *device, enum ibv_event_type type)
{
	__atomic_store_n(&device->failed, true, __ATOMIC_RELAXED);
	log_error("RDMA device %s has failed: its connections end, new ones use what else there is", device->name);
	gid_table_refresh();
	notify_all(device, type);
}

/* The table says from now on what is true; connections that a port carries find out by themselves if it stays down. */
static void
ports_changed(struct device *device, const struct ibv_async_event *event)
{
	log_notice("RDMA device %s port %d: %s", device->name, event->element.port_num,
		   ibv_event_type_str(event->event_type));
	if (gid_table_refresh())
		log_error("RDMA device %s: its GIDs could not be read anew: no memory", device->name);
}

/* What must be known of the event after it is acknowledged, when its queue may be gone. */
struct target {
	bool endpoint, cq;
	uintptr_t context;
};

static struct target
target_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		return (struct target){.endpoint = true, .context = (uintptr_t)event->element.qp->qp_context};
	case IBV_EVENT_CQ_ERR:
		return (struct target){.cq = true, .context = (uintptr_t)event->element.cq->cq_context};
	default:
		return (struct target){.context = 0};
	}
}

static void
handle(struct device *device, const struct ibv_async_event *event, struct target target)
{
	if (target.endpoint) {
		notify(device, (unsigned)(target.context >> 32), (uint32_t)target.context, event->event_type);
		return;
	}
	if (target.cq) {
		log_error("RDMA device %s: a completion queue of lcore index %u has failed", device->name,
			  (unsigned)target.context);
		notify(device, (unsigned)target.context, EVERY_ENDPOINT, event->event_type);
		return;
	}
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		device_failed(device, event->event_type);
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_PKEY_CHANGE:
		ports_changed(device, event);
		break;
	default:
		log_debug("RDMA device %s: %s", device->name, ibv_event_type_str(event->event_type));
	}
}

static void
events_ready(struct xr_fd *fd, uint32_t revents)
{
	struct device *device = caa_container_of(fd, struct device, events);
	struct ibv_async_event event;

	(void)revents;
	while (ibv_get_async_event(device->context, &event) == 0) {
		struct target target = target_of(&event);

		ibv_ack_async_event(&event);
		handle(device, &event, target);
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
