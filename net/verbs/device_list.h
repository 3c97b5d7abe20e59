/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_VERBS_DEVICE_LIST_H
#define NET_VERBS_DEVICE_LIST_H

/* How many RDMA devices the machine shows; 0 also when it can't tell. Blocks while drivers are looked up. */
int device_list_count(void);

#endif
