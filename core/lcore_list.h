/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LCORE_LIST_H
#define CORE_LCORE_LIST_H

#include "core/lcore.h"
#include "core/number_set.h"

/* Lcore N on processor N for each of a closed set. As lcore_parse_cpus(). */
int lcore_list_alike(const struct number_set *cpus, struct lcore_list *list, const char **why);

#endif
