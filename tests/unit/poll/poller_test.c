/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <errno.h>

struct probe {
	struct xr_poller poller;
	unsigned calls;
	int work;
	void (*then)(struct probe *probe);
};

static int
probe_poll(struct xr_poller *poller)
{
	struct probe *probe = (struct probe *)poller;
	int work = probe->work;

	probe->calls++;
	if (probe->then)
		probe->then(probe);
	return work;
}

static void
probe_add(struct probe *probe, int work, bool may_sleep, void (*then)(struct probe *probe))
{
	*probe = (struct probe){XR_POLLER_INIT(probe_poll, "probe", may_sleep), 0, work, then};
	ASSERT_EQ(xr_poller_add(&probe->poller), 0);
}

static int
turn(void)
{
	struct source *source = &reactor_current()->pollers.source;

	return source->ops->poll(source, reactor_current());
}

static void *
add_on_no_worker(void *arg)
{
	ASSERT_EQ(xr_poller_add(arg), -EINVAL);
	return NULL;
}

static void
test_errors(void)
{
	struct probe probe, stray = {.poller = XR_POLLER_INIT(probe_poll, NULL, true)};
	pthread_t thread;

	fixture_start(1);
	probe_add(&probe, 0, true, NULL);
	ASSERT_EQ(xr_poller_add(&probe.poller), -EALREADY);
	ASSERT_FATAL(pthread_create(&thread, NULL, add_on_no_worker, &stray.poller) == 0);
	pthread_join(thread, NULL);
	xr_poller_del(&probe.poller);
	xr_poller_del(&probe.poller);
	ASSERT_EQ(xr_poller_add(&probe.poller), 0);
	xr_poller_del(&probe.poller);
	fixture_end();
}

static void
test_work_is_summed(void)
{
	struct probe probes[3];

	fixture_start(1);
	probe_add(&probes[0], 3, true, NULL);
	probe_add(&probes[1], -7, true, NULL);
	probe_add(&probes[2], 4, true, NULL);
	ASSERT_EQ(turn(), 7);
	for (unsigned i = 0; i < 3; i++) {
		ASSERT_EQ(probes[i].calls, 1);
		xr_poller_del(&probes[i].poller);
	}
	ASSERT_EQ(turn(), 0);
	fixture_end();
}

static struct probe g_probes[3];

static void
delete_all(struct probe *probe)
{
	(void)probe;
	for (unsigned i = 0; i < 3; i++)
		xr_poller_del(&g_probes[i].poller);
}

static void
delete_itself(struct probe *probe)
{
	xr_poller_del(&probe->poller);
	memset(probe, 0xa5, sizeof *probe);
}

static void
delete_next(struct probe *probe)
{
	xr_poller_del(&probe[1].poller);
}

static void
test_deleted_in_callbacks(void)
{
	fixture_start(1);
	for (unsigned i = 0; i < 3; i++)
		probe_add(&g_probes[i], 1, true, i == 1 ? delete_all : NULL);
	ASSERT_EQ(turn(), 2);
	ASSERT_EQ(turn(), 0);
	for (unsigned i = 0; i < 3; i++)
		probe_add(&g_probes[i], 1, true, delete_itself);
	ASSERT_EQ(turn(), 3);
	ASSERT_EQ(turn(), 0);
	for (unsigned i = 0; i < 3; i++)
		probe_add(&g_probes[i], 1, true, i == 0 ? delete_next : NULL);
	ASSERT_EQ(turn(), 2);
	ASSERT_EQ(g_probes[1].calls, 0);
	delete_all(NULL);
	fixture_end();
}

static void
add_last(struct probe *probe)
{
	(void)probe;
	if (g_probes[2].calls == 0)
		xr_poller_add(&g_probes[2].poller);
}

static void
test_added_in_callback(void)
{
	fixture_start(1);
	probe_add(&g_probes[2], 1, true, NULL);
	xr_poller_del(&g_probes[2].poller);
	probe_add(&g_probes[0], 1, true, add_last);
	turn();
	turn();
	CU_ASSERT(g_probes[2].calls >= 1);
	xr_poller_del(&g_probes[0].poller);
	xr_poller_del(&g_probes[2].poller);
	fixture_end();
}

static void
test_holds_its_worker_awake(void)
{
	struct probe probe;

	fixture_start(1);
	probe_add(&probe, 0, false, NULL);
	fixture_run_for(30);
	CU_ASSERT(probe.calls > 10);
	ASSERT_EQ(stat_read(STAT_SLEEPS), 0);
	xr_poller_del(&probe.poller);
	fixture_end();
}

static void
leave_after_100(struct probe *probe)
{
	if (probe->calls == 100)
		xr_poller_del(&probe->poller);
}

static void
test_sleeps_when_it_has_gone(void)
{
	struct probe probe;

	fixture_start(1);
	probe_add(&probe, 0, false, leave_after_100);
	fixture_run_for(50);
	ASSERT_EQ(probe.calls, 100);
	ASSERT_EQ(stat_read(STAT_SLEEPS), 1);
	fixture_end();
}

static void
test_may_sleep(void)
{
	struct probe probe;

	fixture_start(1);
	probe_add(&probe, 0, true, NULL);
	fixture_run_for(50);
	ASSERT_EQ(stat_read(STAT_SLEEPS), 1);
	CU_ASSERT(probe.calls >= 2); /* its turn's, and the look after arming */
	xr_poller_del(&probe.poller);
	fixture_end();
}

UNIT_SUITE("poller", {"errors", test_errors}, {"work is summed", test_work_is_summed},
	   {"deleted in callbacks", test_deleted_in_callbacks}, {"added in a callback", test_added_in_callback},
	   {"holds its worker awake", test_holds_its_worker_awake},
	   {"sleeps when it has gone", test_sleeps_when_it_has_gone}, {"may sleep", test_may_sleep});
