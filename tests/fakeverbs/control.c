/* SPDX-License-Identifier: Apache-2.0 */

/* The mutex, calls and their failures, violations, and how many objects there are. */

#include "tests/fakeverbs/fake.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILURES 32

struct failure {
	enum fv_verb verb;
	unsigned first, times; /* by the verb's number of calls */
	int error;
};

struct violation {
	struct cds_list_head node;
	bool shown;
	char text[256];
};

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned g_calls[FV_VERB_COUNT];
static struct failure g_failures[FAILURES];
static unsigned g_failure_count;
static CDS_LIST_HEAD(g_violations);
static unsigned g_alive[FAKE_KINDS];

static const char *const g_verb_names[] = {
#define FV_NAME(name) #name,
	FV_VERBS(FV_NAME)
#undef FV_NAME
};

static const char *const g_kind_names[] = {
	[FAKE_DEVICE_LISTS] = "device list",
	[FAKE_CONTEXTS] = "context",
	[FAKE_PDS] = "protection domain",
	[FAKE_MRS] = "memory region",
	[FAKE_CHANNELS] = "completion channel",
	[FAKE_CQS] = "completion queue",
	[FAKE_QPS] = "queue pair",
};

int
fv_lock(void)
{
	return pthread_mutex_lock(&g_mutex);
}

void
fv_unlock(const int *unused)
{
	(void)unused;
	pthread_mutex_unlock(&g_mutex);
}

/* ---- calls and failures ---- */

static bool
failure_hits(const struct failure *failure, enum fv_verb verb)
{
	unsigned call = g_calls[verb];

	return failure->verb == verb && call >= failure->first && call - failure->first < failure->times;
}

int
fv_call(enum fv_verb verb)
{
	g_calls[verb]++;
	for (unsigned i = 0; i < g_failure_count; i++) {
		if (failure_hits(&g_failures[i], verb))
			return g_failures[i].error;
	}
	return 0;
}

static bool
find_verb(const char *name, enum fv_verb *verb)
{
	for (unsigned i = 0; i < FV_VERB_COUNT; i++) {
		if (strcmp(g_verb_names[i], name) == 0) {
			*verb = (enum fv_verb)i;
			return true;
		}
	}
	fv_violation("the test names a verb \"%s\" that there is not", name);
	return false;
}

void
fake_fail_times(const char *name, unsigned nth, unsigned times, int error)
{
	enum fv_verb verb;

	FV_LOCKED();
	if (!find_verb(name, &verb))
		return;
	if (nth == 0 || g_failure_count == FAILURES) {
		fv_violation("the test asks for call 0 of %s, or for more than %d failures", name, FAILURES);
		return;
	}
	g_failures[g_failure_count++] = (struct failure){verb, g_calls[verb] + nth, times, error};
}

void
fake_fail(const char *name, unsigned nth, int error)
{
	fake_fail_times(name, nth, 1, error);
}

void
fake_fail_none(void)
{
	FV_LOCKED();
	g_failure_count = 0;
}

unsigned
fake_calls(const char *name)
{
	enum fv_verb verb;

	FV_LOCKED();
	return find_verb(name, &verb) ? g_calls[verb] : 0;
}

/* ---- violations ---- */

void
fv_violation(const char *format, ...)
{
	struct violation *violation = calloc(1, sizeof *violation);
	va_list args;

	if (!violation)
		abort();
	va_start(args, format);
	vsnprintf(violation->text, sizeof violation->text, format, args);
	va_end(args);
	cds_list_add_tail(&violation->node, &g_violations);
}

unsigned
fake_violations(void)
{
	struct violation *violation;
	unsigned count = 0;

	FV_LOCKED();
	cds_list_for_each_entry (violation, &g_violations, node) {
		if (!violation->shown)
			fprintf(stderr, "fakeverbs: violation: %s\n", violation->text);
		violation->shown = true;
		count++;
	}
	return count;
}

static void
violation_delete(struct violation *violation)
{
	cds_list_del(&violation->node);
	free(violation);
}

bool
fake_forgive(const char *text)
{
	struct violation *violation;

	FV_LOCKED();
	cds_list_for_each_entry (violation, &g_violations, node) {
		if (strstr(violation->text, text)) {
			violation_delete(violation);
			return true;
		}
	}
	return false;
}

/* ---- objects ---- */

void
fv_born(enum fake_kind kind)
{
	g_alive[kind]++;
}

void
fv_died(enum fake_kind kind)
{
	g_alive[kind]--;
}

unsigned
fake_alive(enum fake_kind kind)
{
	FV_LOCKED();
	return g_alive[kind];
}

unsigned
fake_leaks(void)
{
	unsigned leaks = 0;

	FV_LOCKED();
	for (unsigned kind = 0; kind < FAKE_KINDS; kind++) {
		if (g_alive[kind])
			fprintf(stderr, "fakeverbs: %s still there: %u\n", g_kind_names[kind], g_alive[kind]);
		leaks += g_alive[kind];
	}
	return leaks;
}

void
fake_reset(void)
{
	struct violation *violation, *next;

	fake_hooks(NULL);
	FV_LOCKED();
	fv_qps_reset();
	fv_cqs_reset();
	fv_channels_reset();
	fv_memory_reset();
	fv_cards_reset();
	fv_payload_reset();
	fv_wire_reset();
	cds_list_for_each_entry_safe (violation, next, &g_violations, node)
		violation_delete(violation);
	memset(g_calls, 0, sizeof g_calls);
	memset(g_alive, 0, sizeof g_alive);
	g_failure_count = 0;
}
