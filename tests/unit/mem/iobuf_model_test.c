/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mem/iobuf_fixture.h"

/* The model: iobufs beside plain arrays, random calls, and both must stay alike. */

enum {
	BUFS = 6,
	CAP = 48 * 1024,
	STEPS = 200000
};

static struct {
	struct xr_iobuf buf;
	char bytes[CAP];
	size_t size;
} m[BUFS];

static uint64_t g_random;
static size_t g_user_made, g_user_freed;

static size_t
rnd(size_t below)
{
	g_random ^= g_random << 13;
	g_random ^= g_random >> 7;
	g_random ^= g_random << 17;
	return (size_t)(g_random % below);
}

/* Mostly small, sometimes around a block or several. */
static size_t
rnd_size(void)
{
	switch (rnd(16)) {
	case 0:
		return PAYLOAD - 3 + rnd(7);
	case 1:
		return rnd(20000);
	default:
		return rnd(200);
	}
}

static const char *
rnd_bytes(void)
{
	return pattern + rnd(sizeof pattern - 20000);
}

static void
model_append(unsigned i, const char *bytes, size_t len)
{
	memcpy(m[i].bytes + m[i].size, bytes, len);
	m[i].size += len;
}

static void
model_take(unsigned i, size_t len)
{
	memmove(m[i].bytes, m[i].bytes + len, m[i].size - len);
	m[i].size -= len;
}

static bool
fits(unsigned i, size_t len)
{
	return m[i].size + len <= CAP;
}

static void
step_append(unsigned i)
{
	size_t len = rnd_size();
	const char *bytes = rnd_bytes();

	if (!fits(i, len))
		return;
	CU_ASSERT_FATAL(xr_iobuf_append(&m[i].buf, bytes, len) == 0);
	model_append(i, bytes, len);
}

static void
free_user(void *data, void *arg)
{
	CU_ASSERT(arg == data);
	g_user_freed++;
	free(data);
}

static void
step_append_user(unsigned i)
{
	size_t len = 1 + rnd(300);
	const char *bytes = rnd_bytes();
	char *mine;

	if (!fits(i, len))
		return;
	mine = malloc(len);
	CU_ASSERT_FATAL(mine != NULL);
	memcpy(mine, bytes, len);
	CU_ASSERT_FATAL(xr_iobuf_append_user(&m[i].buf, mine, len, 0, free_user, mine) == 0);
	g_user_made++;
	model_append(i, bytes, len);
}

static void
step_reserve(unsigned i)
{
	size_t want = 1 + rnd_size(), got, len;
	const char *bytes = rnd_bytes();
	char *at;

	if (!fits(i, want))
		return;
	at = xr_iobuf_reserve(&m[i].buf, want, &got);
	CU_ASSERT_FATAL(at != NULL && got >= 1 && got <= want);
	memset(at, 0xee, got);
	len = rnd(got + 1);
	memcpy(at, bytes, len);
	xr_iobuf_commit(&m[i].buf, len);
	model_append(i, bytes, len);
}

static void
step_cut(unsigned i, unsigned j)
{
	size_t len = rnd(4) ? rnd_size() : rnd(m[i].size + 100);
	size_t expected = i == j ? 0 : len < m[i].size ? len : m[i].size;

	if (!fits(j, expected))
		return;
	CU_ASSERT(xr_iobuf_cut(&m[i].buf, len, &m[j].buf) == expected);
	if (i == j)
		return;
	model_append(j, m[i].bytes, expected);
	model_take(i, expected);
}

static void
step_move(unsigned i, unsigned j)
{
	if (!fits(j, m[i].size))
		return;
	CU_ASSERT(xr_iobuf_move(&m[j].buf, &m[i].buf) == 0);
	if (i == j)
		return;
	model_append(j, m[i].bytes, m[i].size);
	m[i].size = 0;
}

static void
step_share(unsigned i, unsigned j)
{
	if (!fits(j, m[i].size) || m[j].buf.count_ + m[i].buf.count_ > 3000)
		return;
	CU_ASSERT(xr_iobuf_share(&m[j].buf, &m[i].buf) == 0);
	model_append(j, m[i].bytes, m[i].size);
}

static void
step_drop(unsigned i)
{
	size_t len = rnd(2) ? rnd_size() : rnd(m[i].size + 100);
	size_t expected = len < m[i].size ? len : m[i].size;

	CU_ASSERT(xr_iobuf_drop(&m[i].buf, len) == expected);
	model_take(i, expected);
}

static void
step_copy_out(unsigned i)
{
	static char seen[CAP];
	size_t offset = rnd(m[i].size + 10), len = rnd_size();
	size_t rest = offset < m[i].size ? m[i].size - offset : 0;
	size_t expected = len < rest ? len : rest;

	CU_ASSERT(xr_iobuf_copy_out(&m[i].buf, offset, seen, len) == expected);
	CU_ASSERT(memcmp(seen, m[i].bytes + offset, expected) == 0);
}

static void
step_iovec(unsigned i)
{
	struct iovec iov[5];
	size_t seen = 0;
	int n;

	while ((n = xr_iobuf_iovec(&m[i].buf, seen, iov, 5)) > 0) {
		for (int k = 0; k < n; k++) {
			CU_ASSERT_FATAL(seen + iov[k].iov_len <= m[i].size);
			CU_ASSERT(memcmp(iov[k].iov_base, m[i].bytes + seen, iov[k].iov_len) == 0);
			seen += iov[k].iov_len;
		}
	}
	CU_ASSERT(seen == m[i].size);
}

static void
step_equal(unsigned i, unsigned j)
{
	bool same = m[i].size == m[j].size && memcmp(m[i].bytes, m[j].bytes, m[i].size) == 0;

	CU_ASSERT(xr_iobuf_equal(&m[i].buf, &m[j].buf) == same);
}

static void
step_clear(unsigned i)
{
	xr_iobuf_clear(&m[i].buf);
	m[i].size = 0;
}

static void
step(unsigned dice, unsigned i, unsigned j)
{
	if (dice < 30)
		step_append(i);
	else if (dice < 40)
		step_append_user(i);
	else if (dice < 50)
		step_reserve(i);
	else if (dice < 64)
		step_cut(i, j);
	else if (dice < 68)
		step_move(i, j);
	else if (dice < 74)
		step_share(i, j);
	else if (dice < 88)
		step_drop(i);
	else if (dice < 95)
		step_copy_out(i);
	else if (dice < 96)
		step_iovec(i);
	else if (dice < 98)
		step_equal(i, j);
	else
		step_clear(i);
}

static void
run_model(unsigned steps, uint64_t seed)
{
	g_random = seed;
	g_user_made = g_user_freed = 0;
	for (unsigned n = 0; n < steps; n++) {
		unsigned i = (unsigned)rnd(BUFS), j = (unsigned)rnd(BUFS);

		step((unsigned)rnd(100), i, j);
		CU_ASSERT_FATAL(xr_iobuf_size(&m[i].buf) == m[i].size && xr_iobuf_size(&m[j].buf) == m[j].size);
		CU_ASSERT((m[i].buf.count_ == 0) == (m[i].size == 0));
		if (n % 64 == 0)
			step_iovec(i);
	}
	for (unsigned i = 0; i < BUFS; i++) {
		step_iovec(i);
		step_clear(i);
	}
	ASSERT_EQ(g_user_freed, g_user_made);
	CU_ASSERT(g_user_made > steps / 50);
}

static void
test_model_on_an_lcore(void)
{
	start(16);
	run_model(STEPS, 0x9e3779b97f4a7c15u);
	stop();
}

static void
test_model_elsewhere(void)
{
	start(16);
	fixture_lcore_stop();
	run_model(STEPS / 4, 0xdeadbeefcafef00du);
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	fixture_stop();
}

UNIT_SUITE("iobuf_model", {"random calls beside a plain array, on an lcore", test_model_on_an_lcore},
	   {"random calls beside a plain array, elsewhere", test_model_elsewhere});
