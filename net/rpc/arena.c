/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/arena.h"
#include <stdlib.h>

#define ALIGN		16u
#define CHUNK_MIN_BYTES 65536u

struct arena_chunk {
	struct arena_chunk *next;
	char bytes[] __attribute__((aligned(ALIGN)));
};

static void *
protobuf_alloc(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void
protobuf_free(void *arena, void *pointer)
{
	(void)arena;
	(void)pointer;
}

static void
use_room(struct arena *arena)
{
	arena->next = arena->room;
	arena->end = arena->room + sizeof arena->room;
}

void
arena_init(struct arena *arena)
{
	arena->chunks = NULL;
	arena->protobuf = (ProtobufCAllocator){protobuf_alloc, protobuf_free, arena};
	use_room(arena);
}

void
arena_fini(struct arena *arena)
{
	arena_reset(arena);
}

static int
add_chunk(struct arena *arena, size_t size)
{
	size_t bytes = size > CHUNK_MIN_BYTES ? size : CHUNK_MIN_BYTES;
	struct arena_chunk *chunk = malloc(sizeof *chunk + bytes);

	if (!chunk)
		return -1;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->next = chunk->bytes;
	arena->end = chunk->bytes + bytes;
	return 0;
}

void *
arena_alloc(struct arena *arena, size_t size)
{
	size_t rounded = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	char *piece;

	if (rounded < size)
		return NULL;
	if (rounded > (size_t)(arena->end - arena->next) && add_chunk(arena, rounded) != 0)
		return NULL;
	piece = arena->next;
	arena->next += rounded;
	return piece;
}

void
arena_reset(struct arena *arena)
{
	while (__builtin_expect(arena->chunks != NULL, 0)) {
		struct arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		free(chunk);
	}
	use_room(arena);
}
