/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/net/verbs/endpoint_stub.h"

#include "net/verbs/async.h"
#include "net/verbs/qp.h"
#include "poll/reactor_private.h"
#include "tests/unit/net/verbs/rdma_fixture.h"
#include <errno.h>
#include <semaphore.h>
#include <sys/epoll.h>

#define LCORES 2u

/* What one lcore has on one device: an endpoint and its queue pair. */
struct part {
	struct stub stub;
	unsigned lcore, device;
	struct cq *cq;
	struct qp qp;
	int vector; /* of its queues */
};

static struct part g_parts[LCORES][2]; /* by lcore and device */
static int g_vector_seen;

struct ibv_cq *__real_ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int vector);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int vector);

struct ibv_cq *
__wrap_ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
		     int vector)
{
	__atomic_store_n(&g_vector_seen, vector, __ATOMIC_RELAXED);
	return __real_ibv_create_cq(context, cqe, cq_context, channel, vector);
}

/* ---- on each lcore ---- */

struct errand {
	struct xr_msg msg;
	void (*fn)(struct part *part);
	struct part *part;
	sem_t done;
};

static void
run_errand(struct xr_msg *msg, int status)
{
	struct errand *errand = caa_container_of(msg, struct errand, msg);

	if (NET_CHECK(status == 0))
		errand->fn(errand->part);
	sem_post(&errand->done);
}

static void
on_lcore(struct part *part, void (*fn)(struct part *part))
{
	struct errand errand = {.msg = XR_MSG_INIT(run_errand), .fn = fn, .part = part};

	sem_init(&errand.done, 0, 0);
	if (NET_CHECK(xr_post(part->lcore, &errand.msg) == 0))
		sem_wait(&errand.done);
	sem_destroy(&errand.done);
}

static void
nothing(struct part *part)
{
	(void)part;
}

static void
join(struct part *part)
{
	static const struct qp_want want = {.sq_size = 16, .rq_size = 16};
	const char *why = "";

	part->cq = cq_get(device_at(part->device), &why);
	part->vector = __atomic_load_n(&g_vector_seen, __ATOMIC_RELAXED);
	NET_CHECK(part->cq && cq_admit(part->cq, stub_endpoint(&part->stub), 20, 16, &part->stub.handle, &why) == 0);
	NET_CHECK(qp_create(part->cq, &want, part->stub.handle, &part->qp, &why) == 0);
}

static void
part_from(struct part *part)
{
	if (!part->cq)
		return;
	NET_CHECK(qp_destroy(&part->qp) == 0);
	cq_dismiss(part->cq, part->stub.handle, 20, 16);
	part->cq = NULL;
}

static void
for_each_part(void (*fn)(struct part *part))
{
	for (unsigned i = 0; i < LCORES; i++)
		for (unsigned device = 0; device < 2; device++)
			on_lcore(&g_parts[i][device], fn);
}

/* ---- around each test ---- */

static void (*g_script)(void);
static int g_vectors = 1;

static void
play(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < device_count(); i++)
		device_at(i)->context->num_comp_vectors = g_vectors;
	for_each_part(join);
	g_script();
	for_each_part(part_from);
	xr_stop();
}

static void
run_with(const char *port, void (*script)(void))
{
	struct fake_device second = fake_device("fake1", "127.0.0.2");

	for (unsigned i = 0; i < LCORES; i++)
		for (unsigned device = 0; device < 2; device++)
			g_parts[i][device] = (struct part){.lcore = i, .device = device};
	rdma_card(NULL);
	fake_device_add(&second);
	net_up(LCORES, "--log_level", "debug", "--port", port, NULL);
	g_script = script;
	net_run(play, NULL);
}

static void
run(void (*script)(void))
{
	run_with("default,mode=event", script);
	rdma_down();
}

/* Everything that is on its way to the lcores has arrived: the main lcore has seen the event, then each its notice. */
static void
settle(void)
{
	for (int i = 0; i < 3; i++)
		for_each_part(nothing);
	net_sleep_ms(20);
	for_each_part(nothing);
}

static void
await_acknowledged(unsigned count)
{
	NET_AWAIT(fake_calls("ack_async_event") == count);
	settle();
}

static unsigned
told(unsigned lcore, unsigned device)
{
	return PROBE_READ(g_parts[lcore][device].stub.events);
}

/* ---- of a queue pair ---- */

static void
qp_fatal_on_the_other_lcore(void)
{
	struct part *part = &g_parts[1][0];

	fake_fail_qp(part->qp.qp->qp_num);
	NET_AWAIT(told(1, 0) == 1);
	NET_CHECK(part->stub.lcore == 1);
	NET_CHECK(part->stub.event == IBV_EVENT_QP_FATAL);
	await_acknowledged(1);
	NET_CHECK(told(0, 0) + told(0, 1) + told(1, 1) == 0);
	NET_CHECK(device_usable(device_at(0)));
}

static void
test_queue_pair(void)
{
	run(qp_fatal_on_the_other_lcore);
}

static void
raise_qp(const struct part *part, enum ibv_event_type type)
{
	const struct ibv_async_event event = {.element.qp = part->qp.qp, .event_type = type};

	fake_raise(part->device, &event);
}

static void
each_kind_of_qp_event(void)
{
	static const enum ibv_event_type ending[] = {IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
						     IBV_EVENT_PATH_MIG_ERR};
	static const enum ibv_event_type harmless[] = {IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED,
						       IBV_EVENT_QP_LAST_WQE_REACHED};

	for (unsigned i = 0; i < 3; i++) {
		raise_qp(&g_parts[0][1], ending[i]);
		NET_AWAIT(told(0, 1) == i + 1);
		NET_CHECK(g_parts[0][1].stub.event == ending[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		raise_qp(&g_parts[0][1], harmless[i]);
	await_acknowledged(6);
	NET_CHECK(told(0, 1) == 3);
	NET_CHECK(told(0, 0) + told(1, 0) + told(1, 1) == 0);
}

static void
test_kinds_of_events(void)
{
	run(each_kind_of_qp_event);
}

/* Another endpoint has the place of the one that the event is about; its generation is another. */
static void
replace_endpoint(struct part *part)
{
	struct ibv_qp *old = part->qp.qp;

	raise_qp(part, IBV_EVENT_QP_FATAL);
	NET_AWAIT(fake_calls("ack_async_event") == 1);
	NET_CHECK(part->qp.qp == old);
	part_from(part);
	join(part);
}

static void
stale_handle(void)
{
	on_lcore(&g_parts[1][0], replace_endpoint);
	settle();
	NET_CHECK(told(1, 0) == 0);
}

/* A blocked lcore: the event is acknowledged by the main one all the same, or destroying the queue pair would hang. */
static void
test_stale(void)
{
	run(stale_handle);
}

/* ---- of a completion queue ---- */

static void
cq_error(void)
{
	const struct ibv_async_event event = {.element.cq = cq_recv(g_parts[1][0].cq), .event_type = IBV_EVENT_CQ_ERR};

	fake_raise(0, &event);
	NET_AWAIT(told(1, 0) == 1);
	NET_CHECK(g_parts[1][0].stub.event == IBV_EVENT_CQ_ERR);
	NET_CHECK(net_logged("RDMA device fake0: CQ error on lcore 1"));
	await_acknowledged(1);
	NET_CHECK(told(0, 0) + told(0, 1) + told(1, 1) == 0);
	/* Its lcore goes on with new queues as soon as the last endpoint has left the old ones. */
	on_lcore(&g_parts[1][0], part_from);
	on_lcore(&g_parts[1][0], join);
	NET_CHECK(g_parts[1][0].cq && !g_parts[1][0].cq->failed);
}

static void
test_completion_queue(void)
{
	run(cq_error);
}

/* ---- of the device ---- */

static bool
gid_exists(const char *address, const char **why)
{
	static const struct gid_wish any = {.device = -1, .ib_port = 0, .gid_index = -1};
	struct address parsed;
	struct gid_entry found;

	NET_CHECK(address_parse(address, &parsed) == 0);
	return gid_find(&parsed.any, &any, &found, why) == 0;
}

static void
get_again(struct part *part)
{
	const char *why = "";

	NET_CHECK(cq_get(device_at(part->device), &why) == NULL);
	NET_CHECK(strcmp(why, "the RDMA device has failed") == 0);
}

static void
device_fatal(void)
{
	const char *why = "";

	fake_device_fatal(0);
	NET_AWAIT(told(0, 0) == 1 && told(1, 0) == 1);
	NET_CHECK(g_parts[0][0].stub.event == IBV_EVENT_DEVICE_FATAL);
	NET_CHECK(g_parts[0][0].stub.lcore == 0 && g_parts[1][0].stub.lcore == 1);
	NET_CHECK(!device_usable(device_at(0)));
	NET_CHECK(device_usable(device_at(1)));
	NET_CHECK(net_logged("RDMA device fake0 has failed (local catastrophic error): its connections end, new ones "
			     "use what else there is"));
	await_acknowledged(1);
	NET_CHECK(told(0, 1) + told(1, 1) == 0);
	on_lcore(&g_parts[1][0], part_from);
	on_lcore(&g_parts[1][0], get_again);
	/* New ones: on the other device. */
	NET_CHECK(gid_exists("127.0.0.2:1", &why));
	NET_CHECK(gid_exists("127.0.0.1:1", &why)); /* loopback: the other card stands in */
	fake_device_fatal(1);
	NET_AWAIT(told(0, 1) == 1 && told(1, 1) == 1);
	settle();
	NET_CHECK(!gid_exists("127.0.0.1:1", &why));
}

static void
test_device(void)
{
	run(device_fatal);
}

/* Twice is once. */
static void
device_fatal_twice(void)
{
	fake_device_fatal(0);
	fake_device_fatal(0);
	await_acknowledged(2);
	NET_CHECK(told(0, 0) == 1 && told(1, 0) == 1);
}

static void
test_device_twice(void)
{
	run(device_fatal_twice);
}

/* A device that was pulled out: its descriptor is ready for ever, and there is nothing to read. */
static void
device_gone(void)
{
	const struct ibv_async_event event = {.element.port_num = 1, .event_type = IBV_EVENT_SM_CHANGE};
	unsigned calls;

	fake_fail_times("get_async_event", 1, FAKE_FOREVER, EIO);
	fake_raise(0, &event);
	NET_AWAIT(told(0, 0) == 1 && told(1, 0) == 1);
	NET_CHECK(g_parts[0][0].stub.event == IBV_EVENT_DEVICE_FATAL);
	NET_CHECK(net_logged("RDMA device fake0 has failed (it is gone)"));
	calls = fake_calls("get_async_event");
	settle();
	NET_CHECK(fake_calls("get_async_event") == calls);
	fake_fail_none();
}

static void
test_device_gone(void)
{
	run(device_gone);
}

/* ---- of its ports ---- */

static void
port_goes_and_comes(void)
{
	const char *why = "";

	NET_CHECK(gid_exists("127.0.0.1:1", &why));
	fake_port_set(0, 1, IBV_PORT_DOWN);
	fake_port_set(1, 1, IBV_PORT_DOWN);
	await_acknowledged(2);
	NET_CHECK(!gid_exists("127.0.0.1:1", &why));
	NET_CHECK(strcmp(why, "the RDMA port is not active") == 0);
	NET_CHECK(net_logged("RDMA device fake0 port 1: port error"));
	fake_port_set(0, 1, IBV_PORT_ACTIVE);
	await_acknowledged(3);
	NET_CHECK(gid_exists("127.0.0.1:1", &why));
	NET_CHECK(told(0, 0) + told(1, 0) + told(0, 1) + told(1, 1) == 0);
}

static void
test_port(void)
{
	run(port_goes_and_comes);
}

static void
gid_comes(void)
{
	const struct fake_gid gid = fake_gid_ipv4("10.1.2.3", IBV_GID_TYPE_ROCE_V2, 1);
	const char *why = "";
	unsigned reads;

	NET_CHECK(!gid_exists("10.1.2.3:1", &why));
	fake_gid_set(1, 1, 9, &gid);
	await_acknowledged(1);
	NET_CHECK(gid_exists("10.1.2.3:1", &why));
	/* The rest of what can change: each is a reason to read anew, none ends anything. */
	reads = fake_calls("query_gid_table");
	for (int i = 0; i < 3; i++) {
		static const enum ibv_event_type types[] = {IBV_EVENT_LID_CHANGE, IBV_EVENT_CLIENT_REREGISTER,
							    IBV_EVENT_PKEY_CHANGE};
		const struct ibv_async_event event = {.element.port_num = 1, .event_type = types[i]};

		fake_raise(0, &event);
		await_acknowledged((unsigned)i + 2);
	}
	NET_CHECK(fake_calls("query_gid_table") == reads + 6);
	NET_CHECK(told(0, 0) + told(1, 0) + told(0, 1) + told(1, 1) == 0);
}

static void
test_gid(void)
{
	run(gid_comes);
}

/* ---- the loop's part ---- */

/* The main lcore polls and sleeps otherwise; the descriptor is watched in every mode. */
static void
test_in_poll_mode(void)
{
	run_with("default,mode=poll", qp_fatal_on_the_other_lcore);
	rdma_down();
	run_with("default,mode=adaptive,spin_us=10", port_goes_and_comes);
	rdma_down();
}

static void
nothing_happens(void)
{
	settle();
}

/* Each lcore has its own as far as they go. */
static void
test_vectors(void)
{
	run(nothing_happens);
	ASSERT_EQ(g_parts[0][1].vector, 0);
	ASSERT_EQ(g_parts[1][1].vector, 0);
	g_vectors = 7;
	run(nothing_happens);
	ASSERT_EQ(g_parts[0][1].vector, 0);
	ASSERT_EQ(g_parts[1][1].vector, 1);
	g_vectors = 1;
}

/* What is raised before the loops run is seen when they do; what is raised when they have ended, by nobody. */
static void
test_before_and_after(void)
{
	rdma_card(NULL);
	net_up(LCORES, NULL);
	fake_port_set(0, 1, IBV_PORT_DOWN);
	xr_stop();
	ASSERT_EQ(xr_run(), 0);
	fake_port_set(0, 1, IBV_PORT_ACTIVE);
	rdma_down();
	rdma_card(NULL);
	net_up(LCORES, NULL);
	fake_device_fatal(0);
	rdma_down();
}

/* A burst of events costs one look at the devices. */
static void
test_burst(void)
{
	unsigned reads;

	rdma_card(NULL);
	net_up(1, NULL);
	reads = fake_calls("query_gid_table");
	for (int i = 0; i < 50; i++)
		fake_port_set(0, 1, i % 2 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
	for (int i = 0; i < 200 && fake_calls("ack_async_event") < 50; i++) {
		reactor_poll(reactor_current(), SOURCES_ALL);
		net_sleep_ms(1);
	}
	ASSERT_EQ(fake_calls("ack_async_event"), 50);
	ASSERT_EQ(fake_calls("query_gid_table"), reads + 1);
	rdma_down();
}

UNIT_SUITE("async", {"a queue pair's event reaches its lcore", test_queue_pair},
	   {"which events end a connection", test_kinds_of_events},
	   {"the event of a connection that is gone", test_stale},
	   {"a completion queue's event reaches its endpoints", test_completion_queue},
	   {"a device fails, others go on", test_device}, {"a device fails once", test_device_twice},
	   {"a device that is gone", test_device_gone}, {"a port goes and comes", test_port}, {"a GID comes", test_gid},
	   {"in the other modes", test_in_poll_mode}, {"completion vectors", test_vectors},
	   {"before and after the loops", test_before_and_after}, {"a burst of events", test_burst});
