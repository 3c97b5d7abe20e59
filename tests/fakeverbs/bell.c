/* SPDX-License-Identifier: Apache-2.0 */

/* Events queued behind a file descriptor: an eventfd that counts them. Queue and count agree under the mutex. */

#include "tests/fakeverbs/fake.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

int
fv_bell_init(struct fv_bell *bell)
{
	CDS_INIT_LIST_HEAD(&bell->events);
	bell->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return bell->fd < 0 ? errno : 0;
}

void
fv_bell_fini(struct fv_bell *bell)
{
	close(bell->fd);
}

void
fv_bell_ring(struct fv_bell *bell, struct cds_list_head *event)
{
	uint64_t one = 1;

	cds_list_add_tail(event, &bell->events);
	if (write(bell->fd, &one, sizeof one) != sizeof one)
		fv_violation("the file descriptor of a queue of events was closed");
}

void
fv_bell_remove(struct fv_bell *bell, struct cds_list_head *event)
{
	uint64_t one;

	cds_list_del(event);
	if (read(bell->fd, &one, sizeof one) != sizeof one)
		fv_violation("something else has read from the file descriptor of a queue of events");
}

/* False: not to be waited for. */
static bool
wait_for_ring(const struct fv_bell *bell)
{
	struct pollfd fd = {.fd = bell->fd, .events = POLLIN};

	if (fcntl(bell->fd, F_GETFL) & O_NONBLOCK) {
		errno = EAGAIN;
		return false;
	}
	fv_unlock(NULL);
	poll(&fd, 1, -1);
	fv_lock();
	return true;
}

struct cds_list_head *
fv_bell_take(struct fv_bell *bell)
{
	struct cds_list_head *event;

	while (cds_list_empty(&bell->events)) {
		if (!wait_for_ring(bell))
			return NULL;
	}
	event = bell->events.next;
	fv_bell_remove(bell, event);
	return event;
}
