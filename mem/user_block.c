/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/user_block.h"
#include <errno.h>
#include <stdlib.h>

/* Descriptors that an lcore keeps; 32 KiB of them. */
#define KEPT_MAX 512u

static __thread struct {
	struct user_block *first;
	unsigned count;
	unsigned max; /* 0: this thread is no lcore */
} t_kept __attribute__((tls_model("initial-exec")));

static struct user_block *
take_descriptor(void)
{
	struct user_block *user = t_kept.first;

	if (!user)
		return malloc(sizeof *user);
	t_kept.first = user->next;
	t_kept.count--;
	return user;
}

static void
keep_descriptor(struct user_block *user)
{
	if (t_kept.count == t_kept.max) {
		free(user);
		return;
	}
	user->next = t_kept.first;
	t_kept.first = user;
	t_kept.count++;
}

struct user_block *
user_block_create(void *data, size_t len, xr_mem_key key, xr_free_fn *free_fn, void *arg)
{
	struct user_range *range = NULL;
	struct user_block *user;

	if (key != XR_MEM_KEY_NONE && !(range = user_range_hold(key, data, len)))
		return NULL;
	user = take_descriptor();
	if (!user) {
		if (range)
			user_range_drop(range);
		errno = ENOMEM;
		return NULL;
	}
	*user = (struct user_block){
		.block = {.refs = 1, .type = BLOCK_TYPES},
		.data = data,
		.range = range,
		.free_fn = free_fn,
		.arg = arg,
	};
	return user;
}

/* The user is told last: free_fn may append user memory again, and deregister this. */
void
user_block_free(struct user_block *user)
{
	void *data = user->data, *arg = user->arg;
	xr_free_fn *free_fn = user->free_fn;

	if (user->range)
		user_range_drop(user->range);
	keep_descriptor(user);
	if (free_fn)
		free_fn(data, arg);
}

void
user_block_lcore_init(void)
{
	t_kept.max = KEPT_MAX;
}

void
user_block_lcore_fini(void)
{
	t_kept.max = 0;
	while (t_kept.first)
		free(take_descriptor());
}
