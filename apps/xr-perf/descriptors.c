/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

void
descriptors_allow_most(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	/* Where this is not allowed the limit stays what it was, and who comes to it says so. */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static uint64_t
count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t count = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* ".", ".." and dir itself */
}

int
descriptors_check(uint64_t connections)
{
	uint64_t needed = connections + count_open();
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || needed <= limit.rlim_cur)
		return 0;
	fprintf(stderr,
		"xr-perf client: %llu connections need %llu descriptors, and this process may open %llu; ulimit -Hn or "
		"systemd's LimitNOFILE= allows more\n",
		(unsigned long long)connections, (unsigned long long)needed, (unsigned long long)limit.rlim_cur);
	return -EMFILE;
}
