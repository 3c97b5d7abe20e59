/* SPDX-License-Identifier: Apache-2.0 */

/* What the shared object does for a program that knows nothing of it: one device, and a report at the end. */

#include "tests/fakeverbs/fakeverbs.h"
#include <unistd.h>

#define EXIT_VIOLATED 86 /* of a program that would have ended well */

__attribute__((constructor)) static void
begin(void)
{
	struct fake_device device = fake_device("fake0", "127.0.0.1");

	fake_device_add(&device);
}

__attribute__((destructor)) static void
end(void)
{
	fake_leaks();
	if (fake_violations())
		_exit(EXIT_VIOLATED);
}
