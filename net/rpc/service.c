/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/service.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_MIN_CAP 16u

/* Eight bytes a step: names are some dozens of bytes, and the table is small and filled by the program itself. */
static uint64_t
hash_text(uint64_t hash, const char *text)
{
	size_t len = strlen(text);
	uint64_t word;

	for (; len >= sizeof word; text += sizeof word, len -= sizeof word) {
		memcpy(&word, text, sizeof word);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	word = len;
	memcpy((char *)&word + 1, text, len);
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ (hash >> 32);
}

static uint32_t
hash_names(const char *service, const char *name)
{
	return (uint32_t)hash_text(hash_text(0, service), name);
}

static bool
method_is(const struct method *method, uint32_t hash, const char *service, const char *name)
{
	return method->hash == hash && strcmp(method->service, service) == 0 && strcmp(method->name, name) == 0;
}

/* The slot that holds the method, or the free one where it would go. */
static struct method *
probe(struct method *index, size_t cap, uint32_t hash, const char *service, const char *name)
{
	size_t i = hash & (cap - 1);

	while (index[i].handler && !method_is(&index[i], hash, service, name))
		i = (i + 1) & (cap - 1);
	return &index[i];
}

static struct service *
find_service(const struct service_table *table, const char *name)
{
	for (size_t i = 0; i < table->service_count; i++)
		if (strcmp(table->services[i].name, name) == 0)
			return &table->services[i];
	return NULL;
}

/* Whom a name without its package means. */
static const struct service *
find_service_short(const struct service_table *table, const char *name)
{
	const struct service *service = find_service(table, name);

	for (size_t i = 0; !service && i < table->service_count; i++)
		if (strcmp(table->services[i].short_name, name) == 0)
			service = &table->services[i];
	return service;
}

const struct method *
service_find(const struct service_table *table, const char *service, const char *name, int *error)
{
	const struct method *method = NULL;

	if (table->index_cap)
		method = probe(table->index, table->index_cap, hash_names(service, name), service, name);
	if (method && method->handler)
		return method;
	*error = strchr(service, '.') || find_service_short(table, service) ? XR_RPC_ENOMETHOD : XR_RPC_ENOSERVICE;
	return NULL;
}

/* ---- adding ---- */

static struct service_method *
find_method(const struct service *service, const char *name)
{
	for (size_t i = 0; i < service->method_count; i++)
		if (strcmp(service->methods[i].name, name) == 0)
			return &service->methods[i];
	return NULL;
}

static void
index_service(struct method *index, size_t cap, const struct service *service, const char *as)
{
	for (size_t i = 0; i < service->method_count; i++) {
		const struct service_method *method = &service->methods[i];
		uint32_t hash = hash_names(as, method->name);

		*probe(index, cap, hash, as, method->name) =
			(struct method){as, method->name, method->handler, method->arg, hash};
	}
}

/* Builds the index anew, at no more than half load with two names for each method. */
static int
rebuild_index(struct service_table *table)
{
	size_t cap = INDEX_MIN_CAP, methods = 0;
	struct method *index;

	for (size_t i = 0; i < table->service_count; i++)
		methods += table->services[i].method_count;
	while (cap < methods * 4)
		cap *= 2;
	index = calloc(cap, sizeof *index);
	if (!index)
		return -ENOMEM;
	for (size_t i = 0; i < table->service_count; i++) {
		const struct service *service = &table->services[i];

		index_service(index, cap, service, service->name);
		if (find_service_short(table, service->short_name) == service)
			index_service(index, cap, service, service->short_name);
	}
	free(table->index);
	table->index = index;
	table->index_cap = cap;
	return 0;
}

static struct service *
push_service(struct service_table *table, const char *name)
{
	struct service *grown = reallocarray(table->services, table->service_count + 1, sizeof *grown);
	char *copy = strdup(name), *dot;

	if (grown)
		table->services = grown;
	if (!grown || !copy) {
		free(copy);
		return NULL;
	}
	dot = strrchr(copy, '.');
	grown[table->service_count] = (struct service){copy, dot ? dot + 1 : copy, NULL, 0};
	return &grown[table->service_count++];
}

static int
push_method(struct service *service, const char *name, xr_rpc_handler *handler, void *arg)
{
	struct service_method *grown = reallocarray(service->methods, service->method_count + 1, sizeof *grown);
	char *copy = strdup(name);

	if (grown)
		service->methods = grown;
	if (!grown || !copy) {
		free(copy);
		return -ENOMEM;
	}
	grown[service->method_count++] = (struct service_method){copy, handler, arg};
	return 0;
}

static void
pop_method(struct service *service)
{
	free(service->methods[--service->method_count].name);
}

int
service_add(struct service_table *table, const char *service, const char *name, xr_rpc_handler *handler, void *arg)
{
	struct service *entry;

	if (!service || !*service || !name || !*name || !handler)
		return -EINVAL;
	entry = find_service(table, service);
	if (entry && find_method(entry, name))
		return -EEXIST;
	if (!entry)
		entry = push_service(table, service);
	if (!entry || push_method(entry, name, handler, arg) != 0)
		return -ENOMEM;
	if (rebuild_index(table) != 0) {
		pop_method(entry);
		return -ENOMEM;
	}
	return 0;
}

void
service_table_fini(struct service_table *table)
{
	for (size_t i = 0; i < table->service_count; i++) {
		struct service *service = &table->services[i];

		while (service->method_count)
			pop_method(service);
		free(service->methods);
		free(service->name);
	}
	free(table->services);
	free(table->index);
	*table = (struct service_table)SERVICE_TABLE_INIT;
}
