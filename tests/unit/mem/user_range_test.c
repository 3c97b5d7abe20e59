/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/user_range.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/mem/fixture.h"
#include <pthread.h>
#include <xrdma/mem.h>

#define SLOTS 65536u

static char g_memory[1 << 20];

/* Devices that remember what is registered with them, and fail on request. */
static struct {
	unsigned registered[MEM_DEVICES]; /* now */
	unsigned calls;
	unsigned fail_at_call; /* 0: never */
	void *last_addr;
	size_t last_len;
} fake;

static int
fake_register(unsigned device, void *addr, size_t len, void **handle, uint32_t *lkey)
{
	if (++fake.calls == fake.fail_at_call)
		return -EIO;
	fake.registered[device]++;
	fake.last_addr = addr;
	fake.last_len = len;
	*handle = addr;
	*lkey = device << 16 | fake.calls;
	return 0;
}

static void
fake_unregister(unsigned device, void *handle)
{
	CU_ASSERT_PTR_NOT_NULL(handle);
	fake.registered[device]--;
}

static const struct mem_device_ops ops = {
	.register_range = fake_register,
	.unregister_range = fake_unregister,
	.register_user = fake_register,
};

static void
start(void)
{
	memset(&fake, 0, sizeof fake);
	fixture_start(1);
	user_ranges_init();
}

static void
stop(void)
{
	user_ranges_fini();
	fixture_stop();
	for (unsigned device = 0; device < MEM_DEVICES; device++)
		ASSERT_EQ(fake.registered[device], 0);
}

static xr_mem_key
registered(void *addr, size_t len)
{
	xr_mem_key key = XR_MEM_KEY_NONE;

	ASSERT_EQ(xr_mem_register(addr, len, &key), 0);
	CU_ASSERT(key != XR_MEM_KEY_NONE);
	return key;
}

static xr_mem_key
found(const void *addr, size_t len)
{
	xr_mem_key key = XR_MEM_KEY_NONE;

	return xr_mem_find(addr, len, &key) == 0 ? key : XR_MEM_KEY_NONE;
}

static void
refused(xr_mem_key key, const void *data, size_t len)
{
	errno = 0;
	CU_ASSERT_PTR_NULL(user_range_hold(key, data, len));
	ASSERT_EQ(errno, EINVAL);
}

/* ---- keys ---- */

static void
test_bad_input(void)
{
	xr_mem_key key = 77;
	char *top = (char *)UINTPTR_MAX;

	ASSERT_EQ(xr_mem_register(g_memory, 1, &key), -EINVAL); /* before the beginning */
	ASSERT_EQ(xr_mem_find(g_memory, 1, &key), -ENOENT);
	start();
	ASSERT_EQ(xr_mem_register(NULL, 1, &key), -EINVAL);
	ASSERT_EQ(xr_mem_register(g_memory, 0, &key), -EINVAL);
	ASSERT_EQ(xr_mem_register(g_memory, 1, NULL), -EINVAL);
	ASSERT_EQ(xr_mem_register(g_memory, SIZE_MAX, &key), -EINVAL);
	ASSERT_EQ(xr_mem_register(top, 2, &key), -EINVAL);
	ASSERT_EQ(xr_mem_find(g_memory, 0, &key), -EINVAL);
	ASSERT_EQ(xr_mem_find(g_memory, 1, NULL), -EINVAL);
	ASSERT_EQ(xr_mem_find(g_memory, 1, &key), -ENOENT);
	ASSERT_EQ(key, 77);
	ASSERT_EQ(xr_mem_deregister(XR_MEM_KEY_NONE), -EINVAL);
	ASSERT_EQ(xr_mem_deregister(1), -EINVAL);
	ASSERT_EQ(xr_mem_deregister(UINT64_MAX), -EINVAL);
	refused(XR_MEM_KEY_NONE, g_memory, 1);
	refused(UINT64_MAX, g_memory, 1);
	stop();
	ASSERT_EQ(xr_mem_register(g_memory, 1, &key), -EINVAL); /* after the end */
}

/* Every bit of a key counts. */
static void
test_bent_key(void)
{
	xr_mem_key key;

	start();
	key = registered(g_memory, 100);
	for (unsigned bit = 0; bit < 64; bit++) {
		refused(key ^ (xr_mem_key)1 << bit, g_memory, 1);
		ASSERT_EQ(xr_mem_deregister(key ^ (xr_mem_key)1 << bit), -EINVAL);
	}
	ASSERT_EQ(xr_mem_deregister(key), 0);
	stop();
}

static void
test_stale_key(void)
{
	xr_mem_key first, second;

	start();
	first = registered(g_memory, 100);
	ASSERT_EQ(xr_mem_deregister(first), 0);
	ASSERT_EQ(xr_mem_deregister(first), -EINVAL);
	refused(first, g_memory, 1);
	second = registered(g_memory, 100); /* in the same slot */
	CU_ASSERT(first != second);
	refused(first, g_memory, 1);
	ASSERT_EQ(xr_mem_deregister(first), -EINVAL);
	ASSERT_EQ(found(g_memory, 100), second);
	stop();

	start(); /* nor does a key outlive the library's end */
	CU_ASSERT(registered(g_memory, 100) != second);
	refused(second, g_memory, 1);
	stop();
}

static void
test_find(void)
{
	xr_mem_key whole, part, again;

	start();
	whole = registered(g_memory, sizeof g_memory);
	part = registered(g_memory + 1000, 1000);
	ASSERT_EQ(found(g_memory, sizeof g_memory), whole);
	ASSERT_EQ(found(g_memory + sizeof g_memory - 1, 1), whole);
	ASSERT_EQ(found(g_memory + sizeof g_memory - 1, 2), XR_MEM_KEY_NONE);
	ASSERT_EQ(found(g_memory + 1500, 500), part);
	ASSERT_EQ(found(g_memory + 1500, 501), whole);
	again = registered(g_memory, sizeof g_memory);
	ASSERT_EQ(found(g_memory + 1500, 500), again);
	ASSERT_EQ(xr_mem_deregister(again), 0);
	ASSERT_EQ(found(g_memory + 1500, 500), part);
	ASSERT_EQ(xr_mem_deregister(part), 0);
	ASSERT_EQ(xr_mem_deregister(whole), 0);
	ASSERT_EQ(found(g_memory + 1500, 1), XR_MEM_KEY_NONE);
	stop();
}

/* ---- references ---- */

static void
test_hold(void)
{
	struct user_range *range, *twice;
	xr_mem_key key;

	start();
	key = registered(g_memory + 100, 100);
	refused(key, g_memory + 99, 1);
	refused(key, g_memory + 99, 102);
	refused(key, g_memory + 100, 101);
	refused(key, g_memory + 199, 2);
	refused(key, g_memory + 200, 1);
	refused(key, g_memory + 101, SIZE_MAX);
	range = user_range_hold(key, g_memory + 100, 100);
	ASSERT_FATAL(range != NULL);
	twice = user_range_hold(key, g_memory + 199, 1);
	CU_ASSERT(twice == range);
	ASSERT_EQ(xr_mem_deregister(key), -EBUSY);
	user_range_drop(twice);
	ASSERT_EQ(xr_mem_deregister(key), -EBUSY);
	ASSERT_EQ(found(g_memory + 100, 1), key); /* nothing has changed */
	user_range_drop(range);
	ASSERT_EQ(xr_mem_deregister(key), 0);
	stop();
}

static void
test_too_many_references(void)
{
	struct user_range *range = NULL;
	uint64_t count = 0;
	xr_mem_key key;

	if (!FAIL_ALLOC) {
		unit_skip("sixteen million of anything take a sanitizer long");
		return;
	}
	start();
	key = registered(g_memory, 100);
	for (struct user_range *next; (next = user_range_hold(key, g_memory, 1)); count++)
		range = next;
	ASSERT_EQ(errno, ENOMEM);
	ASSERT_EQ(count, (1u << 24) - 1);
	ASSERT_EQ(xr_mem_deregister(key), -EBUSY);
	for (; count > 0; count--)
		user_range_drop(range);
	ASSERT_EQ(xr_mem_deregister(key), 0);
	stop();
}

static void
count_free(void *data, void *arg)
{
	CU_ASSERT_PTR_EQUAL(data, g_memory + 10);
	++*(unsigned *)arg;
}

static void
deregister_it(void *data, void *arg)
{
	(void)data;
	ASSERT_EQ(xr_mem_deregister(*(xr_mem_key *)arg), 0);
	*(xr_mem_key *)arg = XR_MEM_KEY_NONE;
}

static void
test_iobufs_hold(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, part = XR_IOBUF_INIT;
	unsigned frees = 0;
	xr_mem_key key;

	start();
	key = registered(g_memory, 100);
	ASSERT_EQ(xr_iobuf_append_user(&buf, g_memory + 10, 91, key, count_free, &frees), -EINVAL);
	ASSERT_EQ(xr_iobuf_append_user(&buf, g_memory + 10, 90, key + 1, count_free, &frees), -EINVAL);
	ASSERT_EQ(xr_iobuf_append_user(&buf, g_memory + 10, 90, key, count_free, &frees), 0);
	ASSERT_EQ(xr_iobuf_size(&buf), 90);
	ASSERT_EQ(xr_iobuf_cut(&buf, 40, &part), 40);
	ASSERT_EQ(xr_mem_deregister(key), -EBUSY);
	xr_iobuf_clear(&buf);
	ASSERT_EQ(xr_mem_deregister(key), -EBUSY);
	ASSERT_EQ(frees, 0);
	xr_iobuf_clear(&part);
	ASSERT_EQ(frees, 1);
	ASSERT_EQ(xr_mem_deregister(key), 0);
	ASSERT_EQ(xr_iobuf_append_user(&buf, g_memory + 10, 90, key, count_free, &frees), -EINVAL);
	ASSERT_EQ(frees, 1);
	stop();
}

static void
test_deregister_when_told(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	xr_mem_key key;

	start();
	key = registered(g_memory, 100);
	ASSERT_EQ(xr_iobuf_append_user(&buf, g_memory, 100, key, deregister_it, &key), 0);
	xr_iobuf_clear(&buf);
	ASSERT_EQ(key, XR_MEM_KEY_NONE);
	stop();
}

/* An iobuf that the application has forgotten is told of, and may still be dropped. */
static void
test_end_while_busy(void)
{
	struct user_range *range;
	xr_mem_key key;
	unsigned lines;

	start();
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	key = registered(g_memory, 100);
	range = user_range_hold(key, g_memory, 1);
	ASSERT_FATAL(range != NULL);
	lines = log_capture_count();
	user_ranges_fini();
	ASSERT_EQ(log_capture_count(), lines + 1);
	ASSERT_STR(log_capture_last(), "ranges of user memory that iobufs still refer to: 1");
	ASSERT_EQ(fake.registered[0], 0);
	user_ranges_init();
	CU_ASSERT(registered(g_memory, 100) != key);
	user_range_drop(range);
	stop();
	free(range); /* the first of its chunk, which was kept for it */
}

/* ---- devices ---- */

static uint32_t
lkey_on(unsigned device, xr_mem_key key)
{
	struct user_range *range = user_range_hold(key, g_memory, 1);
	uint32_t lkey = 0;

	ASSERT_FATAL(range != NULL);
	if (user_range_lkey(range, device, &lkey) != 0)
		lkey = 0;
	user_range_drop(range);
	return lkey;
}

static void
test_each_device_has_its_own(void)
{
	xr_mem_key early, late;

	start();
	early = registered(g_memory, 100);
	ASSERT_EQ(lkey_on(0, early), 0);
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	CU_ASSERT(fake.last_addr == g_memory);
	ASSERT_EQ(fake.last_len, 100);
	late = registered(g_memory, 200);
	ASSERT_EQ(mem_device_add(MEM_DEVICES - 1, &ops), 0);
	ASSERT_EQ(fake.registered[0], 2);
	ASSERT_EQ(fake.registered[MEM_DEVICES - 1], 2);
	ASSERT_EQ(lkey_on(0, early), 1);
	ASSERT_EQ(lkey_on(0, late), 2);
	CU_ASSERT(lkey_on(MEM_DEVICES - 1, early) == ((MEM_DEVICES - 1) << 16 | 3));
	ASSERT_EQ(lkey_on(MEM_DEVICES, early), 0);
	ASSERT_EQ(xr_mem_deregister(early), 0);
	ASSERT_EQ(fake.registered[0], 1);
	mem_device_del(0);
	ASSERT_EQ(fake.registered[0], 0);
	ASSERT_EQ(lkey_on(0, late), 0);
	CU_ASSERT(lkey_on(MEM_DEVICES - 1, late) != 0);
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	CU_ASSERT(lkey_on(0, late) != 0);
	stop();
}

/* A device that has no room for one range of three serves the others. */
static void
test_device_that_refuses_a_range(void)
{
	xr_mem_key keys[3];

	start();
	for (unsigned i = 0; i < 3; i++)
		keys[i] = registered(g_memory, 100 + i);
	fake.fail_at_call = 2;
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	CU_ASSERT(lkey_on(0, keys[0]) != 0);
	ASSERT_EQ(lkey_on(0, keys[1]), 0);
	CU_ASSERT(lkey_on(0, keys[2]) != 0);
	ASSERT_EQ(fake.registered[0], 2);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(xr_mem_deregister(keys[i]), 0);
	ASSERT_EQ(fake.registered[0], 0);
	stop();
}

/* A range that the second of two devices refuses is none, and the first one forgets it. */
static void
test_range_that_a_device_refuses(void)
{
	xr_mem_key key = XR_MEM_KEY_NONE;

	start();
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	ASSERT_EQ(mem_device_add(1, &ops), 0);
	fake.fail_at_call = 2;
	ASSERT_EQ(xr_mem_register(g_memory, 100, &key), -EIO);
	ASSERT_EQ(key, XR_MEM_KEY_NONE);
	ASSERT_EQ(fake.registered[0], 0);
	ASSERT_EQ(found(g_memory, 1), XR_MEM_KEY_NONE);
	key = registered(g_memory, 100);
	ASSERT_EQ(fake.registered[0] + fake.registered[1], 2);
	ASSERT_EQ(xr_mem_deregister(key), 0);
	stop();
}

/* ---- many ---- */

static void
test_full_table(void)
{
	xr_mem_key key = XR_MEM_KEY_NONE, last = XR_MEM_KEY_NONE;
	unsigned failed = 0;

	start();
	for (unsigned i = 0; i < SLOTS; i++)
		failed += xr_mem_register(g_memory + i, 1, &last) != 0;
	ASSERT_EQ(failed, 0);
	ASSERT_EQ(xr_mem_register(g_memory, 1, &key), -ENOSPC);
	ASSERT_EQ(key, XR_MEM_KEY_NONE);
	ASSERT_EQ(xr_mem_deregister(last), 0);
	key = registered(g_memory + SLOTS, 1);
	ASSERT_EQ(xr_mem_register(g_memory, 1, &key), -ENOSPC);
	stop();
}

#define MANY 4000u

/* Each range knows its own memory alone, through thousands of comings and goings. */
static void
test_many(void)
{
	static xr_mem_key keys[MANY];
	unsigned wrong = 0;

	start();
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	srand(2);
	for (unsigned step = 0; step < 10 * MANY; step++) {
		unsigned i = (unsigned)rand() % MANY;
		char *addr = g_memory + i * 200;

		if (keys[i] == XR_MEM_KEY_NONE) {
			wrong += xr_mem_register(addr, 200, &keys[i]) != 0;
			wrong += found(addr + rand() % 200, 1) != keys[i];
		} else {
			struct user_range *range = user_range_hold(keys[i], addr + rand() % 200, 1);

			wrong += !range || xr_mem_deregister(keys[i]) != -EBUSY;
			if (range)
				user_range_drop(range);
			wrong += xr_mem_deregister(keys[i]) != 0;
			wrong += user_range_hold(keys[i], addr, 1) != NULL;
			wrong += found(addr, 1) != XR_MEM_KEY_NONE;
			keys[i] = XR_MEM_KEY_NONE;
		}
	}
	ASSERT_EQ(wrong, 0);
	stop();
	memset(keys, 0, sizeof keys);
}

/* The n-th allocation fails, for every n until none does. */
static void
test_no_memory(void)
{
	xr_mem_key key = XR_MEM_KEY_NONE;
	long n = 0;

	if (!FAIL_ALLOC) {
		unit_skip("allocations can't be failed in this build");
		return;
	}
	start();
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	for (int status = -ENOMEM; status == -ENOMEM; n++) {
		g_fail_alloc_after = n;
		status = xr_mem_register(g_memory, 100, &key);
		g_fail_alloc_after = -1;
		CU_ASSERT(status == 0 || status == -ENOMEM);
		ASSERT_EQ(found(g_memory, 1), status == 0 ? key : XR_MEM_KEY_NONE);
		ASSERT_EQ(fake.registered[0], status == 0);
	}
	ASSERT_EQ(n, 3); /* the index, the first slots, and none */
	ASSERT_EQ(xr_mem_deregister(key), 0);
	stop();
}

static void
test_no_descriptor(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	xr_mem_key key;

	if (!FAIL_ALLOC) {
		unit_skip("allocations can't be failed in this build");
		return;
	}
	start();
	key = registered(g_memory, 100);
	g_fail_alloc_after = 0;
	ASSERT_EQ(xr_iobuf_append_user(&buf, g_memory, 100, key, NULL, NULL), -ENOMEM);
	g_fail_alloc_after = -1;
	ASSERT_EQ(xr_iobuf_size(&buf), 0);
	ASSERT_EQ(xr_mem_deregister(key), 0);
	stop();
}

/* ---- threads ---- */

#define THREADS 3u
#define ROUNDS	3000u

static xr_mem_key g_key;
static bool g_over;
static unsigned g_held;

/* What the header forbids, a key that another thread takes back, may fail but do no harm. */
static void *
hold_and_drop(void *arg)
{
	unsigned held = 0;

	(void)arg;
	while (!__atomic_load_n(&g_over, __ATOMIC_RELAXED)) {
		xr_mem_key key = __atomic_load_n(&g_key, __ATOMIC_RELAXED);
		struct user_range *range = user_range_hold(key, g_memory + 10, 10);
		uint32_t lkey;

		if (!range)
			continue;
		held += user_range_lkey(range, 0, &lkey) == 0;
		user_range_drop(range);
	}
	__atomic_fetch_add(&g_held, held, __ATOMIC_RELAXED);
	return NULL;
}

static void
test_race(void)
{
	pthread_t threads[THREADS];
	unsigned wrong = 0;

	start();
	ASSERT_EQ(mem_device_add(0, &ops), 0);
	g_over = false;
	g_held = 0;
	for (unsigned i = 0; i < THREADS; i++)
		ASSERT_FATAL(pthread_create(&threads[i], NULL, hold_and_drop, NULL) == 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		xr_mem_key key;
		int status;

		wrong += xr_mem_register(g_memory, 100 + round % 10, &key) != 0;
		__atomic_store_n(&g_key, key, __ATOMIC_RELAXED);
		while ((status = xr_mem_deregister(key)) == -EBUSY)
			;
		wrong += status != 0;
	}
	__atomic_store_n(&g_over, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(wrong, 0);
	ASSERT_EQ(fake.registered[0], 0);
	stop();
}

UNIT_SUITE("user_range", {"bad input", test_bad_input}, {"every bit of a key counts", test_bent_key},
	   {"a stale key is recognised", test_stale_key}, {"any address inside is found", test_find},
	   {"a range in use can't be deregistered", test_hold},
	   {"a range takes only so many references", test_too_many_references},
	   {"iobufs hold the range of their memory", test_iobufs_hold},
	   {"the user may deregister when told", test_deregister_when_told},
	   {"the library's end while a range is in use", test_end_while_busy},
	   {"each device has its own key, early and late", test_each_device_has_its_own},
	   {"a new device may refuse a range", test_device_that_refuses_a_range},
	   {"a range that a device refuses is none", test_range_that_a_device_refuses},
	   {"a full table", test_full_table}, {"thousands come and go", test_many},
	   {"the n-th allocation fails", test_no_memory}, {"no memory for a descriptor", test_no_descriptor},
	   {"keys in use while they are taken back", test_race});
