/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

struct net_lcore;

/* Closes every listener of the lcore, when its loop has ended. */
void listeners_close(struct net_lcore *net);

#endif
