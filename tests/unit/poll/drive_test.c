/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <errno.h>

static char g_lines[512];

static void
keep_line(enum xr_log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level == XR_LOG_NOTICE)
		snprintf(g_lines + strlen(g_lines), sizeof g_lines - strlen(g_lines), "%s\n", line);
}

static void
start(void)
{
	fixture_start(1);
	g_lines[0] = '\0';
	xr_log_set_sink(keep_line, NULL);
	xr_log_set_level(XR_LOG_NOTICE);
}

static void
end(void)
{
	xr_log_set_sink(NULL, NULL);
	fixture_end();
}

static void
check_announced(const char *expected)
{
	drive_announce(reactor_current());
	ASSERT_STR(g_lines, expected);
	end();
}

static void
add_port(const char *name, enum wait_mode mode, uint64_t spin_us)
{
	reactor_add_port(reactor_current(), name, mode, spin_us);
}

static void
test_without_ports(void)
{
	start();
	check_announced("lcore 0 sleeps when idle (event)\n");
}

static void
test_adaptive_wins_over_event(void)
{
	start();
	add_port("a", WAIT_ADAPTIVE, 20);
	add_port("b", WAIT_EVENT, 0);
	add_port("c", WAIT_ADAPTIVE, 70);
	add_port("d", WAIT_ADAPTIVE, 50);
	check_announced("lcore 0 sleeps when idle (adaptive, spins 70 us)\n");
}

static void
test_poll_wins(void)
{
	start();
	add_port("a", WAIT_ADAPTIVE, 20);
	add_port("default", WAIT_POLL, 0);
	add_port("b", WAIT_EVENT, 0);
	add_port("c", WAIT_POLL, 0);
	check_announced("lcore 0 polls: port default is in poll mode\n");
}

static int
nothing(struct xr_poller *poller)
{
	(void)poller;
	return 0;
}

static int
nothing_either(struct source *source, struct reactor *reactor)
{
	(void)source;
	(void)reactor;
	return 0;
}

static void
test_holders_are_named(void)
{
	static const struct source_ops ops = {.poll = nothing_either};
	struct xr_poller named = XR_POLLER_INIT(nothing, "ring", false),
			 nameless = XR_POLLER_INIT(nothing, NULL, false),
			 harmless = XR_POLLER_INIT(nothing, "harmless", true);
	struct source source = {.name = "cq 3", .ops = &ops, .stage = SOURCE_CQ, .keeps_awake = true};

	start();
	source_add(reactor_current(), &source);
	ASSERT_EQ(xr_poller_add(&named), 0);
	ASSERT_EQ(xr_poller_add(&harmless), 0);
	ASSERT_EQ(xr_poller_add(&nameless), 0);
	ASSERT_EQ(reactor_current()->drive.holds, 3);
	drive_announce(reactor_current());
	ASSERT_STR(g_lines, "lcore 0 polls: source cq 3 cannot wake it\n"
			    "lcore 0 polls: poller ring does not let it sleep\n"
			    "lcore 0 polls: poller without a name does not let it sleep\n");
	xr_poller_del(&named);
	xr_poller_del(&nameless);
	xr_poller_del(&harmless);
	source_del(reactor_current(), &source);
	ASSERT_EQ(reactor_current()->drive.holds, 0);
	end();
}

static void
test_a_late_holder_is_named(void)
{
	struct xr_poller poller = XR_POLLER_INIT(nothing, "late", false);

	start();
	drive_announce(reactor_current());
	g_lines[0] = '\0';
	ASSERT_EQ(xr_poller_add(&poller), 0);
	ASSERT_STR(g_lines, "lcore 0 polls: poller late does not let it sleep\n");
	xr_poller_del(&poller);
	end();
}

static void
check_figures(uint64_t poll, uint64_t event, uint64_t adaptive)
{
	ASSERT_EQ(stat_read(STAT_DRIVEN_POLL), poll);
	ASSERT_EQ(stat_read(STAT_DRIVEN_EVENT), event);
	ASSERT_EQ(stat_read(STAT_DRIVEN_ADAPTIVE), adaptive);
}

/* Each lcore counts one, in the figure of how it is driven now. */
static void
test_figures(void)
{
	struct xr_poller poller = XR_POLLER_INIT(nothing, "late", false);

	start();
	check_figures(0, 0, 0);
	drive_announce(reactor_current());
	check_figures(0, 1, 0);
	ASSERT_EQ(xr_poller_add(&poller), 0);
	check_figures(1, 0, 0);
	xr_poller_del(&poller);
	check_figures(0, 1, 0);
	end();
	start();
	add_port("a", WAIT_ADAPTIVE, 20);
	drive_announce(reactor_current());
	check_figures(0, 0, 1);
	end();
	start();
	add_port("a", WAIT_POLL, 0);
	drive_announce(reactor_current());
	check_figures(1, 0, 0);
	ASSERT_EQ(xr_poller_add(&poller), 0);
	xr_poller_del(&poller);
	check_figures(1, 0, 0);
	end();
}

static void
test_mode_names(void)
{
	ASSERT_STR(wait_mode_name(WAIT_POLL), "poll");
	ASSERT_STR(wait_mode_name(WAIT_EVENT), "event");
	ASSERT_STR(wait_mode_name(WAIT_ADAPTIVE), "adaptive");
}

UNIT_SUITE("drive", {"without ports", test_without_ports}, {"adaptive wins over event", test_adaptive_wins_over_event},
	   {"poll wins", test_poll_wins}, {"holders are named", test_holders_are_named},
	   {"a late holder is named", test_a_late_holder_is_named}, {"figures", test_figures},
	   {"mode names", test_mode_names});
