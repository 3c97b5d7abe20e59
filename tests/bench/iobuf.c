/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What iobufs cost an lcore, for tests/bench/memory, which counts this program's instructions:
 *
 *   iobuf LCORES WORK COUNT    does the work COUNT times: nothing, append, prepend, share, cut, peek, find
 *
 * Each works on 32 bytes, and includes what makes it repeatable: what was put in goes again.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xrdma/xrdma.h>

#define BYTES  32u
#define STREAM (64u << 10) /* bytes that are cut up before they are appended anew */

static char g_bytes[STREAM];
static struct xr_iobuf g_stream, g_buf;

static void
must(bool done)
{
	if (!done)
		abort();
}

static void
nothing(unsigned long left)
{
	while (left-- > 0)
		__asm__ volatile("" : : "r"(left) : "memory");
}

static void
append(unsigned long left)
{
	for (; left > 0; left--) {
		must(xr_iobuf_append(&g_buf, g_bytes, BYTES) == 0);
		if (xr_iobuf_size(&g_buf) == 128 * (size_t)BYTES)
			xr_iobuf_clear(&g_buf);
	}
}

static void
prepend(unsigned long left)
{
	must(xr_iobuf_append(&g_buf, g_bytes, BYTES) == 0);
	for (; left > 0; left--) {
		must(xr_iobuf_prepend(&g_buf, g_bytes, BYTES) == 0);
		xr_iobuf_drop(&g_buf, BYTES);
	}
}

static void
share(unsigned long left)
{
	must(xr_iobuf_append(&g_stream, g_bytes, BYTES) == 0);
	for (; left > 0; left--) {
		must(xr_iobuf_share(&g_buf, &g_stream) == 0);
		xr_iobuf_clear(&g_buf);
	}
}

static void
cut(unsigned long left)
{
	for (; left > 0; left--) {
		if (xr_iobuf_size(&g_stream) < BYTES)
			must(xr_iobuf_append(&g_stream, g_bytes, STREAM) == 0);
		must(xr_iobuf_cut(&g_stream, BYTES, &g_buf) == BYTES);
		xr_iobuf_clear(&g_buf);
	}
}

static void
peek(unsigned long left)
{
	char scratch[BYTES];

	must(xr_iobuf_append(&g_buf, g_bytes, 2 * (size_t)BYTES) == 0);
	for (; left > 0; left--)
		must(xr_iobuf_peek(&g_buf, BYTES, BYTES, scratch) != NULL);
}

static void
find(unsigned long left)
{
	must(xr_iobuf_append(&g_buf, g_bytes, BYTES) == 0 && xr_iobuf_append(&g_buf, "\r\n", 2) == 0);
	for (; left > 0; left--)
		must(xr_iobuf_find(&g_buf, 0, "\r\n", 2) == BYTES);
}

static const struct {
	const char *name;
	void (*run)(unsigned long left);
} g_works[] = {
	{"nothing", nothing}, {"append", append}, {"prepend", prepend}, {"share", share},
	{"cut", cut},	      {"peek", peek},	  {"find", find},
};

int
main(int argc, char **argv)
{
	char *options[] = {argv[0],
			   (char *)"-l",
			   argc == 4 ? argv[1] : NULL,
			   (char *)"--port",
			   (char *)"default,mode=event,rdma=off",
			   NULL};
	bool done = false;

	if (argc != 4 || xr_init(5, options) < 0)
		return 2;
	for (size_t i = 0; i < sizeof g_works / sizeof g_works[0]; i++) {
		if (strcmp(argv[2], g_works[i].name) != 0)
			continue;
		g_works[i].run(strtoul(argv[3], NULL, 10));
		done = true;
	}
	xr_iobuf_clear(&g_stream);
	xr_iobuf_clear(&g_buf);
	xr_fini();
	return done ? 0 : 2;
}
