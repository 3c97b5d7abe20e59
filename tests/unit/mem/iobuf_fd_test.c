/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/mem/iobuf_fixture.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define ONE_READ_MAX ((size_t)17 * PAYLOAD)

/* A file with the pattern's bytes, from its beginning. */
static int
file_with(size_t len)
{
	int fd = memfd_create("iobuf", 0);

	ASSERT_FATAL(fd >= 0);
	for (size_t done = 0; done < len;) {
		size_t n = len - done < sizeof pattern ? len - done : sizeof pattern;

		ASSERT_FATAL(write(fd, pattern, n) == (ssize_t)n);
		done += n;
	}
	ASSERT_FATAL(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void
open_pipe(int ends[2])
{
	ASSERT_FATAL(pipe2(ends, O_NONBLOCK) == 0);
}

static void
close_pipe(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static void
test_read_and_write(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	int ends[2];

	start(1);
	open_pipe(ends);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 20000), 0);
	ASSERT_EQ(xr_iobuf_writev(&buf, ends[1]), 20000);
	ASSERT_EQ(xr_iobuf_size(&buf), 0);
	ASSERT_EQ(xr_iobuf_append(&buf, "> ", 2), 0);
	ASSERT_EQ(xr_iobuf_readv(&buf, ends[0], 12345), 12345);
	ASSERT_EQ(xr_iobuf_size(&buf), 12347);
	ASSERT_EQ(xr_iobuf_readv(&buf, ends[0], SIZE_MAX), 20000 - 12345);
	ASSERT_EQ(xr_iobuf_drop(&buf, 2), 2);
	CU_ASSERT(holds(&buf, pattern, 20000));
	xr_iobuf_clear(&buf);
	close_pipe(ends);
	stop();
}

static void
test_small_reads_share_a_block(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	int fd;

	start(1);
	fd = file_with(2000);
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(xr_iobuf_readv(&buf, fd, 20), 20);
	CU_ASSERT(holds(&buf, pattern, 2000));
	ASSERT_EQ(buf.count_, 1);
	ASSERT_EQ(xr_iobuf_readv(&buf, fd, 20), 0);
	CU_ASSERT(holds(&buf, pattern, 2000));
	xr_iobuf_clear(&buf);
	close(fd);
	stop();
}

static void
test_reads_of_any_size(void)
{
	const size_t sizes[] = {1,
				PAYLOAD - 1,
				PAYLOAD,
				PAYLOAD + 1,
				2 * PAYLOAD,
				2 * PAYLOAD + 1,
				ONE_READ_MAX - 1,
				ONE_READ_MAX,
				ONE_READ_MAX + 1,
				SIZE_MAX};
	static char twice[2 * sizeof pattern + 40000];

	start(2);
	for (size_t at = 0; at < sizeof twice; at++)
		twice[at] = pattern[at % sizeof pattern];
	for (int on_lcore = 1; on_lcore >= 0; on_lcore--) {
		if (!on_lcore)
			fixture_lcore_stop();
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			size_t expected = sizes[i] < ONE_READ_MAX ? sizes[i] : ONE_READ_MAX;
			struct xr_iobuf buf = XR_IOBUF_INIT;
			int fd = file_with(sizeof twice);

			ASSERT_EQ(xr_iobuf_readv(&buf, fd, sizes[i]), expected);
			CU_ASSERT(xr_iobuf_equal_bytes(&buf, twice, expected));
			xr_iobuf_clear(&buf);
			close(fd);
		}
	}
	ASSERT_EQ(fixture_in_use(BLOCK_DEFAULT), 0);
	fixture_stop();
}

static void
test_read_errors_change_nothing(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	int ends[2];

	start(1);
	open_pipe(ends);
	ASSERT_EQ(xr_iobuf_readv(&buf, ends[0], 100), -EAGAIN);
	CU_ASSERT(xr_iobuf_size(&buf) == 0 && !buf.pieces_);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 100), 0);
	ASSERT_EQ(xr_iobuf_readv(&buf, ends[0], SIZE_MAX), -EAGAIN);
	ASSERT_EQ(xr_iobuf_readv(&buf, ends[0], 0), -EINVAL);
	ASSERT_EQ(xr_iobuf_readv(&buf, ends[1], 1), -EBADF);
	ASSERT_EQ(xr_iobuf_readv(&buf, -1, 1), -EBADF);
	close(ends[1]);
	ASSERT_EQ(xr_iobuf_readv(&buf, ends[0], 1), 0);
	CU_ASSERT(holds(&buf, pattern, 100));
	close(ends[0]);
	xr_iobuf_clear(&buf);
	stop();
}

/* One block left: the read brings what fits. None left: it brings nothing and says so. */
static void
test_read_at_the_limit(void)
{
	struct xr_iobuf hog = XR_IOBUF_INIT, buf = XR_IOBUF_INIT;
	int fd;

	start(1);
	fd = file_with(40000);
	while (xr_iobuf_append(&hog, pattern, PAYLOAD) == 0)
		;
	ASSERT_EQ(xr_iobuf_readv(&buf, fd, 40000), -ENOMEM);
	CU_ASSERT(xr_iobuf_size(&buf) == 0 && !buf.pieces_);
	ASSERT_EQ(xr_iobuf_drop(&hog, 2 * (size_t)PAYLOAD), 2 * PAYLOAD);
	ASSERT_EQ(xr_iobuf_readv(&buf, fd, 40000), 2 * PAYLOAD);
	CU_ASSERT(holds(&buf, pattern, 2 * (size_t)PAYLOAD));
	ASSERT_EQ(xr_iobuf_readv(&buf, fd, 40000), -ENOMEM);
	CU_ASSERT(holds(&buf, pattern, 2 * (size_t)PAYLOAD));
	xr_iobuf_clear(&hog);
	ASSERT_EQ(xr_iobuf_readv(&buf, fd, 40000), 40000 - 2 * PAYLOAD);
	CU_ASSERT(holds(&buf, pattern, 40000));
	xr_iobuf_clear(&buf);
	close(fd);
	stop();
}

static void
test_write_of_many_pieces(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT;
	char seen[1000];
	int fd;

	start(1);
	fd = file_with(0);
	ASSERT_EQ(xr_iobuf_writev(&buf, fd), 0);
	for (size_t i = 0; i < sizeof seen; i++)
		ASSERT_FATAL(xr_iobuf_append_user(&buf, pattern + i, 1, 0, NULL, NULL) == 0);
	while (xr_iobuf_size(&buf) > 0)
		ASSERT_FATAL(xr_iobuf_writev(&buf, fd) > 0);
	ASSERT_EQ(pread(fd, seen, sizeof seen, 0), sizeof seen);
	CU_ASSERT(memcmp(seen, pattern, sizeof seen) == 0);
	close(fd);
	stop();
}

static void
test_a_full_pipe_takes_a_part(void)
{
	struct xr_iobuf buf = XR_IOBUF_INIT, in = XR_IOBUF_INIT;
	size_t total = 0;
	ssize_t n;
	int ends[2];

	start(2);
	open_pipe(ends);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(xr_iobuf_append(&buf, pattern, sizeof pattern), 0);
	while ((n = xr_iobuf_writev(&buf, ends[1])) > 0)
		total += (size_t)n;
	ASSERT_EQ(n, -EAGAIN);
	ASSERT_EQ(xr_iobuf_size(&buf), 3 * sizeof pattern - total);
	do {
		while ((n = xr_iobuf_readv(&in, ends[0], SIZE_MAX)) > 0)
			;
		ASSERT_EQ(n, -EAGAIN);
	} while (xr_iobuf_writev(&buf, ends[1]) > 0);
	ASSERT_EQ(xr_iobuf_size(&in), 3 * sizeof pattern);
	for (int i = 0; i < 3; i++) {
		static char seen[sizeof pattern];

		ASSERT_EQ(xr_iobuf_cut_out(&in, seen, sizeof seen), sizeof seen);
		CU_ASSERT(memcmp(seen, pattern, sizeof seen) == 0);
	}
	close_pipe(ends);
	stop();
}

static void
test_write_errors_change_nothing(void)
{
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	struct xr_iobuf buf = XR_IOBUF_INIT;
	int ends[2];

	start(1);
	open_pipe(ends);
	ASSERT_EQ(xr_iobuf_append(&buf, pattern, 100), 0);
	ASSERT_EQ(xr_iobuf_writev(&buf, ends[0]), -EBADF);
	close(ends[0]);
	ASSERT_EQ(xr_iobuf_writev(&buf, ends[1]), -EPIPE);
	CU_ASSERT(holds(&buf, pattern, 100));
	close(ends[1]);
	xr_iobuf_clear(&buf);
	signal(SIGPIPE, before);
	stop();
}

UNIT_SUITE("iobuf_fd", {"read and write", test_read_and_write},
	   {"small reads share a block", test_small_reads_share_a_block}, {"reads of any size", test_reads_of_any_size},
	   {"read errors change nothing", test_read_errors_change_nothing},
	   {"a read at the pool's limit", test_read_at_the_limit},
	   {"a write of many pieces", test_write_of_many_pieces},
	   {"a full pipe takes a part", test_a_full_pipe_takes_a_part},
	   {"write errors change nothing", test_write_errors_change_nothing});
