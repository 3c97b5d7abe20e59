/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/lcore_list.h"
#include "core/number_set.h"
#include "core/why.h"

/* Lcores times their processors in one list: what (0-9999)@(0-9999) must not make us allocate. */
#define CELLS_MAX (1u << 20)

/* A list as it grows. */
struct builder {
	struct lcore_list list;
	size_t capacity;
	size_t cells;
};

void
lcore_list_free(struct lcore_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->specs[i].cpus);
	free(list->specs);
	memset(list, 0, sizeof *list);
}

static int
refuse_memory(const char **why)
{
	*why = "out of memory";
	return -ENOMEM;
}

static int
reserve(struct builder *builder, const char **why)
{
	size_t capacity = builder->capacity ? 2 * builder->capacity : 16;
	struct lcore_spec *specs;

	if (builder->list.count < builder->capacity)
		return 0;
	specs = realloc(builder->list.specs, capacity * sizeof *specs);
	if (!specs)
		return refuse_memory(why);
	builder->list.specs = specs;
	builder->capacity = capacity;
	return 0;
}

static int
add_lcore(struct builder *builder, unsigned id, const unsigned *cpus, size_t cpu_count, const char **why)
{
	struct lcore_spec *spec;
	int rc;

	builder->cells += cpu_count;
	if (builder->cells > CELLS_MAX) {
		*why = why_text("lcores times their processors are more than %u", CELLS_MAX);
		return -EINVAL;
	}
	rc = reserve(builder, why);
	if (rc)
		return rc;
	spec = &builder->list.specs[builder->list.count];
	spec->id = id;
	spec->cpu_count = cpu_count;
	spec->cpus = malloc(cpu_count * sizeof *cpus);
	if (!spec->cpus)
		return refuse_memory(why);
	memcpy(spec->cpus, cpus, cpu_count * sizeof *cpus);
	builder->list.count++;
	return 0;
}

/* Every lcore of ids may run on all of cpus. */
static int
add_shared(struct builder *builder, const struct number_set *ids, const struct number_set *cpus, const char **why)
{
	int rc = 0;

	for (size_t i = 0; i < ids->count && rc == 0; i++)
		rc = add_lcore(builder, ids->items[i], cpus->items, cpus->count, why);
	return rc;
}

/* Lcore N on processor N. */
static int
add_alike(struct builder *builder, const struct number_set *ids, const char **why)
{
	int rc = 0;

	for (size_t i = 0; i < ids->count && rc == 0; i++)
		rc = add_lcore(builder, ids->items[i], &ids->items[i], 1, why);
	return rc;
}

static int
compare_ids(const void *left, const void *right)
{
	const struct lcore_spec *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

static int
close_list(struct builder *builder, const char **why)
{
	struct lcore_list *list = &builder->list;

	if (list->count)
		qsort(list->specs, list->count, sizeof *list->specs, compare_ids);
	for (size_t i = 1; i < list->count; i++) {
		if (list->specs[i].id == list->specs[i - 1].id) {
			*why = why_text("lcore %u occurs twice", list->specs[i].id);
			return -EINVAL;
		}
	}
	return 0;
}

/* Hands the list over when it parsed, else drops it. */
static int
finish(struct builder *builder, int rc, struct lcore_list *list, const char **why)
{
	if (rc == 0)
		rc = close_list(builder, why);
	if (rc == 0)
		*list = builder->list;
	else
		lcore_list_free(&builder->list);
	return rc;
}

int
lcore_list_alike(const struct number_set *cpus, struct lcore_list *list, const char **why)
{
	struct builder builder = {0};

	return finish(&builder, add_alike(&builder, cpus, why), list, why);
}

int
lcore_parse_cpus(const char *text, struct lcore_list *list, const char **why)
{
	struct number_set cpus;
	int rc = number_set_parse(text, &cpus, why);

	if (rc)
		return rc;
	rc = lcore_list_alike(&cpus, list, why);
	number_set_free(&cpus);
	return rc;
}

/* `(0-3,8)` with *at on the opening parenthesis. */
static int
scan_group(struct number_set *set, const char **at, const char **why)
{
	int rc;

	++*at;
	number_skip_blanks(at);
	if (**at == ')') {
		*why = "() is empty";
		return -EINVAL;
	}
	while ((rc = number_set_scan_range(set, at, why)) == 0 && **at == ',')
		++*at;
	if (rc)
		return rc;
	if (**at != ')') {
		*why = **at ? why_text("\"%.32s\" follows where only ',' or ')' may", *at) : "a ')' is missing";
		return -EINVAL;
	}
	++*at;
	number_skip_blanks(at);
	return 0;
}

/* A group, or without parentheses one number or range. */
static int
scan_set(struct number_set *set, const char **at, const char **why)
{
	int rc;

	number_skip_blanks(at);
	rc = **at == '(' ? scan_group(set, at, why) : number_set_scan_range(set, at, why);

	return rc ? rc : number_set_close(set, why);
}

/* `IDS` or `IDS@CPUS`. */
static int
scan_item(struct builder *builder, const char **at, const char **why)
{
	struct number_set ids = {0}, cpus = {0};
	bool grouped;
	int rc;

	number_skip_blanks(at);
	grouped = **at == '(';
	rc = scan_set(&ids, at, why);
	if (rc == 0 && **at == '@') {
		++*at;
		rc = scan_set(&cpus, at, why);
		if (rc == 0)
			rc = add_shared(builder, &ids, &cpus, why);
	} else if (rc == 0) {
		rc = grouped ? add_shared(builder, &ids, &ids, why) : add_alike(builder, &ids, why);
	}
	number_set_free(&ids);
	number_set_free(&cpus);
	return rc;
}

static int
scan_items(struct builder *builder, const char *text, const char **why)
{
	const char *at = text;
	int rc;

	if (!*at) {
		*why = "the list is empty";
		return -EINVAL;
	}
	while ((rc = scan_item(builder, &at, why)) == 0 && *at == ',')
		at++;
	if (rc)
		return rc;
	if (*at) {
		*why = why_text("\"%.32s\" follows where only ',' or the end may", at);
		return -EINVAL;
	}
	return 0;
}

int
lcore_parse_lcores(const char *text, struct lcore_list *list, const char **why)
{
	struct builder builder = {0};
	int rc = scan_items(&builder, text, why);

	return finish(&builder, rc, list, why);
}
