/* SPDX-License-Identifier: Apache-2.0 */

#include "net/peers.h"

void
peers_avoid_hello(struct peers *peers, const struct address *address, uint64_t until_us)
{
	unsigned at = peers->next;

	for (unsigned i = 0; i < PEERS_MAX; i++)
		if (address_equal(&peers->items[i].address, address))
			at = i;
	if (at == peers->next)
		peers->next = (peers->next + 1) % PEERS_MAX;
	peers->items[at].address = *address;
	peers->items[at].until_us = until_us;
}

bool
peers_avoids_hello(const struct peers *peers, const struct address *address, uint64_t now_us)
{
	for (unsigned i = 0; i < PEERS_MAX; i++)
		if (peers->items[i].until_us > now_us && address_equal(&peers->items[i].address, address))
			return true;
	return false;
}
