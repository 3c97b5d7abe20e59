/* SPDX-License-Identifier: Apache-2.0 */

#include "net/port.h"
#include "core/lcore.h"
#include "core/log.h"
#include "core/why.h"
#include "mem/block.h"
#include "poll/reactor.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT	"default"
#define SPIN_US_DEFAULT 50u
#define SPIN_US_MAX	1000000u
#define QUEUE_MIN	16
#define QUEUE_MAX	4096
#define GID_INDEX_MAX	255 /* a path names no higher one */

static CDS_LIST_HEAD(g_ports);
static int64_t g_rdma_use_polling;

static const char *const g_mode_names[] = {
	[XR_PORT_POLL] = "poll",
	[XR_PORT_EVENT] = "event",
	[XR_PORT_ADAPTIVE] = "adaptive",
};

static const char *const g_rdma_names[] = {
	[PORT_RDMA_AUTO] = "auto",
	[PORT_RDMA_OFF] = "off",
	[PORT_RDMA_REQUIRE] = "require",
};

static const enum wait_mode g_wait_modes[] = {
	[XR_PORT_POLL] = WAIT_POLL,
	[XR_PORT_EVENT] = WAIT_EVENT,
	[XR_PORT_ADAPTIVE] = WAIT_ADAPTIVE,
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

struct xr_port *
xr_port_find(const char *name)
{
	struct xr_port *port;

	if (!name)
		name = DEFAULT_PORT;
	cds_list_for_each_entry (port, &g_ports, link)
		if (strcmp(port->name, name) == 0)
			return port;
	return NULL;
}

struct xr_port *
port_next(const struct xr_port *port)
{
	const struct cds_list_head *at = port ? &port->link : &g_ports;

	return at->next == &g_ports ? NULL : cds_list_entry(at->next, struct xr_port, link);
}

const char *
xr_port_name(const struct xr_port *port)
{
	return port->name;
}

enum xr_port_mode
xr_port_mode(const struct xr_port *port)
{
	return port->mode;
}

const char *
xr_port_mode_name(enum xr_port_mode mode)
{
	return (size_t)mode < COUNT_OF(g_mode_names) ? g_mode_names[mode] : "unknown";
}

bool
port_uses_lcore(const struct xr_port *port, unsigned index)
{
	for (unsigned i = 0; i < port->lcore_count; i++)
		if (port->lcores[i] == index)
			return true;
	return false;
}

bool
xr_port_has_lcore(const struct xr_port *port, unsigned lcore)
{
	const struct lcore *found = lcore_find(lcore);

	return found && port_uses_lcore(port, found->index);
}

/* ---- the text of --port ---- */

static int
find_name(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

static int
set_mode(struct xr_port *port, const char *value, const char **why)
{
	int mode = find_name(g_mode_names, COUNT_OF(g_mode_names), value);

	if (mode < 0) {
		*why = why_text("mode=%s: must be poll, event or adaptive", value);
		return -EINVAL;
	}
	port->mode = (enum xr_port_mode)mode;
	port->mode_given = true;
	return 0;
}

static int
set_spin_us(struct xr_port *port, const char *value, const char **why)
{
	char *end;
	unsigned long spin_us;

	errno = 0;
	spin_us = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end || errno || spin_us > SPIN_US_MAX) {
		*why = why_text("spin_us=%s: must be a number from 0 to %u (microseconds)", value, SPIN_US_MAX);
		return -EINVAL;
	}
	port->spin_us = spin_us;
	return 0;
}

/* The reason lies in the buffer that the prefix is about to be written to. */
static const char *
why_behind(const char *key, const char *value, const char *why)
{
	char reason[256];

	strncpy(reason, why, sizeof reason - 1);
	reason[sizeof reason - 1] = '\0';
	return why_text("%s=%s: %s", key, value, reason);
}

static int
set_lcores(struct xr_port *port, const char *value, const char **why)
{
	struct number_set wanted = {0};
	int ret = number_set_parse(value, &wanted, why);

	if (ret) {
		*why = why_behind("lcores", value, *why);
		return ret;
	}
	number_set_free(&port->wanted);
	port->wanted = wanted;
	return 0;
}

static int
set_rdma(struct xr_port *port, const char *value, const char **why)
{
	int rdma = find_name(g_rdma_names, COUNT_OF(g_rdma_names), value);

	if (rdma < 0) {
		*why = why_text("rdma=%s: must be auto, off or require", value);
		return -EINVAL;
	}
	port->rdma = (enum port_rdma)rdma;
	return 0;
}

static int
set_dev(struct xr_port *port, const char *value, const char **why)
{
	if (!*value || strlen(value) >= sizeof port->verbs.device) {
		*why = why_text("dev=%s: must be the name of an RDMA device, such as mlx5_0", value);
		return -EINVAL;
	}
	memcpy(port->verbs.device, value, strlen(value) + 1);
	return 0;
}

/* A whole number within the bounds; negative: there is none, and *why says what is allowed. */
static int
parse_number(const char *key, const char *value, int low, int high, const char **why)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(value, &end, 10);
	if (isdigit((unsigned char)value[0]) && !*end && !errno && number >= low && number <= high)
		return (int)number;
	*why = why_text("%s=%s: must be a number from %d to %d", key, value, low, high);
	return -EINVAL;
}

static int
set_ibport(struct xr_port *port, const char *value, const char **why)
{
	port->verbs.ib_port = parse_number("ibport", value, 1, 255, why);
	return port->verbs.ib_port < 0 ? -EINVAL : 0;
}

static int
set_gid(struct xr_port *port, const char *value, const char **why)
{
	port->verbs.gid_index = parse_number("gid", value, 0, GID_INDEX_MAX, why);
	return port->verbs.gid_index < 0 ? -EINVAL : 0;
}

static int
set_block(struct xr_port *port, const char *value, const char **why)
{
	for (int type = 0; type < BLOCK_TYPES; type++)
		if (strcmp(value, block_type_name((enum block_type)type)) == 0) {
			port->verbs.block_type = type;
			return 0;
		}
	*why = why_text("block=%s: must be default, large or huge", value);
	return -EINVAL;
}

static int
set_queue(const char *key, const char *value, uint16_t *size, const char **why)
{
	int number = parse_number(key, value, QUEUE_MIN, QUEUE_MAX, why);

	if (number < 0)
		return -EINVAL;
	*size = (uint16_t)number;
	return 0;
}

static int
set_sq(struct xr_port *port, const char *value, const char **why)
{
	return set_queue("sq", value, &port->verbs.sq_size, why);
}

static int
set_rq(struct xr_port *port, const char *value, const char **why)
{
	return set_queue("rq", value, &port->verbs.rq_size, why);
}

static const struct {
	const char *key;
	int (*set)(struct xr_port *port, const char *value, const char **why);
} g_keys[] = {
	{"mode", set_mode},	{"spin_us", set_spin_us}, {"lcores", set_lcores}, {"rdma", set_rdma}, {"dev", set_dev},
	{"ibport", set_ibport}, {"gid", set_gid},	  {"block", set_block},	  {"sq", set_sq},     {"rq", set_rq},
};

/* Cuts the next field off. A comma before a digit belongs to a list of lcores and ends nothing. NULL: no more. */
static char *
next_field(char **rest)
{
	char *field = *rest, *at;

	if (!field)
		return NULL;
	for (at = field; *at; at++) {
		if (*at != ',' || isdigit((unsigned char)at[1]))
			continue;
		*at = '\0';
		*rest = at + 1;
		return field;
	}
	*rest = NULL;
	return field;
}

static int
set_field(struct xr_port *port, char *field, const char **why)
{
	char *equals = strchr(field, '=');

	if (equals) {
		*equals = '\0';
		for (size_t i = 0; i < COUNT_OF(g_keys); i++)
			if (strcmp(g_keys[i].key, field) == 0)
				return g_keys[i].set(port, equals + 1, why);
	}
	*why = why_text("'%s': must be mode=, spin_us=, lcores=, rdma=, dev=, ibport=, gid=, block=, sq= or rq=",
			field);
	return -EINVAL;
}

static bool
name_allowed(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len >= PORT_NAME_BYTES)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_.-", *name))
			return false;
	return true;
}

static struct xr_port *
add_port(const char *name)
{
	struct xr_port *port = calloc(1, sizeof *port);

	if (!port)
		return NULL;
	memcpy(port->name, name, strlen(name) + 1);
	port->mode = XR_PORT_ADAPTIVE;
	port->spin_us = SPIN_US_DEFAULT;
	port->verbs = (struct port_verbs){.gid_index = -1, .block_type = -1};
	cds_list_add_tail(&port->link, &g_ports);
	return port;
}

static void
free_port(struct xr_port *port)
{
	cds_list_del(&port->link);
	number_set_free(&port->wanted);
	free(port->lcores);
	free(port);
}

/* Reads the fields into a copy, so that a bad one changes nothing. */
static int
set_fields(struct xr_port *port, char *fields, const char **why)
{
	struct xr_port changed = *port;
	char *field;
	int ret = 0;

	memset(&changed.wanted, 0, sizeof changed.wanted);
	while (ret == 0 && (field = next_field(&fields)))
		ret = set_field(&changed, field, why);
	if (ret) {
		number_set_free(&changed.wanted);
		return ret;
	}
	port->mode = changed.mode;
	port->mode_given = changed.mode_given;
	port->spin_us = changed.spin_us;
	port->rdma = changed.rdma;
	port->verbs = changed.verbs;
	if (changed.wanted.count) {
		number_set_free(&port->wanted);
		port->wanted = changed.wanted;
	}
	return 0;
}

static int
set_named_port(char *text, const char **why)
{
	char *fields = text;
	const char *name = next_field(&fields);
	struct xr_port *port;
	bool is_new;
	int ret;

	if (!name_allowed(name)) {
		*why = why_text("must be NAME,key=value,...; a name has 1 to %u letters, digits, '_', '.' or '-'",
				PORT_NAME_BYTES - 1);
		return -EINVAL;
	}
	port = xr_port_find(name);
	is_new = !port;
	if (is_new && !(port = add_port(name))) {
		*why = "out of memory";
		return -ENOMEM;
	}
	ret = set_fields(port, fields, why);
	if (ret && is_new)
		free_port(port);
	return ret;
}

static int
set_port(const char *value, const char **why)
{
	char *text = strdup(value);
	int ret;

	if (!text) {
		*why = "out of memory";
		return -ENOMEM;
	}
	ret = set_named_port(text, why);
	free(text);
	return ret;
}

const struct xr_option g_port_options[] = {
	{.name = "port",
	 .type = XR_OPTION_CALL,
	 .placeholder = "NAME,...",
	 .help = "a port: NAME and, with commas between them, any of mode=poll|event|adaptive spin_us=N lcores=LIST "
		 "rdma=auto|off|require dev=NAME ibport=N gid=N block=default|large|huge sq=N rq=N; may be repeated",
	 .set = set_port},
	{.name = "rdma_use_polling",
	 .type = XR_OPTION_BOOL,
	 .value = &g_rdma_use_polling,
	 .default_value = "false",
	 .help = "the default port polls, as with --port default,mode=poll; a mode= of that port wins"},
	{.name = NULL},
};

/* ---- ports and lcores ---- */

static bool
others_use(const struct xr_port *port, const struct lcore *lcore)
{
	const struct xr_port *other;

	cds_list_for_each_entry (other, &g_ports, link)
		if (other != port && port_uses_lcore(other, lcore->index))
			return true;
	return false;
}

/* A default port that nobody asked for leaves the lcores of those that somebody did as they want them. */
static void
use_lcore(struct xr_port *port, struct lcore *lcore)
{
	port->lcores[port->lcore_count++] = lcore->index;
	if (!port->implied || !others_use(port, lcore))
		reactor_add_port(reactor_of(lcore), port->name, g_wait_modes[port->mode], port->spin_us);
}

static int
use_wanted_lcores(struct xr_port *port)
{
	for (size_t i = 0; i < port->wanted.count; i++) {
		struct lcore *lcore = lcore_find(port->wanted.items[i]);

		if (!lcore) {
			log_error("--port %s: lcores=%u is none of this process's lcores (see -l)", port->name,
				  port->wanted.items[i]);
			return -EINVAL;
		}
		use_lcore(port, lcore);
	}
	return 0;
}

static int
resolve_lcores(struct xr_port *port)
{
	port->lcores = calloc(lcore_count(), sizeof *port->lcores);
	if (!port->lcores)
		return -ENOMEM;
	if (port->wanted.count)
		return use_wanted_lcores(port);
	for (unsigned i = 0; i < lcore_count(); i++)
		use_lcore(port, lcore_at(i));
	return 0;
}

/* Behind all others, whose lcores are known when its own are found. */
static int
imply_default_port(void)
{
	struct xr_port *port = xr_port_find(DEFAULT_PORT);
	bool polling = option_bool(&g_rdma_use_polling); /* names it as well */

	if (!port) {
		port = add_port(DEFAULT_PORT);
		if (!port)
			return -ENOMEM;
		port->implied = !polling;
	}
	if (polling && !port->mode_given)
		port->mode = XR_PORT_POLL;
	return 0;
}

int
ports_init(void)
{
	struct xr_port *port;
	int ret = imply_default_port();

	if (ret)
		return ret;
	cds_list_for_each_entry (port, &g_ports, link) {
		ret = resolve_lcores(port);
		if (ret)
			return ret;
	}
	return 0;
}

void
ports_fini(void)
{
	while (!cds_list_empty(&g_ports))
		free_port(cds_list_first_entry(&g_ports, struct xr_port, link));
}
