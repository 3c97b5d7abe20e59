/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MEM_IOBUF_MODEL_H
#define TESTS_MEM_IOBUF_MODEL_H

/*
 * iobufs beside plain arrays of bytes: each step makes one call, chosen with its arguments by whoever includes this,
 * and does to the arrays what the call should have done to the iobufs. They must stay alike. A call may fail for lack
 * of memory at any time; then everything must be as it was.
 *
 * The first fault ends a run and stays in the model: which condition did not hold, and at which step.
 */

#include "mem/iobuf.h"
#include "mem/pieces.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MODEL_BUFS = 6,
	MODEL_CAP = 48 * 1024,	 /* of each array */
	MODEL_PIECES_MAX = 3000, /* sharing with itself doubles them */
	MODEL_PATTERN = 64 * 1024,
	MODEL_LEN_MAX = 20000, /* of what one call puts in */
};

struct model_buf {
	struct xr_iobuf buf;
	size_t size;
	char bytes[MODEL_CAP];
};

struct model {
	struct model_buf bufs[MODEL_BUFS];
	void *choices; /* the includer's */
	size_t step;
	size_t refused; /* calls that found no memory */
	size_t user_made, user_freed;
	const char *fault; /* NULL: none */
	int fault_line;
	int in, out; /* a file with the pattern, and one to write to */
	char pattern[MODEL_PATTERN];
	char seen[MODEL_CAP];
};

/* Below, which is not 0. By the includer. */
static size_t model_choose(struct model *m, size_t below);

#define MODEL_CHECK(condition) model_check(m, (condition), __LINE__, #condition)

static inline void
model_check(struct model *m, bool holds, int line, const char *condition)
{
	if (holds || m->fault)
		return;
	m->fault = condition;
	m->fault_line = line;
}

/* ---- choices ---- */

/* Mostly small, sometimes around a block or several. */
static inline size_t
model_len(struct model *m)
{
	const size_t payload = block_payload_bytes(BLOCK_DEFAULT);

	switch (model_choose(m, 16)) {
	case 0:
		return payload - 3 + model_choose(m, 7);
	case 1:
		return model_choose(m, MODEL_LEN_MAX);
	default:
		return model_choose(m, 200);
	}
}

/* Of what is there: some, up to a bit more than all, or as much as there can be. */
static inline size_t
model_len_of(struct model *m, const struct model_buf *a)
{
	switch (model_choose(m, 8)) {
	case 0:
		return SIZE_MAX - model_choose(m, 2);
	case 1:
	case 2:
		return model_choose(m, a->size + 100);
	default:
		return model_len(m);
	}
}

/* Any place, the end and a bit behind it included. */
static inline size_t
model_offset(struct model *m, const struct model_buf *a)
{
	return model_choose(m, 64) == 0 ? SIZE_MAX : model_choose(m, a->size + 10);
}

static inline const char *
model_bytes(struct model *m)
{
	return m->pattern + model_choose(m, MODEL_PATTERN - MODEL_LEN_MAX);
}

/* ---- the arrays ---- */

static inline bool
model_fits(const struct model_buf *a, size_t len)
{
	return len <= MODEL_CAP - a->size;
}

static inline size_t
model_there(const struct model_buf *a, size_t offset, size_t len)
{
	size_t rest = offset < a->size ? a->size - offset : 0;

	return len < rest ? len : rest;
}

static inline void
model_append(struct model_buf *a, const char *bytes, size_t len)
{
	memcpy(a->bytes + a->size, bytes, len);
	a->size += len;
}

static inline void
model_prepend(struct model_buf *a, const char *bytes, size_t len)
{
	memmove(a->bytes + len, a->bytes, a->size);
	memcpy(a->bytes, bytes, len);
	a->size += len;
}

static inline void
model_take(struct model_buf *a, size_t len)
{
	a->size -= len;
	memmove(a->bytes, a->bytes + len, a->size);
}

static inline bool
model_alike(const struct model_buf *a)
{
	return xr_iobuf_equal_bytes(&a->buf, a->bytes, a->size);
}

/* False: the call found no memory, and must have changed nothing: the caller does not either. */
static inline bool
model_done(struct model *m, ssize_t status, const struct model_buf *a, const struct model_buf *b)
{
	if (status >= 0)
		return true;
	MODEL_CHECK(status == -ENOMEM);
	MODEL_CHECK(model_alike(a) && model_alike(b));
	m->refused++;
	return false;
}

/* ---- steps that put in ---- */

static inline void
model_step_append(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t len = model_len(m);
	const char *bytes = model_bytes(m);

	if (model_fits(a, len) && model_done(m, xr_iobuf_append(&a->buf, bytes, len), a, b))
		model_append(a, bytes, len);
}

static inline void
model_step_prepend(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t len = model_len(m);
	const char *bytes = model_bytes(m);

	if (model_fits(a, len) && model_done(m, xr_iobuf_prepend(&a->buf, bytes, len), a, b))
		model_prepend(a, bytes, len);
}

static inline void
model_free_user(void *data, void *arg)
{
	__atomic_fetch_add(&((struct model *)arg)->user_freed, 1, __ATOMIC_RELAXED);
	free(data);
}

static inline void
model_step_append_user(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t len = 1 + model_choose(m, 300);
	const char *bytes = model_bytes(m);
	char *mine = model_fits(a, len) ? malloc(len) : NULL;

	if (!mine)
		return;
	memcpy(mine, bytes, len);
	if (!model_done(m, xr_iobuf_append_user(&a->buf, mine, len, XR_MEM_KEY_NONE, model_free_user, m), a, b)) {
		free(mine);
		return;
	}
	m->user_made++;
	model_append(a, bytes, len);
}

static inline void
model_step_reserve(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t want = 1 + model_len(m), len, got = 0;
	const char *bytes = model_bytes(m);
	char *room;

	if (!model_fits(a, want))
		return;
	room = xr_iobuf_reserve(&a->buf, want, &got);
	if (!model_done(m, room ? 0 : -errno, a, b))
		return;
	MODEL_CHECK(got >= 1 && got <= want);
	len = model_choose(m, got + 1);
	memset(room, 0xee, got);
	memcpy(room, bytes, len);
	xr_iobuf_commit(&a->buf, len);
	model_append(a, bytes, len);
}

static inline void
model_step_readv(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t at = model_choose(m, MODEL_PATTERN), max = 1 + model_len(m);
	size_t expected = max < MODEL_PATTERN - at ? max : MODEL_PATTERN - at;
	ssize_t got;

	if (!model_fits(a, expected))
		return;
	MODEL_CHECK(lseek(m->in, (off_t)at, SEEK_SET) == (off_t)at);
	got = xr_iobuf_readv(&a->buf, m->in, max);
	if (!model_done(m, got, a, b))
		return;
	MODEL_CHECK(got > 0 && (size_t)got <= expected);
	m->refused += (size_t)got < expected; /* a block short: it read into the others */
	model_append(a, m->pattern + at, (size_t)got);
}

/* ---- steps from one to another ---- */

static inline void
model_step_cut(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t len = model_len_of(m, a), expected = a == b ? 0 : model_there(a, 0, len), moved;

	if (!model_fits(b, expected))
		return;
	moved = xr_iobuf_cut(&a->buf, len, &b->buf);
	MODEL_CHECK(moved == expected || moved == 0);
	if (!model_done(m, moved == expected ? 0 : -ENOMEM, a, b))
		return;
	model_append(b, a->bytes, expected);
	model_take(a, expected);
}

static inline void
model_step_move(struct model *m, struct model_buf *a, struct model_buf *b)
{
	if (!model_fits(b, a->size) || !model_done(m, xr_iobuf_move(&b->buf, &a->buf), a, b) || a == b)
		return;
	model_append(b, a->bytes, a->size);
	a->size = 0;
}

static inline void
model_step_move_front(struct model *m, struct model_buf *a, struct model_buf *b)
{
	if (!model_fits(b, a->size) || !model_done(m, xr_iobuf_move_front(&b->buf, &a->buf), a, b) || a == b)
		return;
	model_prepend(b, a->bytes, a->size);
	a->size = 0;
}

static inline bool
model_may_share(const struct model_buf *a, const struct model_buf *b, size_t len)
{
	return model_fits(b, len) && a->buf.count_ + b->buf.count_ <= MODEL_PIECES_MAX;
}

static inline void
model_step_share(struct model *m, struct model_buf *a, struct model_buf *b)
{
	if (model_may_share(a, b, a->size) && model_done(m, xr_iobuf_share(&b->buf, &a->buf), a, b))
		model_append(b, a->bytes, a->size);
}

static inline void
model_step_share_part(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t offset = model_offset(m, a), len = model_len_of(m, a), expected = model_there(a, offset, len);
	ssize_t shared;

	if (!model_may_share(a, b, expected))
		return;
	shared = xr_iobuf_share_part(&b->buf, &a->buf, offset, len);
	if (!model_done(m, shared, a, b))
		return;
	MODEL_CHECK((size_t)shared == expected);
	if (expected > 0)
		model_append(b, a->bytes + offset, expected);
}

/* ---- steps that take away ---- */

static inline void
model_step_drop(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t len = model_len_of(m, a), expected = model_there(a, 0, len);

	(void)b;
	MODEL_CHECK(xr_iobuf_drop(&a->buf, len) == expected);
	model_take(a, expected);
}

static inline void
model_step_drop_back(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t len = model_len_of(m, a), expected = model_there(a, 0, len);

	(void)b;
	MODEL_CHECK(xr_iobuf_drop_back(&a->buf, len) == expected);
	a->size -= expected;
}

static inline void
model_step_cut_out(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t len = model_len_of(m, a), expected = model_there(a, 0, len);

	(void)b;
	MODEL_CHECK(xr_iobuf_cut_out(&a->buf, m->seen, len) == expected);
	MODEL_CHECK(memcmp(m->seen, a->bytes, expected) == 0);
	model_take(a, expected);
}

static inline void
model_step_writev(struct model *m, struct model_buf *a, struct model_buf *b)
{
	ssize_t done;

	(void)b;
	MODEL_CHECK(lseek(m->out, 0, SEEK_SET) == 0);
	done = xr_iobuf_writev(&a->buf, m->out);
	MODEL_CHECK(done >= 0 && (size_t)done <= a->size && (done > 0) == (a->size > 0));
	if (m->fault)
		return;
	MODEL_CHECK(pread(m->out, m->seen, (size_t)done, 0) == done);
	MODEL_CHECK(memcmp(m->seen, a->bytes, (size_t)done) == 0);
	model_take(a, (size_t)done);
}

static inline void
model_step_clear(struct model *m, struct model_buf *a, struct model_buf *b)
{
	(void)b;
	xr_iobuf_clear(&a->buf);
	a->size = 0;
	MODEL_CHECK(xr_iobuf_size(&a->buf) == 0);
}

/* ---- steps that look ---- */

static inline void
model_step_copy_out(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t offset = model_offset(m, a), len = model_len_of(m, a), expected = model_there(a, offset, len);

	(void)b;
	MODEL_CHECK(xr_iobuf_copy_out(&a->buf, offset, m->seen, len) == expected);
	MODEL_CHECK(expected == 0 || memcmp(m->seen, a->bytes + offset, expected) == 0);
}

static inline void
model_step_peek(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t offset = model_offset(m, a), len = model_len_of(m, a);
	bool there = offset <= a->size && len <= a->size - offset;
	const void *at = xr_iobuf_peek(&a->buf, offset, len, m->seen);

	(void)b;
	MODEL_CHECK((at != NULL) == there);
	MODEL_CHECK(!at || memcmp(at, a->bytes + offset, len) == 0);
	at = xr_iobuf_peek(&a->buf, offset, len, NULL);
	MODEL_CHECK(!at || (there && memcmp(at, a->bytes + offset, len) == 0));
}

static inline void
model_step_next(struct model *m, struct model_buf *a, struct model_buf *b)
{
	struct xr_iobuf_cursor cursor = {0};
	struct iovec piece;
	size_t seen = 0;

	(void)b;
	while (!m->fault && xr_iobuf_next(&a->buf, &cursor, &piece)) {
		MODEL_CHECK(piece.iov_len > 0 && piece.iov_len <= a->size - seen);
		MODEL_CHECK(memcmp(piece.iov_base, a->bytes + seen, piece.iov_len) == 0);
		seen += piece.iov_len;
	}
	MODEL_CHECK(seen == a->size);
}

static inline void
model_step_iovec(struct model *m, struct model_buf *a, struct model_buf *b)
{
	struct iovec iov[5];
	size_t seen = model_choose(m, a->size + 1);
	int n;

	(void)b;
	while (!m->fault && (n = xr_iobuf_iovec(&a->buf, seen, iov, 5)) > 0) {
		for (int i = 0; i < n; i++) {
			MODEL_CHECK(iov[i].iov_len <= a->size - seen);
			MODEL_CHECK(memcmp(iov[i].iov_base, a->bytes + seen, iov[i].iov_len) == 0);
			seen += iov[i].iov_len;
		}
	}
	MODEL_CHECK(seen == a->size);
}

/* What is looked for is there more often than not: a few bytes of the array itself. */
static inline void
model_step_find(struct model *m, struct model_buf *a, struct model_buf *b)
{
	size_t offset = model_offset(m, a), len = 1 + model_choose(m, 4);
	const char *from = model_choose(m, 4) && a->size > 4 ? a->bytes + model_choose(m, a->size - 4) : model_bytes(m);
	const char *hit = offset < a->size ? memmem(a->bytes + offset, a->size - offset, from, len) : NULL;

	(void)b;
	MODEL_CHECK(xr_iobuf_find(&a->buf, offset, from, len) == (hit ? hit - a->bytes : -ENOENT));
}

static inline void
model_step_equal(struct model *m, struct model_buf *a, struct model_buf *b)
{
	bool same = a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;

	MODEL_CHECK(xr_iobuf_equal(&a->buf, &b->buf) == same);
	MODEL_CHECK(xr_iobuf_equal_bytes(&a->buf, b->bytes, b->size) == same);
	MODEL_CHECK(model_alike(a));
}

/* ---- a run ---- */

static const struct {
	unsigned weight; /* their sum is 256 */
	void (*fn)(struct model *m, struct model_buf *a, struct model_buf *b);
} g_model_steps[] = {
	{50, model_step_append}, {16, model_step_prepend},    {20, model_step_append_user}, {16, model_step_reserve},
	{3, model_step_readv},	 {24, model_step_cut},	      {8, model_step_move},	    {8, model_step_move_front},
	{8, model_step_share},	 {12, model_step_share_part}, {20, model_step_drop},	    {20, model_step_drop_back},
	{8, model_step_cut_out}, {3, model_step_writev},      {5, model_step_clear},	    {11, model_step_copy_out},
	{11, model_step_peek},	 {2, model_step_next},	      {2, model_step_iovec},	    {6, model_step_find},
	{3, model_step_equal},
};

static inline void
model_step(struct model *m)
{
	size_t dice = model_choose(m, 256), i = 0;
	struct model_buf *a = &m->bufs[model_choose(m, MODEL_BUFS)], *b = &m->bufs[model_choose(m, MODEL_BUFS)];

	for (; dice >= g_model_steps[i].weight; i++)
		dice -= g_model_steps[i].weight;
	g_model_steps[i].fn(m, a, b);
	MODEL_CHECK(xr_iobuf_size(&a->buf) == a->size && xr_iobuf_size(&b->buf) == b->size);
	MODEL_CHECK((a->buf.count_ == 0) == (a->size == 0) && (a->size > 0 || !a->buf.pieces_));
	if (m->step++ % 64 == 0)
		MODEL_CHECK(model_alike(a) && model_alike(b));
}

static inline int
model_file(struct model *m, const char *bytes, size_t len)
{
	int fd = memfd_create("model", 0);

	MODEL_CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	return fd;
}

/* The pattern has every byte, and each three of them only once in a while. */
static inline void
model_start(struct model *m, void *choices)
{
	*m = (struct model){.choices = choices};
	for (size_t i = 0; i < sizeof m->pattern; i++)
		m->pattern[i] = (char)(i * 31 + (i >> 8));
	m->in = model_file(m, m->pattern, sizeof m->pattern);
	m->out = model_file(m, "", 0);
}

/* Everything is dropped; user memory that another thread holds still may be freed later. */
static inline void
model_end(struct model *m)
{
	for (size_t i = 0; i < MODEL_BUFS; i++) {
		MODEL_CHECK(model_alike(&m->bufs[i]));
		model_step_clear(m, &m->bufs[i], &m->bufs[i]);
	}
	close(m->in);
	close(m->out);
}

#endif
