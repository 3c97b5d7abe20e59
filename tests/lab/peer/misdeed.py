# SPDX-License-Identifier: Apache-2.0
"""Rules broken on purpose, for tests of those that watch them."""

from flow import Incoming, Outgoing


class Unsolicited(Outgoing):
    """Wakes nobody."""

    def _must_solicit(self, size, credits_, last):
        return False


class Overrun(Outgoing):
    """Sends into a closed window."""

    def open(self):
        return self.own > 0

    def take_credits(self, count):
        self.remote += count


class Overcredit(Incoming):
    """Reports a message that never came."""

    def piggyback(self):
        return super().piggyback() + 1


class Empty(Incoming):
    """Sends one empty message that says nothing."""

    def __init__(self, *args):
        super().__init__(*args)
        self._empty_due = True

    def ack_due(self, outgoing):
        return self.received > 5 and self._empty_due or super().ack_due(outgoing)

    def take_ack(self, outgoing):
        if self._empty_due:
            self._empty_due = False
            return 0
        return super().take_ack(outgoing)


OUTGOING = {"unsolicited": Unsolicited, "overrun": Overrun}
INCOMING = {"overcredit": Overcredit, "empty": Empty}

# "tcp-byte" says something on the TCP connection of an established one.
NAMES = (*OUTGOING, *INCOMING, "tcp-byte")
