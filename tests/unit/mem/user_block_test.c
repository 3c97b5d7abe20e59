/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/user_block.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/unit.h"
#include <pthread.h>

static char memory[16];
static unsigned freed;
static void *freed_data, *freed_arg;
static pthread_t freed_on;

static void
count_free(void *data, void *arg)
{
	freed++;
	freed_data = data;
	freed_arg = arg;
	freed_on = pthread_self();
}

static void
test_last_reference_tells_the_user(void)
{
	struct user_block *user = user_block_create(memory, sizeof memory, XR_MEM_KEY_NONE, count_free, &freed);

	ASSERT_FATAL(user != NULL);
	CU_ASSERT(block_is_user(&user->block));
	CU_ASSERT_PTR_NULL(user->range);
	freed = 0;
	block_hold(&user->block);
	block_drop(&user->block);
	ASSERT_EQ(freed, 0);
	block_drop(&user->block);
	ASSERT_EQ(freed, 1);
	CU_ASSERT(freed_data == memory && freed_arg == &freed);
}

static void
test_static_memory(void)
{
	struct user_block *user = user_block_create(memory, 1, XR_MEM_KEY_NONE, NULL, NULL);

	ASSERT_FATAL(user != NULL);
	block_drop(&user->block);
}

static void
test_lcore_reuses_descriptors(void)
{
	enum {
		MANY = 600
	};
	static struct user_block *users[MANY];
	struct user_block *again;

	user_block_lcore_init();
	for (int i = 0; i < MANY; i++)
		ASSERT_FATAL((users[i] = user_block_create(memory, 1, XR_MEM_KEY_NONE, count_free, NULL)) != NULL);
	freed = 0;
	for (int i = 0; i < MANY; i++)
		block_drop(&users[i]->block);
	ASSERT_EQ(freed, MANY);
	again = user_block_create(memory, 1, XR_MEM_KEY_NONE, NULL, NULL);
	CU_ASSERT(again == users[511]); /* the last one kept */
	g_fail_alloc_after = 0;
	for (int i = 0; i < 511; i++)
		ASSERT_FATAL((users[i] = user_block_create(memory, 1, XR_MEM_KEY_NONE, NULL, NULL)) != NULL);
	if (FAIL_ALLOC) {
		CU_ASSERT_PTR_NULL(user_block_create(memory, 1, XR_MEM_KEY_NONE, count_free, NULL));
		ASSERT_EQ(errno, ENOMEM);
	}
	g_fail_alloc_after = -1;
	for (int i = 0; i < 511; i++)
		block_drop(&users[i]->block);
	block_drop(&again->block);
	ASSERT_EQ(freed, MANY);
	user_block_lcore_fini();
}

static void *
drop_it(void *arg)
{
	block_drop(arg);
	return NULL;
}

static void
test_freed_where_dropped(void)
{
	struct user_block *user;
	pthread_t thread;

	user_block_lcore_init();
	user = user_block_create(memory, 1, XR_MEM_KEY_NONE, count_free, NULL);
	ASSERT_FATAL(user != NULL);
	freed = 0;
	ASSERT_FATAL(pthread_create(&thread, NULL, drop_it, &user->block) == 0);
	pthread_join(thread, NULL);
	ASSERT_EQ(freed, 1);
	CU_ASSERT(pthread_equal(freed_on, thread));
	user_block_lcore_fini();
}

static void
append_again(void *data, void *arg)
{
	struct user_block **next = arg;

	*next = user_block_create(data, 1, XR_MEM_KEY_NONE, count_free, NULL);
}

static void
test_free_may_create(void)
{
	struct user_block *next = NULL;
	struct user_block *user;

	user_block_lcore_init();
	user = user_block_create(memory, 1, XR_MEM_KEY_NONE, append_again, &next);
	ASSERT_FATAL(user != NULL);
	freed = 0;
	block_drop(&user->block);
	ASSERT_FATAL(next != NULL);
	ASSERT_EQ(freed, 0);
	block_drop(&next->block);
	ASSERT_EQ(freed, 1);
	user_block_lcore_fini();
}

UNIT_SUITE("user_block", {"the last reference tells the user", test_last_reference_tells_the_user},
	   {"static memory has nobody to tell", test_static_memory},
	   {"an lcore reuses descriptors", test_lcore_reuses_descriptors},
	   {"the user is told on the thread that drops", test_freed_where_dropped},
	   {"the user may create another when told", test_free_may_create});
