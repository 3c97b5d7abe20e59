/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/iobuf.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>

#define PAYLOAD 8160u

static char pattern[64 * 1024];

static void
start(unsigned max_regions)
{
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (char)(i * 31 + (i >> 8));
	fixture_start(max_regions);
	fixture_lcore_start(16);
}

/* Everything must be back. */
static void
stop(void)
{
	fixture_lcore_stop();
	for (unsigned type = 0; type < BLOCK_TYPES; type++)
		ASSERT_EQ(fixture_in_use(type), 0);
	fixture_stop();
}

static bool
holds(const struct xr_iobuf *buf, const void *bytes, size_t len)
{
	static char seen[1 << 20];

	return xr_iobuf_size(buf) == len && xr_iobuf_copy_out(buf, 0, seen, sizeof seen) == len &&
	       memcmp(seen, bytes, len) == 0;
}

static unsigned g_frees;

static void
count_free(void *data, void *arg)
{
	(void)data;
	(void)arg;
	g_frees++;
}

static void
test_append_of_any_size(void)
{
	const size_t sizes[] = {0, 1, 2, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 2 * PAYLOAD + 1, 64 * 1024};

	start(4);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct xr_iobuf buf = XR_IOBUF_INIT;

		ASSERT_EQ(xr_iobuf_append(&buf, pattern, sizes[i]), 0);
		CU_ASSERT(holds(&buf, pattern, sizes[i]));
		xr_iobuf_clear(&buf);
		ASSERT_EQ(xr_iobuf_size(&buf), 0);
	}
	stop();
}

static void
test_append_at_the_limit_changes_nothing(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;
	size_t size;

	start(1);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 100), 0);
	while (xr_iobuf_append(&hog, pattern, sizeof pattern) == 0)
		;
	size = xr_iobuf_size(&hog);
	ASSERT_EQ(size % sizeof pattern, 0);
	while (xr_iobuf_append(&buf, pattern, PAYLOAD) == 0)
		;
	ASSERT_EQ((xr_iobuf_size(&buf) - 100) % PAYLOAD, 0);
	size = xr_iobuf_size(&buf);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, sizeof pattern), -ENOMEM);
	ASSERT_EQ(xr_iobuf_size(&buf), size);
	xr_iobuf_clear(&hog);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 10), 0);
	xr_iobuf_drop(&buf, size);
	CU_ASSERT(holds(&buf, pattern, 10));
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_reserve_at_the_limit(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;
	size_t got;

	start(1);
	while (xr_iobuf_append(&hog, pattern, PAYLOAD) == 0)
		;
	CU_ASSERT_PTR_NULL(xr_iobuf_reserve(&buf, 1, &got));
	ASSERT_EQ(errno, ENOMEM);
	CU_ASSERT_PTR_NULL(buf.pieces_);
	xr_iobuf_clear(&hog);
	CU_ASSERT(xr_iobuf_reserve(&buf, 1, &got) != NULL);
	xr_iobuf_commit(&buf, 1);
	xr_iobuf_clear(&buf);
	stop();
}

static void
test_user_memory_is_freed_once(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT, c = XR_IOBUF_INIT;
	char mine[100];

	start(1);
	memcpy(mine, pattern, sizeof mine);
	g_frees = 0;
	ASSERT_EQ(xr_iobuf_append_user(&a, mine, 100, 42, count_free, NULL), 0);
	CU_ASSERT(pieces_first(&a)->data == mine);
	ASSERT_EQ(user_block_of(pieces_first(&a)->block)->key, 42);
	ASSERT_EQ(xr_iobuf_share(&b, &a), 0);
	ASSERT_EQ(xr_iobuf_cut(&b, 30, &c), 30);
	xr_iobuf_clear(&a);
	ASSERT_EQ(g_frees, 0);
	ASSERT_EQ(xr_iobuf_drop(&b, 70), 70);
	ASSERT_EQ(g_frees, 0);
	CU_ASSERT(holds(&c, pattern, 30));
	ASSERT_EQ(xr_iobuf_drop(&c, 29), 29);
	ASSERT_EQ(g_frees, 0);
	ASSERT_EQ(xr_iobuf_drop(&c, 100), 1);
	ASSERT_EQ(g_frees, 1);
	stop();
}

static void
test_user_memory_refused_is_not_freed(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;

	start(1);
	g_frees = 0;
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 0, 0, count_free, NULL), -EINVAL);
	ASSERT_EQ(xr_iobuf_append_user(&buf, NULL, 5, 0, count_free, NULL), -EINVAL);
	if (FAIL_ALLOC) {
		g_fail_alloc_after = 0;
		ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 5, 0, count_free, NULL), -ENOMEM);
		g_fail_alloc_after = -1;
	}
	ASSERT_EQ(g_frees, 0);
	ASSERT_EQ(xr_iobuf_size(&buf), 0);
	stop();
}

static struct xr_iobuf g_again;

static void
append_again(void *data, void *arg)
{
	(void)arg;
	CU_ASSERT(xr_iobuf_append_user(&g_again, data, 5, 0, count_free, NULL) == 0);
}

static void
test_free_may_use_the_iobuf(void)
{
	start(1);
	g_frees = 0;
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(xr_iobuf_append_user(&g_again, pattern, 5, 0, append_again, NULL), 0);
	xr_iobuf_clear(&g_again);
	CU_ASSERT(xr_iobuf_size(&g_again) == 50);
	xr_iobuf_clear(&g_again);
	ASSERT_EQ(g_frees, 10);
	stop();
}

static void
test_cut_and_move(void)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;

	start(1);
	ASSERT_EQ(xr_iobuf_cut(&a, 10, &b), 0);
	ASSERT_EQ(xr_iobuf_append(&a, pattern, 30000), 0);
	ASSERT_EQ(xr_iobuf_cut(&a, 0, &b), 0);
	ASSERT_EQ(xr_iobuf_cut(&a, 12345, &b), 12345);
	CU_ASSERT(holds(&b, pattern, 12345));
	CU_ASSERT(holds(&a, pattern + 12345, 30000 - 12345));
	ASSERT_EQ(xr_iobuf_cut(&a, SIZE_MAX, &b), 30000 - 12345);
	CU_ASSERT(holds(&b, pattern, 30000));
	ASSERT_EQ(b.count_, 4); /* the halves of the piece that was cut are one again */
	ASSERT_EQ(xr_iobuf_size(&a), 0);
	ASSERT_EQ(xr_iobuf_move(&a, &b), 0);
	CU_ASSERT(holds(&a, pattern, 30000));
	ASSERT_EQ(xr_iobuf_size(&b), 0);
	ASSERT_EQ(xr_iobuf_append(&b, "x", 1), 0);
	ASSERT_EQ(xr_iobuf_move(&b, &a), 0);
	ASSERT_EQ(xr_iobuf_drop(&b, 1), 1);
	CU_ASSERT(holds(&b, pattern, 30000));
	xr_iobuf_clear(&b);
	stop();
}

static void
test_with_itself(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, parts = XR_IOBUF_INIT;
	char twice[20000];

	start(1);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 10000), 0);
	ASSERT_EQ(xr_iobuf_move(&buf, &buf), 0);
	ASSERT_EQ(xr_iobuf_cut(&buf, 5, &buf), 0);
	CU_ASSERT(holds(&buf, pattern, 10000));
	ASSERT_EQ(xr_iobuf_share(&buf, &buf), 0);
	memcpy(twice, pattern, 10000);
	memcpy(twice + 10000, pattern, 10000);
	CU_ASSERT(holds(&buf, twice, 20000));
	CU_ASSERT(xr_iobuf_equal(&buf, &buf));
	xr_iobuf_clear(&buf);
	/* "23" "01" of one block, where the end of the last piece meets the start of the first. */
	ASSERT_EQ(xr_iobuf_append(&parts, "0123", 4), 0);
	ASSERT_EQ(xr_iobuf_cut(&parts, 2, &buf), 2);
	ASSERT_EQ(xr_iobuf_move(&parts, &buf), 0);
	ASSERT_EQ(xr_iobuf_share(&parts, &parts), 0);
	CU_ASSERT(holds(&parts, "23012301", 8));
	xr_iobuf_clear(&parts);
	stop();
}

static void
test_looking(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, other = XR_IOBUF_INIT;
	struct iovec iov[8];
	char seen[100];

	start(1);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, 8), 0);
	CU_ASSERT(xr_iobuf_equal(&buf, &other));
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 10, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 10, 20, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern + 30, 30, 0, NULL, NULL), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, 8), 3);
	ASSERT_EQ(iov[2].iov_len, 30);
	CU_ASSERT(iov[2].iov_base == pattern + 30);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 10, iov, 1), 1);
	ASSERT_EQ(iov[0].iov_len, 20);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 29, iov, 8), 2);
	ASSERT_EQ(iov[0].iov_len, 1);
	CU_ASSERT(iov[0].iov_base == pattern + 29);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 60, iov, 8), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, SIZE_MAX, iov, 8), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, 0), 0);
	ASSERT_EQ(xr_iobuf_iovec(&buf, 0, iov, -1), 0);
	ASSERT_EQ(xr_iobuf_copy_out(&buf, 55, seen, 100), 5);
	ASSERT_EQ(xr_iobuf_copy_out(&buf, 60, seen, 100), 0);
	ASSERT_EQ(xr_iobuf_copy_out(&buf, 5, seen, 0), 0);
	ASSERT_EQ(xr_iobuf_append(&other, pattern, 60), 0);
	CU_ASSERT(xr_iobuf_equal(&buf, &other));
	xr_iobuf_drop(&other, 1);
	CU_ASSERT(!xr_iobuf_equal(&buf, &other));
	ASSERT_EQ(xr_iobuf_append(&other, "?", 1), 0);
	CU_ASSERT(!xr_iobuf_equal(&buf, &other));
	xr_iobuf_clear(&buf);
	xr_iobuf_clear(&other);
	stop();
}

static void
test_append_block(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	struct xr_block *block;

	start(1);
	block = block_alloc(BLOCK_LARGE);
	ASSERT_FATAL(block != NULL);
	memcpy(block_payload(block), pattern, 3000);
	block_hold(block);
	block_hold(block);
	ASSERT_EQ(iobuf_append_block(&buf, block, block_payload(block), 1000), 0);
	ASSERT_EQ(iobuf_append_block(&buf, block, block_payload(block) + 1000, 1000), 0);
	ASSERT_EQ(buf.count_, 1);
	ASSERT_EQ(block->refs, 2);
	ASSERT_EQ(iobuf_append_block(&buf, block, block_payload(block) + 2001, 999), 0);
	ASSERT_EQ(buf.count_, 2);
	ASSERT_EQ(xr_iobuf_size(&buf), 2999);
	ASSERT_EQ(iobuf_pinned_bytes(&buf), 2 * 65536);
	ASSERT_EQ(xr_iobuf_append_user(&buf, pattern, 77, 0, NULL, NULL), 0);
	ASSERT_EQ(iobuf_pinned_bytes(&buf), 2 * 65536 + 77);
	ASSERT_EQ(iobuf_pinned_at_most(&buf, BLOCK_LARGE), 3 * 65536);
	ASSERT_EQ(iobuf_pool_bytes(&buf), 2 * 65536);
	xr_iobuf_clear(&buf);
	ASSERT_EQ(iobuf_pinned_bytes(&buf), 0);
	stop();
}

/* A long-lived buffer that once was large keeps no array when it runs empty. */
static void
test_empty_keeps_nothing(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, to = XR_IOBUF_INIT;

	start(1);
	for (int way = 0; way < 3; way++) {
		for (int i = 0; i < 200; i++)
			ASSERT_FATAL(xr_iobuf_append_user(&buf, pattern, 1, 0, NULL, NULL) == 0);
		CU_ASSERT(buf.pieces_ != NULL);
		if (way == 0)
			ASSERT_EQ(xr_iobuf_drop(&buf, 200), 200);
		else if (way == 1)
			xr_iobuf_clear(&buf);
		else
			ASSERT_EQ(xr_iobuf_cut(&buf, 199, &to) + xr_iobuf_cut(&buf, 1, &to), 200);
		CU_ASSERT_PTR_NULL(buf.pieces_);
		ASSERT_EQ(buf.count_, 0);
	}
	xr_iobuf_clear(&to);
	stop();
}

/* Every call that needs memory, with the n-th allocation failing: it changes nothing, or it did what it should. */
static unsigned
run_short_of_memory(long fail_after)
{
	struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;
	unsigned failures = 0;
	size_t size_a = 0, size_b = 0, got;

	g_frees = 0;
	g_fail_alloc_after = fail_after;
	for (int i = 0; i < 20; i++) {
		int status = xr_iobuf_append_user(&a, pattern, 3, 0, count_free, NULL);

		failures += status != 0;
		size_a += status == 0 ? 3 : 0;
		CU_ASSERT(xr_iobuf_size(&a) == size_a);
	}
	for (int i = 0; i < 20; i++) {
		int status = xr_iobuf_share(&b, &a);

		failures += status != 0;
		size_b += status == 0 ? size_a : 0;
		CU_ASSERT(xr_iobuf_size(&b) == size_b && xr_iobuf_size(&a) == size_a);
	}
	got = xr_iobuf_cut(&b, size_b / 2, &a);
	failures += got != size_b / 2;
	CU_ASSERT(xr_iobuf_size(&a) == size_a + got && xr_iobuf_size(&b) == size_b - got);
	size_a += got;
	size_b -= got;
	if (xr_iobuf_append(&b, pattern, 20000) == 0)
		size_b += 20000;
	else
		failures++;
	CU_ASSERT(xr_iobuf_size(&b) == size_b);
	if (xr_iobuf_move(&a, &b) == 0) {
		CU_ASSERT(xr_iobuf_size(&a) == size_a + size_b && xr_iobuf_size(&b) == 0);
	} else {
		CU_ASSERT(xr_iobuf_size(&a) == size_a && xr_iobuf_size(&b) == size_b);
		failures++;
	}
	g_fail_alloc_after = -1;
	CU_ASSERT(g_frees == 0 || size_a == 0);
	xr_iobuf_clear(&a);
	xr_iobuf_clear(&b);
	CU_ASSERT(g_frees <= 20);
	return failures;
}

static void
test_any_allocation_may_fail(void)
{
	unsigned n = 0, failed = 0, failures;

	if (!FAIL_ALLOC) {
		unit_skip("a sanitizer has its own malloc()");
		return;
	}
	start(1);
	ASSERT_EQ(pool_grow(pool_of(0, BLOCK_DEFAULT)), 0);
	fixture_lcore_stop(); /* without the lcore's caches every list and descriptor is an allocation */
	do {
		failures = run_short_of_memory(n++);
		failed += failures > 0;
	} while (failures > 0 && n < 1000);
	ASSERT_EQ(failures, 0);
	CU_ASSERT(failed >= 20);
	fixture_stop();
}

/* The warm path of an lcore calls malloc() never. */
static void
test_warm_path_needs_no_malloc(void)
{
	start(1);
	for (int round = 0; round < 50; round++) {
		struct xr_iobuf a = XR_IOBUF_INIT, b = XR_IOBUF_INIT;

		g_fail_alloc_after = round == 0 ? -1 : 0;
		for (int i = 0; i < 100; i++) {
			ASSERT_FATAL(xr_iobuf_append(&a, pattern, 500) == 0);
			ASSERT_FATAL(xr_iobuf_append_user(&a, pattern, 500, 0, NULL, NULL) == 0);
		}
		ASSERT_FATAL(xr_iobuf_share(&b, &a) == 0);
		while (xr_iobuf_size(&a) > 0)
			ASSERT_FATAL(xr_iobuf_cut(&a, 777, &b) > 0);
		xr_iobuf_clear(&b);
	}
	g_fail_alloc_after = -1;
	stop();
}

struct crossing {
	struct xr_iobuf buf;
	bool ok;
};

static void *
look_and_clear(void *arg)
{
	struct crossing *crossing = arg;

	fixture_lcore_start(4);
	crossing->ok = true;
	for (int i = 0; i < 1000; i++) {
		struct xr_iobuf copy = XR_IOBUF_INIT;
		char seen[16];

		crossing->ok &= xr_iobuf_share(&copy, &crossing->buf) == 0;
		crossing->ok &= xr_iobuf_copy_out(&copy, 9990, seen, 16) == 10;
		crossing->ok &= xr_iobuf_append(&copy, "tail", 4) == 0;
		xr_iobuf_clear(&copy);
	}
	xr_iobuf_clear(&crossing->buf);
	fixture_lcore_stop();
	return NULL;
}

/* The same blocks in iobufs of two threads, each holding, reading and dropping as it likes. */
static void
test_blocks_are_shared_between_threads(void)
{
	struct crossing crossing = {.buf = XR_IOBUF_INIT};
	struct xr_iobuf mine = XR_IOBUF_INIT;
	pthread_t thread;

	start(1);
	g_frees = 0;
	ASSERT_EQ(xr_iobuf_append(&mine, pattern, 9990), 0);
	ASSERT_EQ(xr_iobuf_append_user(&mine, pattern, 10, 0, count_free, NULL), 0);
	ASSERT_EQ(xr_iobuf_share(&crossing.buf, &mine), 0);
	ASSERT_FATAL(pthread_create(&thread, NULL, look_and_clear, &crossing) == 0);
	for (int i = 0; i < 1000; i++) {
		struct xr_iobuf copy = XR_IOBUF_INIT;

		CU_ASSERT(xr_iobuf_share(&copy, &mine) == 0);
		CU_ASSERT(xr_iobuf_append(&copy, "mine", 4) == 0);
		xr_iobuf_clear(&copy);
	}
	xr_iobuf_clear(&mine);
	pthread_join(thread, NULL);
	CU_ASSERT(crossing.ok);
	ASSERT_EQ(g_frees, 1);
	stop();
}

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

UNIT_SUITE("iobuf", {"append of any size", test_append_of_any_size},
	   {"an append at the pool's limit changes nothing", test_append_at_the_limit_changes_nothing},
	   {"a reserve at the pool's limit", test_reserve_at_the_limit},
	   {"user memory is freed once", test_user_memory_is_freed_once},
	   {"user memory that is refused is not freed", test_user_memory_refused_is_not_freed},
	   {"a free_fn may use the iobuf", test_free_may_use_the_iobuf}, {"cut and move", test_cut_and_move},
	   {"an iobuf and itself", test_with_itself}, {"looking at the bytes", test_looking},
	   {"appending blocks", test_append_block}, {"an empty iobuf keeps nothing", test_empty_keeps_nothing},
	   {"any allocation may fail", test_any_allocation_may_fail},
	   {"the warm path needs no malloc", test_warm_path_needs_no_malloc},
	   {"blocks are shared between threads", test_blocks_are_shared_between_threads},
	   {"random calls beside a plain array, on an lcore", test_model_on_an_lcore},
	   {"random calls beside a plain array, elsewhere", test_model_elsewhere});
