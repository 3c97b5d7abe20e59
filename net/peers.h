/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_PEERS_H
#define NET_PEERS_H

/*
 * Peers that did not answer a hello, remembered on each lcore for --rdma_retry_after_s, so that the next dial does not
 * lose the same time. A few; the oldest is forgotten for a new one.
 */

#include "net/address.h"
#include <stdint.h>

#define PEERS_MAX 64u

struct peers {
	struct {
		struct address address;
		uint64_t until_us;
	} items[PEERS_MAX];
	unsigned next;
};

void peers_avoid_hello(struct peers *peers, const struct address *address, uint64_t until_us);

bool peers_avoids_hello(const struct peers *peers, const struct address *address, uint64_t now_us);

#endif
