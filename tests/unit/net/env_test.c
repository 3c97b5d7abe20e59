/* SPDX-License-Identifier: Apache-2.0 */

/* The library's life: up, run, down, again, and every way not to come up. */

#include "tests/unit/fail_alloc.h"
#include "tests/unit/net/net_fixture.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#define ARGC(argv) ((int)(sizeof(argv) / sizeof(argv)[0]))

static int
count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	ASSERT_FATAL(dir != NULL);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static bool
is_worker(const char *task)
{
	char path[300], name[32] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(name, sizeof name, file))
		name[0] = '\0';
	fclose(file);
	return strncmp(name, "lcore-", 6) == 0;
}

/* By their names: a sanitizer has threads of its own. */
static int
count_workers(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	ASSERT_FATAL(dir != NULL);
	while ((entry = readdir(dir)))
		count += is_worker(entry->d_name);
	closedir(dir);
	return count;
}

static int g_descriptors;

static void
note_resources(void)
{
	g_descriptors = count_descriptors();
}

static void
nothing_is_left(void)
{
	ASSERT_EQ(count_descriptors(), g_descriptors);
	ASSERT_EQ(count_workers(), 0);
	ASSERT_EQ(xr_run(), -EINVAL);
	ASSERT_EQ(xr_handle_signals(), -EINVAL);
	ASSERT_EQ(xr_lcore_id(), XR_LCORE_NONE);
	CU_ASSERT_PTR_NULL(xr_port_find(NULL));
	xr_fini();
}

/* ---- up and down ---- */

static void
test_first_argument_that_is_no_option(void)
{
	char *argv[] = {"test", "--lcores", "0@0", "--port", "default,mode=event", "word", "--port"};

	ASSERT_EQ(net_init(ARGC(argv), argv), 5);
	ASSERT_EQ(xr_lcore_id(), 0);
	ASSERT_EQ(xr_init(ARGC(argv), argv), -EALREADY);
	net_down();
}

static void
test_down_without_run(void)
{
	note_resources();
	net_up(3, NULL);
	ASSERT_EQ(count_workers(), 2);
	net_down();
	CU_ASSERT_FALSE(net_logged("when idle"));
	nothing_is_left();
}

static void
test_again_and_again(void)
{
	note_resources();
	for (int i = 0; i < 12; i++) {
		net_up(1 + (unsigned)i % 3, NULL);
		if (i % 2) {
			xr_stop();
			net_run(NULL, NULL);
		}
		net_down();
	}
	nothing_is_left();
}

static void
test_run_once(void)
{
	net_up(2, NULL);
	xr_stop();
	net_run(NULL, NULL);
	ASSERT_EQ(xr_run(), -EALREADY);
	net_down();
}

static void
test_calls_before_init(void)
{
	xr_stop();
	xr_fini();
	ASSERT_EQ(xr_run(), -EINVAL);
	ASSERT_EQ(xr_handle_signals(), -EINVAL);
	ASSERT_STR(xr_version(), XR_VERSION);
	net_up(1, NULL);
	xr_stop();
	net_run(NULL, NULL);
	net_down();
}

/* A stop from before does not end the next life. */
static void
stop_soon(void *arg)
{
	int *ran = arg;

	net_sleep_ms(30);
	*ran = 1;
	xr_stop();
	xr_stop();
}

static void
test_stop_does_not_last(void)
{
	int ran = 0;

	net_up(2, NULL);
	xr_stop();
	net_run(NULL, NULL);
	net_down();
	net_up(2, NULL);
	net_run(stop_soon, &ran);
	ASSERT_EQ(ran, 1);
	net_down();
}

static void
test_affinity_comes_back(void)
{
	cpu_set_t before, after;

	ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
	net_up(1, NULL);
	net_down();
	ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
	CU_ASSERT_TRUE(CPU_EQUAL(&before, &after));
}

/* ---- messages and the end ---- */

static int g_statuses[2];

static void
note_first(struct xr_msg *msg, int status)
{
	(void)msg;
	g_statuses[0] = status;
}

static void
note_second(struct xr_msg *msg, int status)
{
	(void)msg;
	g_statuses[1] = status;
}

static void
test_undelivered_messages(void)
{
	struct xr_msg first = XR_MSG_INIT(note_first), second = XR_MSG_INIT(note_second);

	g_statuses[0] = g_statuses[1] = 1;
	net_up(2, NULL);
	ASSERT_EQ(xr_post(0, &first), 0);
	ASSERT_EQ(xr_post(1, &second), 0);
	ASSERT_EQ(xr_post(0, &first), -EALREADY);
	ASSERT_EQ(xr_post(2, &second), -EINVAL);
	net_down();
	ASSERT_EQ(g_statuses[0], -ECANCELED);
	ASSERT_EQ(g_statuses[1], -ECANCELED);
}

/* ---- help, version ---- */

static void
test_help(void)
{
	static const char *const named[] = {"--lcores",
					    "--main-lcore",
					    "--log-level",
					    "--port",
					    "--conn-input-limit-kb",
					    "--conn-output-limit-kb",
					    "--conn-close-ms",
					    "--connect-timeout-ms",
					    "--rdma-retry-after-s",
					    "--rdma-handshake-timeout-ms",
					    "--wait-cap-ms",
					    "--pool-max-mb"};
	char *argv[] = {"test", "--help"};

	note_resources();
	ASSERT_EQ(net_init(ARGC(argv), argv), XR_INIT_EXIT);
	for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
		char plain[64];

		snprintf(plain, sizeof plain, "%s", named[i]);
		for (char *at = plain + 2; *at; at++)
			if (*at == '-')
				*at = '_';
		if (!net_logged(named[i]) && !net_logged(plain)) {
			printf("--help lacks %s\n", named[i]);
			CU_FAIL("an option is missing");
		}
	}
	xr_log_set_sink(NULL, NULL);
	nothing_is_left();
}

static void
test_version(void)
{
	char *argv[] = {"test", "--version"};

	ASSERT_EQ(net_init(ARGC(argv), argv), XR_INIT_EXIT);
	CU_ASSERT_TRUE(net_logged("libxrdma-reactor " XR_VERSION "\n"));
	xr_log_set_sink(NULL, NULL);
}

/* ---- what is refused ---- */

static void
refused(int argc, char **argv, const char *because)
{
	note_resources();
	ASSERT_EQ(net_init(argc, argv), -EINVAL);
	if (!strstr(net_error_line(), because)) {
		printf("\"%s\" lacks \"%s\"\n", net_error_line(), because);
		CU_FAIL("wrong line");
	}
	xr_log_set_sink(NULL, NULL);
	nothing_is_left();
}

static void
test_refused(void)
{
	char *unknown[] = {"test", "--no-such-thing=1"};
	char *bad_value[] = {"test", "--conn_close_ms=0"};
	char *bad_list[] = {"test", "-l", "1-3-5"};
	char *no_processor[] = {"test", "-l", "99999"};
	char *no_main[] = {"test", "--lcores", "0@0", "--main-lcore", "5"};
	char *bad_port_lcore[] = {"test", "--lcores", "0@0", "--port", "default,lcores=1"};

	refused(ARGC(unknown), unknown, "no-such-thing");
	refused(ARGC(bad_value), bad_value, "conn_close_ms");
	refused(ARGC(bad_list), bad_list, "1-3-5");
	refused(ARGC(no_processor), no_processor, "99999");
	refused(ARGC(no_main), no_main, "main-lcore");
	refused(ARGC(bad_port_lcore), bad_port_lcore, "lcores=1");
}

static void
test_works_after_a_refusal(void)
{
	char *bad[] = {"test", "--port", "default,mode=poll", "--no-such-thing"};

	ASSERT_EQ(net_init(ARGC(bad), bad), -EINVAL);
	net_up(1, NULL);
	ASSERT_EQ(xr_port_mode(xr_port_find(NULL)), XR_PORT_ADAPTIVE);
	net_down();
}

/* ---- no memory ---- */

/* Whichever allocation fails, the call says so and nothing is left; without one it works. */
static void
test_no_memory(void)
{
	char *argv[] = {"test", "--lcores", "(0-1)@0", "--rdma_memory_pool_initial_size_mb", "32"};
	int ret = -ENOMEM;

	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer brings its own allocator");
		return;
	}
	for (long n = 0; n < 500 && ret < 0; n++) {
		note_resources();
		g_fail_alloc_after = n;
		ret = net_init(ARGC(argv), argv);
		g_fail_alloc_after = -1;
		if (ret < 0)
			nothing_is_left();
	}
	ASSERT_EQ(ret, ARGC(argv));
	net_down();
}

/* ---- options of the application's ---- */

static int64_t g_number;

static const struct xr_option g_own_options[] = {
	{.name = "number",
	 .type = XR_OPTION_INT,
	 .value = &g_number,
	 .default_value = "3",
	 .min = 0,
	 .max = 9,
	 .placeholder = "N",
	 .help = "a number"},
	{.name = NULL},
};

static const struct xr_option g_same_options[] = {
	{.name = "port",
	 .type = XR_OPTION_INT,
	 .value = &g_number,
	 .min = 0,
	 .max = 9,
	 .placeholder = "N",
	 .help = "a"},
	{.name = NULL},
};

static void
test_own_options(void)
{
	ASSERT_EQ(xr_option_register(g_own_options), 0);
	net_up(1, "--number", "7", NULL);
	ASSERT_EQ(g_number, 7);
	net_down();
	net_up(1, NULL);
	net_down();
}

static void
test_own_option_of_the_librarys_name(void)
{
	char *argv[] = {"test"};

	ASSERT_EQ(xr_option_register(g_same_options), 0);
	ASSERT_EQ(net_init(1, argv), -EEXIST);
	CU_ASSERT_TRUE(net_error_line()[0] != '\0');
	xr_log_set_sink(NULL, NULL);
	net_up(1, NULL);
	net_down();
}

static void
test_live_options(void)
{
	char text[32];
	const char *why;

	net_up(1, NULL);
	ASSERT_EQ(xr_option_set("conn_close_ms", "123", &why), 0);
	ASSERT_EQ(g_conn_close_ms, 123);
	ASSERT_EQ(xr_option_set("conn-close-ms", "0", &why), -EINVAL);
	ASSERT_EQ(g_conn_close_ms, 123);
	ASSERT_EQ(xr_option_set("port", "default,mode=poll", &why), -EPERM);
	CU_ASSERT_TRUE(xr_option_get("conn_close_ms", text, sizeof text) == 3);
	ASSERT_STR(text, "123");
	net_down();
}

/* ---- counters ---- */

static unsigned g_seen;

static void
see_counter(const char *name, const char *help, uint64_t value, void *arg)
{
	static const char *const floors[] = {"reactor_turns", "mem_regions", "conns_live"};

	(void)value;
	(void)arg;
	NET_CHECK(name && *name && help && *help);
	for (size_t i = 0; i < 3; i++)
		if (strcmp(name, floors[i]) == 0)
			g_seen |= 1u << i;
}

static void
test_counters_of_every_floor(void)
{
	net_up(1, NULL);
	g_seen = 0;
	ASSERT_EQ(xr_counter_foreach(XR_LCORE_NONE, see_counter, NULL), 0);
	ASSERT_EQ(g_seen, 7);
	net_down();
}

/* ---- signals ---- */

static void
kill_soon(void *arg)
{
	net_sleep_ms(20);
	kill(getpid(), *(int *)arg);
}

static void
own_handler(int number)
{
	(void)number;
}

static void
stopped_by(int number)
{
	struct sigaction own = {.sa_handler = own_handler}, before, after;

	ASSERT_EQ(sigaction(number, &own, &before), 0);
	net_up(2, NULL);
	ASSERT_EQ(xr_handle_signals(), 0);
	ASSERT_EQ(xr_handle_signals(), 0);
	net_run(kill_soon, &number);
	net_down();
	ASSERT_EQ(sigaction(number, &before, &after), 0);
	CU_ASSERT_TRUE(after.sa_handler == own_handler);
}

static void
test_signals_stop(void)
{
	stopped_by(SIGINT);
	stopped_by(SIGTERM);
}

static void
test_sigpipe_is_ignored(void)
{
	struct sigaction now;

	net_up(1, NULL);
	ASSERT_EQ(xr_handle_signals(), 0);
	ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
	CU_ASSERT_TRUE(now.sa_handler == SIG_IGN);
	net_down();
	ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
	CU_ASSERT_TRUE(now.sa_handler == SIG_DFL);
}

UNIT_SUITE("env", {"the first argument that is no option", test_first_argument_that_is_no_option},
	   {"down without run", test_down_without_run}, {"again and again", test_again_and_again},
	   {"run once", test_run_once}, {"calls before init", test_calls_before_init},
	   {"a stop does not last", test_stop_does_not_last}, {"the affinity comes back", test_affinity_comes_back},
	   {"undelivered messages", test_undelivered_messages}, {"help", test_help}, {"version", test_version},
	   {"what is refused", test_refused}, {"works after a refusal", test_works_after_a_refusal},
	   {"no memory", test_no_memory}, {"options of the application's", test_own_options},
	   {"an option of the library's name", test_own_option_of_the_librarys_name},
	   {"live options", test_live_options}, {"counters of every floor", test_counters_of_every_floor},
	   {"signals stop", test_signals_stop}, {"SIGPIPE is ignored", test_sigpipe_is_ignored});
