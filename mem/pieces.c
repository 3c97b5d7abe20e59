/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/pieces.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX (UINT32_MAX / 4)
#define CLASSES	  3

/* How many pieces an array of a size class has, and how many such arrays an lcore keeps (about 70 KiB in all). */
static const struct {
	uint32_t pieces;
	unsigned kept_max;
} g_classes[CLASSES] = {{8, 64}, {64, 16}, {512, 3}};

union array {
	union array *next; /* while it is kept */
	struct xr_iobuf_piece pieces[1];
};

static __thread struct {
	bool on; /* this thread is an lcore */
	struct {
		union array *first;
		unsigned count;
	} kept[CLASSES];
} t_arrays __attribute__((tls_model("initial-exec")));

/* The smallest size class with that many pieces, CLASSES when there is none. */
static unsigned
class_of(uint32_t pieces)
{
	unsigned size_class = 0;

	while (size_class < CLASSES && g_classes[size_class].pieces < pieces)
		size_class++;
	return size_class;
}

static union array *
take_kept(unsigned size_class)
{
	union array *array = t_arrays.kept[size_class].first;

	if (array) {
		t_arrays.kept[size_class].first = array->next;
		t_arrays.kept[size_class].count--;
	}
	return array;
}

/* At least *pieces, as many as there are then. */
static struct xr_iobuf_piece *
array_create(uint32_t *pieces)
{
	unsigned size_class = class_of(*pieces);
	struct xr_iobuf_piece *array = NULL;

	if (size_class < CLASSES) {
		*pieces = g_classes[size_class].pieces;
		array = (struct xr_iobuf_piece *)take_kept(size_class);
	}
	return array ? array : malloc(*pieces * sizeof(*array));
}

static void
array_free(struct xr_iobuf_piece *pieces, uint32_t count)
{
	unsigned size_class = class_of(count);
	union array *array = (union array *)pieces;

	if (size_class == CLASSES || !t_arrays.on ||
	    t_arrays.kept[size_class].count == g_classes[size_class].kept_max) {
		free(array);
		return;
	}
	array->next = t_arrays.kept[size_class].first;
	t_arrays.kept[size_class].first = array;
	t_arrays.kept[size_class].count++;
}

/* What is in front of the first piece when extra more are to be put there: half of what is still free after them. */
static uint32_t
front_room(uint32_t cap, uint32_t count, uint32_t extra)
{
	return extra + (cap - count - extra) / 2;
}

static int
move_to_larger(struct xr_iobuf *buf, uint32_t extra, bool at_front)
{
	uint32_t want = buf->count_ + extra;
	uint32_t cap = 2 * pieces_cap(buf) > want ? 2 * pieces_cap(buf) : want;
	struct xr_iobuf_piece *larger = array_create(&cap);
	uint32_t head;

	if (!larger)
		return -ENOMEM;
	head = at_front ? front_room(cap, buf->count_, extra) : 0;
	memcpy(larger + head, pieces_first(buf), buf->count_ * sizeof *larger);
	if (buf->pieces_)
		array_free(buf->pieces_, buf->cap_);
	buf->pieces_ = larger;
	buf->cap_ = cap;
	buf->head_ = head;
	return 0;
}

static void
move_within(struct xr_iobuf *buf, uint32_t head)
{
	struct xr_iobuf_piece *first = pieces_first(buf);

	memmove(first - buf->head_ + head, first, buf->count_ * sizeof *first);
	buf->head_ = head;
}

/* Moving down is paid for by the pieces that left: there were as many as are moved. */
int
pieces_grow(struct xr_iobuf *buf, uint32_t extra)
{
	if (extra > COUNT_MAX - buf->count_)
		return -ENOMEM;
	if (buf->head_ < buf->count_ || buf->count_ + extra > pieces_cap(buf))
		return move_to_larger(buf, extra, false);
	move_within(buf, 0);
	return 0;
}

/* Moving up is paid for by the room that it makes: for half as many pieces as are moved, or there are but a few. */
int
pieces_grow_front(struct xr_iobuf *buf, uint32_t extra)
{
	uint32_t cap = pieces_cap(buf), unused = cap - buf->count_;

	if (extra > COUNT_MAX - buf->count_)
		return -ENOMEM;
	if (unused < extra || (buf->pieces_ && unused - extra < buf->count_))
		return move_to_larger(buf, extra, true);
	move_within(buf, front_room(cap, buf->count_, extra));
	return 0;
}

void
pieces_release(struct xr_iobuf *buf)
{
	if (buf->pieces_)
		array_free(buf->pieces_, buf->cap_);
	buf->pieces_ = NULL;
	buf->head_ = 0;
}

void
pieces_lcore_init(void)
{
	t_arrays.on = true;
}

void
pieces_lcore_fini(void)
{
	t_arrays.on = false;
	for (unsigned size_class = 0; size_class < CLASSES; size_class++)
		while (t_arrays.kept[size_class].first)
			free(take_kept(size_class));
}
