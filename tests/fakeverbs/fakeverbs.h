/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKEVERBS_FAKEVERBS_H
#define TESTS_FAKEVERBS_FAKEVERBS_H

/*
 * A stand-in for libibverbs: reliable connected queue pairs within one process, stricter than any card, every step of
 * which a test may hold back, fail or count. A test program that includes this header is linked with it instead of
 * libibverbs. This file is what tests say to it; what programs say to it is <infiniband/verbs.h>.
 *
 * What it is strict about:
 *   - a send queue slot is free only when a completion at or behind it has been polled; a receive queue slot when its
 *     completion has; a queue that is full refuses with ENOMEM and bad_wr
 *   - a completion queue holds exactly what was asked for; one more, and it is dead, with IBV_EVENT_CQ_ERR
 *   - a completion in error has only wr_id, status, qp_num and vendor_err; the rest is rubbish
 *   - the memory of a send must stay as it is until its completion has been polled; that of a posted receive belongs to
 *     the card, which overwrites it with rubbish
 *   - modify_qp wants exactly the attributes that the kernel's tables want
 *   - objects in use, or with events that nobody has acknowledged, are not destroyed: EBUSY where a card would hang
 *
 * Each misuse is refused as a card would refuse it, and recorded as a violation with a text besides.
 *
 * One mutex guards everything; any thread may call anything. Hooks run without it, on the thread that caused them.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- devices ---- */

#define FAKE_GIDS  16
#define FAKE_PORTS 2

struct fake_gid {
	union ibv_gid gid; /* all zero: an empty entry */
	enum ibv_gid_type type;
	uint32_t ifindex; /* of the network interface; 0: none in this network namespace */
};

struct fake_port {
	enum ibv_port_state state;
	uint8_t link_layer;
	uint16_t lid;
	enum ibv_mtu active_mtu;
	struct fake_gid gids[FAKE_GIDS];
};

struct fake_device {
	const char *name; /* copied */
	int max_sge;
	int max_qp_wr;
	int max_cqe;
	int max_qp;
	int max_cq;
	int max_mr;
	uint32_t max_inline;
	uint32_t max_sq_sges;	/* of a send queue: requests times their max_send_sge; create_qp: ENOMEM. 0: no limit */
	bool relaxed_ordering;	/* false: the flag is dropped in silence, as by a kernel that does not know it */
	bool drops_completions; /* a queue pair that is reset or destroyed takes its completions out of the CQ */
	unsigned port_count;
	struct fake_port ports[FAKE_PORTS];
};

/*
 * An ordinary RoCE card: port 1 active at MTU 4096; GID 0 is a link-local address over RoCE v1, GID 1 the IPv4 address
 * over v1, GID 2 over v2, on interface 1. No device exists until a test adds one.
 */
struct fake_device fake_device(const char *name, const char *ipv4);
struct fake_gid fake_gid_ipv4(const char *address, enum ibv_gid_type type, uint32_t ifindex);

/* The device's number: from 0, in the order in which ibv_get_device_list() shows them. */
unsigned fake_device_add(const struct fake_device *device);

/* Changes one entry and raises IBV_EVENT_GID_CHANGE. */
void fake_gid_set(unsigned device, uint8_t port, unsigned index, const struct fake_gid *gid);

/* Raises IBV_EVENT_PORT_ACTIVE or _ERR when it changes. Through a port that is not active nothing arrives. */
void fake_port_set(unsigned device, uint8_t port, enum ibv_port_state state);

/* Raises IBV_EVENT_DEVICE_FATAL and fails every queue pair; nothing can be made on the device any more (EIO). */
void fake_device_fatal(unsigned device);

/* Raises any event in every open context of the device. A test may raise what no card would. */
void fake_raise(unsigned device, const struct ibv_async_event *event);

/* ---- failures ---- */

/*
 * The nth call from now (1: the next) of a verb fails with that errno, and so do the times - 1 calls after it. Verbs
 * are named without "ibv_"; beside them there are modify_qp_reset, _init, _rtr, _rts, _err   modify_qp towards that
 * state send_wr, recv_wr                            one work request of a chain, so that bad_wr is in its middle An
 * unknown name is a violation.
 */
#define FAKE_FOREVER (~0u)
void fake_fail_times(const char *verb, unsigned nth, unsigned times, int error);
void fake_fail(const char *verb, unsigned nth, int error);
void fake_fail_none(void); /* takes all of them back */

/* Calls of a verb since the reset, failed ones included. */
unsigned fake_calls(const char *verb);

/* ---- completions ---- */

/* The nth send that the queue pair posts from now (1: the next) does not arrive but ends with this status. */
void fake_fail_send(uint32_t qp_num, unsigned nth, enum ibv_wc_status status);

/* The next message that arrives at the queue pair ends its receive with this status. */
void fake_fail_recv(uint32_t qp_num, enum ibv_wc_status status);

/* The card gives the queue pair up: it flushes, and IBV_EVENT_QP_FATAL is raised. */
void fake_fail_qp(uint32_t qp_num);

/* Puts a completion into a CQ that no queue pair has caused; a solicited one if so said. */
void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited);

/* ---- time ---- */

/*
 * A send is posted, delivered (it takes a receive of its peer, which completes) and acknowledged (it completes, when
 * signaled). By default each step follows at once, in the order of posting over all queue pairs. Either step may be
 * held back for one sending queue pair, or for all with 0 as its number; letting go catches up.
 */
enum fake_step {
	FAKE_DELIVERY,
	FAKE_ACK,
};
void fake_hold(enum fake_step step, uint32_t qp_num);
void fake_let_go(enum fake_step step, uint32_t qp_num);

/* Does up to n of the steps that are held back, oldest first. How many were done. */
unsigned fake_do(enum fake_step step, uint32_t qp_num, unsigned n);

/* fake_do(FAKE_DELIVERY, 0, n) */
unsigned fake_deliver(unsigned n);

/*
 * A send waits while its peer can't answer (not yet in RTR, in ERR, destroyed, unreachable) or, with rnr_retry above 0,
 * has no receive posted; it is tried again whenever that may have changed. This is where patience ends: each send that
 * waits first in its queue ends with IBV_WC_RETRY_EXC_ERR, or IBV_WC_RNR_RETRY_EXC_ERR unless rnr_retry is 7. How many.
 */
unsigned fake_expire(void);

/* ---- hooks ---- */

struct fake_hooks {
	void (*poll_empty)(struct ibv_cq *cq, void *arg); /* a poll has found nothing */
	void (*before_notify)(struct ibv_cq *cq, int solicited_only, void *arg);
	void (*after_notify)(struct ibv_cq *cq, int solicited_only, void *arg);
	void (*post_send)(struct ibv_qp *qp, const struct ibv_send_wr *chain, void *arg); /* before it is looked at */
	void (*post_recv)(struct ibv_qp *qp, const struct ibv_recv_wr *chain, void *arg);
	void *arg;
};

/* Copied; NULL: none. A hook may call verbs and this interface; what it calls fires no hooks. */
void fake_hooks(const struct fake_hooks *hooks);

/* ---- what happened ---- */

struct fake_counts {
	uint64_t post_send; /* calls: doorbells */
	uint64_t sends;	    /* work requests accepted, and of those: */
	uint64_t signaled;
	uint64_t solicited;
	uint64_t inlined;
	uint64_t zero_length; /* pure ACKs */
	uint64_t credits;     /* sum of the immediates, in host order */
	uint64_t send_bytes;
	uint64_t send_refused; /* work requests: the queue was full */
	uint64_t post_recv;
	uint64_t recvs;
	uint64_t delivered;   /* messages that have taken a receive of this side */
	uint64_t rnr;	      /* messages of this side that found none at the peer */
	uint64_t polls;	      /* of CQs: devices only, as everything below but completions */
	uint64_t polls_empty; /* found nothing */
	uint64_t completions; /* polled */
	uint64_t notifies;
	uint64_t events;
	uint64_t events_got;
	uint64_t events_acked;
};

/* All zero for a device or a queue pair that there is not. */
struct fake_counts fake_device_counts(unsigned device);
struct fake_counts fake_qp_counts(uint32_t qp_num);
void fake_counts_clear(void);

/* Numbers of the queue pairs that there are, oldest first. How many. */
unsigned fake_qps(uint32_t *qp_nums, unsigned max);

/* As the card has it; ibv_qp.state knows only what modify_qp has said. IBV_QPS_UNKNOWN: no such queue pair. */
enum ibv_qp_state fake_qp_state(uint32_t qp_num);

/* Slots of a queue that are not free. */
enum fake_queue {
	FAKE_SQ,
	FAKE_RQ,
};
unsigned fake_queued(uint32_t qp_num, enum fake_queue queue);

/* Completions in the CQ, and events got from it that nobody has acknowledged. */
unsigned fake_cq_fill(const struct ibv_cq *cq);
unsigned fake_cq_unacked(const struct ibv_cq *cq);

/* A work request as it was posted: the index-th that the queue took since the queue pair was made, from 0. */
#define FAKE_SGES 32
struct fake_request {
	uint64_t wr_id;
	unsigned send_flags;
	uint32_t imm; /* in host order */
	uint32_t bytes;
	int num_sge;
	struct ibv_sge sge[FAKE_SGES];
};

/* False: there is none, or it was more than FAKE_LOG requests ago. */
#define FAKE_LOG 1024
bool fake_request(uint32_t qp_num, enum fake_queue queue, uint64_t index, struct fake_request *request);

/* Requests taken since the queue pair was made. */
uint64_t fake_requests(uint32_t qp_num, enum fake_queue queue);

/* The access flags with which the address is registered on the device; false: it isn't. */
bool fake_region(unsigned device, const void *addr, unsigned *access);

/* ---- misuse ---- */

/* Violations that are not forgiven; those not yet shown are printed on stderr. */
unsigned fake_violations(void);

/* Takes the oldest violation that contains this text back. False: there is none. */
bool fake_forgive(const char *text);

enum fake_kind {
	FAKE_DEVICE_LISTS,
	FAKE_CONTEXTS,
	FAKE_PDS,
	FAKE_MRS,
	FAKE_CHANNELS,
	FAKE_CQS,
	FAKE_QPS,
	FAKE_KINDS,
};

/* Objects that exist. */
unsigned fake_alive(enum fake_kind kind);

/* All objects that exist; they are named on stderr when there are any. */
unsigned fake_leaks(void);

/* As when the program started: no device, no object, no count, no violation. What was alive is gone. */
void fake_reset(void);

#endif
