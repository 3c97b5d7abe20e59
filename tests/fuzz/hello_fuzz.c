/* SPDX-License-Identifier: Apache-2.0 */

/* Arbitrary bytes as a hello: what was decoded encodes to the same bytes, and every prefix of it waits for more. */

#include "net/handshake/hello.h"
#include "tests/fuzz/fuzz.h"

#define MSG_LEN_AT 4u

/* msg_len is the one field that is not kept: what the library says has no tail. */
static void
check_encoding(const uint8_t *data, const struct hello *hello)
{
	uint8_t again[HELLO_V2_BYTES];

	hello_v2_encode(hello, again);
	FUZZ_ASSERT(memcmp(again, data, MSG_LEN_AT) == 0);
	FUZZ_ASSERT(memcmp(again + MSG_LEN_AT + 2, data + MSG_LEN_AT + 2, HELLO_V2_BYTES - MSG_LEN_AT - 2) == 0);
}

static void
check_verdict(const struct hello *hello)
{
	const char *why = NULL;

	if (!hello_v2_negotiable(hello, &why))
		FUZZ_ASSERT(why && *why);
}

/* What a shorter piece of the same bytes may be, given what the whole is. */
static void
check_prefix(const uint8_t *data, size_t len, enum hello_parse whole)
{
	struct hello hello;
	size_t used;
	uint8_t *piece = fuzz_copy(data, len);
	enum hello_parse parse = hello_v2_decode(piece, len, &hello, &used);

	FUZZ_ASSERT(parse == whole || parse == HELLO_PARTIAL);
	FUZZ_ASSERT((parse == HELLO_GOT) == (used > 0) && used <= len);
	free(piece);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello hello;
	size_t used;
	enum hello_parse parse = hello_v2_decode(data, size, &hello, &used);

	FUZZ_ASSERT((parse == HELLO_GOT) == (used > 0) && used <= size);
	if (parse == HELLO_GOT) {
		FUZZ_ASSERT(used >= HELLO_V2_BYTES && used <= HELLO_V2_MAX);
		check_encoding(data, &hello);
		check_verdict(&hello);
	}
	for (size_t len = 0; len < size && len <= HELLO_V2_BYTES + 1; len++)
		check_prefix(data, len, parse);
	return 0;
}
