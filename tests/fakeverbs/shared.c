/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the shared object does for a program that knows nothing of it: one device, and a report at the end: what was
 * violated, what is left, and, in a line of JSON appended to the file that FAKEVERBS_COUNTS names, what was counted.
 */

#include "tests/fakeverbs/fakeverbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_VIOLATED 86 /* of a program that would have ended well */

__attribute__((constructor)) static void
begin(void)
{
	struct fake_device device = fake_device("fake0", "127.0.0.1");

	fake_device_add(&device);
}

static void
write_counts(FILE *out)
{
	const struct fake_counts counts = fake_device_counts(0);
	const struct {
		const char *name;
		uint64_t value;
	} figures[] = {
		{"post_send", counts.post_send},
		{"sends", counts.sends},
		{"signaled", counts.signaled},
		{"solicited", counts.solicited},
		{"inlined", counts.inlined},
		{"zero_length", counts.zero_length},
		{"credits", counts.credits},
		{"send_bytes", counts.send_bytes},
		{"send_refused", counts.send_refused},
		{"post_recv", counts.post_recv},
		{"recvs", counts.recvs},
		{"delivered", counts.delivered},
		{"rnr", counts.rnr},
		{"polls", counts.polls},
		{"polls_empty", counts.polls_empty},
		{"completions", counts.completions},
		{"notifies", counts.notifies},
		{"events", counts.events},
		{"events_got", counts.events_got},
		{"events_acked", counts.events_acked},
	};

	for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "{", figures[i].name, figures[i].value);
	fprintf(out, "}\n");
}

static void
report_counts(void)
{
	const char *path = getenv("FAKEVERBS_COUNTS");
	FILE *out = path ? fopen(path, "a") : NULL;

	if (!out)
		return;
	write_counts(out);
	fclose(out);
}

__attribute__((destructor)) static void
end(void)
{
	report_counts();
	fake_leaks();
	if (fake_violations())
		_exit(EXIT_VIOLATED);
}
