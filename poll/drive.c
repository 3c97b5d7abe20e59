/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/drive.h"

#include "core/log.h"
#include "poll/reactor_private.h"

const char *
wait_mode_name(enum wait_mode mode)
{
	static const char *const names[] = {
		[WAIT_POLL] = "poll",
		[WAIT_EVENT] = "event",
		[WAIT_ADAPTIVE] = "adaptive",
	};

	return names[mode];
}

void
drive_init(struct drive *drive)
{
	*drive = (struct drive){.mode = WAIT_EVENT, .counted_as = STAT_COUNT};
}

/* Poll wins over adaptive, adaptive over event. */
static int
rank(enum wait_mode mode)
{
	return mode == WAIT_POLL ? 2 : mode == WAIT_ADAPTIVE ? 1 : 0;
}

void
reactor_add_port(struct reactor *reactor, const char *port_name, enum wait_mode mode, uint64_t spin_us)
{
	struct drive *drive = &reactor->drive;

	if (!drive->port_name || rank(mode) > rank(drive->mode)) {
		drive->mode = mode;
		drive->port_name = port_name;
	}
	if (mode == WAIT_ADAPTIVE && spin_us > drive->spin_us)
		drive->spin_us = spin_us;
}

/* How it is driven by what its ports ask for and by who keeps it awake. */
static enum reactor_stat
driven(const struct drive *drive)
{
	if (drive->mode == WAIT_POLL || drive->holds)
		return STAT_DRIVEN_POLL;
	return drive->mode == WAIT_ADAPTIVE ? STAT_DRIVEN_ADAPTIVE : STAT_DRIVEN_EVENT;
}

/* In one of the three figures it counts one. */
static void
recount(struct drive *drive)
{
	enum reactor_stat now = driven(drive);

	if (now == drive->counted_as)
		return;
	if (drive->counted_as != STAT_COUNT)
		stat_add(drive->counted_as, (uint64_t)-1);
	stat_add(now, 1);
	drive->counted_as = now;
}

void
reactor_hold_awake(struct reactor *reactor)
{
	struct drive *drive = &reactor->drive;

	if (drive->holds++ == 0 && drive->announced && drive->mode != WAIT_POLL)
		drive_announce(reactor);
}

void
reactor_let_sleep(struct reactor *reactor)
{
	struct drive *drive = &reactor->drive;

	drive->holds--;
	if (drive->announced)
		recount(drive);
}

static void
announce_holders(struct reactor *reactor)
{
	struct source *source;
	struct cds_list_head *at;

	cds_list_for_each_entry (source, &reactor->sources.head, link) {
		if (source->keeps_awake)
			log_notice("lcore %u polls: source %s cannot wake it", reactor->lcore->id, source->name);
	}
	cds_list_for_each(at, &reactor->pollers.list)
	{
		const struct xr_poller *poller = poller_of(at);

		if (!poller->may_sleep)
			log_notice("lcore %u polls: poller %s does not let it sleep", reactor->lcore->id,
				   poller->name ? poller->name : "without a name");
	}
}

void
drive_announce(struct reactor *reactor)
{
	struct drive *drive = &reactor->drive;
	unsigned id = reactor->lcore->id;

	drive->announced = true;
	recount(drive);
	if (drive->mode == WAIT_POLL)
		log_notice("lcore %u polls: port %s is in poll mode", id, drive->port_name);
	else if (drive->holds)
		announce_holders(reactor);
	else if (drive->mode == WAIT_ADAPTIVE)
		log_notice("lcore %u sleeps when idle (adaptive, spins %llu us)", id,
			   (unsigned long long)drive->spin_us);
	else
		log_notice("lcore %u sleeps when idle (event)", id);
}
