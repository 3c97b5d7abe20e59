/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of a mailbox (poll/mailbox.c): producers post while its owner closes it. Each accepted message runs exactly
 * once, by its owner or cancelled at the end, and no producer touches the mailbox after it was freed.
 *
 * Compiled with one of the following it is broken, and the model must say so:
 *   NO_WAIT       closing does not wait for the producers that are inside
 *   NO_GATE       producers look at the closed bit without announcing themselves
 *   DRAIN_FIRST   the owner empties the mailbox before it has closed it
 */

#define POSTS 2

byte inside;
bit closed;
byte pushed; /* pushes begun and not yet popped */
byte linked; /* of these the ones that can be popped */
byte accepted;
byte ran;
bit freed;

active [2] proctype producer()
{
	byte posts;
	bit refused;

	do
	:: posts == POSTS || closed -> break
	:: else ->
#ifdef NO_GATE
		refused = closed;
#else
		d_step { inside++; refused = closed };
#endif
		if
		:: refused
		:: else ->
			assert(!freed);
			pushed++;
			assert(!freed);
			linked++;
			accepted++;
			/* The bell. */
			assert(!freed)
		fi;
#ifndef NO_GATE
		inside--;
#endif
		posts++
	od
}

inline run_one()
{
	d_step {
		linked > 0 ->
		linked--;
		pushed--;
		ran++
	}
}

active proctype owner()
{
	do
	:: run_one()
	:: true -> break
	od;
#ifdef DRAIN_FIRST
	do
	:: run_one()
	:: pushed == 0 -> break
	od;
#endif
	closed = 1;
#ifndef NO_WAIT
	inside == 0;
#endif
#ifndef DRAIN_FIRST
	do
	:: run_one()
	:: pushed == 0 -> break
	od;
#endif
	freed = 1
}

active proctype monitor()
{
	timeout ->
	assert(freed && ran == accepted)
}
