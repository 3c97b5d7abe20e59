/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sleep protocol of poll/wait.c: one reactor, and everything that may happen to it while it goes to sleep. Labels
 * in the reactor are the steps of `enum wait_step`. Promela's memory is sequentially consistent, as the full fences of
 * wait.c and mailbox.c make it for the two variables of the handshake.
 *
 * Whenever nothing can move any more, no work may be left over. Compiled with one of the following the protocol is
 * broken, and the model must say so:
 *   NO_POLL_AFTER_ARM   the reactor does not look again after arming
 *   POLL_BEFORE_ARM     it looks again, but arms after that
 *   PUBLISH_LATE        it says that it sleeps only after it has looked again
 *   LOOK_BEFORE_PUSH    a producer looks whether the reactor sleeps before it pushes
 *   RING_BEFORE_STOP    a stop rings before it sets its flag
 *   REPOLL_FIRST_ONLY   only the mailbox is looked at again, the completion queue is not
 */

#define MESSAGES    1 /* of each of the two producers */
#define COMPLETIONS 2

/* The mailbox. A push has two steps; between them the reactor finds the queue neither empty nor able to give. */
byte pushed; /* pushes begun and not yet popped */
byte linked; /* of these the ones that can be popped */
bit sleeping;
bit bell; /* edge of the eventfd that epoll has not reported yet */

/* The completion queue: an event only for what completes while it is armed, one for each arming. */
byte completed;
bit notify;
bit channel; /* level: the completion channel, which is a descriptor like any socket, is readable */

bit timer_armed;
bit timer_due; /* its time has come */

bit stopping;

/* What the reactor has done. */
byte ran;
byte reaped;
bit fired;
bit ended;

/* ---- what happens to the reactor ---- */

active [2] proctype producer()
{
	byte posts;
	bit saw;

	do
	:: posts == MESSAGES -> break
	:: else ->
#ifdef LOOK_BEFORE_PUSH
		saw = sleeping;
#endif
		pushed++;
		linked++;
#ifndef LOOK_BEFORE_PUSH
		saw = sleeping;
#endif
		if
		:: saw ->
			/* Of all that saw it one takes it back and rings. */
			d_step { saw = sleeping; sleeping = 0 };
			if
			:: saw -> bell = 1
			:: else
			fi
		:: else
		fi;
		d_step { posts++; saw = 0 }
	od
}

active proctype device()
{
	byte done;

	do
	:: done == COMPLETIONS -> break
	:: else ->
		d_step {
			completed++;
			channel = channel | notify;
			notify = 0;
			done++
		}
	od
}

active proctype clock()
{
end_unused:
	timer_armed -> timer_due = 1
}

#ifndef NO_STOP
active proctype stopper()
{
	if
	:: true ->
#ifdef RING_BEFORE_STOP
		bell = 1;
		stopping = 1
#else
		stopping = 1;
		bell = 1
#endif
	:: true /* or never */
	fi
}
#endif

/* ---- the reactor ---- */

/* The first message's callback arms the timer. */
inline poll_mailbox()
{
	if
	:: linked > 0 ->
		d_step {
			linked--;
			pushed--;
			ran++;
			timer_armed = timer_armed | (ran == 1);
			found = 1
		}
	:: linked == 0 && pushed > 0 -> found = 1
	:: pushed == 0
	fi
}

inline poll_completions()
{
	if
	:: completed > 0 ->
		d_step {
			reaped = reaped + completed;
			completed = 0;
			found = 1
		}
	:: else
	fi
}

inline poll_timer()
{
	if
	:: timer_armed && timer_due ->
		d_step {
			timer_armed = 0;
			timer_due = 0;
			fired = 1;
			found = 1
		}
	:: else
	fi
}

inline poll_again()
{
	found = 0;
	poll_mailbox();
#ifndef REPOLL_FIRST_ONLY
	poll_completions();
	poll_timer()
#endif
}

active proctype reactor()
{
	bit found, deadline;

TURN:
	if
	:: stopping -> goto END
	:: else
	fi;
	poll_mailbox();
	poll_completions();
	/* epoll_wait(0), or the events of the wait before, of which the bell may be one. */
	d_step { bell = 0; channel = 0 };
	poll_timer();
	if
	:: goto TURN /* busy, or spinning */
	:: true
	fi;

BEGUN:
#ifndef PUBLISH_LATE
	sleeping = 1;
#endif
PUBLISHED:
#ifdef POLL_BEFORE_ARM
	poll_again();
	notify = 1;
#else
	notify = 1;
ARMED:
#ifndef NO_POLL_AFTER_ARM
	poll_again();
#endif
#endif
POLLED_AGAIN:
#ifndef NO_POLL_AFTER_ARM
	if
	:: found -> goto ONLINE
	:: else
	fi;
#endif
#ifdef PUBLISH_LATE
	sleeping = 1;
#endif
	if
	:: stopping -> goto ONLINE
	:: else
	fi;
	deadline = timer_armed;
	if
	:: deadline && timer_due -> goto ONLINE
	:: else
	fi;
CHECKED:
	skip;
OFFLINE:
end_blocked:
	/* epoll_wait() looks and blocks in one step, and reports an edge once. */
	d_step {
		(bell || channel || (deadline && timer_due)) ->
		bell = 0
	};
WOKEN:
	skip;
ONLINE:
	skip;
	d_step { sleeping = 0; found = 0; deadline = 0 };
AWAKE:
	/* A completion queue cannot be disarmed: at worst it raises one event for nothing. */
	skip;
DISARMED:
	goto TURN;
END:
	ended = 1
}

/* ---- what must hold ---- */

#define ALL_DONE (ran == 2 * MESSAGES && reaped == COMPLETIONS && fired)

#ifdef LIVENESS
ltl nothing_is_lost { <> ALL_DONE }
#else
/* Nothing moves any more: the reactor has ended, or it sleeps with a reason. */
active proctype monitor()
{
	timeout ->
	assert(ended || (ALL_DONE && !stopping))
}
#endif
