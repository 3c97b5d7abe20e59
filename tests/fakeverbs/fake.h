/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKEVERBS_FAKE_H
#define TESTS_FAKEVERBS_FAKE_H

/* What the files of fakeverbs know of each other. Everything here is guarded by the one mutex of control.c. */

#include "tests/fakeverbs/fakeverbs.h"
#include <urcu/list.h>

/* ---- control.c: the mutex, failures, calls, violations, objects ---- */

int fv_lock(void);
void fv_unlock(const int *unused);

/* Holds the mutex from here to the end of the block. */
#define FV_LOCKED() int fv_locked_ __attribute__((cleanup(fv_unlock), unused)) = fv_lock()

#define FV_VERBS(X)             \
	X(get_device_list)      \
	X(free_device_list)     \
	X(open_device)          \
	X(close_device)         \
	X(query_device)         \
	X(query_device_ex)      \
	X(query_port)           \
	X(query_gid)            \
	X(query_gid_ex)         \
	X(query_gid_table)      \
	X(query_pkey)           \
	X(get_async_event)      \
	X(ack_async_event)      \
	X(alloc_pd)             \
	X(dealloc_pd)           \
	X(reg_mr)               \
	X(dereg_mr)             \
	X(create_comp_channel)  \
	X(destroy_comp_channel) \
	X(get_cq_event)         \
	X(ack_cq_events)        \
	X(create_cq)            \
	X(resize_cq)            \
	X(destroy_cq)           \
	X(poll_cq)              \
	X(req_notify_cq)        \
	X(create_qp)            \
	X(query_qp)             \
	X(destroy_qp)           \
	X(modify_qp)            \
	X(modify_qp_reset)      \
	X(modify_qp_init)       \
	X(modify_qp_rtr)        \
	X(modify_qp_rts)        \
	X(modify_qp_err)        \
	X(post_send)            \
	X(post_recv)            \
	X(send_wr)              \
	X(recv_wr)

enum fv_verb {
#define FV_ENUM(name) FV_##name,
	FV_VERBS(FV_ENUM)
#undef FV_ENUM
	FV_VERB_COUNT,
};

/* Counts a call of the verb; the errno with which it is to fail, 0: not at all. */
int fv_call(enum fv_verb verb);

void fv_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

void fv_born(enum fake_kind kind);
void fv_died(enum fake_kind kind);

/* ---- bell.c: a queue of events, and a file descriptor that is readable while it has some ---- */

struct fv_bell {
	int fd;
	struct cds_list_head events;
};

/* 0, or a positive errno. */
int fv_bell_init(struct fv_bell *bell);
void fv_bell_fini(struct fv_bell *bell);
void fv_bell_ring(struct fv_bell *bell, struct cds_list_head *event);
void fv_bell_remove(struct fv_bell *bell, struct cds_list_head *event);

/*
 * The oldest event, taken out. Without one: waits, the mutex released meanwhile, or NULL with EAGAIN when the
 * descriptor is non-blocking.
 */
struct cds_list_head *fv_bell_take(struct fv_bell *bell);

/* ---- card.c, port.c: the devices and what is open of them ---- */

struct fv_card {
	struct ibv_device ibv;
	struct cds_list_head node;
	unsigned number;
	struct fake_device spec;
	bool fatal;
	unsigned qps, cqs, mrs; /* that exist */
	struct cds_list_head contexts;
	struct fake_counts counts;
};

struct fv_context {
	struct fv_card *card;
	struct cds_list_head node;
	struct fv_bell bell; /* asynchronous events */
	unsigned objects;    /* that exist in it */
	unsigned unacked;    /* events that belong to no queue */
	struct verbs_context verbs;
};

struct fv_context *fv_context(struct ibv_context *context);
struct fv_card *fv_card(struct ibv_context *context);
struct fv_card *fv_card_at(unsigned number); /* a violation when there is none */
struct cds_list_head *fv_cards(void);
void fv_cards_reset(void);

/* Fills in the verbs that programs call through the context. */
void fv_context_ops(struct verbs_context *verbs);

/* NULL: the card has no such port. */
const struct fake_port *fv_port(const struct fv_card *card, uint32_t number);
bool fv_gid_is_empty(const union ibv_gid *gid);
int fv_query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t size);

/* ---- async.c ---- */

/* In one context, and in all contexts of a card. */
void fv_raise(struct fv_context *context, const struct ibv_async_event *event);
void fv_raise_all(struct fv_card *card, const struct ibv_async_event *event);

/* Events of an object that goes away, which nobody has got yet. */
void fv_async_forget(struct fv_context *context, const void *object);
void fv_async_reset(struct fv_context *context);

/* ---- memory.c: protection domains and memory regions ---- */

struct fv_pd {
	struct ibv_pd ibv;
	struct cds_list_head node;
	unsigned users;
};

struct fv_mr {
	struct ibv_mr ibv;
	struct cds_list_head node;
	uint64_t iova;
	unsigned access;
};

/* Where an SGE lies; NULL: its key, its protection domain, its bounds or the access that is needed are wrong. */
void *fv_memory(const struct ibv_pd *pd, const struct ibv_sge *sge, unsigned access);
void fv_memory_reset(void);

/* ---- channel.c: completion channels and their events ---- */

struct fv_channel {
	struct ibv_comp_channel ibv;
	struct cds_list_head node;
	struct fv_bell bell;
};

struct fv_cq;
void fv_channel_ring(struct fv_cq *cq);
void fv_channel_forget(struct fv_cq *cq);
void fv_channels_reset(void);

/* ---- cq.c ---- */

enum fv_armed {
	FV_DISARMED,
	FV_ARMED_SOLICITED,
	FV_ARMED_ANY,
};

/* A completion, and the slot that is free once it has been polled. */
struct fv_cqe {
	struct ibv_wc wc;
	bool solicited;
	enum fake_queue queue;
	uint32_t life; /* of the queue pair, which a reset ends */
	uint64_t index;
	bool has_slot;
};

struct fv_cq {
	struct ibv_cq ibv;
	struct cds_list_head node;
	struct fv_cqe *ring;
	unsigned first, fill;
	enum fv_armed armed;
	bool dead;
	unsigned users;
	unsigned unacked, async_unacked;
};

void fv_cq_push(struct fv_cq *cq, const struct fv_cqe *cqe);
void fv_cq_drop(struct fv_cq *cq, uint32_t qp_num);
int fv_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wcs);
int fv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void fv_cqs_reset(void);

/* ---- qp.c, state.c: queue pairs ---- */

/* Numbers of work requests since the reset: freed <= completed <= delivered <= posted <= freed + depth. */
struct fv_queue {
	unsigned depth;
	unsigned max_sge;
	uint64_t posted;
	uint64_t delivered; /* sends only */
	uint64_t completed;
	uint64_t freed;
	struct fake_request *log;
	uint64_t logged;
};

struct fv_send {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	uint32_t imm; /* as given: network order */
	uint32_t bytes;
	int num_sge;
	struct ibv_sge *sge;
	uint8_t *data; /* inlined payload */
	bool summed;
	uint64_t sum;		     /* of the payload when it was posted */
	enum ibv_wc_status scripted; /* IBV_WC_SUCCESS: none */
	uint64_t order;		     /* among the sends of all queue pairs */
	bool rnr_seen;
};

struct fv_recv {
	uint64_t wr_id;
	int num_sge;
	struct ibv_sge *sge;
};

struct fv_qp {
	struct ibv_qp ibv;
	struct cds_list_head node;
	struct fv_card *card;
	enum ibv_qp_state state;
	struct ibv_qp_attr attr; /* as modified so far */
	struct ibv_qp_init_attr init;
	uint32_t life;
	struct fv_queue sq, rq;
	struct fv_send *sends;
	struct fv_recv *recvs;
	struct ibv_sge *sges;
	uint8_t *inlined;
	bool held[2]; /* by enum fake_step */
	bool stuck;   /* its first send waits; meaningful while wire.c runs */
	unsigned script_send_after;
	enum ibv_wc_status script_send, script_recv;
	unsigned async_unacked;
	struct fake_counts counts;
};

struct fv_qp *fv_qp(uint32_t qp_num);
struct cds_list_head *fv_qps(void);

/* On cards that do so: takes what is left of it out of its completion queues. */
void fv_qp_drop_completions(const struct fv_qp *qp);
void fv_qps_reset(void);

static inline struct fv_send *
fv_send_at(const struct fv_qp *qp, uint64_t index)
{
	return &qp->sends[index % qp->sq.depth];
}

static inline struct fv_recv *
fv_recv_at(const struct fv_qp *qp, uint64_t index)
{
	return &qp->recvs[index % qp->rq.depth];
}

/* ---- post.c ---- */

int fv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int fv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int fv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* ---- payload.c: bytes from here to there, and what keeps them honest ---- */

/* Remembers what the payload of a send is; whether it still is the same, and registered. */
void fv_payload_remember(const struct fv_qp *qp, struct fv_send *send);
bool fv_payload_unchanged(const struct fv_qp *qp, const struct fv_send *send);

/* The payload in one piece, valid until the next call; NULL: not all of it is registered. */
const uint8_t *fv_payload_gather(const struct fv_qp *qp, const struct fv_send *send);

/* IBV_WC_SUCCESS, _LOC_LEN_ERR or _LOC_PROT_ERR. */
enum ibv_wc_status fv_payload_scatter(const struct fv_qp *qp, const struct fv_recv *recv, const uint8_t *data,
				      uint32_t bytes);

/* Overwrites the memory of a receive with rubbish; whether it still holds it. */
void fv_payload_taint(const struct fv_qp *qp, const struct fv_recv *recv);
bool fv_payload_tainted(const struct fv_qp *qp, const struct fv_recv *recv);
void fv_payload_reset(void);

/* ---- wire.c: sends on their way, and their end ---- */

/* Moves whatever may move by itself. */
void fv_wire_run(void);

/* To ERR; what is posted is flushed. */
void fv_qp_flush(struct fv_qp *qp);

/* A completion has been polled: its slot, and the silent ones before it, are free. */
void fv_slot_free(const struct fv_cqe *cqe);
void fv_wire_reset(void);

/* ---- hook.c ---- */

void fv_hook_poll_empty(struct ibv_cq *cq);
void fv_hook_notify(struct ibv_cq *cq, int solicited_only, bool after);
void fv_hook_post_send(struct ibv_qp *qp, const struct ibv_send_wr *chain);
void fv_hook_post_recv(struct ibv_qp *qp, const struct ibv_recv_wr *chain);

/* ---- count.c ---- */

/* The last FAKE_LOG requests of a queue. */
void fv_log(struct fv_queue *queue, const struct fake_request *request);

/* Adds to a counter of the queue pair and of its card. */
#define FV_COUNT(qp, field, n)                   \
	do {                                     \
		(qp)->counts.field += (n);       \
		(qp)->card->counts.field += (n); \
	} while (0)

#endif
