/* SPDX-License-Identifier: Apache-2.0 */

/* Devices as programs see them: the list, attributes, ports, GIDs; and their asynchronous events. */

#include "tests/unit/fakeverbs/pair.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#define NO_EVENT 255

/* ---- looking ---- */

static void
test_no_device_until_one_is_added(void)
{
	struct ibv_device **list;
	int count = 9;

	fake_reset();
	list = ibv_get_device_list(&count);
	ASSERT_FATAL(list != NULL);
	ASSERT_EQ(count, 0);
	CU_ASSERT_PTR_NULL(list[0]);
	ASSERT_EQ(fake_alive(FAKE_DEVICE_LISTS), 1);
	ibv_free_device_list(list);
	assert_clean();
}

static void
test_devices_are_listed_in_order(void)
{
	struct ibv_device **list;

	pair_devices();
	list = ibv_get_device_list(NULL);
	ASSERT_FATAL(list != NULL);
	ASSERT_STR(ibv_get_device_name(list[0]), "fake0");
	ASSERT_STR(ibv_get_device_name(list[1]), "fake1");
	CU_ASSERT(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
	CU_ASSERT_PTR_NULL(list[2]);
	ibv_free_device_list(list);
	assert_clean();
}

static void
test_attributes_are_those_of_the_test(void)
{
	struct fake_device device = fake_device("odd", "10.0.0.3");
	struct ibv_device_attr_ex attr_ex;
	struct ibv_context *context;
	struct ibv_device_attr attr;

	fake_reset();
	device.max_sge = 3;
	device.max_qp_wr = 77;
	device.max_cqe = 99;
	fake_device_add(&device);
	context = open_device(0);
	ASSERT_EQ(ibv_query_device(context, &attr), 0);
	ASSERT_EQ(attr.max_sge, 3);
	ASSERT_EQ(attr.max_qp_wr, 77);
	ASSERT_EQ(attr.max_cqe, 99);
	ASSERT_EQ(attr.phys_port_cnt, 1);
	ASSERT_EQ(ibv_query_device_ex(context, NULL, &attr_ex), 0);
	ASSERT_EQ(attr_ex.orig_attr.max_sge, 3);
	ASSERT_EQ(fake_calls("query_device_ex"), 1);
	ASSERT_EQ(ibv_query_device_ex(context, &(struct ibv_query_device_ex_input){.comp_mask = 1}, &attr_ex), EINVAL);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

static void
test_ports(void)
{
	struct fake_device device = fake_device("two-ports", "10.0.0.3");
	struct ibv_context *context;
	struct ibv_port_attr attr;
	__be16 pkey = 0;

	fake_reset();
	device.port_count = 2;
	device.ports[1] = (struct fake_port){
		.state = IBV_PORT_DOWN, .link_layer = IBV_LINK_LAYER_INFINIBAND, .lid = 42, .active_mtu = IBV_MTU_2048};
	fake_device_add(&device);
	context = open_device(0);
	ASSERT_EQ(ibv_query_port(context, 1, &attr), 0);
	ASSERT_EQ(attr.state, IBV_PORT_ACTIVE);
	ASSERT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	ASSERT_EQ(attr.gid_tbl_len, FAKE_GIDS);
	ASSERT_EQ(ibv_query_port(context, 2, &attr), 0);
	ASSERT_EQ(attr.state, IBV_PORT_DOWN);
	ASSERT_EQ(attr.lid, 42);
	ASSERT_EQ(attr.active_mtu, IBV_MTU_2048);
	ASSERT_EQ(ibv_query_port(context, 3, &attr), EINVAL);
	ASSERT_EQ(ibv_query_port(context, 0, &attr), EINVAL);
	ASSERT_EQ(ibv_query_pkey(context, 1, 0, &pkey), 0);
	ASSERT_EQ(ntohs(pkey), 0xffff);
	ASSERT_EQ(ibv_query_pkey(context, 1, 1, &pkey), -1);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

static void
test_gid_tables(void)
{
	struct ibv_gid_entry entries[8], entry;
	struct ibv_context *context;
	union ibv_gid gid;

	pair_devices();
	context = open_device(0);
	ASSERT_EQ(ibv_query_gid_table(context, entries, 8, 0), 3);
	ASSERT_EQ(entries[0].gid_type, IBV_GID_TYPE_ROCE_V1);
	ASSERT_EQ(entries[0].gid.raw[0], 0xfe);
	ASSERT_EQ(entries[2].gid_type, IBV_GID_TYPE_ROCE_V2);
	ASSERT_EQ(entries[2].gid_index, 2);
	ASSERT_EQ(entries[2].port_num, 1);
	ASSERT_EQ(entries[2].ndev_ifindex, 1);
	ASSERT_EQ(ibv_query_gid_table(context, entries, 2, 0), -EINVAL);
	ASSERT_EQ(ibv_query_gid_ex(context, 1, 2, &entry, 0), 0);
	ASSERT_EQ(memcmp(&entry, &entries[2], sizeof entry), 0);
	ASSERT_EQ(ibv_query_gid_ex(context, 1, 3, &entry, 0), ENODATA);
	ASSERT_EQ(ibv_query_gid_ex(context, 1, FAKE_GIDS, &entry, 0), EINVAL);
	ASSERT_EQ(ibv_query_gid(context, 1, 1, &gid), 0);
	ASSERT_EQ(memcmp(gid.raw + 12, "\x0a\x00\x00\x01", 4), 0);
	ASSERT_EQ(ibv_query_gid(context, 1, 3, &gid), 0); /* all zero */
	ASSERT_EQ(gid.global.interface_id, 0);
	ASSERT_EQ(ibv_query_gid(context, 1, FAKE_GIDS, &gid), -1);
	ASSERT_EQ(errno, EINVAL);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

#undef ibv_query_port

/* The symbol behind the macro, which old programs call, knows a shorter structure. */
static void
test_old_query_port(void)
{
	struct ibv_port_attr attr = {.port_cap_flags2 = 0x5aa5};
	struct ibv_context *context;

	pair_devices();
	context = open_device(0);
	ASSERT_EQ(ibv_query_port(context, 1, (struct _compat_ibv_port_attr *)&attr), 0);
	ASSERT_EQ(attr.state, IBV_PORT_ACTIVE);
	ASSERT_EQ(attr.port_cap_flags2, 0x5aa5);
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

/* ---- events ---- */

static struct ibv_async_event
take_event(struct ibv_context *context)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(context, &event) != 0) {
		ASSERT_EQ(errno, EAGAIN);
		event.event_type = NO_EVENT;
		return event;
	}
	ibv_ack_async_event(&event);
	return event;
}

static void
test_changes_raise_events(void)
{
	struct fake_gid gid = fake_gid_ipv4("10.0.0.9", IBV_GID_TYPE_ROCE_V2, 3);
	struct ibv_context *contexts[2], *other;
	struct ibv_gid_entry entry;
	struct pollfd pfd;

	pair_devices();
	contexts[0] = open_device(0);
	contexts[1] = open_device(0);
	other = open_device(1);
	ASSERT_EQ(fcntl(other->async_fd, F_SETFL, O_NONBLOCK), 0);
	ASSERT_EQ(take_event(other).event_type, NO_EVENT);
	fake_port_set(0, 1, IBV_PORT_DOWN);
	fake_port_set(0, 1, IBV_PORT_DOWN); /* is already */
	fake_port_set(0, 1, IBV_PORT_ACTIVE);
	fake_gid_set(0, 1, 5, &gid);
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_EQ(fcntl(contexts[i]->async_fd, F_SETFL, O_NONBLOCK), 0);
		pfd = (struct pollfd){.fd = contexts[i]->async_fd, .events = POLLIN};
		ASSERT_EQ(poll(&pfd, 1, 0), 1);
		ASSERT_EQ(take_event(contexts[i]).event_type, IBV_EVENT_PORT_ERR);
		ASSERT_EQ(take_event(contexts[i]).event_type, IBV_EVENT_PORT_ACTIVE);
		ASSERT_EQ(take_event(contexts[i]).event_type, IBV_EVENT_GID_CHANGE);
		ASSERT_EQ(take_event(contexts[i]).event_type, NO_EVENT);
		ASSERT_EQ(poll(&pfd, 1, 0), 0);
	}
	ASSERT_EQ(take_event(other).event_type, NO_EVENT);
	ASSERT_EQ(ibv_query_gid_ex(contexts[0], 1, 5, &entry, 0), 0);
	ASSERT_EQ(entry.ndev_ifindex, 3);
	ASSERT_EQ(ibv_close_device(contexts[0]), 0);
	ASSERT_EQ(ibv_close_device(contexts[1]), 0);
	ASSERT_EQ(ibv_close_device(other), 0);
	assert_clean();
}

static void
test_fatal_device(void)
{
	struct ibv_async_event event;
	struct pair pair;

	pair_open(&pair, &(struct pair_want){.device_b = 1});
	recv_many(&pair.a, 1);
	fake_device_fatal(0);
	ASSERT_EQ(ibv_get_async_event(pair.a.context, &event), 0);
	ASSERT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	ASSERT_EQ(poll_one(pair.a.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
	ASSERT_EQ(fake_qp_state(pair.a.qp->qp_num), IBV_QPS_ERR);
	ASSERT_EQ(fake_qp_state(pair.b.qp->qp_num), IBV_QPS_RTS);
	CU_ASSERT_PTR_NULL(ibv_create_cq(pair.a.context, 1, NULL, NULL, 0));
	ASSERT_EQ(errno, EIO);
	CU_ASSERT_PTR_NULL(ibv_alloc_pd(pair.a.context));
	ASSERT_EQ(errno, EIO);
	CU_ASSERT_PTR_NULL(ibv_create_comp_channel(pair.a.context));
	CU_ASSERT_PTR_NULL(ibv_reg_mr(pair.a.pd, pair.a.memory, 1, 0));
	CU_ASSERT_PTR_NULL(open_device(0));
	ASSERT_EQ(errno, EIO);
	pair_close(&pair);
}

static void
test_events_must_be_acknowledged_once(void)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_LID_CHANGE, .element.port_num = 1};
	struct ibv_context *context;

	pair_devices();
	context = open_device(0);
	fake_raise(0, &event);
	ASSERT_EQ(ibv_get_async_event(context, &event), 0);
	ASSERT_EQ(event.event_type, IBV_EVENT_LID_CHANGE);
	ASSERT_EQ(ibv_close_device(context), -1);
	CU_ASSERT(fake_forgive("1 events that nobody has acknowledged"));
	ibv_ack_async_event(&event);
	ibv_ack_async_event(&event);
	CU_ASSERT(fake_forgive("that nobody has got"));
	ASSERT_EQ(ibv_close_device(context), 0);
	assert_clean();
}

static void
test_events_of_a_destroyed_queue_pair_vanish(void)
{
	struct pair pair;
	struct ibv_async_event event;

	pair_open(&pair, NULL);
	fake_fail_qp(pair.a.qp->qp_num);
	fake_port_set(0, 1, IBV_PORT_DOWN);
	ASSERT_EQ(ibv_destroy_qp(pair.a.qp), 0);
	pair.a.qp = NULL;
	ASSERT_EQ(ibv_get_async_event(pair.a.context, &event), 0);
	ASSERT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&event);
	pair_close(&pair);
}

/* ---- names ---- */

static void
test_texts(void)
{
	ASSERT_STR(ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR), "RNR retry counter exceeded");
	ASSERT_STR(ibv_wc_status_str((enum ibv_wc_status)99), "unknown");
	ASSERT_STR(ibv_event_type_str(IBV_EVENT_PORT_ERR), "port error");
	ASSERT_STR(ibv_event_type_str(IBV_EVENT_PATH_MIG), "unknown");
	ASSERT_STR(ibv_port_state_str(IBV_PORT_ACTIVE), "PORT_ACTIVE");
	ASSERT_STR(ibv_port_state_str((enum ibv_port_state)9), "unknown");
	ASSERT_STR(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
	ASSERT_STR(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
	ASSERT_EQ(ibv_fork_init(), 0);
}

UNIT_SUITE("fakeverbs/card", {"no device until one is added", test_no_device_until_one_is_added},
	   {"devices are listed in order", test_devices_are_listed_in_order},
	   {"attributes are those of the test", test_attributes_are_those_of_the_test}, {"ports", test_ports},
	   {"GID tables", test_gid_tables}, {"the old query_port", test_old_query_port},
	   {"changes raise events", test_changes_raise_events}, {"a fatal device", test_fatal_device},
	   {"events must be acknowledged once", test_events_must_be_acknowledged_once},
	   {"events of a destroyed queue pair vanish", test_events_of_a_destroyed_queue_pair_vanish},
	   {"texts", test_texts});
