/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/outbox.h"
#include "mem/pool_private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 32u

/* One thread's box for one pool. Its lock is the thread's alone but for who collects. */
struct outbox {
	pthread_mutex_t lock;
	struct cds_list_head in_pool;
	struct pool *pool;
	bool remote; /* as the last block in it */
	unsigned count;
	struct xr_block *blocks[BATCH_MAX];
};

/* All boxes of one thread, by pool; NULL: none yet. */
struct bag {
	struct cds_list_head all;
	struct outbox *boxes[];
};

static struct {
	pthread_mutex_t lock; /* around the pools' own */
	struct cds_list_head bags;
	pthread_key_t key;   /* what tells that a thread has ended */
	unsigned generation; /* bags of earlier ones are freed; 0: not initialised */
} g_outboxes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
	struct bag *bag; /* of this generation, else there is none */
	unsigned generation;
	unsigned held; /* not fewer than there are in the boxes */
} t_outboxes __attribute__((tls_model("initial-exec")));

/* 256 KiB at the most, so that a few threads can't keep much of a pool. */
static unsigned
batch_of(const struct pool *pool)
{
	static const unsigned batches[BLOCK_TYPES] = {BATCH_MAX, 4, 1};

	return batches[pool->type];
}

static void
send_home(struct pool *pool, struct xr_block *const *blocks, unsigned n, bool remote)
{
	if (remote)
		pool_put_remote(pool, blocks, n);
	else
		pool_put(pool, blocks, n);
}

static unsigned
empty(struct outbox *box)
{
	struct xr_block *blocks[BATCH_MAX];
	unsigned n;
	bool remote;

	pthread_mutex_lock(&box->lock);
	n = box->count;
	remote = box->remote;
	memcpy(blocks, box->blocks, n * sizeof *blocks);
	box->count = 0;
	pthread_mutex_unlock(&box->lock);
	if (n > 0)
		send_home(box->pool, blocks, n, remote);
	return n;
}

/* ---- a thread's boxes ---- */

static struct bag *
own_bag(void)
{
	unsigned generation = __atomic_load_n(&g_outboxes.generation, __ATOMIC_ACQUIRE);
	struct bag *bag;

	if (t_outboxes.generation == generation)
		return t_outboxes.bag;
	bag = calloc(1, sizeof *bag + pool_count() * sizeof(struct outbox *));
	if (!bag || pthread_setspecific(g_outboxes.key, bag) != 0) {
		free(bag);
		return NULL;
	}
	pthread_mutex_lock(&g_outboxes.lock);
	cds_list_add_tail(&bag->all, &g_outboxes.bags);
	pthread_mutex_unlock(&g_outboxes.lock);
	t_outboxes.bag = bag;
	t_outboxes.generation = generation;
	t_outboxes.held = 0;
	return bag;
}

static struct outbox *
new_box(struct pool *pool)
{
	struct outbox *box = calloc(1, sizeof *box);

	if (!box)
		return NULL;
	box->pool = pool;
	pthread_mutex_init(&box->lock, NULL);
	pthread_mutex_lock(&pool->outboxes_lock);
	cds_list_add_tail(&box->in_pool, &pool->outboxes);
	pthread_mutex_unlock(&pool->outboxes_lock);
	return box;
}

static struct outbox *
own_box(struct pool *pool)
{
	struct bag *bag = own_bag();
	struct outbox **box;

	if (!bag)
		return NULL;
	box = &bag->boxes[pool - pool_at(0)];
	if (!*box)
		*box = new_box(pool);
	return *box;
}

static void
drop_box(struct outbox *box)
{
	struct pool *pool = box->pool;

	pthread_mutex_lock(&pool->outboxes_lock);
	cds_list_del(&box->in_pool);
	pthread_mutex_unlock(&pool->outboxes_lock);
	empty(box);
	pthread_mutex_destroy(&box->lock);
	free(box);
}

/* Under the lock of all. */
static void
drop_bag(struct bag *bag)
{
	for (unsigned i = 0; i < pool_count(); i++)
		if (bag->boxes[i])
			drop_box(bag->boxes[i]);
	cds_list_del(&bag->all);
	free(bag);
}

/* The thread ends; a bag of an earlier generation is gone already. */
static void
thread_ends(void *arg)
{
	struct bag *bag = arg;

	pthread_mutex_lock(&g_outboxes.lock);
	if (t_outboxes.generation == g_outboxes.generation)
		drop_bag(bag);
	t_outboxes.bag = NULL;
	t_outboxes.generation = 0;
	t_outboxes.held = 0;
	pthread_mutex_unlock(&g_outboxes.lock);
}

/* ---- freeing ---- */

/* Whoever waits has said so before it collects: either it finds box and block, or it is seen here. */
void
outbox_put(struct pool *pool, struct xr_block *block, bool remote)
{
	struct outbox *box = own_box(pool);
	bool full;

	if (!box) {
		send_home(pool, &block, 1, remote);
		return;
	}
	pthread_mutex_lock(&box->lock);
	box->remote = remote;
	box->blocks[box->count++] = block;
	full = box->count >= batch_of(pool) || __atomic_load_n(&pool->waiting, __ATOMIC_RELAXED) > 0;
	pthread_mutex_unlock(&box->lock);
	t_outboxes.held++;
	if (full)
		empty(box);
}

void
outbox_flush(void)
{
	struct bag *bag = t_outboxes.bag;

	if (__builtin_expect(t_outboxes.held == 0, 1))
		return;
	t_outboxes.held = 0;
	if (t_outboxes.generation != __atomic_load_n(&g_outboxes.generation, __ATOMIC_ACQUIRE))
		return;
	for (unsigned i = 0; i < pool_count(); i++)
		if (bag->boxes[i])
			empty(bag->boxes[i]);
}

bool
outbox_collect(struct pool *pool)
{
	struct outbox *box;
	unsigned found = 0;

	pthread_mutex_lock(&pool->outboxes_lock);
	cds_list_for_each_entry (box, &pool->outboxes, in_pool)
		found += empty(box);
	pthread_mutex_unlock(&pool->outboxes_lock);
	return found > 0;
}

size_t
outbox_count(struct pool *pool)
{
	struct outbox *box;
	size_t count = 0;

	pthread_mutex_lock(&pool->outboxes_lock);
	cds_list_for_each_entry (box, &pool->outboxes, in_pool) {
		pthread_mutex_lock(&box->lock);
		count += box->count;
		pthread_mutex_unlock(&box->lock);
	}
	pthread_mutex_unlock(&pool->outboxes_lock);
	return count;
}

/* ---- life ---- */

int
outbox_init(void)
{
	static unsigned last;
	int error = pthread_key_create(&g_outboxes.key, thread_ends);

	if (error)
		return -error;
	CDS_INIT_LIST_HEAD(&g_outboxes.bags);
	__atomic_store_n(&g_outboxes.generation, ++last, __ATOMIC_RELEASE);
	return 0;
}

void
outbox_fini(void)
{
	struct bag *bag, *next;

	if (!g_outboxes.generation)
		return;
	pthread_mutex_lock(&g_outboxes.lock);
	cds_list_for_each_entry_safe (bag, next, &g_outboxes.bags, all)
		drop_bag(bag);
	__atomic_store_n(&g_outboxes.generation, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&g_outboxes.lock);
	pthread_key_delete(g_outboxes.key);
}
