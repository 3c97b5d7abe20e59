/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rdma_provider.h"
#ifdef XR_RDMA
#include "net/verbs/cq.h"
#include "net/verbs/device.h"
#include "net/verbs/endpoint.h"
#endif

static struct rdma_provider g_none;
static const struct rdma_provider *g_provider = &g_none;

#ifdef XR_RDMA

static const struct rdma_provider g_verbs = {
	.ops = &g_endpoint_handshake_ops,
	.reason = "",
	.attach = endpoint_attach,
	.discard = endpoint_discard,
};

int
rdma_provider_init(void)
{
	int ret = devices_init();

	g_none.reason = devices_obstacle();
	g_provider = g_none.reason ? &g_none : &g_verbs;
	if (!g_none.reason)
		endpoints_warm();
	return ret;
}

void
rdma_provider_leave(void)
{
	cqs_leave();
}

void
rdma_provider_fini(void)
{
	devices_fini();
}

#else

int
rdma_provider_init(void)
{
	g_none.reason = "built without RDMA";
	g_provider = &g_none;
	return 0;
}

void
rdma_provider_leave(void)
{
}

void
rdma_provider_fini(void)
{
}

#endif

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
