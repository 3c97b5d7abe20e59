/* SPDX-License-Identifier: Apache-2.0 */

#include "mem/block.h"
#include "net/verbs/device.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <stdlib.h>

#define GROWTH "--rdma_memory_pool_increase_size_mb", "32"

/* So many cards, fake0 at 10.0.0.1 and so on. */
static void
cards(unsigned count)
{
	fake_reset();
	for (unsigned i = 0; i < count; i++) {
		char name[16], address[24];
		struct fake_device card;

		snprintf(name, sizeof name, "fake%u", i);
		snprintf(address, sizeof address, "10.0.0.%u", i + 1);
		card = fake_device(name, address);
		fake_device_add(&card);
	}
}

/* The block's key on a device; 0 when there is none. */
static uint32_t
key_of(unsigned device, struct xr_block *block)
{
	uint32_t lkey = 0;

	return mem_lkey(device, block, &lkey) == 0 ? lkey : 0;
}

/* ---- which ones ---- */

static void
test_no_device(void)
{
	cards(0);
	net_up(1, NULL);
	ASSERT_EQ(device_count(), 0);
	ASSERT_STR(devices_obstacle(), "no RDMA device on this machine");
	CU_ASSERT_PTR_NULL(device_find("fake0"));
	CU_ASSERT_FALSE(net_logged("RDMA device"));
	rdma_down();
	ASSERT_STR(devices_obstacle(), "RDMA is not set up");
}

static void
test_kernel_without_rdma(void)
{
	cards(1);
	fake_fail("get_device_list", 1, ENOSYS);
	net_up(1, NULL);
	ASSERT_STR(devices_obstacle(), "no RDMA device on this machine");
	CU_ASSERT_FALSE(net_logged("can't be listed"));
	rdma_down();
	cards(1);
	fake_fail("get_device_list", 1, EPERM);
	net_up(1, NULL);
	ASSERT_EQ(device_count(), 0);
	CU_ASSERT_TRUE(net_logged("RDMA devices can't be listed: Operation not permitted"));
	rdma_down();
}

static void
test_one_device(void)
{
	struct device *device;

	cards(1);
	net_up(1, NULL);
	ASSERT_FATAL(device_count() == 1);
	CU_ASSERT_PTR_NULL(devices_obstacle());
	device = device_at(0);
	CU_ASSERT_PTR_EQUAL(device_find("fake0"), device);
	CU_ASSERT_PTR_NULL(device_find("fake"));
	ASSERT_EQ(device->number, 0);
	ASSERT_STR(device->name, "fake0");
	ASSERT_EQ(device->max_sge, 30);
	CU_ASSERT_PTR_EQUAL(device->pd->context, device->context);
	ASSERT_EQ(device->attr.max_cqe, 65536);
	CU_ASSERT_TRUE(device_usable(device));
	ASSERT_EQ(fake_alive(FAKE_DEVICE_LISTS), 0);
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: 1 ports, 30 pieces in a send"));
	rdma_down();
}

static void
test_every_device(void)
{
	struct xr_block *block;

	cards(3);
	net_up(1, NULL);
	ASSERT_FATAL(device_count() == 3);
	for (unsigned i = 0; i < 3; i++)
		ASSERT_EQ(device_at(i)->number, i);
	ASSERT_STR(device_at(2)->name, "fake2");
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_FATAL(block != NULL);
	CU_ASSERT(key_of(0, block) && key_of(1, block) && key_of(2, block));
	CU_ASSERT(key_of(0, block) != key_of(1, block) && key_of(1, block) != key_of(2, block));
	block_drop(block);
	rdma_down();
}

static void
test_more_than_memory_knows(void)
{
	cards(MEM_DEVICES + 1);
	net_up(1, NULL);
	ASSERT_EQ(device_count(), MEM_DEVICES);
	CU_ASSERT_TRUE(net_logged("RDMA device fake16 is not used: it is one too many"));
	rdma_down();
}

static void
test_named_device(void)
{
	cards(3);
	net_up(1, "--rdma_device", "fake1", NULL);
	ASSERT_FATAL(device_count() == 1);
	ASSERT_STR(device_at(0)->name, "fake1");
	ASSERT_EQ(fake_calls("open_device"), 1);
	rdma_down();
}

static void
refused(unsigned count, const char *option, const char *value, const char *line)
{
	char *argv[] = {"test", "--lcores", "0@0", (char *)option, (char *)value};

	cards(count);
	ASSERT_EQ(net_init(5, argv), -EINVAL);
	ASSERT_STR(net_error_line(), line);
	xr_log_set_sink(NULL, NULL);
	ASSERT_EQ(fake_calls("open_device"), 0);
	ASSERT_EQ(fake_leaks(), 0);
	ASSERT_EQ(fake_violations(), 0);
}

static void
test_name_that_is_not_there(void)
{
	refused(2, "--rdma_device", "mlx5_0",
		"--rdma_device=mlx5_0: no such RDMA device; this machine has fake0, fake1");
	refused(0, "--rdma_device", "mlx5_0", "--rdma_device=mlx5_0: no such RDMA device; this machine has none");
	refused(2, "--port", "storage,dev=fake",
		"--port storage: dev=fake: no such RDMA device; this machine has fake0, fake1");
}

/* The machine has more devices than a line has room for. */
static void
test_long_list_of_names(void)
{
	char *argv[] = {"test", "--lcores", "0@0", "--rdma_device", "x"};

	cards(60);
	ASSERT_EQ(net_init(5, argv), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(net_error_line(), "this machine has fake0, fake1,"));
	xr_log_set_sink(NULL, NULL);
	ASSERT_EQ(fake_leaks(), 0);
}

/* ---- which ones ports want ---- */

static void
test_rdma_off_everywhere(void)
{
	cards(2);
	net_up(1, "--port", "default,rdma=off", "--port", "other,rdma=off,dev=nosuch", NULL);
	ASSERT_EQ(device_count(), 0);
	ASSERT_STR(devices_obstacle(), "every port has rdma=off");
	ASSERT_EQ(fake_calls("get_device_list"), 0);
	ASSERT_EQ(fake_calls("reg_mr"), 0);
	rdma_down();
}

static void
test_devices_of_ports(void)
{
	cards(4);
	net_up(1, "--rdma_device", "fake2", "--port", "other,dev=fake1", "--port", "none,rdma=off,dev=fake0", NULL);
	ASSERT_FATAL(device_count() == 2);
	ASSERT_STR(device_at(0)->name, "fake1");
	ASSERT_STR(device_at(1)->name, "fake2");
	rdma_down();
	cards(4);
	net_up(1, "--port", "default,dev=fake3", NULL);
	ASSERT_FATAL(device_count() == 1);
	ASSERT_STR(device_at(0)->name, "fake3");
	rdma_down();
	cards(2);
	net_up(1, "--port", "other,dev=fake1", NULL);
	ASSERT_EQ(device_count(), 2);
	rdma_down();
}

/* A port that can't have RDMA does not make others wait for its device's name. */
static void
test_name_of_an_idle_port(void)
{
	cards(1);
	net_up(1, "--port", "none,rdma=off,dev=nosuch", NULL);
	ASSERT_EQ(device_count(), 1);
	rdma_down();
}

/* ---- what can't be used ---- */

/* The first of two devices fails in a step; the other one takes its number. */
static void
skipped(const char *verb, unsigned nth, int error, const char *line)
{
	struct xr_block *block;

	cards(2);
	fake_fail(verb, nth, error);
	net_up(1, NULL);
	ASSERT_FATAL(device_count() == 1);
	ASSERT_STR(device_at(0)->name, "fake1");
	CU_ASSERT_PTR_NULL(devices_obstacle());
	if (!net_logged(line)) {
		printf("%s: no line \"%s\"\n", verb, line);
		CU_FAIL("wrong line");
	}
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_FATAL(block != NULL);
	CU_ASSERT_TRUE(key_of(0, block) != 0);
	ASSERT_EQ(key_of(1, block), 0);
	block_drop(block);
	ASSERT_EQ(fake_alive(FAKE_CONTEXTS), 1);
	ASSERT_EQ(fake_alive(FAKE_PDS), 1);
	rdma_down();
}

static void
test_steps_that_fail(void)
{
	skipped("open_device", 1, EBUSY, "RDMA device fake0 is not used: opening it: Device or resource busy\n");
	skipped("query_device", 1, EIO, "RDMA device fake0 is not used: querying it: Input/output error\n");
	skipped("alloc_pd", 1, ENOMEM,
		"RDMA device fake0 is not used: allocating a protection domain: Cannot allocate memory\n");
	skipped("reg_mr", 1, EFAULT, "RDMA device fake0 is not used: registering 32 MiB of memory: Bad address\n");
}

static void
test_none_can_be_used(void)
{
	cards(2);
	fake_fail_times("open_device", 1, 2, EIO);
	net_up(1, NULL);
	ASSERT_EQ(device_count(), 0);
	ASSERT_STR(devices_obstacle(), "no RDMA device could be used");
	rdma_down();
}

static void
test_other_transports(void)
{
	struct ibv_device **list;

	cards(2);
	list = ibv_get_device_list(NULL);
	list[0]->transport_type = IBV_TRANSPORT_IWARP;
	ibv_free_device_list(list);
	net_up(1, NULL);
	ASSERT_FATAL(device_count() == 1);
	ASSERT_STR(device_at(0)->name, "fake1");
	CU_ASSERT_TRUE(net_logged("RDMA device fake0 is not used: it is neither InfiniBand nor RoCE\n"));
	rdma_down();
}

/* ---- limits ---- */

static uint32_t
sges(const char *flag)
{
	uint32_t max_sge;

	cards(1);
	net_up(1, "--rdma_max_sge", flag, NULL);
	max_sge = device_at(0)->max_sge;
	rdma_down();
	return max_sge;
}

static void
test_pieces_in_a_send(void)
{
	ASSERT_EQ(sges("0"), 30);
	ASSERT_EQ(sges("1"), 1);
	ASSERT_EQ(sges("30"), 30);
	ASSERT_EQ(sges("64"), 30);
}

/* ---- registrations ---- */

static void
access_is(bool relaxed, unsigned expected)
{
	struct fake_device card = fake_device("fake0", "10.0.0.1");
	struct xr_block *block;
	unsigned access = 0;

	fake_reset();
	card.relaxed_ordering = relaxed;
	fake_device_add(&card);
	net_up(1, NULL);
	block = block_alloc(BLOCK_DEFAULT);
	ASSERT_FATAL(block != NULL);
	CU_ASSERT_TRUE(fake_region(0, block, &access));
	ASSERT_EQ(access, expected);
	block_drop(block);
	rdma_down();
}

static void
test_relaxed_ordering(void)
{
	access_is(true, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	access_is(false, IBV_ACCESS_LOCAL_WRITE);
}

static void
test_pool_that_grows(void)
{
	struct xr_block *block;
	unsigned access;

	cards(2);
	net_up(1, GROWTH, NULL);
	ASSERT_EQ(fake_alive(FAKE_MRS), 2);
	block = block_alloc(BLOCK_LARGE);
	ASSERT_FATAL(block != NULL);
	ASSERT_EQ(fake_alive(FAKE_MRS), 4);
	CU_ASSERT_TRUE(fake_region(0, block, &access) && fake_region(1, block, &access));
	CU_ASSERT(key_of(0, block) && key_of(1, block) && key_of(0, block) != key_of(1, block));
	block_drop(block);
	rdma_down();
}

static void
test_growth_refused(void)
{
	cards(2);
	net_up(1, GROWTH, NULL);
	fake_fail("reg_mr", 2, ENOMEM);
	CU_ASSERT_PTR_NULL(block_alloc(BLOCK_LARGE));
	ASSERT_EQ(fake_alive(FAKE_MRS), 2);
	CU_ASSERT_TRUE(net_logged("RDMA device fake1: registering 32 MiB of memory: Cannot allocate memory"));
	rdma_down();
}

/* What it refuses must not keep the others from getting more memory; nor does it get some that it can't give back. */
static void
test_growth_with_a_failed_device(void)
{
	struct xr_block *block;
	uint32_t lkey = 1;

	cards(2);
	net_up(1, GROWTH, NULL);
	fake_device_fatal(0);
	__atomic_store_n(&device_at(0)->failed, true, __ATOMIC_RELAXED);
	block = block_alloc(BLOCK_LARGE);
	ASSERT_FATAL(block != NULL);
	ASSERT_EQ(fake_alive(FAKE_MRS), 3);
	ASSERT_EQ(mem_lkey(0, block, &lkey), 0);
	ASSERT_EQ(lkey, 0);
	CU_ASSERT_TRUE(key_of(1, block) != 0);
	block_drop(block);
	rdma_down();
}

/* ---- the end ---- */

static void
stays(const char *verb, const char *line, enum fake_kind kind)
{
	cards(1);
	net_up(1, NULL);
	fake_fail(verb, 1, EBUSY);
	xr_fini();
	xr_log_set_sink(NULL, NULL);
	CU_ASSERT_TRUE(net_logged(line));
	CU_ASSERT_TRUE(net_logged("RDMA device fake0: closing it: Device or resource busy"));
	ASSERT_EQ(fake_alive(kind), 1);
	fake_reset();
}

static void
test_what_can_not_be_undone(void)
{
	stays("dereg_mr", "RDMA device fake0: deregistering memory: Device or resource busy", FAKE_MRS);
	stays("dealloc_pd", "RDMA device fake0: freeing its protection domain: Device or resource busy", FAKE_PDS);
}

static void
test_up_again(void)
{
	for (int i = 0; i < 3; i++) {
		cards(2);
		net_up(2, NULL);
		ASSERT_EQ(device_count(), 2);
		xr_stop();
		ASSERT_EQ(xr_run(), 0);
		rdma_down();
		ASSERT_EQ(device_count(), 0);
	}
}

UNIT_SUITE("rdma_device", {"a machine without a device", test_no_device},
	   {"a kernel without RDMA is no error, a refused look is said", test_kernel_without_rdma},
	   {"one device", test_one_device}, {"every device, each with keys of its own", test_every_device},
	   {"more devices than memory knows", test_more_than_memory_knows},
	   {"only the one that is named", test_named_device},
	   {"a name that is not there stops the start", test_name_that_is_not_there},
	   {"more names than a line holds", test_long_list_of_names},
	   {"rdma=off everywhere opens nothing", test_rdma_off_everywhere},
	   {"ports say which devices are opened", test_devices_of_ports},
	   {"a port with rdma=off wants no device", test_name_of_an_idle_port},
	   {"a step that fails costs that device only", test_steps_that_fail},
	   {"no device that works", test_none_can_be_used}, {"iWARP is left alone", test_other_transports},
	   {"how many pieces a send has", test_pieces_in_a_send},
	   {"relaxed ordering where it is offered", test_relaxed_ordering},
	   {"a region that comes later is registered", test_pool_that_grows},
	   {"a region that a device refuses is none", test_growth_refused},
	   {"a failed device does not keep the pool small", test_growth_with_a_failed_device},
	   {"what can't be undone is said", test_what_can_not_be_undone}, {"up and down and up", test_up_again});
