/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arbitrary bytes as calls on iobufs, beside plain arrays (tests/unit/mem/iobuf_model.h): whatever is called in
 * whatever order, the iobufs hold what the arrays do, and in the end every block and all user memory are back.
 *
 * A choice among up to 256 takes one byte, among more of them two; the end of the bytes ends the run.
 */

#include "mem/block_cache.h"
#include "mem/mem.h"
#include "mem/tail.h"
#include "mem/user_block.h"
#include "tests/fuzz/memory.h"
#include "tests/unit/mem/iobuf_model.h"

struct choices {
	const uint8_t *at, *end;
};

static size_t
model_choose(struct model *m, size_t below)
{
	struct choices *choices = m->choices;
	size_t choice = 0;

	for (size_t span = 1; span < below && choices->at < choices->end; span *= 256)
		choice = choice * 256 + *choices->at++;
	return choice % below;
}

static void
become_lcore(void)
{
	const unsigned max[BLOCK_TYPES] = {16, 16, 16};

	FUZZ_ASSERT(block_cache_init(0, max) == 0);
	tail_lcore_init();
	pieces_lcore_init();
	user_block_lcore_init();
}

static bool
all_is_back(const struct model *m)
{
	struct pool_figures figures;

	pool_figures(pool_of(0, BLOCK_DEFAULT), &figures);
	return figures.free == figures.blocks && m->user_freed == m->user_made;
}

/* The first byte says whether an lcore makes the calls. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct choices choices = {data + 1, data + size};
	static struct model model;

	fuzz_start_memory();
	if (size == 0)
		return 0;
	if (data[0] % 2)
		become_lcore();
	model_start(&model, &choices);
	while (choices.at < choices.end && !model.fault)
		model_step(&model);
	model_end(&model);
	if (data[0] % 2)
		mem_lcore_fini();
	if (model.fault)
		fprintf(stderr, "step %zu, line %d: not so: %s\n", model.step, model.fault_line, model.fault);
	FUZZ_ASSERT(!model.fault);
	FUZZ_ASSERT(all_is_back(&model));
	return 0;
}
