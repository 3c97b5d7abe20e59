/* SPDX-License-Identifier: Apache-2.0 */

/* Memory of the application's: registered with every card, sent from where it lies, or refused before anything leaves.
 */

#include "mem/user_range.h"
#include "net/verbs/device.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <stdlib.h>
#include <xrdma/error.h>

#define MEMORY_BYTES 100000u
#define PART	     30000u /* sent from the middle of it */
#define OFFSET	     1234u

static uint8_t g_memory[MEMORY_BYTES];
static xr_mem_key g_key;
static unsigned g_freed;

static void
count_free(void *data, void *arg)
{
	(void)data;
	(void)arg;
	__atomic_fetch_add(&g_freed, 1, __ATOMIC_RELEASE);
}

/* Registered, and the part that will be sent is the pattern. */
static void
register_memory(void)
{
	g_freed = 0;
	fill_pattern(g_memory + OFFSET, 0, PART);
	ASSERT_EQ(xr_mem_register(g_memory, sizeof g_memory, &g_key), 0);
}

static uint32_t
lkey_on(unsigned device)
{
	struct user_range *range = user_range_hold(g_key, g_memory, 1);
	uint32_t lkey = 0;

	if (NET_CHECK(range != NULL)) {
		NET_CHECK(user_range_lkey(range, device, &lkey) == 0);
		user_range_drop(range);
	}
	return lkey;
}

static void
take_pattern_only(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	uint64_t before = probe->bytes;

	(void)conn;
	__atomic_store_n(&probe->bytes, before + take_pattern(in, before), __ATOMIC_RELEASE);
}

/* ---- sends ---- */

struct sending {
	struct xr_conn *conn;
	size_t offset, len;
	xr_mem_key key;
	int ret;
};

/* What isn't taken is still there, and is the caller's to drop. */
static void
do_send(void *arg)
{
	struct sending *sending = arg;
	struct xr_iobuf out = XR_IOBUF_INIT;
	size_t queued = xr_conn_queued(sending->conn);

	NET_CHECK(xr_iobuf_append_user(&out, g_memory + sending->offset, sending->len, sending->key, count_free,
				       NULL) == 0);
	sending->ret = xr_conn_send(sending->conn, &out);
	NET_CHECK(xr_iobuf_size(&out) == (sending->ret ? sending->len : 0));
	if (sending->ret)
		NET_CHECK(xr_conn_queued(sending->conn) == queued && PROBE_READ(g_freed) == 0);
	xr_iobuf_clear(&out);
}

static int
send_memory(struct xr_conn *conn, size_t offset, size_t len, xr_mem_key key)
{
	struct sending sending = {conn, offset, len, key, 0};

	rdma_do(do_send, &sending);
	return sending.ret;
}

/* Requests from number `at` on carry that memory from where it lies, with that key. Where they end. */
static uint64_t
check_requests(struct xr_conn *conn, uint64_t at, size_t len, uint32_t lkey)
{
	uintptr_t addr = (uintptr_t)g_memory + OFFSET, end = addr + len;

	for (; addr < end; at++) {
		struct fake_request sent = {.num_sge = 0};

		if (!NET_CHECK(fake_request(rdma_qp(conn), FAKE_SQ, at, &sent) && sent.num_sge == 1))
			break;
		NET_CHECK(!(sent.send_flags & IBV_SEND_INLINE));
		NET_CHECK(sent.sge[0].addr == addr && sent.sge[0].lkey == lkey);
		addr += sent.sge[0].length;
	}
	NET_CHECK(addr == end);
	return at;
}

/* ---- two cards ---- */

/* Client on one card, server on the other: each sends the same memory, with its own card's key. */
static void
script_two_cards(struct rdma_pair *pair)
{
	struct xr_conn *client = pair->client.conn, *server = pair->server.conn;

	NET_CHECK(strcmp(rdma_info(client).rdma.device, "fake0") == 0);
	NET_CHECK(strcmp(rdma_info(server).rdma.device, "fake1") == 0);
	NET_CHECK(send_memory(client, OFFSET, PART, g_key) == 0);
	NET_CHECK(send_memory(server, OFFSET, PART, g_key) == 0);
	NET_AWAIT(PROBE_READ(pair->client.bytes) == PART && PROBE_READ(pair->server.bytes) == PART);
	NET_AWAIT(PROBE_READ(g_freed) == 2);
	check_requests(client, 0, PART, lkey_on(0));
	check_requests(server, 0, PART, lkey_on(1));
	NET_CHECK(lkey_on(0) != lkey_on(1));
	NET_CHECK(xr_mem_deregister(g_key) == 0);
}

static void
test_two_cards(void)
{
	struct fake_device first = fake_device("fake0", "127.0.0.1"), second = fake_device("fake1", "127.0.0.2");
	struct rdma_pair pair = {.client.on_data = take_pattern_only, .server.on_data = take_pattern_only};
	unsigned access = 99;

	rdma_card(&first);
	fake_device_add(&second);
	net_up(1, NULL);
	register_memory();
	for (unsigned device = 0; device < 2; device++) {
		CU_ASSERT(fake_region(device, g_memory + MEMORY_BYTES - 1, &access));
		ASSERT_EQ(access, 0); /* a card has no business to write there */
	}
	rdma_pair_run_at(&pair, "127.0.0.2:0", script_two_cards);
	CU_ASSERT(!fake_region(0, g_memory, &access) && !fake_region(1, g_memory, &access));
	rdma_down();
}

/* ---- in flight ---- */

static void
script_in_flight(struct rdma_pair *pair)
{
	struct xr_conn *conn = pair->client.conn;

	fake_hold(FAKE_ACK, rdma_qp(conn));
	NET_CHECK(send_memory(conn, OFFSET, PART, g_key) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == PART);
	rdma_settle();
	NET_CHECK(rdma_info(conn).output_queued == 0 && rdma_info(conn).rdma.in_flight == PART);
	NET_CHECK(xr_mem_deregister(g_key) == -EBUSY);
	NET_CHECK(PROBE_READ(g_freed) == 0);
	fake_let_go(FAKE_ACK, rdma_qp(conn));
	NET_AWAIT(PROBE_READ(g_freed) == 1);
	NET_CHECK(xr_mem_deregister(g_key) == 0);
	NET_CHECK(xr_mem_deregister(g_key) == -EINVAL);
}

static void
test_in_flight(void)
{
	struct rdma_pair pair = {.server.on_data = take_pattern_only};
	unsigned access;

	rdma_up(NULL);
	register_memory();
	rdma_pair_run(&pair, script_in_flight);
	CU_ASSERT(!fake_region(0, g_memory, &access));
	rdma_down();
}

/* A connection that is cut off lets go of what was in flight when its queue pair is gone, no sooner. */
static void
script_cut_off(struct rdma_pair *pair)
{
	struct xr_conn *conn = pair->client.conn;

	fake_hold(FAKE_DELIVERY, rdma_qp(conn));
	NET_CHECK(send_memory(conn, OFFSET, PART, g_key) == 0);
	rdma_settle();
	NET_CHECK(xr_mem_deregister(g_key) == -EBUSY);
	fake_fail_qp(rdma_qp(conn));
	NET_AWAIT(PROBE_READ(pair->client.closed) == 1);
	NET_CHECK(PROBE_READ(g_freed) == 1);
	NET_CHECK(xr_mem_deregister(g_key) == 0);
}

static void
test_cut_off(void)
{
	struct rdma_pair pair = {.client.opened = 0};

	rdma_up(NULL);
	register_memory();
	rdma_pair_run(&pair, script_cut_off);
	rdma_down();
}

/* So short that the request itself carries the bytes: the memory is free as soon as it was posted. */
static void
script_short(struct rdma_pair *pair)
{
	struct fake_request sent = {.num_sge = 0};

	fake_hold(FAKE_ACK, rdma_qp(pair->client.conn));
	NET_CHECK(send_memory(pair->client.conn, OFFSET, 100, g_key) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == 100 && PROBE_READ(g_freed) == 1);
	NET_CHECK(fake_request(rdma_qp(pair->client.conn), FAKE_SQ, 0, &sent));
	NET_CHECK(sent.send_flags & IBV_SEND_INLINE);
	NET_CHECK(xr_mem_deregister(g_key) == 0);
	fake_let_go(FAKE_ACK, rdma_qp(pair->client.conn));
}

static void
test_short(void)
{
	struct rdma_pair pair = {.server.on_data = take_pattern_only};

	rdma_up(NULL);
	register_memory();
	rdma_pair_run(&pair, script_short);
	rdma_down();
}

/* ---- at random ---- */

#define SLOTS	   16
#define SLOT_BYTES ((size_t)20000)
#define STEPS	   3000

/* Memory with a range of its own, which the card reads as long as it is lent. */
struct slot {
	uint8_t bytes[SLOT_BYTES];
	xr_mem_key key;
	unsigned lent;
};

struct lending {
	struct xr_conn *conn;
	struct slot *slot;
	size_t offset, len;
	int ret;
};

static void
come_back(void *data, void *arg)
{
	(void)data;
	__atomic_fetch_sub(&((struct slot *)arg)->lent, 1, __ATOMIC_RELEASE);
}

static void
do_lend(void *arg)
{
	struct lending *lending = arg;
	struct slot *slot = lending->slot;
	struct xr_iobuf out = XR_IOBUF_INIT;

	__atomic_fetch_add(&slot->lent, 1, __ATOMIC_RELAXED);
	NET_CHECK(xr_iobuf_append_user(&out, slot->bytes + lending->offset, lending->len, slot->key, come_back, slot) ==
		  0);
	lending->ret = xr_conn_send(lending->conn, &out);
	xr_iobuf_clear(&out);
}

/* The next bytes of the pattern from a slot that is free. How many were taken. */
static size_t
lend(struct xr_conn *conn, struct slot *slot, uint64_t sent)
{
	size_t offset = (size_t)rand() % SLOT_BYTES;
	struct lending lending = {conn, slot, offset, 1 + (size_t)rand() % (SLOT_BYTES - offset), 0};

	fill_pattern(slot->bytes + offset, sent, lending.len);
	rdma_do(do_lend, &lending);
	NET_CHECK(lending.ret == 0 || lending.ret == -EAGAIN);
	return lending.ret == 0 ? lending.len : 0;
}

/* Busy as long as it is lent, and at no other time. */
static void
renew(struct slot *slot)
{
	bool free_before = PROBE_READ(slot->lent) == 0;
	xr_mem_key stale = slot->key;
	int ret = xr_mem_deregister(slot->key);

	NET_CHECK(ret == 0 || (ret == -EBUSY && !free_before));
	if (ret)
		return;
	NET_CHECK(PROBE_READ(slot->lent) <= 1); /* it is counted down when the range has been let go of */
	NET_CHECK(xr_mem_deregister(stale) == -EINVAL);
	NET_CHECK(xr_mem_register(slot->bytes, SLOT_BYTES, &slot->key) == 0 && slot->key != stale);
}

static void
script_random(struct rdma_pair *pair)
{
	static struct slot slots[SLOTS];
	struct xr_conn *conn = pair->client.conn;
	uint64_t sent = 0;

	srand(3);
	for (unsigned i = 0; i < SLOTS; i++)
		NET_CHECK(xr_mem_register(slots[i].bytes, SLOT_BYTES, &slots[i].key) == 0);
	for (unsigned step = 0; step < STEPS; step++) {
		struct slot *slot = &slots[rand() % SLOTS];
		size_t len = 1 + (size_t)rand() % SLOT_BYTES;

		if (step % 100 == 0)
			fake_hold(FAKE_ACK, rdma_qp(conn));
		if (step % 100 == 70)
			fake_let_go(FAKE_ACK, rdma_qp(conn));
		if (rand() % 4 == 0)
			sent += rdma_send(conn, sent, len) == 0 ? len : 0;
		else if (rand() % 3 == 0)
			renew(slot);
		else if (PROBE_READ(slot->lent) == 0)
			sent += lend(conn, slot, sent);
	}
	fake_let_go(FAKE_ACK, rdma_qp(conn));
	NET_AWAIT(PROBE_READ(pair->server.bytes) == sent);
	for (unsigned i = 0; i < SLOTS; i++) {
		NET_AWAIT(PROBE_READ(slots[i].lent) == 0);
		NET_CHECK(xr_mem_deregister(slots[i].key) == 0);
	}
}

static void
test_random(void)
{
	struct rdma_pair pair = {.server.on_data = take_pattern_only};

	rdma_up(NULL);
	rdma_pair_run(&pair, script_random);
	rdma_down();
}

/* ---- refused ---- */

static void
script_unregistered(struct rdma_pair *pair)
{
	struct xr_conn *conn = pair->client.conn;

	NET_CHECK(send_memory(conn, OFFSET, PART, XR_MEM_KEY_NONE) == -XR_ERDMAMEM);
	NET_CHECK(PROBE_READ(g_freed) == 1);
	rdma_settle();
	NET_CHECK(fake_requests(rdma_qp(conn), FAKE_SQ) == 0);
	NET_CHECK(rdma_send(conn, 0, 10) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == 10);
}

static void
test_unregistered(void)
{
	struct rdma_pair pair = {.server.on_data = take_pattern_only};

	rdma_up(NULL);
	g_freed = 0;
	rdma_pair_run(&pair, script_unregistered);
	rdma_down();
}

#define LENT_BYTES 1000u

static char *g_lent;

/* Bytes of a block that the application holds, lent without a key. */
static void
lend_block(void *arg)
{
	struct rdma_pair *pair = arg;
	struct xr_iobuf *held = pair->arg, out = XR_IOBUF_INIT;
	char scratch[LENT_BYTES];

	fill_pattern((uint8_t *)scratch, 0, sizeof scratch);
	NET_CHECK(xr_iobuf_append(held, scratch, sizeof scratch) == 0);
	g_lent = (char *)xr_iobuf_peek(held, 0, LENT_BYTES, scratch);
	NET_CHECK(g_lent != scratch);
	NET_CHECK(xr_iobuf_append_user(&out, g_lent, LENT_BYTES, XR_MEM_KEY_NONE, count_free, NULL) == 0);
	NET_CHECK(xr_conn_send(pair->client.conn, &out) == 0);
}

static void
let_go(void *arg)
{
	xr_iobuf_clear(arg);
}

static void
script_pool_memory(struct rdma_pair *pair)
{
	struct fake_request sent = {.num_sge = 0};

	rdma_do(lend_block, pair);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == LENT_BYTES && PROBE_READ(g_freed) == 1);
	NET_CHECK(fake_request(rdma_qp(pair->client.conn), FAKE_SQ, 0, &sent) && sent.num_sge == 1);
	NET_CHECK(!(sent.send_flags & IBV_SEND_INLINE) && sent.sge[0].addr == (uintptr_t)g_lent);
	rdma_do(let_go, pair->arg);
}

static void
test_pool_memory(void)
{
	struct xr_iobuf held = XR_IOBUF_INIT;
	struct rdma_pair pair = {.server.on_data = take_pattern_only, .arg = &held};

	rdma_up(NULL);
	g_freed = 0;
	rdma_pair_run(&pair, script_pool_memory);
	rdma_down();
}

/* ---- a card that comes later ---- */

/* The cards go and come again, before any connection. */
static void
renew_cards(void)
{
	devices_fini();
	ASSERT_EQ(devices_init(), 0);
	ASSERT_EQ(device_count(), 1);
}

static void
script_later_card(struct rdma_pair *pair)
{
	NET_CHECK(send_memory(pair->client.conn, OFFSET, PART, g_key) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == PART);
	check_requests(pair->client.conn, 0, PART, lkey_on(0));
}

static void
test_later_card(void)
{
	struct rdma_pair pair = {.server.on_data = take_pattern_only};
	uint32_t before;

	rdma_up(NULL);
	register_memory();
	before = lkey_on(0);
	renew_cards();
	CU_ASSERT(lkey_on(0) != before);
	rdma_pair_run(&pair, script_later_card);
	ASSERT_EQ(g_freed, 1);
	rdma_down(); /* the range ends with the library */
}

static void
script_lacking_card(struct rdma_pair *pair)
{
	NET_CHECK(send_memory(pair->client.conn, OFFSET, PART, g_key) == -XR_ERDMAMEM);
	NET_CHECK(rdma_send(pair->client.conn, 0, 10000) == 0);
	NET_AWAIT(PROBE_READ(pair->server.bytes) == 10000);
	NET_CHECK(xr_mem_deregister(g_key) == 0);
}

/* The card takes the pool's memory but not the range: it is used, but not for that. */
static void
test_lacking_card(void)
{
	struct rdma_pair pair = {.server.on_data = take_pattern_only};
	unsigned regions;

	rdma_up(NULL);
	regions = fake_calls("reg_mr");
	register_memory();
	fake_fail("reg_mr", regions + 1, ENOMEM);
	renew_cards();
	CU_ASSERT(net_logged("RDMA device fake0 can't send from user memory, 98 KiB at 0x"));
	rdma_pair_run(&pair, script_lacking_card);
	rdma_down();
}

static void
test_refused_registration(void)
{
	xr_mem_key key;

	rdma_up(NULL);
	fake_fail("reg_mr", 1, ENOMEM);
	ASSERT_EQ(xr_mem_register(g_memory, sizeof g_memory, &key), -ENOMEM);
	CU_ASSERT(net_logged("RDMA device fake0 can't send from user memory"));
	ASSERT_EQ(xr_mem_find(g_memory, 1, &key), -ENOENT);
	rdma_down();
}

/* ---- queued before the transport is known ---- */

/* A dial with so much queued, until the server has it all; what the client says of its transport. */
struct early {
	struct probe client, server;
	size_t expected;
	struct xr_conn_info info;
	bool from_memory; /* the card has read the memory itself */
};

static bool
in_memory(const struct ibv_sge *sge)
{
	return sge->addr >= (uintptr_t)g_memory && sge->addr < (uintptr_t)g_memory + sizeof g_memory;
}

static void
watch_arrival(void *arg)
{
	struct early *early = arg;
	struct fake_request first = {.num_sge = 0};

	NET_AWAIT(PROBE_READ(early->server.bytes) == early->expected);
	early->info = rdma_info(early->client.conn);
	if (early->info.rdma.device && fake_request(rdma_qp(early->client.conn), FAKE_SQ, 0, &first))
		early->from_memory = first.num_sge == 2 && in_memory(&first.sge[1]);
	xr_stop();
}

static void
run_early(struct early *early, void *data, size_t len, xr_mem_key key)
{
	struct xr_iobuf out = XR_IOBUF_INIT;
	struct xr_conn *conn;

	g_freed = 0;
	early->expected = 5 + len;
	conn = probe_dial(&early->client, xr_listener_address(probe_listen(&early->server, NULL)), XR_RDMA_AUTO);
	ASSERT_EQ(xr_iobuf_append(&out, "front", 5), 0);
	ASSERT_EQ(xr_iobuf_append_user(&out, data, len, key, count_free, NULL), 0);
	ASSERT_EQ(xr_conn_send(conn, &out), 0);
	net_run(watch_arrival, early);
	ASSERT_EQ(PROBE_READ(g_freed), 1);
}

static void
take_behind_front(struct probe *probe, struct xr_conn *conn, struct xr_iobuf *in)
{
	if (probe->bytes == 0)
		__atomic_store_n(&probe->bytes, xr_iobuf_drop(in, 5), __ATOMIC_RELEASE);
	(void)conn;
	__atomic_store_n(&probe->bytes, probe->bytes + take_pattern(in, probe->bytes - 5), __ATOMIC_RELEASE);
}

static void
test_early_unregistered(void)
{
	struct early early = {.server.on_data = take_behind_front};

	rdma_up(NULL);
	fill_pattern(g_memory + OFFSET, 0, PART);
	run_early(&early, g_memory + OFFSET, PART, XR_MEM_KEY_NONE);
	ASSERT_STR(early.info.transport, "rdma");
	ASSERT_EQ(early.from_memory, false);
	ASSERT_EQ(net_counted(NET_FALLBACKS), 0);
	rdma_down();
}

static void
test_early_registered(void)
{
	struct early early = {.server.on_data = take_behind_front};

	rdma_up(NULL);
	register_memory();
	run_early(&early, g_memory + OFFSET, PART, g_key);
	ASSERT_STR(early.info.transport, "rdma");
	ASSERT_EQ(early.from_memory, true);
	ASSERT_EQ(xr_mem_deregister(g_key), 0);
	rdma_down();
}

/* The user is told in the flush step, where it may do anything to the connection. */
static void
abort_it(void *data, void *arg)
{
	(void)data;
	g_freed++;
	xr_conn_abort(*(struct xr_conn **)arg, -EINTR);
}

static void
run_aborted(void)
{
	struct probe server = {.on_data = NULL}, client = {.on_close = probe_stop_on_close};
	struct xr_iobuf out = XR_IOBUF_INIT;
	struct xr_conn *conn = NULL;

	g_freed = 0;
	conn = probe_dial(&client, xr_listener_address(probe_listen(&server, NULL)), XR_RDMA_AUTO);
	ASSERT_EQ(xr_iobuf_append_user(&out, g_memory, PART, XR_MEM_KEY_NONE, abort_it, &conn), 0);
	ASSERT_EQ(xr_conn_send(conn, &out), 0);
	net_run(NULL, NULL);
	ASSERT_EQ(client.close_reason, -EINTR);
	ASSERT_EQ(client.closed, 1);
	ASSERT_EQ(g_freed, 1);
}

static void
test_aborted_when_told(void)
{
	rdma_up(NULL);
	run_aborted();
	rdma_down();
}

/* The copy is made, then the queue pair fails: the users are told as it is given back, in the handshake. */
static void
test_aborted_when_told_in_the_handshake(void)
{
	static const char *const steps[] = {"modify_qp_rtr", "modify_qp_rts", "post_recv"};

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		rdma_up(NULL);
		fake_fail_times(steps[i], 1, FAKE_FOREVER, EINVAL);
		run_aborted();
		fake_fail_none();
		rdma_down();
	}
}

/* More than the whole pool: RDMA would need a copy for which there is no room. */
static void
test_early_too_much(void)
{
	struct early early = {.server.on_data = NULL};
	size_t len = (size_t)40 << 20;
	void *data = calloc(1, len);

	ASSERT_FATAL(data != NULL);
	rdma_up("--rdma_memory_pool_initial_size_mb=32", "--rdma_memory_pool_max_regions=1", NULL);
	run_early(&early, data, len, XR_MEM_KEY_NONE);
	ASSERT_STR(early.info.transport, "tcp");
	ASSERT_STR(early.info.fallback_reason,
		   "user memory is queued that the device does not know, and the pool has no room for a copy");
	rdma_down();
	free(data);
}

UNIT_SUITE("user_memory", {"two cards, each with its own key", test_two_cards},
	   {"a range in flight is busy", test_in_flight},
	   {"a connection that fails lets go of its memory", test_cut_off},
	   {"short memory goes with the request", test_short}, {"ranges come and go under load", test_random},
	   {"unregistered memory is refused", test_unregistered}, {"the pool's memory needs no key", test_pool_memory},
	   {"a card that comes later knows the range", test_later_card},
	   {"a card that lacks the range is used for the rest", test_lacking_card},
	   {"a registration that a card refuses", test_refused_registration},
	   {"unregistered memory queued before is copied", test_early_unregistered},
	   {"registered memory queued before is not", test_early_registered},
	   {"the user may abort when told", test_aborted_when_told},
	   {"also in the midst of a handshake", test_aborted_when_told_in_the_handshake},
	   {"too much for a copy goes over TCP", test_early_too_much});
