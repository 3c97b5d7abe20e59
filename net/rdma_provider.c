/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rdma_provider.h"
#ifdef XR_RDMA
#include "net/verbs/device_list.h"
#endif

static struct rdma_provider g_none;
static const struct rdma_provider *g_provider = &g_none;

static const char *
reason_for_none(void)
{
#ifdef XR_RDMA
	if (device_list_count() == 0)
		return "no RDMA device on this machine";
	return "RDMA transport is not part of this version";
#else
	return "built without RDMA";
#endif
}

void
rdma_provider_init(void)
{
	g_none.reason = reason_for_none();
	g_provider = &g_none;
}

void
rdma_provider_set(const struct rdma_provider *provider)
{
	g_provider = provider;
}

const struct rdma_provider *
rdma_provider(void)
{
	return g_provider;
}
