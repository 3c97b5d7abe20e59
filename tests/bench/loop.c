/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loop costs, for tests/bench/workers:
 *
 *   loop turns LCORE COUNT                     turns of a loop that has nothing to do; its instructions are counted
 *   loop messages MODE LCORES DEPTH SECONDS    messages that go from one lcore to another and back, DEPTH on their way;
 *                                              prints messages a second, and the median time of one there and back in
 *                                              microseconds
 *   loop bare MODE LCORES SECONDS              the same of two bare threads at depth 1, by a word in memory (poll) or
 * by eventfds (event)
 */

#include "poll/reactor_private.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <xrdma/xrdma.h>

#define DEPTH_MAX   1024u
#define SAMPLES_MAX (1u << 20)

static uint64_t g_end_ns, g_begin_ns, g_messages;
static uint32_t g_samples[SAMPLES_MAX]; /* nanoseconds there and back */
static size_t g_sample_count;

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
sample(uint64_t ns)
{
	if (g_sample_count < SAMPLES_MAX)
		g_samples[g_sample_count++] = (uint32_t)ns;
}

static int
compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static void
print_figures(void)
{
	double seconds = (double)(now_ns() - g_begin_ns) / 1e9;
	uint32_t median = 0;

	if (g_sample_count) {
		qsort(g_samples, g_sample_count, sizeof g_samples[0], compare);
		median = g_samples[g_sample_count / 2];
	}
	printf("%.0f %.3f\n", (double)g_messages / seconds, median / 1e3);
}

static int
init(const char *lcores, const char *mode)
{
	char port[64];
	char *argv[] = {(char *)"loop", (char *)"-l", (char *)lcores, (char *)"--port", port, NULL};

	snprintf(port, sizeof port, "default,mode=%s,rdma=off", mode);
	return xr_init(5, argv) == 5 ? 0 : -1;
}

/* ---- turns ---- */

static int
turns(const char *lcore, unsigned long count)
{
	struct reactor *reactor;

	if (init(lcore, "poll"))
		return 1;
	if (xr_worker_begin())
		return 1;
	reactor = reactor_current();
	while (count-- > 0)
		reactor_turn(reactor);
	xr_fini();
	return 0;
}

/* ---- messages ---- */

static void went(struct xr_msg *msg, int status);
static void came_back(struct xr_msg *msg, int status);

struct traveller {
	struct xr_msg there, back;
	uint64_t left_ns;
	unsigned near, far;
} __attribute__((aligned(64)));

static struct traveller g_travellers[DEPTH_MAX];

static void
went(struct xr_msg *msg, int status)
{
	struct traveller *traveller = caa_container_of(msg, struct traveller, there);

	if (status == 0)
		xr_post(traveller->near, &traveller->back);
}

static void
leave(struct traveller *traveller, uint64_t ns)
{
	traveller->left_ns = ns;
	xr_post(traveller->far, &traveller->there);
}

static void
came_back(struct xr_msg *msg, int status)
{
	struct traveller *traveller = caa_container_of(msg, struct traveller, back);
	uint64_t ns;

	if (status)
		return;
	ns = now_ns();
	g_messages += 2;
	sample(ns - traveller->left_ns);
	if (ns < g_end_ns)
		leave(traveller, ns);
	else
		xr_stop();
}

static void
set_out(struct xr_msg *msg, int status)
{
	(void)msg;
	if (status)
		return;
	g_begin_ns = now_ns();
	g_end_ns += g_begin_ns;
	for (unsigned i = 0; i < DEPTH_MAX && g_travellers[i].there.fn; i++)
		leave(&g_travellers[i], g_begin_ns);
}

static int
messages(const char *mode, const char *lcores, unsigned depth, unsigned long seconds)
{
	struct xr_msg start = XR_MSG_INIT(set_out);
	unsigned near, far;

	if (depth > DEPTH_MAX || init(lcores, mode))
		return 1;
	near = xr_lcore_main();
	far = xr_lcore_next(near);
	for (unsigned i = 0; i < depth; i++)
		g_travellers[i] = (struct traveller){
			.there = XR_MSG_INIT(went), .back = XR_MSG_INIT(came_back), .near = near, .far = far};
	g_end_ns = seconds * 1000000000u;
	xr_post(near, &start);
	xr_run();
	print_figures();
	xr_fini();
	return 0;
}

/* ---- bare threads ---- */

/* Whose turn it is: 0 the first thread's, 1 the second's, 2: it is over. */
static unsigned g_word __attribute__((aligned(64)));
static int g_bells[2];

static void
pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
}

static void
ring(int bell)
{
	const uint64_t one = 1;

	if (write(bell, &one, sizeof one) != sizeof one)
		abort();
}

/* Until it is this thread's turn; false: it is over. */
static bool
await(unsigned self, bool polls)
{
	uint64_t rings;
	unsigned word;

	if (!polls && read(g_bells[self], &rings, sizeof rings) != sizeof rings)
		abort();
	while ((word = __atomic_load_n(&g_word, __ATOMIC_ACQUIRE)) != self && word != 2)
		;
	return word == self;
}

static void
pass(unsigned to, unsigned word, bool polls)
{
	__atomic_store_n(&g_word, word, __ATOMIC_RELEASE);
	if (!polls)
		ring(g_bells[to]);
}

struct second {
	int cpu;
	bool polls;
};

static void *
second_thread(void *arg)
{
	const struct second *second = arg;

	pin(second->cpu);
	while (await(1, second->polls))
		pass(0, 0, second->polls);
	return NULL;
}

static void
bounce(bool polls)
{
	uint64_t left_ns = now_ns(), ns;

	g_begin_ns = left_ns;
	g_end_ns += left_ns;
	do {
		pass(1, 1, polls);
		await(0, polls);
		ns = now_ns();
		sample(ns - left_ns);
		g_messages += 2;
		left_ns = ns;
	} while (ns < g_end_ns);
	pass(1, 2, polls);
}

static int
bare(const char *mode, const char *lcores, unsigned long seconds)
{
	bool polls = strcmp(mode, "poll") == 0;
	const char *comma = strchr(lcores, ',');
	struct second second = {.polls = polls};
	pthread_t thread;

	if (!comma)
		return 1;
	second.cpu = (int)strtol(comma + 1, NULL, 10);
	g_bells[0] = eventfd(0, 0);
	g_bells[1] = eventfd(0, 0);
	g_end_ns = seconds * 1000000000u;
	if (pthread_create(&thread, NULL, second_thread, &second))
		return 1;
	pin((int)strtol(lcores, NULL, 10));
	bounce(polls);
	pthread_join(thread, NULL);
	print_figures();
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "turns") == 0)
		return turns(argv[2], strtoul(argv[3], NULL, 10));
	if (argc == 6 && strcmp(argv[1], "messages") == 0)
		return messages(argv[2], argv[3], (unsigned)strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10));
	if (argc == 5 && strcmp(argv[1], "bare") == 0)
		return bare(argv[2], argv[3], strtoul(argv[4], NULL, 10));
	return 2;
}
