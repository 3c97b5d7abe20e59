/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_ARENA_H
#define NET_RPC_ARENA_H

/*
 * Memory that is given out piece after piece and taken back all at once: what one message needs while it is decoded.
 * The room of an arena is its own and reused; what does not fit is malloc'd and freed by the next reset. One thread.
 */

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Decoding a usual meta takes well under half of it. */
#define ARENA_ROOM_BYTES 4096u

struct arena_chunk;

struct arena {
	char *next, *end;	     /* what is left of the piece that is in use */
	struct arena_chunk *chunks;  /* beyond the room, newest first */
	ProtobufCAllocator protobuf; /* hands out of this arena; its free does nothing */
	char room[ARENA_ROOM_BYTES] __attribute__((aligned(16)));
};

/* The arena must not move from here on. */
void arena_init(struct arena *arena);
void arena_fini(struct arena *arena);

/* Aligned to 16 bytes; NULL when malloc has none. Valid until arena_reset(). */
void *arena_alloc(struct arena *arena, size_t size);

/* Takes everything back. */
void arena_reset(struct arena *arena);

#endif
