/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLL_STALL_H
#define POLL_STALL_H

/*
 * Callbacks that keep their worker for longer than --stall-ms are logged: who, and for how long. The duration is
 * measured around each callback, so that the culprit is never a guess, and a thread that looks every second names one
 * that does not return. Both cost clock readings, so they are off unless asked for; then it is one load and a jump that
 * is not taken for each callback.
 */

#include "core/lcore.h"
#include "core/log.h"
#include "poll/source.h"

/* One reactor's, zeroed at first: written by its thread, and read by the one that watches once since_us is set. */
struct stall {
	const struct lcore *lcore;
	uint64_t limit_us;
	uint64_t told_us; /* of all that was logged, so that a caller is not blamed for what it called */
	struct log_limit log;
	const void *fn;	     /* the callback that runs; NULL: none */
	uint64_t since_us;   /* when it began; 0: fn is changing */
	uint64_t watched_us; /* the watching thread's: the since_us that it has told of */
};

/* Of the calling worker, NULL without --stall-ms. */
extern __thread struct stall *t_stall __attribute__((tls_model("initial-exec")));

/* A callback in progress. They nest: an RPC's handler runs inside of its connection's on_data. */
struct stall_frame {
	struct stall *stall;
	const void *outer;
	uint64_t outer_since_us, begin_us, told_us;
};

void stall_begin(struct stall *stall, struct stall_frame *frame, const void *fn);
void stall_end(const struct stall_frame *frame);

static inline void
stall_enter(struct stall_frame *frame, const void *fn)
{
	frame->stall = t_stall;
	if (__builtin_expect(frame->stall != NULL, 0))
		stall_begin(frame->stall, frame, fn);
}

static inline void
stall_leave(const struct stall_frame *frame)
{
	if (__builtin_expect(frame->stall != NULL, 0))
		stall_end(frame);
}

/* Makes a call of the function under watch. */
#define CALLBACK(function, call)                                \
	do {                                                    \
		struct stall_frame frame_;                      \
		stall_enter(&frame_, (const void *)(function)); \
		call;                                           \
		stall_leave(&frame_);                           \
	} while (0)

/* The symbol of a function, or where there is none its file and the offset in it, for addr2line. */
void stall_name(const void *fn, char *text, size_t size);

/* On the reactor's own thread, around its loop. */
void stall_attach(struct stall *stall, const struct lcore *lcore);
void stall_detach(void);

/* The watching thread, when --stall-ms asks for one: it looks at the stalls that `next` gives, by index, up to NULL. */
int stall_watch_start(struct stall *(*next)(unsigned index));
void stall_watch_stop(void);

extern int64_t g_stall_ms;

#endif
