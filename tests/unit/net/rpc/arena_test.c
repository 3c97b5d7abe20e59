/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/arena.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/unit.h"
#include <stdint.h>

static struct arena *
new_arena(void)
{
	struct arena *arena = malloc(sizeof *arena);

	ASSERT_FATAL(arena != NULL);
	arena_init(arena);
	return arena;
}

static void
free_arena(struct arena *arena)
{
	arena_fini(arena);
	free(arena);
}

static bool
inside(const struct arena *arena, const void *piece)
{
	return (const char *)piece >= arena->room && (const char *)piece < arena->room + sizeof arena->room;
}

static void
test_room_first(void)
{
	struct arena *arena = new_arena();
	char *one = arena_alloc(arena, 1), *two = arena_alloc(arena, 17), *three = arena_alloc(arena, 16);

	CU_ASSERT(inside(arena, one) && inside(arena, two) && inside(arena, three));
	ASSERT_EQ(two - one, 16);
	ASSERT_EQ(three - two, 32);
	ASSERT_EQ((uintptr_t)one % 16, 0);
	free_arena(arena);
}

static void
test_reset_gives_the_room_again(void)
{
	struct arena *arena = new_arena();
	void *first = arena_alloc(arena, 100);

	arena_alloc(arena, ARENA_ROOM_BYTES);
	CU_ASSERT(arena->chunks != NULL);
	arena_reset(arena);
	CU_ASSERT(arena->chunks == NULL);
	CU_ASSERT(arena_alloc(arena, 100) == first);
	free_arena(arena);
}

static void
test_exactly_full(void)
{
	struct arena *arena = new_arena();

	CU_ASSERT(inside(arena, arena_alloc(arena, ARENA_ROOM_BYTES)));
	CU_ASSERT(arena->chunks == NULL);
	CU_ASSERT(!inside(arena, arena_alloc(arena, 1)));
	free_arena(arena);
}

static void
test_large_pieces(void)
{
	struct arena *arena = new_arena();
	char *small, *large = arena_alloc(arena, 1 << 20);

	ASSERT_FATAL(large != NULL);
	memset(large, 1, 1 << 20);
	ASSERT_EQ((uintptr_t)large % 16, 0);
	small = arena_alloc(arena, 8);
	ASSERT_FATAL(small != NULL);
	memset(small, 2, 8);
	ASSERT_EQ(large[(1 << 20) - 1], 1);
	free_arena(arena);
}

static void
test_size_overflow(void)
{
	struct arena *arena = new_arena();

	CU_ASSERT(arena_alloc(arena, SIZE_MAX) == NULL);
	CU_ASSERT(arena_alloc(arena, SIZE_MAX - 8) == NULL);
	CU_ASSERT(arena_alloc(arena, 8) != NULL);
	free_arena(arena);
}

static void
test_no_memory(void)
{
	struct arena *arena;

	if (!FAIL_ALLOC) {
		unit_skip("the sanitizer's allocator does not fail");
		return;
	}
	arena = new_arena();
	g_fail_alloc_after = 0;
	CU_ASSERT(arena_alloc(arena, 16) != NULL);
	CU_ASSERT(arena_alloc(arena, ARENA_ROOM_BYTES) == NULL);
	CU_ASSERT(arena_alloc(arena, 16) != NULL);
	g_fail_alloc_after = -1;
	CU_ASSERT(arena_alloc(arena, ARENA_ROOM_BYTES) != NULL);
	free_arena(arena);
}

static void
test_protobuf_allocator(void)
{
	struct arena *arena = new_arena();
	void *piece = arena->protobuf.alloc(arena->protobuf.allocator_data, 24);

	CU_ASSERT(inside(arena, piece));
	arena->protobuf.free(arena->protobuf.allocator_data, piece);
	CU_ASSERT(arena_alloc(arena, 1) != piece);
	free_arena(arena);
}

UNIT_SUITE("rpc arena", {"pieces come from the room, aligned", test_room_first},
	   {"a reset gives the room again and frees the rest", test_reset_gives_the_room_again},
	   {"the room can be used up exactly", test_exactly_full}, {"large pieces are malloc'd", test_large_pieces},
	   {"a size that overflows is refused", test_size_overflow},
	   {"without memory only the room is left", test_no_memory},
	   {"protobuf-c allocates from it and frees nothing", test_protobuf_allocator});
