/* SPDX-License-Identifier: Apache-2.0 */

/* Protection domains and memory regions. A key names one region in the whole process: no other device takes it. */

#include "tests/fakeverbs/fake.h"
#include <stdlib.h>

#undef ibv_reg_mr

#define FIRST_KEY 0x1100u
#define KEY_STEP  0x0101u

static CDS_LIST_HEAD(g_pds);
static CDS_LIST_HEAD(g_mrs);
static uint32_t g_next_key = FIRST_KEY;

/* ---- protection domains ---- */

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct fv_pd *pd;

	FV_LOCKED();
	errno = fv_call(FV_alloc_pd);
	if (!errno && fv_card(context)->fatal)
		errno = EIO;
	pd = errno ? NULL : calloc(1, sizeof *pd);
	if (!pd)
		return NULL;
	pd->ibv.context = context;
	cds_list_add_tail(&pd->node, &g_pds);
	fv_context(context)->objects++;
	fv_born(FAKE_PDS);
	return &pd->ibv;
}

static void
pd_delete(struct fv_pd *pd)
{
	cds_list_del(&pd->node);
	free(pd);
}

int
ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct fv_pd *pd = caa_container_of(ibv, struct fv_pd, ibv);
	int error;

	FV_LOCKED();
	error = fv_call(FV_dealloc_pd);
	if (error)
		return error;
	if (pd->users) {
		fv_violation("a protection domain is freed that %u regions and queue pairs use", pd->users);
		return EBUSY;
	}
	fv_context(ibv->context)->objects--;
	pd_delete(pd);
	fv_died(FAKE_PDS);
	return 0;
}

/* ---- memory regions ---- */

static int
region_refused(const struct fv_card *card, size_t length, unsigned access)
{
	const unsigned remote_writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (card->fatal)
		return EIO;
	if (card->mrs >= (unsigned)card->spec.max_mr)
		return ENOMEM;
	if (length == 0 || ((access & remote_writes) && !(access & IBV_ACCESS_LOCAL_WRITE)))
		return EINVAL;
	return 0;
}

static struct ibv_mr *
register_region(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	struct fv_card *card = fv_card(pd->context);
	struct fv_mr *mr;

	FV_LOCKED();
	errno = fv_call(FV_reg_mr);
	if (!errno)
		errno = region_refused(card, length, access);
	mr = errno ? NULL : calloc(1, sizeof *mr);
	if (!mr)
		return NULL;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.lkey = mr->ibv.rkey = g_next_key;
	mr->iova = iova;
	mr->access = card->spec.relaxed_ordering ? access : access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	g_next_key += KEY_STEP;
	cds_list_add_tail(&mr->node, &g_mrs);
	caa_container_of(pd, struct fv_pd, ibv)->users++;
	card->mrs++;
	fv_born(FAKE_MRS);
	return &mr->ibv;
}

/* ibv_reg_mr() is a macro that calls one of the next two. */
struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return register_region(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	return register_region(pd, addr, length, iova, access);
}

static void
mr_delete(struct fv_mr *mr)
{
	cds_list_del(&mr->node);
	free(mr);
}

int
ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct fv_mr *mr = caa_container_of(ibv, struct fv_mr, ibv);
	int error;

	FV_LOCKED();
	error = fv_call(FV_dereg_mr);
	if (error)
		return error;
	caa_container_of(ibv->pd, struct fv_pd, ibv)->users--;
	fv_card(ibv->context)->mrs--;
	mr_delete(mr);
	fv_died(FAKE_MRS);
	return 0;
}

void *
fv_memory(const struct ibv_pd *pd, const struct ibv_sge *sge, unsigned access)
{
	struct fv_mr *mr;

	cds_list_for_each_entry (mr, &g_mrs, node) {
		if (mr->ibv.lkey != sge->lkey)
			continue;
		if (mr->ibv.pd != pd || (mr->access & access) != access)
			return NULL;
		if (sge->addr < mr->iova || sge->length > mr->ibv.length ||
		    sge->addr - mr->iova > mr->ibv.length - sge->length)
			return NULL;
		return (char *)mr->ibv.addr + (sge->addr - mr->iova);
	}
	return NULL;
}

bool
fake_region(unsigned device, const void *addr, unsigned *access)
{
	struct fv_mr *mr;

	FV_LOCKED();
	cds_list_for_each_entry (mr, &g_mrs, node) {
		const char *start = mr->ibv.addr;

		if (fv_card(mr->ibv.context)->number != device || (const char *)addr < start ||
		    (const char *)addr >= start + mr->ibv.length)
			continue;
		*access = mr->access;
		return true;
	}
	return false;
}

void
fv_memory_reset(void)
{
	struct fv_mr *mr, *next_mr;
	struct fv_pd *pd, *next_pd;

	cds_list_for_each_entry_safe (mr, next_mr, &g_mrs, node)
		mr_delete(mr);
	cds_list_for_each_entry_safe (pd, next_pd, &g_pds, node)
		pd_delete(pd);
	g_next_key = FIRST_KEY;
}
