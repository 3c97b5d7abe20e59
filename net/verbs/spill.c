/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/spill.h"
#include "mem/user_block.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/compiler.h>

struct spill {
	size_t out;    /* bytes; any thread */
	unsigned refs; /* the connection's, and each message's; any thread */
};

struct spilled {
	size_t len;
	char data[];
};

static void
unref(struct spill *spill)
{
	if (__atomic_sub_fetch(&spill->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(spill);
}

static void
spill_free(void *data, void *arg)
{
	struct spilled *spilled = caa_container_of(data, struct spilled, data);
	struct spill *spill = arg;

	__atomic_sub_fetch(&spill->out, spilled->len, __ATOMIC_RELAXED);
	free(spilled);
	unref(spill);
}

static int
make(struct spill **spill)
{
	if (*spill)
		return 0;
	*spill = malloc(sizeof **spill);
	if (!*spill)
		return -ENOMEM;
	**spill = (struct spill){.refs = 1};
	return 0;
}

int
spill_append(struct spill **spill, size_t limit, const void *data, size_t len, struct xr_iobuf *to)
{
	struct spilled *spilled;

	if (make(spill))
		return -ENOMEM;
	if (__atomic_load_n(&(*spill)->out, __ATOMIC_RELAXED) + len > limit)
		return -EDQUOT;
	spilled = malloc(sizeof *spilled + len);
	if (!spilled)
		return -ENOMEM;
	spilled->len = len;
	memcpy(spilled->data, data, len);
	if (xr_iobuf_append_user(to, spilled->data, len, XR_MEM_KEY_NONE, spill_free, *spill)) {
		free(spilled);
		return -ENOMEM;
	}
	__atomic_add_fetch(&(*spill)->out, len, __ATOMIC_RELAXED);
	__atomic_add_fetch(&(*spill)->refs, 1, __ATOMIC_RELAXED);
	return 0;
}

bool
spill_owns(struct xr_block *block)
{
	return block_is_user(block) && user_block_of(block)->free_fn == spill_free;
}

void
spill_leave(struct spill *spill)
{
	if (spill)
		unref(spill);
}
