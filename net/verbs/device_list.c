/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/device_list.h"
#include <infiniband/verbs.h>

int
device_list_count(void)
{
	int count = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);

	if (!devices)
		return 0;
	ibv_free_device_list(devices);
	return count;
}
