#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Bytes that make no sense close their own connection in time, with a reason in the log, and hurt no other."""

import struct
import time

from harness import Client, Server, expect, expect_closed, expect_equal, main, receive, test, vector

HANDSHAKE_MS = 500


class Victim:
    """A server with an honest client at work on it; both must come through."""

    def __init__(self, *args):
        self.reason_seen = False
        self.server = Server("--rdma-handshake-timeout-ms", HANDSHAKE_MS, "--log-level", "info", *args, mode="event")
        self.client = Client(self.server.address, "--queue_depth", 4, "--attachment_size", 4096, "--echo_attachment",
                             "--test_seconds", 60, "--progress")
        self.client.wait_stderr(r"[1-9]\d* calls/s")

    def expect_unhurt(self):
        self.client.expect_alive()
        self.client.interrupt()
        self.client.finish()
        expect_equal(self.client.result()["errors"], 0, "the honest client's errors")
        counters = self.server.stop()
        expect_equal(counters["conns_live"], 0, "connections left")

    def expect_refused(self, data, reason, within=1):
        """The reason is looked for the first time only: what a peer can cause at will is told once a second."""
        connection = self.server.connect()
        port = connection.getsockname()[1]
        connection.sendall(data)
        expect_closed(connection, within)
        connection.close()
        if not self.reason_seen:
            self.server.wait_stderr(rf"{port}.*({reason})")
        self.reason_seen = True


def frame(body_size, meta_size, body=b""):
    return b"PRPC" + struct.pack(">II", body_size, meta_size) + body


@test
def garbage_closes_its_connection():
    victim = Victim()
    victim.expect_refused(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "PRPC")
    victim.expect_refused(bytes(range(256)) * 64, "PRPC")
    victim.expect_refused(b"RDMX" + bytes(60), "PRPC")
    victim.expect_unhurt()


@test
def half_a_hello_and_silence_run_into_the_deadline():
    victim = Victim()
    hello = vector("hello-v2-client")
    for length in (1, 4, 20, len(hello) - 1):
        begin = time.monotonic()
        victim.expect_refused(hello[:length], "handshake", within=HANDSHAKE_MS / 1000 + 1)
        expect(time.monotonic() - begin > HANDSHAKE_MS / 1000 * 0.8, "closed long before the deadline")
    victim.expect_unhurt()


@test
def a_whole_hello_and_no_ack_run_into_the_deadline():
    victim = Victim()
    connection = victim.server.connect()
    connection.sendall(vector("hello-v2-client"))
    receive(connection, 40)
    expect_closed(connection, HANDSHAKE_MS / 1000 + 1)
    victim.server.wait_stderr("handshake")
    victim.expect_unhurt()


@test
def a_hello_of_absurd_length_is_not_waited_for():
    victim = Victim()
    hello = vector("hello-v2-client")
    for length in (0, 35, 39, 4097, 65535):
        victim.expect_refused(hello[:4] + struct.pack(">H", length) + hello[6:], "hello|length",
                              within=HANDSHAKE_MS / 1000 / 2)
    victim.expect_unhurt()


@test
def a_frame_of_two_gibibytes_is_not_waited_for():
    victim = Victim()
    victim.expect_refused(frame(1 << 31, 40), "body|frame|large")
    victim.expect_refused(frame(0xFFFFFFFF, 0xFFFFFFFF), "body|frame|large")
    victim.expect_unhurt()


@test
def a_frame_above_the_servers_limit_is_refused_at_the_limit():
    victim = Victim("--max_body_size", 100000)
    victim.expect_refused(frame(100001, 40), "body|frame|large")
    victim.expect_unhurt()


@test
def meta_larger_than_its_frame_is_refused():
    victim = Victim()
    victim.expect_refused(frame(40, 41, bytes(40)), "meta")
    victim.expect_unhurt()


@test
def meta_that_does_not_parse_is_refused():
    victim = Victim()
    victim.expect_refused(frame(40, 40, b"\xff" * 40), "Meta")
    victim.expect_unhurt()


@test
def a_frame_that_never_ends_holds_no_one_up():
    victim = Victim()
    connection = victim.server.connect()
    connection.sendall(vector("rpc-echo16-request")[:-1])
    time.sleep(0.5)
    victim.client.expect_alive()
    connection.close()
    victim.expect_unhurt()


@test
def many_strangers_come_and_go():
    victim = Victim()
    for _ in range(20):
        strangers = [victim.server.connect() for _ in range(20)]
        for number, stranger in enumerate(strangers):
            stranger.sendall((b"", b"R", b"PRPC", b"\0" * 100)[number % 4])
            stranger.close()
    victim.expect_unhurt()


if __name__ == "__main__":
    main()
