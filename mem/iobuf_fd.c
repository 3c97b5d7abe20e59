/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/iobuf.h"
#include "mem/pieces.h"
#include "mem/tail.h"
#include <errno.h>

#define READ_BLOCKS_MAX	 16u /* beside the rest of the block that is being filled */
#define WRITE_PIECES_MAX 64

/* What one call reads into: the room where an append would go, then fresh blocks. */
struct intake {
	struct room room;
	struct xr_block *blocks[READ_BLOCKS_MAX];
	unsigned count;
	struct iovec iov[1 + READ_BLOCKS_MAX];
};

static unsigned
blocks_for(size_t bytes)
{
	size_t payload = block_payload_bytes(BLOCK_DEFAULT);

	return bytes > READ_BLOCKS_MAX * payload ? READ_BLOCKS_MAX : (unsigned)((bytes + payload - 1) / payload);
}

/* Fewer fresh blocks than are wanted will do. */
static void
add_blocks(struct intake *intake, size_t bytes)
{
	size_t payload = block_payload_bytes(BLOCK_DEFAULT);
	unsigned want = blocks_for(bytes);

	intake->count = want ? block_alloc_several(BLOCK_DEFAULT, intake->blocks, want) : 0;
	for (unsigned i = 0; i < intake->count; i++) {
		size_t n = bytes < payload ? bytes : payload;

		intake->iov[1 + i] = (struct iovec){block_payload(intake->blocks[i]), n};
		bytes -= n;
	}
}

static int
open_intake(struct xr_iobuf *buf, size_t max, struct intake *intake)
{
	size_t n;

	if (pieces_reserve(buf, 1 + READ_BLOCKS_MAX) != 0 || tail_open(buf, max, &intake->room) != 0) {
		pieces_release_if_empty(buf);
		return -ENOMEM;
	}
	n = intake->room.len < max ? intake->room.len : max;
	intake->iov[0] = (struct iovec){intake->room.data, n};
	add_blocks(intake, max - n);
	return 0;
}

/* The first len bytes of it are the iobuf's now; the rest goes back. */
static void
close_intake(struct xr_iobuf *buf, struct intake *intake, size_t len)
{
	size_t n = len < intake->iov[0].iov_len ? len : intake->iov[0].iov_len;

	if (n > 0)
		tail_append(buf, &intake->room, n);
	else
		tail_cancel(&intake->room);
	len -= n;
	for (unsigned i = 0; i < intake->count; i++) {
		struct xr_block *block = intake->blocks[i];

		n = len < intake->iov[1 + i].iov_len ? len : intake->iov[1 + i].iov_len;
		if (n > 0)
			pieces_push(buf, block, block_payload(block), n);
		else
			block_drop(block);
		len -= n;
	}
	pieces_release_if_empty(buf);
}

ssize_t
xr_iobuf_readv(struct xr_iobuf *buf, int fd, size_t max)
{
	struct intake intake;
	ssize_t got;

	if (max == 0)
		return -EINVAL;
	if (open_intake(buf, max, &intake) != 0)
		return -ENOMEM;
	got = readv(fd, intake.iov, (int)(1 + intake.count));
	if (got < 0)
		got = -errno;
	close_intake(buf, &intake, got > 0 ? (size_t)got : 0);
	return got;
}

ssize_t
xr_iobuf_writev(struct xr_iobuf *buf, int fd)
{
	struct iovec iov[WRITE_PIECES_MAX];
	int count = xr_iobuf_iovec(buf, 0, iov, WRITE_PIECES_MAX);
	ssize_t done;

	if (count == 0)
		return 0;
	done = writev(fd, iov, count);
	if (done < 0)
		return -errno;
	xr_iobuf_drop(buf, (size_t)done);
	return done;
}
