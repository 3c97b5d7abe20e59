# SPDX-License-Identifier: Apache-2.0
"""What carries the bytes of a connection: the queue pair, or after a fallback TCP. Both are driven turn by turn."""

import os
import select
import time
from collections import deque

from wire import require

# A message may lie this long in the receive queue of a sleeper before its solicited flag counts as forgotten.
FORGOTTEN_S = 3


class TcpLink:
    """A fallback: an ordinary byte stream."""

    transport = "tcp"

    def __init__(self, connection):
        self._connection, self._output = connection, bytearray()
        self.ended = False

    def send(self, data):
        self._output += data

    def idle(self):
        return not self._output

    def turn(self, timeout):
        """Moves what can be moved, after at most so long a wait; what came."""
        writers = [self._connection] if self._output else []
        readable, writable, _ = select.select([self._connection], writers, [], timeout)
        if writable:
            del self._output[: self._connection.send(self._output[: 1 << 20])]
        if not readable:
            return b""
        data = self._connection.recv(1 << 20)
        self.ended = not data
        return data

    def check_at_rest(self):
        pass

    def describe(self):
        return f"{len(self._output)} bytes to send"

    def counts(self):
        return {}

    def close(self):
        self._connection.close()


class RdmaLink:
    """The byte stream over SENDs. How a message is cut has no meaning: `cut` says how long the next may be."""

    transport = "rdma"

    def __init__(self, connection, queue, outgoing, incoming, options, cut):
        self._connection, self._queue, self._outgoing, self._incoming = connection, queue, outgoing, incoming
        self._by_event, self._late_s, self._cut = options.wait == "event", options.late_ms / 1000, cut
        self._output, self._output_size = deque(), 0
        self._closed_since = None
        self._quiet_turns = self._events = self._sleeps = 0
        self.ended = False
        self._poller = select.poll()
        for fd in (connection.fileno(), queue.receive_fd, queue.send_fd):
            self._poller.register(fd, select.POLLIN)

    # ---- one turn ----

    def send(self, data):
        self._output.append(memoryview(data))
        self._output_size += len(data)

    def idle(self):
        return not self._output and self._outgoing.own >= self._outgoing.capacity - self._outgoing.capacity // 4

    def turn(self, timeout):
        data = self._move()
        if data or self.ended:
            self._quiet_turns = 0
            return data
        return self._sleep(timeout) if self._by_event else self._spin()

    def _move(self):
        data = self._receive()
        self._complete()
        self._flush()
        self._report()
        return data

    def _receive(self):
        pieces = []
        while messages := self._queue.poll_receives():
            pieces.append(self._take(messages))
        return b"".join(pieces)

    def _take(self, messages):
        pieces = []
        for slot, size, credits_ in messages:
            if size:
                pieces.append(self._queue.read(slot, size))
            self._queue.repost(slot)
            self._incoming.take_message(size, credits_)
            self._outgoing.take_credits(credits_)
        if self._incoming.closed() and self._closed_since is None:
            self._closed_since = time.monotonic()
        return b"".join(pieces)

    def _complete(self):
        for covered in self._queue.poll_sends():
            self._outgoing.completed(covered)

    def _flush(self):
        while self._output and self._outgoing.open():
            payload = self._take_output(min(self._queue.send_size, self._cut()))
            credits_ = self._incoming.piggyback()
            slot = self._outgoing.sent % self._outgoing.capacity
            solicited, covered = self._outgoing.charge(len(payload), credits_, not self._output)
            self._queue.send(slot, payload, credits_, solicited, covered)

    def _take_output(self, most):
        pieces, left = [], most
        while self._output and left:
            first = self._output.popleft()
            pieces.append(first[:left])
            if len(first) > left:
                self._output.appendleft(first[left:])
            left -= len(pieces[-1])
        payload = b"".join(pieces)
        self._output_size -= len(payload)
        return payload

    def _report(self):
        while self._incoming.ack_due(self._outgoing) and not self._pausing():
            self._outgoing.charge_ack()
            self._queue.send_ack(self._incoming.take_ack(self._outgoing))
            self._closed_since = None

    def _pausing(self):
        """Mode late lets a closed window rest, so that whatever wrongly comes is seen."""
        return self._pause_left() > 0

    def _pause_left(self):
        return self._closed_since + self._late_s - time.monotonic() if self._closed_since is not None else 0

    # ---- between turns ----

    def _spin(self):
        self._quiet_turns += 1
        if self._quiet_turns % 16 == 0:
            os.sched_yield()
            self._watch_tcp()
        return b""

    def _sleep(self, timeout):
        """Until an event: nothing else makes this end look for messages, or a forgotten flag would not show."""
        self._queue.arm()
        if data := self._move():
            return data
        self._sleeps += 1
        ready = self._await_event(min(timeout, FORGOTTEN_S))
        for fd, _ in ready:
            if fd == self._connection.fileno():
                self._watch_tcp()
            else:
                self._events += 1
                self._queue.take_event(fd)
        return self._look_for_forgotten() if not ready and timeout >= FORGOTTEN_S else b""

    def _await_event(self, timeout):
        until = time.monotonic() + timeout
        while (left := until - time.monotonic()) > 0:
            pause = self._pause_left()
            if ready := self._poller.poll(1000 * (min(left, pause) if pause > 0 else left)):
                return ready
            self._report()
        return []

    def _look_for_forgotten(self):
        messages = self._queue.poll_receives()
        # One that came in this very moment has its event by now.
        require(not messages or self._poller.poll(100), f"{len(messages)} messages and more lie in the receive queue "
                f"since {FORGOTTEN_S} s, and none of them was solicited")
        return self._take(messages)

    def _watch_tcp(self):
        try:
            data = self._connection.recv(64)
        except BlockingIOError:
            return
        require(not data, f"bytes came on the TCP connection of an established one: {data.hex()}")
        self.ended = True

    # ---- the end ----

    def drain(self):
        """What came before the end of the TCP connection and was not read yet."""
        return self._receive()

    def check_at_rest(self):
        self._outgoing.check_at_rest()

    def describe(self):
        return (f"{self._output_size} bytes to send, windows {self._outgoing.remote} and {self._outgoing.own} of "
                f"{self._outgoing.capacity}, {self._incoming.owed} of {self._incoming.capacity} credits owed, "
                f"{self._outgoing.ack_slots} ACK slots")

    def counts(self):
        return {
            "sent": self._outgoing.sent, "solicited": self._outgoing.solicited, "stalls": self._outgoing.stalls,
            "acks_sent": self._outgoing.acks, "received": self._incoming.received, "acks": self._incoming.acks,
            "largest": self._incoming.largest, "high_water": self._incoming.high_water, "events": self._events,
            "sleeps": self._sleeps,
        }

    def close(self):
        self._connection.close()
        self._queue.close()
