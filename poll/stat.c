/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/stat.h"

#include "poll/reactor.h"
#include "poll/switches.h"

/* clang-format off */
struct counter g_stats[STAT_COUNT] = {
	[STAT_TURNS]         = {"reactor_turns", "turns of the loop", 0},
	[STAT_BUSY_TURNS]    = {"reactor_busy_turns", "turns that found work", 0},
	[STAT_BUSY_US]       = {"reactor_busy_us", "microseconds in turns that found work", 0},
	[STAT_IDLE_US]       = {"reactor_idle_us", "microseconds in turns that found nothing", 0},
	[STAT_SLEEP_US]      = {"reactor_sleep_us", "microseconds asleep", 0},
	[STAT_SLEEPS]        = {"reactor_sleeps", "times the loop blocked", 0},
	[STAT_WAKES_FD]      = {"reactor_wakes_fd", "wakes by a descriptor or a message", 0},
	[STAT_WAKES_TIMER]   = {"reactor_wakes_timer", "wakes by a deadline", 0},
	[STAT_WAKES_CAP]     = {"reactor_wakes_cap", "wakes by --wait-cap-ms", 0},
	[STAT_WAKES_EMPTY]   = {"reactor_wakes_empty", "wakes by a descriptor after which there was no work", 0},
	[STAT_WAKES_RESCUED] = {"reactor_wakes_rescued", "wakes by the cap that found work: lost wake-ups, a bug", 0},
	[STAT_ARMED_FOUND]   = {"reactor_armed_found", "sleeps called off by work found after arming", 0},
	[STAT_MESSAGES]      = {"reactor_messages", "messages run", 0},
	[STAT_POSTS_WOKE]    = {"reactor_posts_woke", "posts that had to wake their lcore", 0},
	[STAT_STALLS]        = {"reactor_stalls", "callbacks that took longer than --stall-ms", 0},
	[STAT_STALL_US]      = {"reactor_stall_us", "microseconds in those", 0},
	[STAT_DRIVEN_POLL]     = {"lcores_poll", "lcores that never sleep", 0},
	[STAT_DRIVEN_EVENT]    = {"lcores_event", "lcores that sleep as soon as they are idle", 0},
	[STAT_DRIVEN_ADAPTIVE] = {"lcores_adaptive", "lcores that sleep when they have been idle for a while", 0},
};
/* clang-format on */

int
reactor_counters_add(void)
{
	int error = counter_add_table(g_stats, STAT_COUNT);

	return error ? error : switch_counters_add();
}
