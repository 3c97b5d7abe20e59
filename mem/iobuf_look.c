/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/iobuf.h"
#include "mem/pieces.h"
#include "mem/user_block.h"
#include <errno.h>
#include <string.h>

size_t
xr_iobuf_copy_out(const struct xr_iobuf *buf, size_t offset, void *to, size_t len)
{
	const struct xr_iobuf_piece *piece = pieces_seek(buf, &offset);
	size_t done = 0;

	for (; piece < pieces_end(buf) && done < len; piece++, offset = 0) {
		size_t n = piece->len - offset;

		if (n > len - done)
			n = len - done;
		memcpy((char *)to + done, piece->data + offset, n);
		done += n;
	}
	return done;
}

int
xr_iobuf_iovec(const struct xr_iobuf *buf, size_t offset, struct iovec *iov, int max)
{
	const struct xr_iobuf_piece *piece = pieces_seek(buf, &offset);
	int count = 0;

	for (; piece < pieces_end(buf) && count < max; piece++, offset = 0) {
		iov[count].iov_base = piece->data + offset;
		iov[count].iov_len = piece->len - offset;
		count++;
	}
	return count;
}

bool
xr_iobuf_next(const struct xr_iobuf *buf, struct xr_iobuf_cursor *cursor, struct iovec *piece)
{
	const struct xr_iobuf_piece *at;

	if (cursor->next_ >= buf->count_)
		return false;
	at = pieces_first(buf) + cursor->next_++;
	piece->iov_base = at->data;
	piece->iov_len = at->len;
	return true;
}

const void *
xr_iobuf_peek(const struct xr_iobuf *buf, size_t offset, size_t len, void *scratch)
{
	const struct xr_iobuf_piece *piece;
	size_t in_piece = offset;

	if (offset > buf->size_ || len > buf->size_ - offset)
		return NULL;
	piece = pieces_seek(buf, &in_piece);
	if (piece < pieces_end(buf) && len <= piece->len - in_piece)
		return piece->data + in_piece;
	if (scratch)
		xr_iobuf_copy_out(buf, offset, scratch, len);
	return scratch;
}

/* Whether the bytes from in_piece on are those; there are as many. */
static bool
are(const struct xr_iobuf_piece *piece, size_t in_piece, const char *bytes, size_t len)
{
	for (; len > 0; piece++, in_piece = 0) {
		size_t n = piece->len - in_piece < len ? piece->len - in_piece : len;

		if (memcmp(piece->data + in_piece, bytes, n) != 0)
			return false;
		bytes += n;
		len -= n;
	}
	return true;
}

/* From one occurrence of the first byte to the next, piece by piece, without looking at a piece again. */
ssize_t
xr_iobuf_find(const struct xr_iobuf *buf, size_t offset, const void *bytes, size_t len)
{
	size_t in_piece = offset;
	const struct xr_iobuf_piece *piece = pieces_seek(buf, &in_piece);

	if (len == 0)
		return -EINVAL;
	while (offset < buf->size_ && buf->size_ - offset >= len) {
		const char *from = piece->data + in_piece;
		const char *hit = memchr(from, *(const unsigned char *)bytes, piece->len - in_piece);

		if (!hit) {
			offset += piece->len - in_piece;
			in_piece = 0;
			piece++;
			continue;
		}
		offset += (size_t)(hit - from);
		in_piece += (size_t)(hit - from);
		if (buf->size_ - offset >= len && are(piece, in_piece, bytes, len))
			return (ssize_t)offset;
		offset++;
		in_piece++;
	}
	return -ENOENT;
}

bool
xr_iobuf_equal_bytes(const struct xr_iobuf *buf, const void *bytes, size_t len)
{
	return buf->size_ == len && are(pieces_first(buf), 0, bytes, len);
}

bool
xr_iobuf_equal(const struct xr_iobuf *a, const struct xr_iobuf *b)
{
	const struct xr_iobuf_piece *pa = pieces_first(a), *pb = pieces_first(b);
	size_t in_a = 0, in_b = 0;

	if (a->size_ != b->size_)
		return false;
	while (pa < pieces_end(a)) {
		size_t n = pa->len - in_a < pb->len - in_b ? pa->len - in_a : pb->len - in_b;

		if (memcmp(pa->data + in_a, pb->data + in_b, n) != 0)
			return false;
		in_a += n;
		in_b += n;
		if (in_a == pa->len) {
			pa++;
			in_a = 0;
		}
		if (in_b == pb->len) {
			pb++;
			in_b = 0;
		}
	}
	return true;
}

size_t
iobuf_pinned_bytes(const struct xr_iobuf *buf)
{
	size_t bytes = 0;

	for (const struct xr_iobuf_piece *piece = pieces_first(buf); piece < pieces_end(buf); piece++)
		bytes += block_is_user(piece->block) ? piece->len : block_bytes(piece->block->type);
	return bytes;
}

size_t
iobuf_pool_bytes(const struct xr_iobuf *buf)
{
	size_t bytes = 0;

	for (const struct xr_iobuf_piece *piece = pieces_first(buf); piece < pieces_end(buf); piece++)
		bytes += block_is_user(piece->block) ? 0 : block_bytes(piece->block->type);
	return bytes;
}
