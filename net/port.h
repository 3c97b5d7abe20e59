/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_PORT_H
#define NET_PORT_H

/* The ports of the command line, and which lcores they use. */

#include "core/number_set.h"
#include "core/option.h"
#include <urcu/list.h>
#include <xrdma/port.h>

#define PORT_NAME_BYTES 32u

enum port_rdma {
	PORT_RDMA_AUTO,	   /* as each dial says; accepted connections may begin with a hello */
	PORT_RDMA_OFF,	   /* never; a hello is just bytes */
	PORT_RDMA_REQUIRE, /* every dial requires it */
};

/* What its connections want of RDMA, where that is not as the --rdma_* flags say. */
struct port_verbs {
	char device[64];	   /* "": as the flag says */
	int ib_port;		   /* 0: as the flag says */
	int gid_index;		   /* -1: as the flag says */
	int block_type;		   /* enum block_type; -1: as the flag says */
	uint16_t sq_size, rq_size; /* 0: as the flags say */
};

struct xr_port {
	char name[PORT_NAME_BYTES];
	enum xr_port_mode mode;
	bool mode_given; /* by mode= */
	uint64_t spin_us;
	enum port_rdma rdma;
	struct port_verbs verbs;
	struct number_set wanted; /* the user's lcores; none: all */
	bool implied;		  /* the default port, when the user named none such */
	unsigned *lcores;	  /* their dense indices, ascending */
	unsigned lcore_count;
	struct cds_list_head link;
};

extern const struct xr_option g_port_options[];

/*
 * Adds the default port if need be, finds every port's lcores and tells their reactors how to wait. After the reactors
 * are there and before they run. -EINVAL after one log line; -ENOMEM.
 */
int ports_init(void);

/* Forgets all ports, also those of a command line that failed half way. */
void ports_fini(void);

/* The port behind that one; NULL: the first, and NULL behind the last. */
struct xr_port *port_next(const struct xr_port *port);

/* By dense index. */
bool port_uses_lcore(const struct xr_port *port, unsigned index);

#endif
