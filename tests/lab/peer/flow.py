# SPDX-License-Identifier: Apache-2.0
"""Flow control by the protocol's rules: what this side may send, what it owes, what the other side may do.

Pure arithmetic. A data message is a SEND with payload; a pure ACK is one without, and takes no part in the windows.
"""

from collections import deque

from wire import require

ACK_SLOTS = 3
UNSOLICITED_BYTES = 1 << 20

CREDIT_MODES = ("brpc", "ones", "halves", "late")
SOLICIT_MODES = ("minimal", "brpc")


class Outgoing:
    """The windows of the data messages that this side sends, and the flags of each."""

    def __init__(self, capacity, peer_capacity, solicit):
        self.capacity, self._peer_capacity, self._solicit = capacity, peer_capacity, solicit
        self.remote = self.own = capacity
        self.ack_slots = ACK_SLOTS
        self.sent = self.credited = 0
        self.acks = self.solicited = self.stalls = 0
        self._signal_every = max(1, capacity // 4)
        self._unsignaled = self._unsolicited = self._unsolicited_credits = self._unsolicited_bytes = 0

    def open(self):
        return self.remote > 0 and self.own > 0

    def _must_solicit(self, size, credits_, last):
        if last or self.remote == 1 or self.own == 1:
            return True
        if self._solicit == "minimal":
            return False
        return (self._unsolicited > self.capacity // 4 or self._unsolicited_credits > self._peer_capacity // 4 or
                self._unsolicited_bytes + size > UNSOLICITED_BYTES)

    def charge(self, size, credits_, last):
        """Takes one data message out of both windows: (solicited, how many a signaled one covers or 0)."""
        solicited = self._must_solicit(size, credits_, last)
        if solicited:
            self.solicited += 1
            self._unsolicited = self._unsolicited_credits = self._unsolicited_bytes = 0
        else:
            self._unsolicited += 1
            self._unsolicited_credits += credits_
            self._unsolicited_bytes += size
        self._unsignaled += 1
        covered = self._unsignaled if self._unsignaled >= self._signal_every else 0
        self._unsignaled -= covered
        self.remote -= 1
        self.own -= 1
        self.sent += 1
        if not self.open():
            self.stalls += 1
        return solicited, covered

    def charge_ack(self):
        self.ack_slots -= 1
        self.acks += 1

    def completed(self, covered):
        if covered == 0:
            self.ack_slots += 1
        else:
            self.own += covered

    def take_credits(self, count):
        require(self.remote + count <= self.capacity,
                f"{count} credits came while {self.capacity - self.remote} messages were unreported")
        self.remote += count
        self.credited += count

    def check_at_rest(self):
        """Whoever holds more than half a window back at rest holds it for ever."""
        unreported = self.capacity - self.remote
        require(unreported <= self.capacity // 2 + 1,
                f"at rest {unreported} of {self.capacity} messages stay unreported")


class Incoming:
    """The other side's window: what it may send, and when and how its credits go back.

    A pure ACK takes one of the other side's receives that no window counts. It may only leave while at most one earlier
    one is not known to be handled: known by a data message that its credits were needed for, or by credits for a data
    message of ours that followed it.
    """

    def __init__(self, capacity, block_size, mode):
        self.capacity, self._block_size, self._mode = capacity, block_size, mode
        self.received = self.reported = self.acks = self.bytes = self.largest = 0
        self.high_water = 0
        self._ended = False
        self._unproven = deque()

    @property
    def owed(self):
        return self.received - self.reported

    def closed(self):
        """The other side may send nothing until it is credited."""
        return self.owed == self.capacity

    def take_message(self, size, credits_):
        """One received message, after its receive was posted anew."""
        require(not self._ended, "a message came after an empty one without credits, which only a close may send")
        require(size <= self._block_size, f"a message of {size} bytes for blocks of {self._block_size}")
        if size == 0:
            self.acks += 1
            self._ended = credits_ == 0
            return
        self.received += 1
        self.bytes += size
        self.largest = max(self.largest, size)
        self.high_water = max(self.high_water, self.owed)
        require(self.owed <= self.capacity, f"{self.owed} unreported messages in a window of {self.capacity}")

    def piggyback(self):
        """The credits that a data message takes along."""
        count = {"brpc": self.owed, "ones": min(1, self.owed), "halves": (self.owed + 1) // 2, "late": 0}[self._mode]
        self.reported += count
        return count

    def ack_due(self, outgoing):
        """Whether a pure ACK should leave now; in mode late only ever when the window is closed."""
        if outgoing.ack_slots == 0 or not self._may_ack(outgoing):
            return False
        if self._mode == "late":
            return self.closed()
        threshold = {"ones": 0, "halves": self.capacity // 2, "brpc": self.capacity // 2 + 1}[self._mode]
        return self.owed > threshold

    def take_ack(self, outgoing):
        """The credits of the pure ACK that leaves now."""
        count = {"ones": min(1, self.owed), "halves": (self.owed + 1) // 2}.get(self._mode, self.owed)
        self._unproven.append((self.reported, outgoing.sent))
        self.reported += count
        return count

    def _may_ack(self, outgoing):
        while self._unproven:
            reported_before, sent_before = self._unproven[0]
            if self.received <= reported_before + self.capacity and outgoing.credited <= sent_before:
                break
            self._unproven.popleft()
        return len(self._unproven) < 2
