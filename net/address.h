/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

/* "ADDRESS:PORT" in numbers, parsed and printed. No look at the machine but for the name of an IPv6 scope. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_BYTES 64u /* enough for the longest text with its NUL */

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t len; /* of the part in use */
	bool wildcard; /* ":PORT": every address of both families; held as [::] */
};

/* 127.0.0.1:80, [::1]:80, [fe80::1%eth0]:80, :80. -EINVAL: anything else; *address is untouched. */
int address_parse(const char *text, struct address *address);

/* An IPv4 address that travels as IPv6 (::ffff:1.2.3.4) is printed as the IPv4 address that it is. */
void address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES]);

bool address_equal(const struct address *a, const struct address *b);

#endif
