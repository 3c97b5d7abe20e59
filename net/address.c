/* SPDX-License-Identifier: Apache-2.0 */

#include "net/address.h"
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decimal digits alone up to max; -1 for anything else. */
static long
parse_number(const char *text, long max)
{
	long value = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		value = value * 10 + (*text - '0');
		if (value > max)
			return -1;
	}
	return value;
}

static int
parse_v4(const char *host, in_port_t port, struct address *address)
{
	struct address parsed = {.v4 = {.sin_family = AF_INET, .sin_port = port}, .len = sizeof parsed.v4};

	if (inet_pton(AF_INET, host, &parsed.v4.sin_addr) != 1)
		return -EINVAL;
	*address = parsed;
	return 0;
}

/* The interface after '%', by name or number. */
static int
parse_scope(const char *scope, uint32_t *id)
{
	long number = parse_number(scope, INT32_MAX);

	*id = number > 0 ? (uint32_t)number : if_nametoindex(scope);
	return *id ? 0 : -EINVAL;
}

static int
parse_v6(char *host, in_port_t port, struct address *address)
{
	struct address parsed = {.v6 = {.sin6_family = AF_INET6, .sin6_port = port}, .len = sizeof parsed.v6};
	char *scope = strchr(host, '%');

	if (scope) {
		*scope = '\0';
		if (parse_scope(scope + 1, &parsed.v6.sin6_scope_id))
			return -EINVAL;
	}
	if (inet_pton(AF_INET6, host, &parsed.v6.sin6_addr) != 1)
		return -EINVAL;
	*address = parsed;
	return 0;
}

static void
set_wildcard(in_port_t port, struct address *address)
{
	*address = (struct address){.v6 = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = in6addr_any},
				    .len = sizeof address->v6,
				    .wildcard = true};
}

int
address_parse(const char *text, struct address *address)
{
	char host[ADDRESS_TEXT_BYTES];
	const char *colon = text ? strrchr(text, ':') : NULL;
	size_t len;
	long port;

	if (!colon || (len = (size_t)(colon - text)) >= sizeof host)
		return -EINVAL;
	port = parse_number(colon + 1, UINT16_MAX);
	if (port < 0)
		return -EINVAL;
	if (len == 0) {
		set_wildcard(htons((uint16_t)port), address);
		return 0;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	if (host[0] != '[')
		return parse_v4(host, htons((uint16_t)port), address);
	if (host[len - 1] != ']')
		return -EINVAL;
	host[len - 1] = '\0';
	return parse_v6(host + 1, htons((uint16_t)port), address);
}

static void
format_v4(const void *in_addr, in_port_t port, char text[ADDRESS_TEXT_BYTES])
{
	char host[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, in_addr, host, sizeof host);
	snprintf(text, ADDRESS_TEXT_BYTES, "%s:%u", host, ntohs(port));
}

static void
format_v6(const struct sockaddr_in6 *v6, char text[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
	if (v6->sin6_scope_id)
		snprintf(text, ADDRESS_TEXT_BYTES, "[%.39s%%%u]:%u", host, v6->sin6_scope_id, ntohs(v6->sin6_port));
	else
		snprintf(text, ADDRESS_TEXT_BYTES, "[%s]:%u", host, ntohs(v6->sin6_port));
}

void
address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	if (address->wildcard)
		snprintf(text, ADDRESS_TEXT_BYTES, ":%u", ntohs(address->v6.sin6_port));
	else if (address->any.sa_family == AF_INET)
		format_v4(&address->v4.sin_addr, address->v4.sin_port, text);
	else if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
		format_v4(&address->v6.sin6_addr.s6_addr[12], address->v6.sin6_port, text);
	else if (address->any.sa_family == AF_INET6)
		format_v6(&address->v6, text);
	else
		snprintf(text, ADDRESS_TEXT_BYTES, "unknown");
}

bool
address_equal(const struct address *a, const struct address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return a->v6.sin6_port == b->v6.sin6_port && a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
	       IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}
