/* SPDX-License-Identifier: Apache-2.0 */
#include "poll/switches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	GIVEN_UP,
	TAKEN_AWAY,
};

struct counter g_switch_counters[2] = {
	[GIVEN_UP] = {"worker_switches_voluntary", "times that the worker slept or waited in the kernel", 0},
	[TAKEN_AWAY] = {"worker_switches_involuntary", "times that the kernel took the worker's processor away", 0},
};

int
switch_counters_add(void)
{
	return counter_add_table(g_switch_counters, 2);
}

static void
book(const struct switches *switches, uint64_t given_up, uint64_t taken_away)
{
	counter_raise(&g_switch_counters[GIVEN_UP], switches->lcore, given_up - switches->given_up_before);
	counter_raise(&g_switch_counters[TAKEN_AWAY], switches->lcore, taken_away - switches->taken_away_before);
}

void
switches_begin(struct switches *switches, const struct lcore *lcore)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	switches->lcore = lcore;
	switches->given_up_before = (uint64_t)usage.ru_nvcsw;
	switches->taken_away_before = (uint64_t)usage.ru_nivcsw;
	__atomic_store_n(&switches->thread, gettid(), __ATOMIC_RELEASE);
}

void
switches_end(struct switches *switches)
{
	struct rusage usage;

	__atomic_store_n(&switches->thread, 0, __ATOMIC_RELEASE);
	getrusage(RUSAGE_THREAD, &usage);
	book(switches, (uint64_t)usage.ru_nvcsw, (uint64_t)usage.ru_nivcsw);
}

static bool
read_value(const char *line, const char *name, uint64_t *value)
{
	size_t length = strlen(name);

	if (strncmp(line, name, length) != 0)
		return false;
	*value = strtoull(line + length, NULL, 10);
	return true;
}

void
switches_fetch(struct switches *switches)
{
	pid_t thread = __atomic_load_n(&switches->thread, __ATOMIC_ACQUIRE);
	uint64_t given_up = 0, taken_away = 0;
	char path[64], line[128];
	int found = 0;
	FILE *file;

	if (!thread)
		return;
	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
	file = fopen(path, "re");
	if (!file)
		return;
	while (found < 2 && fgets(line, sizeof line, file))
		found += read_value(line, "voluntary_ctxt_switches:", &given_up) ||
			 read_value(line, "nonvoluntary_ctxt_switches:", &taken_away);
	fclose(file);
	if (found == 2)
		book(switches, given_up, taken_away);
}
