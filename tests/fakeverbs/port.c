/* SPDX-License-Identifier: Apache-2.0 */

/* What programs may ask of a card and its ports: attributes, GID tables, partition keys. */

#include "tests/fakeverbs/fake.h"
#include <endian.h>
#include <string.h>

#undef ibv_query_port

static void
fill_device(const struct fv_card *card, struct ibv_device_attr *attr)
{
	const struct fake_device *spec = &card->spec;

	*attr = (struct ibv_device_attr){
		.fw_ver = "1.0",
		.node_guid = htobe64(0x0200fffe00000000 + card->number),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 4096,
		.vendor_id = 0xfa4e,
		.max_qp = spec->max_qp,
		.max_qp_wr = spec->max_qp_wr,
		.max_sge = spec->max_sge,
		.max_cq = spec->max_cq,
		.max_cqe = spec->max_cqe,
		.max_mr = spec->max_mr,
		.max_pd = 1024,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.max_pkeys = 1,
		.phys_port_cnt = (uint8_t)spec->port_count,
	};
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int error;

	FV_LOCKED();
	error = fv_call(FV_query_device);
	if (!error)
		fill_device(fv_card(context), attr);
	return error;
}

static int
query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t size)
{
	int error;

	FV_LOCKED();
	error = fv_call(FV_query_device_ex);
	if (error)
		return error;
	if (input && input->comp_mask)
		return EINVAL;
	if (size < sizeof attr->orig_attr)
		return EINVAL;
	memset(attr, 0, size);
	fill_device(fv_card(context), &attr->orig_attr);
	return 0;
}

/* ---- ports ---- */

const struct fake_port *
fv_port(const struct fv_card *card, uint32_t number)
{
	return number >= 1 && number <= card->spec.port_count ? &card->spec.ports[number - 1] : NULL;
}

int
fv_query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t size)
{
	const struct fake_port *port = fv_port(fv_card(context), number);
	struct ibv_port_attr full;
	int error;

	FV_LOCKED();
	error = fv_call(FV_query_port);
	if (error)
		return error;
	if (!port)
		return EINVAL;
	full = (struct ibv_port_attr){
		.state = port->state,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = port->active_mtu,
		.gid_tbl_len = FAKE_GIDS,
		.max_msg_sz = 1u << 31,
		.pkey_tbl_len = 1,
		.lid = port->lid,
		.phys_state = port->state == IBV_PORT_ACTIVE ? 5 : 3,
		.link_layer = port->link_layer,
	};
	memcpy(attr, &full, size < sizeof full ? size : sizeof full);
	return 0;
}

/* Programs built against a library before 1.8 know a shorter structure. */
int
ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
	return fv_query_port(context, number, (struct ibv_port_attr *)attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

void
fake_port_set(unsigned device, uint8_t number, enum ibv_port_state state)
{
	struct ibv_async_event event = {
		.element.port_num = number,
		.event_type = state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
	};
	struct fv_card *card;

	FV_LOCKED();
	card = fv_card_at(device);
	if (!card || !fv_port(card, number) || fv_port(card, number)->state == state)
		return;
	card->spec.ports[number - 1].state = state;
	fv_raise_all(card, &event);
	fv_wire_run();
}

/* ---- GIDs ---- */

bool
fv_gid_is_empty(const union ibv_gid *gid)
{
	static const union ibv_gid empty;

	return memcmp(gid, &empty, sizeof empty) == 0;
}

void
fake_gid_set(unsigned device, uint8_t number, unsigned index, const struct fake_gid *gid)
{
	const struct ibv_async_event event = {.element.port_num = number, .event_type = IBV_EVENT_GID_CHANGE};
	struct fv_card *card;

	FV_LOCKED();
	card = fv_card_at(device);
	if (!card || !fv_port(card, number) || index >= FAKE_GIDS)
		return;
	card->spec.ports[number - 1].gids[index] = *gid;
	fv_raise_all(card, &event);
	fv_wire_run();
}

static void
fill_gid(const struct fake_gid *gid, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
	*entry = (struct ibv_gid_entry){
		.gid = gid->gid,
		.gid_index = index,
		.port_num = port,
		.gid_type = gid->type,
		.ndev_ifindex = gid->ifindex,
	};
}

int
ibv_query_gid(struct ibv_context *context, uint8_t number, int index, union ibv_gid *gid)
{
	const struct fake_port *port = fv_port(fv_card(context), number);

	FV_LOCKED();
	errno = fv_call(FV_query_gid);
	if (!errno && (!port || index < 0 || index >= FAKE_GIDS))
		errno = EINVAL;
	if (errno)
		return -1;
	*gid = port->gids[index].gid;
	return 0;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t number, uint32_t index, struct ibv_gid_entry *entry,
		  uint32_t flags, size_t entry_size)
{
	const struct fake_port *port = fv_port(fv_card(context), number);
	int error;

	FV_LOCKED();
	error = fv_call(FV_query_gid_ex);
	if (error)
		return error;
	if (!port || index >= FAKE_GIDS || flags || entry_size != sizeof *entry)
		return EINVAL;
	if (fv_gid_is_empty(&port->gids[index].gid))
		return ENODATA;
	fill_gid(&port->gids[index], number, index, entry);
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
		     size_t entry_size)
{
	const struct fake_device *spec = &fv_card(context)->spec;
	size_t count = 0;
	int error;

	FV_LOCKED();
	error = fv_call(FV_query_gid_table);
	if (error || flags || entry_size != sizeof *entries)
		return error ? -error : -EINVAL;
	for (uint32_t slot = 0; slot < spec->port_count * FAKE_GIDS; slot++) {
		uint32_t port = slot / FAKE_GIDS, index = slot % FAKE_GIDS;
		const struct fake_gid *gid = &spec->ports[port].gids[index];

		if (fv_gid_is_empty(&gid->gid))
			continue;
		if (count == max)
			return -EINVAL;
		fill_gid(gid, port + 1, index, &entries[count++]);
	}
	return (ssize_t)count;
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t number, int index, __be16 *pkey)
{
	FV_LOCKED();
	errno = fv_call(FV_query_pkey);
	if (!errno && (!fv_port(fv_card(context), number) || index != 0))
		errno = EINVAL;
	if (errno)
		return -1;
	*pkey = htobe16(0xffff);
	return 0;
}

/* ---- what the inline verbs call ---- */

void
fv_context_ops(struct verbs_context *verbs)
{
	verbs->sz = sizeof *verbs;
	verbs->query_port = fv_query_port;
	verbs->query_device_ex = query_device_ex;
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs->context.ops.poll_cq = fv_poll_cq;
	verbs->context.ops.req_notify_cq = fv_req_notify_cq;
	verbs->context.ops.post_send = fv_post_send;
	verbs->context.ops.post_recv = fv_post_recv;
	verbs->context.ops.post_srq_recv = fv_post_srq_recv;
}
