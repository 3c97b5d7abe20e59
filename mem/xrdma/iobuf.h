/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_IOBUF_H
#define XRDMA_IOBUF_H

#include <sys/types.h>
#include <sys/uio.h>
#include <xrdma/types.h>

XR_BEGIN_DECLS

/**
 * An iobuf is a sequence of bytes in pieces of registered blocks. It owns references to the blocks: it is moved and
 * shared by the calls below and never copied with `=`. `{0}` is an empty one, and every iobuf ends with
 * xr_iobuf_clear() or by being moved from. An iobuf itself belongs to one thread at a time; its blocks may be shared
 * with iobufs on other threads. Any thread may use these calls; on an lcore they take no lock, but for each batch of
 * blocks that comes from the pool or goes there, and none of them blocks but for growth of the pool. A call that fails
 * has changed nothing.
 */
struct xr_block;

struct xr_iobuf_piece {
	struct xr_block *block; /* private */
	char *data;
	size_t len;
};

struct xr_iobuf {
	size_t size_;			/* private, all of them */
	struct xr_iobuf_piece *pieces_; /* NULL: in small_ */
	uint32_t head_, count_, cap_;
	struct xr_iobuf_piece small_[2];
};

#define XR_IOBUF_INIT \
	{             \
		0     \
	}

/**
 * The library's own key of registered user memory. XR_MEM_KEY_NONE: memory without one, which goes over TCP; over RDMA
 * only when it lies in a block of the pool's.
 */
typedef uint64_t xr_mem_key;
#define XR_MEM_KEY_NONE ((xr_mem_key)0)

/** Takes back user memory; see xr_iobuf_append_user(). */
typedef void xr_free_fn(void *data, void *arg);

/** Bytes in it. */
static inline size_t
xr_iobuf_size(const struct xr_iobuf *buf)
{
	return buf->size_;
}

/* ---- putting in ---- */

/** Appends a copy of len bytes. Errors: -ENOMEM the pool is at its limit. */
XR_API int xr_iobuf_append(struct xr_iobuf *buf, const void *data, size_t len);

/**
 * Appends the caller's memory itself, without copying. The memory must not change until free_fn(data, arg) has run
 * (NULL: static memory), once, on the thread that drops the last reference. key is that of a registered range which
 * holds all of it (see <xrdma/mem.h>), or XR_MEM_KEY_NONE. The range can't be deregistered from here on until free_fn
 * runs, in which it can.
 * Errors: -EINVAL len 0, data NULL, a key of no range or of one that does not hold all of the memory; -ENOMEM. free_fn
 * is not called after an error.
 */
XR_API int xr_iobuf_append_user(struct xr_iobuf *buf, void *data, size_t len, xr_mem_key key, xr_free_fn *free_fn,
				void *arg);

/** Puts a copy of len bytes in front, such as a header; what is there is not moved. Errors: -ENOMEM. */
XR_API int xr_iobuf_prepend(struct xr_iobuf *buf, const void *data, size_t len);

/**
 * Room to write into: at least one byte and at most want, at the returned address, *got says how many. Nothing is
 * appended until xr_iobuf_commit(); between the two neither this iobuf may be used nor any other be appended to on this
 * thread. NULL with errno ENOMEM, or EINVAL when want is 0.
 */
XR_API void *xr_iobuf_reserve(struct xr_iobuf *buf, size_t want, size_t *got);

/** Appends the first len bytes of what xr_iobuf_reserve() gave; 0 gives it back. */
XR_API void xr_iobuf_commit(struct xr_iobuf *buf, size_t len);

/* ---- from one iobuf to another; no byte is copied ---- */

/**
 * Moves the first len bytes (or all there are) to the end of another iobuf; returns how many. Without memory for the
 * list of pieces that is 0: nothing has been moved. From an iobuf to itself nothing is moved.
 */
XR_API size_t xr_iobuf_cut(struct xr_iobuf *from, size_t len, struct xr_iobuf *to);

/** Moves everything to the end of another iobuf; to itself is nothing to do. Errors: -ENOMEM (nothing moved). */
XR_API int xr_iobuf_move(struct xr_iobuf *to, struct xr_iobuf *from);

/** Moves everything to the front of another iobuf; to itself is nothing to do. Errors: -ENOMEM (nothing moved). */
XR_API int xr_iobuf_move_front(struct xr_iobuf *to, struct xr_iobuf *from);

/**
 * Appends references to all of from, which stays as it is. An iobuf shared with itself holds its bytes twice.
 * Errors: -ENOMEM.
 */
XR_API int xr_iobuf_share(struct xr_iobuf *to, const struct xr_iobuf *from);

/** Likewise of up to len bytes from offset on; returns how many there were. Errors: -ENOMEM. */
XR_API ssize_t xr_iobuf_share_part(struct xr_iobuf *to, const struct xr_iobuf *from, size_t offset, size_t len);

/* ---- taking away ---- */

/**
 * Drops the first len bytes (or all there are); returns how many. A free_fn of what goes may append to this iobuf, or
 * clear it.
 */
XR_API size_t xr_iobuf_drop(struct xr_iobuf *buf, size_t len);

/**
 * Drops the last len bytes (or all there are); returns how many. A free_fn of what goes may clear this iobuf, and must
 * not put anything into it.
 */
XR_API size_t xr_iobuf_drop_back(struct xr_iobuf *buf, size_t len);

/** Copies the first len bytes (or all there are) out and drops them; returns how many. */
XR_API size_t xr_iobuf_cut_out(struct xr_iobuf *buf, void *to, size_t len);

/** Drops everything; the iobuf is empty and may be used again. */
XR_API void xr_iobuf_clear(struct xr_iobuf *buf);

/* ---- looking at the bytes ---- */

/** Copies up to len bytes from offset on, without taking them; returns how many there were. */
XR_API size_t xr_iobuf_copy_out(const struct xr_iobuf *buf, size_t offset, void *to, size_t len);

/**
 * len bytes from offset on, in one piece: where they lie, when they lie so, else copied into scratch, which has room
 * for them. Valid until the iobuf or the scratch changes. NULL: there are fewer, or scratch is NULL and was needed.
 */
XR_API const void *xr_iobuf_peek(const struct xr_iobuf *buf, size_t offset, size_t len, void *scratch);

/** How far xr_iobuf_next() has come; `{0}` is before the first piece. */
struct xr_iobuf_cursor {
	uint32_t next_; /* private */
};

/**
 * The next piece of the bytes, where it lies: false when there is none any more. The iobuf must not change meanwhile.
 *
 *   struct xr_iobuf_cursor cursor = {0};
 *   struct iovec piece;
 *
 *   while (xr_iobuf_next(buf, &cursor, &piece))
 *           sum = crc32(sum, piece.iov_base, piece.iov_len);
 */
XR_API bool xr_iobuf_next(const struct xr_iobuf *buf, struct xr_iobuf_cursor *cursor, struct iovec *piece);

/**
 * The pieces from offset on as iovecs, for writev() or for looking at the bytes in place: fills at most max of them and
 * returns how many; they are valid until the iobuf changes. Pass the sum of what was seen as the next offset to go on.
 */
XR_API int xr_iobuf_iovec(const struct xr_iobuf *buf, size_t offset, struct iovec *iov, int max);

/**
 * Where these len bytes begin for the first time at offset or behind it, counted from the front of the iobuf; of one
 * byte ("\n", 1) as of several ("\r\n", 2), wherever the iobuf is cut.
 * Errors: -ENOENT they are not there, -EINVAL len 0.
 */
XR_API ssize_t xr_iobuf_find(const struct xr_iobuf *buf, size_t offset, const void *bytes, size_t len);

/** True when the bytes are the same, however they are cut. */
XR_API bool xr_iobuf_equal(const struct xr_iobuf *a, const struct xr_iobuf *b);

/** True when it holds these len bytes and no others. */
XR_API bool xr_iobuf_equal_bytes(const struct xr_iobuf *buf, const void *bytes, size_t len);

/* ---- file descriptors: files, pipes, sockets that are no xr_conn ---- */

/**
 * Appends what one readv(2) brings: up to max bytes, and at most some 130 KiB. Blocks only where the descriptor does.
 * Returns how many; 0: the end of the file.
 * Errors: -EINVAL max 0, -ENOMEM no block to read into, and those of readv(2), such as -EAGAIN and -EINTR.
 */
XR_API ssize_t xr_iobuf_readv(struct xr_iobuf *buf, int fd, size_t max);

/**
 * Writes from the front, by one writev(2) of at most 64 pieces, and drops what was written. Blocks only where the
 * descriptor does. Returns how many, which may be fewer than there are; 0 of an empty iobuf, without a call.
 * Errors: those of writev(2), such as -EAGAIN, -EINTR and -EPIPE (SIGPIPE is the program's to ignore).
 */
XR_API ssize_t xr_iobuf_writev(struct xr_iobuf *buf, int fd);

XR_END_DECLS

#endif
