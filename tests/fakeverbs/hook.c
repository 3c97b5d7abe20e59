/* SPDX-License-Identifier: Apache-2.0 */

/* What a test wants to do in the middle of a verb. */

#include "tests/fakeverbs/fake.h"
#include <string.h>

static struct fake_hooks g_hooks;
static __thread bool t_in_hook;

void
fake_hooks(const struct fake_hooks *hooks)
{
	FV_LOCKED();
	memset(&g_hooks, 0, sizeof g_hooks);
	if (hooks)
		g_hooks = *hooks;
}

static struct fake_hooks
hooks_now(void)
{
	static const struct fake_hooks none;

	FV_LOCKED();
	return t_in_hook ? none : g_hooks;
}

void
fv_hook_poll_empty(struct ibv_cq *cq)
{
	struct fake_hooks hooks = hooks_now();

	if (!hooks.poll_empty)
		return;
	t_in_hook = true;
	hooks.poll_empty(cq, hooks.arg);
	t_in_hook = false;
}

void
fv_hook_notify(struct ibv_cq *cq, int solicited_only, bool after)
{
	struct fake_hooks hooks = hooks_now();
	void (*fn)(struct ibv_cq *, int, void *) = after ? hooks.after_notify : hooks.before_notify;

	if (!fn)
		return;
	t_in_hook = true;
	fn(cq, solicited_only, hooks.arg);
	t_in_hook = false;
}

void
fv_hook_post_send(struct ibv_qp *qp, const struct ibv_send_wr *chain)
{
	struct fake_hooks hooks = hooks_now();

	if (!hooks.post_send)
		return;
	t_in_hook = true;
	hooks.post_send(qp, chain, hooks.arg);
	t_in_hook = false;
}

void
fv_hook_post_recv(struct ibv_qp *qp, const struct ibv_recv_wr *chain)
{
	struct fake_hooks hooks = hooks_now();

	if (!hooks.post_recv)
		return;
	t_in_hook = true;
	hooks.post_recv(qp, chain, hooks.arg);
	t_in_hook = false;
}
