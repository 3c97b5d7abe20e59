/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/poll/fixture.h"

#include <sys/eventfd.h>

/* Durations are the floor of what is asserted here, never the ceiling. */

#define LIMIT_MS "100"
#define LONG_US	 150000
#define LOOK_MS	 1100  /* the watching thread looks once a second, */
#define HANG_MS	 30000 /* and may come late on a busy machine */

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static char g_lines[2048];

static void
keep_line(enum xr_log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level != XR_LOG_WARNING)
		return;
	pthread_mutex_lock(&g_lock);
	snprintf(g_lines + strlen(g_lines), sizeof g_lines - strlen(g_lines), "%s\n", line);
	pthread_mutex_unlock(&g_lock);
}

static bool
told(const char *text)
{
	bool found;

	pthread_mutex_lock(&g_lock);
	found = strstr(g_lines, text) != NULL;
	pthread_mutex_unlock(&g_lock);
	return found;
}

static void
start(const char *limit_ms)
{
	g_lines[0] = '\0';
	xr_log_set_sink(keep_line, NULL);
	fixture_start_with("--stall-ms", limit_ms);
}

static void
end(void)
{
	fixture_end();
	xr_log_set_sink(NULL, NULL);
}

/* ---- callbacks of each kind ---- */

static unsigned g_calls;

static void
take_long(void)
{
	g_calls++;
	usleep(LONG_US);
	reactors_stop();
}

static void
slow_message(struct xr_msg *msg, int status)
{
	(void)msg;
	(void)status;
	take_long();
}

static void
slow_timer(struct xr_timer *timer)
{
	(void)timer;
	take_long();
}

static void
slow_fd(struct xr_fd *fd, uint32_t revents)
{
	(void)fd;
	(void)revents;
	take_long();
}

static int
slow_poller(struct xr_poller *poller)
{
	(void)poller;
	take_long();
	return 1;
}

static struct xr_msg g_msg;
static struct xr_timer g_timer;
static struct xr_fd g_fd;
static struct xr_poller g_poller;

static void
hang_in_one(unsigned kind)
{
	switch (kind) {
	case 0:
		g_msg = (struct xr_msg)XR_MSG_INIT(slow_message);
		ASSERT_EQ(xr_post(0, &g_msg), 0);
		break;
	case 1:
		g_timer = (struct xr_timer)XR_TIMER_INIT(slow_timer);
		xr_timer_arm(&g_timer, 0, 0);
		break;
	case 2:
		g_fd = (struct xr_fd)XR_FD_INIT(eventfd(1, 0), EPOLLIN, slow_fd);
		ASSERT_EQ(xr_fd_add(&g_fd), 0);
		break;
	default:
		g_poller = (struct xr_poller)XR_POLLER_INIT(slow_poller, "slow", true);
		ASSERT_EQ(xr_poller_add(&g_poller), 0);
	}
}

static void
clear_one(unsigned kind)
{
	if (kind == 2) {
		xr_fd_del(&g_fd);
		close(g_fd.fd);
	}
	if (kind == 3)
		xr_poller_del(&g_poller);
}

/* The program's own offsets are what a static function has for a name. */
static const void *
function_of(unsigned kind)
{
	const void *const functions[] = {(const void *)slow_message, (const void *)slow_timer, (const void *)slow_fd,
					 (const void *)slow_poller};

	return functions[kind];
}

static void
test_each_kind_is_told(void)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		char name[256], line[320];

		g_calls = 0;
		start(LIMIT_MS);
		hang_in_one(kind);
		reactor_run(reactor_current());
		clear_one(kind);
		CU_ASSERT(g_calls >= 1);
		ASSERT_EQ(stat_read(STAT_STALLS), g_calls);
		CU_ASSERT(stat_read(STAT_STALL_US) >= LONG_US);
		end();
		stall_name(function_of(kind), name, sizeof name);
		snprintf(line, sizeof line, "lcore 0: callback %s took ", name);
		CU_ASSERT(told(line));
	}
}

static void
test_off_says_nothing(void)
{
	start("0");
	hang_in_one(0);
	reactor_run(reactor_current());
	CU_ASSERT(t_stall == NULL);
	ASSERT_EQ(stat_read(STAT_STALLS), 0);
	ASSERT_STR(g_lines, "");
	end();
}

static void
test_short_ones_are_not_told(void)
{
	start("60000");
	hang_in_one(1);
	reactor_run(reactor_current());
	CU_ASSERT(t_stall == NULL);
	ASSERT_EQ(stat_read(STAT_STALLS), 0);
	ASSERT_STR(g_lines, "");
	end();
}

/* ---- one inside of another ---- */

static void
quick_outer(struct xr_msg *msg, int status)
{
	(void)status;
	CALLBACK(slow_message, slow_message(msg, 0));
}

static void
slow_outer(struct xr_msg *msg, int status)
{
	usleep(LONG_US);
	quick_outer(msg, status);
}

static void
nested(void (*outer)(struct xr_msg *msg, int status), unsigned stalls)
{
	struct xr_msg msg = XR_MSG_INIT(outer);
	char name[256];

	start(LIMIT_MS);
	ASSERT_EQ(xr_post(0, &msg), 0);
	reactor_run(reactor_current());
	ASSERT_EQ(stat_read(STAT_STALLS), stalls);
	CU_ASSERT(stat_read(STAT_STALL_US) >= (uint64_t)stalls * LONG_US);
	end();
	stall_name((const void *)slow_message, name, sizeof name);
	CU_ASSERT(told(name));
}

static void
test_blame_is_the_inner_one_s(void)
{
	nested(quick_outer, 1);
	nested(slow_outer, 2);
}

/* ---- one that does not return ---- */

static void
hang(struct xr_msg *msg, int status)
{
	(void)msg;
	(void)status;
	for (unsigned ms = 0; ms < HANG_MS && !told("has not returned for "); ms++)
		usleep(1000);
	CU_ASSERT(told("has not returned for "));
	for (unsigned ms = 0; ms < LOOK_MS; ms++)
		usleep(1000);
	reactors_stop();
}

static void
test_who_does_not_return_is_named(void)
{
	struct xr_msg msg = XR_MSG_INIT(hang);
	char name[256], line[320];

	start(LIMIT_MS);
	ASSERT_EQ(xr_post(0, &msg), 0);
	reactor_run(reactor_current());
	end();
	stall_name((const void *)hang, name, sizeof name);
	snprintf(line, sizeof line, "lcore 0: callback %s has not returned for ", name);
	CU_ASSERT(told(line));
	/* Once, however long it goes on; and then what it took. */
	CU_ASSERT(strstr(strstr(g_lines, line) + strlen(line), "not returned") == NULL);
	snprintf(line, sizeof line, "callback %s took ", name);
	CU_ASSERT(told(line));
}

/* ---- names ---- */

static void
test_names(void)
{
	char name[64];

	/* Of a library's function, and of what is none. */
	stall_name((const void *)CU_add_suite, name, sizeof name);
	CU_ASSERT(strstr(name, "CU_add_suite") || strstr(name, "+0x"));
	stall_name((const char *)(const void *)test_names + 1, name, sizeof name);
	CU_ASSERT(strncmp(name, "stall_test+0x", 13) == 0);
	stall_name((const void *)8, name, sizeof name);
	ASSERT_STR(name, "0x8");
}

UNIT_SUITE("stall", {"each kind of callback is told", test_each_kind_is_told},
	   {"off says nothing", test_off_says_nothing}, {"short ones are not told", test_short_ones_are_not_told},
	   {"blame is the inner one's", test_blame_is_the_inner_one_s},
	   {"who does not return is named", test_who_does_not_return_is_named}, {"names", test_names});
