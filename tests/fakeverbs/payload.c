/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes from the memory of a send to the memory of a receive; and what keeps both honest: a sum over what is being
 * sent, and rubbish in what waits to be received into.
 */

#include "tests/fakeverbs/fake.h"
#include <stdlib.h>
#include <string.h>

#define RUBBISH 0xa5

static uint8_t *g_scratch;
static size_t g_scratch_bytes;

/* FNV-1a over words: fast enough for a benchmark's payloads. */
static uint64_t
sum_bytes(uint64_t sum, const uint8_t *data, size_t bytes)
{
	const uint64_t prime = 0x100000001b3;
	uint64_t word;

	for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
		memcpy(&word, data, sizeof word);
		sum = (sum ^ word) * prime;
	}
	for (; bytes > 0; data++, bytes--)
		sum = (sum ^ *data) * prime;
	return sum;
}

/* False: not all of the payload is registered. */
static bool
payload_sum(const struct fv_qp *qp, const struct fv_send *send, uint64_t *sum)
{
	*sum = 0xcbf29ce484222325;
	for (int i = 0; i < send->num_sge; i++) {
		const uint8_t *data = fv_memory(qp->ibv.pd, &send->sge[i], 0);

		if (!data)
			return false;
		*sum = sum_bytes(*sum, data, send->sge[i].length);
	}
	return true;
}

void
fv_payload_remember(const struct fv_qp *qp, struct fv_send *send)
{
	send->summed = !(send->flags & IBV_SEND_INLINE) && payload_sum(qp, send, &send->sum);
}

bool
fv_payload_unchanged(const struct fv_qp *qp, const struct fv_send *send)
{
	uint64_t sum;

	return !send->summed || (payload_sum(qp, send, &sum) && sum == send->sum);
}

static bool
scratch_holds(size_t bytes)
{
	uint8_t *bigger;

	if (bytes <= g_scratch_bytes)
		return true;
	bigger = realloc(g_scratch, bytes);
	if (!bigger)
		return false;
	g_scratch = bigger;
	g_scratch_bytes = bytes;
	return true;
}

const uint8_t *
fv_payload_gather(const struct fv_qp *qp, const struct fv_send *send)
{
	size_t done = 0;

	if (send->flags & IBV_SEND_INLINE)
		return send->data;
	if (!scratch_holds(send->bytes + 1))
		abort();
	for (int i = 0; i < send->num_sge; i++) {
		const void *data = fv_memory(qp->ibv.pd, &send->sge[i], 0);

		if (!data)
			return NULL;
		memcpy(g_scratch + done, data, send->sge[i].length);
		done += send->sge[i].length;
	}
	return g_scratch;
}

enum ibv_wc_status
fv_payload_scatter(const struct fv_qp *qp, const struct fv_recv *recv, const uint8_t *data, uint32_t bytes)
{
	for (int i = 0; i < recv->num_sge && bytes > 0; i++) {
		uint32_t n = recv->sge[i].length < bytes ? recv->sge[i].length : bytes;
		void *to = fv_memory(qp->ibv.pd, &recv->sge[i], IBV_ACCESS_LOCAL_WRITE);

		if (!to)
			return IBV_WC_LOC_PROT_ERR;
		memcpy(to, data, n);
		data += n;
		bytes -= n;
	}
	return bytes ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

void
fv_payload_taint(const struct fv_qp *qp, const struct fv_recv *recv)
{
	for (int i = 0; i < recv->num_sge; i++) {
		void *memory = fv_memory(qp->ibv.pd, &recv->sge[i], IBV_ACCESS_LOCAL_WRITE);

		if (memory)
			memset(memory, RUBBISH, recv->sge[i].length);
	}
}

static bool
is_rubbish(const uint8_t *memory, size_t bytes)
{
	return bytes == 0 || (memory[0] == RUBBISH && memcmp(memory, memory + 1, bytes - 1) == 0);
}

bool
fv_payload_tainted(const struct fv_qp *qp, const struct fv_recv *recv)
{
	for (int i = 0; i < recv->num_sge; i++) {
		const uint8_t *memory = fv_memory(qp->ibv.pd, &recv->sge[i], IBV_ACCESS_LOCAL_WRITE);

		if (memory && !is_rubbish(memory, recv->sge[i].length))
			return false;
	}
	return true;
}

void
fv_payload_reset(void)
{
	free(g_scratch);
	g_scratch = NULL;
	g_scratch_bytes = 0;
}
