/* SPDX-License-Identifier: Apache-2.0 */

#include "net/address.h"
#include "tests/unit/unit.h"
#include <arpa/inet.h>
#include <errno.h>

static void
reads_as(const char *text, const char *expected)
{
	char printed[ADDRESS_TEXT_BYTES] = "";
	struct address address;

	ASSERT_EQ(address_parse(text, &address), 0);
	address_format(&address, printed);
	ASSERT_STR(printed, expected);
}

static void
test_forms(void)
{
	reads_as("127.0.0.1:8002", "127.0.0.1:8002");
	reads_as("0.0.0.0:0", "0.0.0.0:0");
	reads_as("255.255.255.255:65535", "255.255.255.255:65535");
	reads_as("[::1]:8002", "[::1]:8002");
	reads_as("[::]:1", "[::]:1");
	reads_as("[2001:DB8:0:0:0:0:0:1]:65535", "[2001:db8::1]:65535");
	reads_as(":8002", ":8002");
	reads_as(":0", ":0");
}

static void
test_families(void)
{
	struct address address;

	ASSERT_EQ(address_parse("10.1.2.3:80", &address), 0);
	ASSERT_EQ(address.any.sa_family, AF_INET);
	ASSERT_EQ(address.len, sizeof(struct sockaddr_in));
	ASSERT_EQ(ntohs(address.v4.sin_port), 80);
	CU_ASSERT_FALSE(address.wildcard);
	ASSERT_EQ(address_parse(":80", &address), 0);
	ASSERT_EQ(address.any.sa_family, AF_INET6);
	ASSERT_EQ(address.len, sizeof(struct sockaddr_in6));
	CU_ASSERT_TRUE(address.wildcard);
	ASSERT_EQ(address_parse("[::]:80", &address), 0);
	CU_ASSERT_FALSE(address.wildcard);
}

static void
test_scopes(void)
{
	struct address address;

	reads_as("[fe80::1%1]:80", "[fe80::1%1]:80");
	reads_as("[fe80::1%lo]:80", "[fe80::1%1]:80");
	ASSERT_EQ(address_parse("[fe80::1%no-such-if]:80", &address), -EINVAL);
	ASSERT_EQ(address_parse("[fe80::1%0]:80", &address), -EINVAL);
	ASSERT_EQ(address_parse("[fe80::1%]:80", &address), -EINVAL);
}

static void
test_mapped_is_printed_as_v4(void)
{
	reads_as("[::ffff:10.1.2.3]:80", "10.1.2.3:80");
}

static void
test_longest_fits(void)
{
	struct address address = {
		.v6 = {.sin6_family = AF_INET6, .sin6_port = 0xffff, .sin6_scope_id = 0xffffffff},
		.len = sizeof address.v6,
	};
	char text[ADDRESS_TEXT_BYTES];

	memset(&address.v6.sin6_addr, 0xff, sizeof address.v6.sin6_addr);
	address_format(&address, text);
	ASSERT_STR(text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
}

static void
test_refused(void)
{
	static const char *const bad[] = {
		"",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"127.0.0.1:-1",
		"127.0.0.1:+1",
		"127.0.0.1: 1",
		"127.0.0.1:1 ",
		"127.0.0.1:0x10",
		"127.0.0.1:1a",
		"127.0.0:1",
		"127.0.0.256:1",
		"localhost:80",
		"::1:80",
		"[::1]80",
		"[::1:80",
		"::1]:80",
		"[]:80",
		"[:80",
		"[::1]:",
		"[127.0.0.1]:80",
		"[::1]:99999999999999",
		" 127.0.0.1:1",
		"1:2:3",
		"[::g]:80",
	};
	struct address address = {.len = 77}, before = address;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (address_parse(bad[i], &address) != -EINVAL)
			CU_FAIL(bad[i]);
	ASSERT_EQ(address_parse(NULL, &address), -EINVAL);
	ASSERT_EQ(memcmp(&address, &before, sizeof address), 0);
}

static void
test_too_long(void)
{
	char text[200];
	struct address address;

	memset(text, '1', sizeof text);
	memcpy(text + sizeof text - 4, ":80", 4);
	ASSERT_EQ(address_parse(text, &address), -EINVAL);
}

static void
test_equal(void)
{
	static const char *const texts[] = {"1.2.3.4:5", "1.2.3.4:6", "1.2.3.5:5",     "[::1]:5",
					    "[::1]:6",	 "[::2]:5",   "[fe80::1%1]:5", "[fe80::1%2]:5"};
	struct address a, b;

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		for (size_t j = 0; j < sizeof texts / sizeof texts[0]; j++) {
			ASSERT_EQ(address_parse(texts[i], &a), 0);
			ASSERT_EQ(address_parse(texts[j], &b), 0);
			ASSERT_EQ(address_equal(&a, &b), i == j);
		}
}

static void
test_unknown_family(void)
{
	struct address address = {.any = {.sa_family = AF_UNIX}};
	char text[ADDRESS_TEXT_BYTES];

	address_format(&address, text);
	ASSERT_STR(text, "unknown");
}

UNIT_SUITE("address", {"every form is read and printed", test_forms}, {"each form has its family", test_families},
	   {"scopes by name and number", test_scopes},
	   {"IPv4 in IPv6 is printed as IPv4", test_mapped_is_printed_as_v4},
	   {"the longest text fits", test_longest_fits}, {"anything else is refused", test_refused},
	   {"a text without end is refused", test_too_long}, {"equal is the same address and port", test_equal},
	   {"a family without numbers", test_unknown_family});
