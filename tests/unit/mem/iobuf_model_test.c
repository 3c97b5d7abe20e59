/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random calls beside plain arrays (tests/unit/mem/iobuf_model.h). Each run has a seed of its own and prints it:
 * XR_MODEL_SEED=SEED repeats it, and XR_MODEL_STEPS=N makes the runs shorter or longer.
 */

#include "tests/unit/mem/iobuf_fixture.h"
#include "tests/unit/mem/iobuf_model.h"
#include <inttypes.h>
#include <pthread.h>
#include <sys/random.h>

/* Of each run; a million in all. */
#define STEPS	     300000
#define THREAD_STEPS 50000

static size_t
model_choose(struct model *m, size_t below)
{
	uint64_t *random = m->choices;

	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (size_t)(*random % below);
}

static uint64_t
number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static uint64_t
seed(void)
{
	uint64_t value = 1;

	if (getrandom(&value, sizeof value, 0) != sizeof value)
		value = (uintptr_t)&value;
	value = number_from("XR_MODEL_SEED", value);
	printf("XR_MODEL_SEED=0x%" PRIx64 " ", value);
	return value ? value : 1;
}

/* True: no fault, and no call was refused. */
static bool
ended_well(const struct model *m)
{
	if (m->fault)
		printf("step %zu, line %d: not so: %s\n", m->step, m->fault_line, m->fault);
	return !m->fault && m->refused == 0;
}

static struct model g_model;

/* Now and then the thread becomes an lcore, or none: every so many steps, 0: never. */
static void
run(bool on_lcore, size_t change_every)
{
	uint64_t random = seed();
	size_t steps = number_from("XR_MODEL_STEPS", STEPS);

	start(8);
	if (!on_lcore)
		fixture_lcore_stop();
	model_start(&g_model, &random);
	while (g_model.step < steps && !g_model.fault) {
		model_step(&g_model);
		if (change_every == 0 || model_choose(&g_model, change_every) > 0)
			continue;
		if (on_lcore)
			fixture_lcore_stop();
		else
			fixture_lcore_start(16);
		on_lcore = !on_lcore;
	}
	CU_ASSERT(ended_well(&g_model));
	model_end(&g_model);
	CU_ASSERT(ended_well(&g_model));
	ASSERT_EQ(g_model.user_freed, g_model.user_made);
	CU_ASSERT(g_model.user_made > steps / 100);
	if (!on_lcore)
		fixture_lcore_start(16);
	stop();
}

static void
test_on_an_lcore(void)
{
	run(true, 0);
}

static void
test_elsewhere(void)
{
	run(false, 0);
}

static void
test_now_an_lcore_now_none(void)
{
	run(true, 100);
}

/* ---- two threads that hand iobufs to each other, whose blocks both go on to hold ---- */

static struct {
	pthread_mutex_t lock;
	struct model_buf buf;
} g_between = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct worker {
	pthread_t thread;
	struct model model;
	uint64_t random;
	size_t steps;
	bool lcore;
};

static struct worker g_workers[2];

/* Gives what it has in one iobuf for what the other gave last. */
static void
exchange(struct model *m)
{
	struct model_buf *mine = &m->bufs[model_choose(m, MODEL_BUFS)];
	static __thread struct model_buf other;

	pthread_mutex_lock(&g_between.lock);
	xr_iobuf_move(&other.buf, &g_between.buf.buf);
	other.size = g_between.buf.size;
	memcpy(other.bytes, g_between.buf.bytes, other.size);
	xr_iobuf_move(&g_between.buf.buf, &mine->buf);
	g_between.buf.size = mine->size;
	memcpy(g_between.buf.bytes, mine->bytes, mine->size);
	pthread_mutex_unlock(&g_between.lock);
	xr_iobuf_move(&mine->buf, &other.buf);
	mine->size = other.size;
	memcpy(mine->bytes, other.bytes, other.size);
	MODEL_CHECK(model_alike(mine));
}

static void *
work(void *arg)
{
	struct worker *worker = arg;

	if (worker->lcore)
		fixture_lcore_start(16);
	while (worker->model.step < worker->steps && !worker->model.fault) {
		model_step(&worker->model);
		if (model_choose(&worker->model, 50) == 0)
			exchange(&worker->model);
	}
	model_end(&worker->model);
	if (worker->lcore)
		fixture_lcore_stop();
	return NULL;
}

static void
run_two(bool second_is_lcore)
{
	uint64_t random = seed();

	start(8);
	fixture_lcore_stop();
	for (int i = 0; i < 2; i++) {
		struct worker *worker = &g_workers[i];

		worker->random = random + (uint64_t)i;
		worker->steps = number_from("XR_MODEL_STEPS", THREAD_STEPS);
		worker->lcore = i == 0 || second_is_lcore;
		model_start(&worker->model, &worker->random);
	}
	for (int i = 0; i < 2; i++)
		ASSERT_FATAL(pthread_create(&g_workers[i].thread, NULL, work, &g_workers[i]) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(g_workers[i].thread, NULL);
	xr_iobuf_clear(&g_between.buf.buf);
	g_between.buf.size = 0;
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(ended_well(&g_workers[i].model));
		ASSERT_EQ(g_workers[i].model.user_freed, g_workers[i].model.user_made);
	}
	fixture_lcore_start(16);
	stop();
}

static void
test_between_two_lcores(void)
{
	run_two(true);
}

static void
test_between_an_lcore_and_another_thread(void)
{
	run_two(false);
}

UNIT_SUITE("iobuf_model", {"random calls on an lcore", test_on_an_lcore}, {"elsewhere", test_elsewhere},
	   {"now an lcore, now none", test_now_an_lcore_now_none},
	   {"iobufs that go between two lcores", test_between_two_lcores},
	   {"iobufs that go between an lcore and another thread", test_between_an_lcore_and_another_thread});
