/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

struct net_lcore;

/* Has every listener of the lcore accept no more: their sockets are closed, they themselves are not. */
void listeners_stop(struct net_lcore *net);

/* Closes every listener of the lcore, when its loop has ended. */
void listeners_close(struct net_lcore *net);

#endif
