/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_H
#define XRDMA_H

/** All of libxrdma-reactor. Start with env.h; conn.h is the heart. */

#include <xrdma/conn.h>
#include <xrdma/counter.h>
#include <xrdma/env.h>
#include <xrdma/error.h>
#include <xrdma/iobuf.h>
#include <xrdma/lcore.h>
#include <xrdma/log.h>
#include <xrdma/mem.h>
#include <xrdma/option.h>
#include <xrdma/port.h>
#include <xrdma/reactor.h>
#include <xrdma/rpc.h>

#endif
