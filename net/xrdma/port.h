/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_PORT_H
#define XRDMA_PORT_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

/**
 * A port is one attachment to the network and how it is driven. Ports come from the command line:
 *
 *   --port NAME,mode=poll|event|adaptive,spin_us=N,lcores=LIST,rdma=auto|off|require
 *
 * and may be given several times; values that are left out keep the default. There is always a port `default`
 * (adaptive, every lcore), which `--port default,mode=poll` changes; when it is not named, it drives only the lcores
 * that no other port uses, and on the others goes along with their mode. Ports live from xr_init() to xr_fini().
 *
 * What its connections want of RDMA can be said too: dev=NAME,ibport=N,gid=N (the device, its port counted from 1, the
 * GID index), block=default|large|huge (blocks to receive into), sq=N,rq=N (16 to 4096 messages); what is left out is
 * as --rdma_device, --rdma_port, --rdma_gid_index, --rdma_recv_block_type, --rdma_sq_size and --rdma_rq_size say.
 */
struct xr_port;

enum xr_port_mode {
	XR_PORT_POLL,	  /**< its lcores never sleep */
	XR_PORT_EVENT,	  /**< its lcores sleep whenever there is nothing to do */
	XR_PORT_ADAPTIVE, /**< its lcores poll while busy and sleep after spin_us without work */
};

/** The port of that name; NULL asks for `default`. NULL: no such port. Any thread; does not block. */
XR_API struct xr_port *xr_port_find(const char *name);

XR_API const char *xr_port_name(const struct xr_port *port);
XR_API enum xr_port_mode xr_port_mode(const struct xr_port *port);

/** "poll", "event", "adaptive". */
XR_API const char *xr_port_mode_name(enum xr_port_mode mode);

/** True when the lcore is one of the port's. */
XR_API bool xr_port_has_lcore(const struct xr_port *port, unsigned lcore);

XR_END_DECLS

#endif
