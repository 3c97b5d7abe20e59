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

static int
move_to_larger(struct xr_iobuf *buf, uint32_t want)
{
	uint32_t cap = 2 * pieces_cap(buf) > want ? 2 * pieces_cap(buf) : want;
	struct xr_iobuf_piece *larger = array_create(&cap);

	if (!larger)
		return -ENOMEM;
	memcpy(larger, pieces_first(buf), buf->count_ * sizeof *larger);
	if (buf->pieces_)
		array_free(buf->pieces_, buf->cap_);
	buf->pieces_ = larger;
	buf->cap_ = cap;
	buf->head_ = 0;
	return 0;
}

/* Moving down is paid for by the pieces that left: there were as many as are moved. */
int
pieces_grow(struct xr_iobuf *buf, uint32_t extra)
{
	struct xr_iobuf_piece *first = pieces_first(buf);

	if (extra > COUNT_MAX - buf->count_)
		return -ENOMEM;
	if (buf->head_ < buf->count_ || buf->count_ + extra > pieces_cap(buf))
		return move_to_larger(buf, buf->count_ + extra);
	memmove(first - buf->head_, first, buf->count_ * sizeof *first);
	buf->head_ = 0;
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
