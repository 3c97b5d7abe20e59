/* SPDX-License-Identifier: Apache-2.0 */

/* The cards that a test has put in, the list that programs see of them, and opening them. */

#include "tests/fakeverbs/fake.h"
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_get_device_list

static CDS_LIST_HEAD(g_cards);
static unsigned g_card_count;

struct fake_gid
fake_gid_ipv4(const char *address, enum ibv_gid_type type, uint32_t ifindex)
{
	struct fake_gid gid = {.type = type, .ifindex = ifindex};

	gid.gid.raw[10] = gid.gid.raw[11] = 0xff;
	if (inet_pton(AF_INET, address, &gid.gid.raw[12]) != 1)
		abort();
	return gid;
}

static struct fake_gid
link_local_gid(const char *ipv4)
{
	struct fake_gid gid = fake_gid_ipv4(ipv4, IBV_GID_TYPE_ROCE_V1, 1);

	gid.gid.raw[0] = 0xfe;
	gid.gid.raw[1] = 0x80;
	return gid;
}

struct fake_device
fake_device(const char *name, const char *ipv4)
{
	return (struct fake_device){
		.name = name,
		.max_sge = 30,
		.max_qp_wr = 1024,
		.max_cqe = 65536,
		.max_qp = 1024,
		.max_cq = 1024,
		.max_mr = 4096,
		.max_inline = 512,
		.relaxed_ordering = true,
		.port_count = 1,
		.ports = {{.state = IBV_PORT_ACTIVE,
			   .link_layer = IBV_LINK_LAYER_ETHERNET,
			   .active_mtu = IBV_MTU_4096,
			   .gids = {link_local_gid(ipv4), fake_gid_ipv4(ipv4, IBV_GID_TYPE_ROCE_V1, 1),
				    fake_gid_ipv4(ipv4, IBV_GID_TYPE_ROCE_V2, 1)}}},
	};
}

unsigned
fake_device_add(const struct fake_device *device)
{
	struct fv_card *card = calloc(1, sizeof *card);

	if (!card)
		abort();
	FV_LOCKED();
	card->number = g_card_count++;
	card->spec = *device;
	card->ibv.node_type = IBV_NODE_CA;
	card->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(card->ibv.name, sizeof card->ibv.name, "%s", device->name);
	snprintf(card->ibv.dev_name, sizeof card->ibv.dev_name, "uverbs%u", card->number);
	card->spec.name = card->ibv.name;
	CDS_INIT_LIST_HEAD(&card->contexts);
	cds_list_add_tail(&card->node, &g_cards);
	return card->number;
}

struct cds_list_head *
fv_cards(void)
{
	return &g_cards;
}

struct fv_card *
fv_card_at(unsigned number)
{
	struct fv_card *card;

	cds_list_for_each_entry (card, &g_cards, node) {
		if (card->number == number)
			return card;
	}
	fv_violation("the test names device %u, which there is not", number);
	return NULL;
}

struct fv_context *
fv_context(struct ibv_context *context)
{
	return caa_container_of(context, struct fv_context, verbs.context);
}

struct fv_card *
fv_card(struct ibv_context *context)
{
	return fv_context(context)->card;
}

/* ---- the list ---- */

struct ibv_device **
ibv_get_device_list(int *count)
{
	struct ibv_device **list;
	struct fv_card *card;
	int n = 0;

	FV_LOCKED();
	if (count)
		*count = 0;
	errno = fv_call(FV_get_device_list);
	list = errno ? NULL : calloc(g_card_count + 1, sizeof(struct ibv_device *));
	if (!list)
		return NULL;
	cds_list_for_each_entry (card, &g_cards, node)
		list[n++] = &card->ibv;
	if (count)
		*count = n;
	fv_born(FAKE_DEVICE_LISTS);
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	FV_LOCKED();
	fv_call(FV_free_device_list);
	fv_died(FAKE_DEVICE_LISTS);
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(0x0200fffe00000000 + ((struct fv_card *)device)->number);
}

/* Nothing here needs to be kept from a child. */
int
ibv_fork_init(void)
{
	return 0;
}

/* ---- opening ---- */

static struct fv_context *
context_make(struct fv_card *card)
{
	struct fv_context *context = calloc(1, sizeof *context);
	struct ibv_context *ibv;

	if (!context)
		return NULL;
	errno = fv_bell_init(&context->bell);
	if (errno) {
		free(context);
		return NULL;
	}
	context->card = card;
	fv_context_ops(&context->verbs);
	ibv = &context->verbs.context;
	ibv->device = &card->ibv;
	ibv->cmd_fd = -1;
	ibv->async_fd = context->bell.fd;
	ibv->num_comp_vectors = 1;
	return context;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct fv_card *card = caa_container_of(device, struct fv_card, ibv);
	struct fv_context *context;

	FV_LOCKED();
	errno = fv_call(FV_open_device);
	if (!errno && card->fatal)
		errno = EIO;
	context = errno ? NULL : context_make(card);
	if (!context)
		return NULL;
	cds_list_add_tail(&context->node, &card->contexts);
	fv_born(FAKE_CONTEXTS);
	return &context->verbs.context;
}

static void
context_delete(struct fv_context *context)
{
	fv_async_reset(context);
	fv_bell_fini(&context->bell);
	cds_list_del(&context->node);
	free(context);
}

int
ibv_close_device(struct ibv_context *ibv)
{
	struct fv_context *context = fv_context(ibv);

	FV_LOCKED();
	errno = fv_call(FV_close_device);
	if (errno)
		return -1;
	if (context->objects || context->unacked) {
		fv_violation("%s is closed with %u objects and %u events that nobody has acknowledged",
			     context->card->ibv.name, context->objects, context->unacked);
		errno = EBUSY;
		return -1;
	}
	context_delete(context);
	fv_died(FAKE_CONTEXTS);
	return 0;
}

void
fv_cards_reset(void)
{
	struct fv_card *card, *next_card;
	struct fv_context *context, *next;

	cds_list_for_each_entry_safe (card, next_card, &g_cards, node) {
		cds_list_for_each_entry_safe (context, next, &card->contexts, node)
			context_delete(context);
		cds_list_del(&card->node);
		free(card);
	}
	g_card_count = 0;
}

void
fake_device_fatal(unsigned device)
{
	const struct ibv_async_event event = {.event_type = IBV_EVENT_DEVICE_FATAL};
	struct fv_card *card;
	struct fv_qp *qp;

	FV_LOCKED();
	card = fv_card_at(device);
	if (!card)
		return;
	card->fatal = true;
	fv_raise_all(card, &event);
	cds_list_for_each_entry (qp, fv_qps(), node) {
		if (qp->card == card && qp->state != IBV_QPS_RESET)
			fv_qp_flush(qp);
	}
}
