#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A worker in somebody else's loop: the examples that live in libuv's and in a bare epoll loop."""

import os
import select
import time

from embedded import Echo, ping_pong
from harness import MODES, SLACK, THREAD_SANITIZED, expect, expect_equal, main, receive, test

TIDE = 8 << 20
QUIET_S = 2.5


def exchange(connection, data):
    """Sends without reading as long as it can, so that both directions fill up; then reads all of it back."""
    sent, received, deadline = 0, bytearray(), time.monotonic() + 20 * SLACK
    connection.setblocking(False)
    while len(received) < len(data):
        expect(time.monotonic() < deadline, f"{sent} bytes sent, {len(received)} received")
        if sent < len(data) and select.select([], [connection], [], 0.2)[1]:
            sent += connection.send(data[sent:sent + 65536])
        elif select.select([connection], [], [], 1)[0]:
            received += connection.recv(1 << 20)
    connection.setblocking(True)
    expect(bytes(received) == data, "what came back is not what was sent")


@test
def it_echoes_beside_a_timer():
    for mode in MODES:
        echo = Echo(mode)
        connections = [echo.connect() for _ in range(3)]
        total = 0
        for number in range(60):
            word = b"%06d" % number
            for connection in connections:
                connection.sendall(word)
            for connection in connections:
                expect_equal(receive(connection, len(word)), word, "the echo")
            total += len(word) * len(connections)
        exchange(connections[0], os.urandom(TIDE))
        echo.await_echoed(total + TIDE)
        for connection in connections:
            connection.close()
        echo.end()


@test
def two_loops_play_ping_pong():
    for mode in MODES:
        ping_pong(mode, "127.0.0.1", "tcp", 600)


@test
def an_idle_one_sleeps():
    for mode in ("event", "adaptive"):
        echo = Echo(mode)
        connection = echo.connect()
        connection.sendall(b"once")
        receive(connection, 4)
        time.sleep(0.5)
        switches, cpu = echo.switches(), echo.cpu_seconds()
        time.sleep(QUIET_S)
        # Its timer, and nothing else; the thread sanitizer has a thread of its own.
        if not THREAD_SANITIZED:
            expect(echo.switches() - switches <= QUIET_S + 2, f"{echo.switches() - switches} sleeps in {QUIET_S} s")
        expect(echo.cpu_seconds() - cpu < 0.05 * SLACK, f"{echo.cpu_seconds() - cpu:.3f} s of CPU time")
        # And it wakes.
        connection.sendall(b"again")
        expect_equal(receive(connection, 5), b"again", "the echo")
        connection.close()
        echo.end()


@test
def a_signal_ends_it_with_connections_open():
    for mode in MODES:
        echo = Echo(mode)
        connection = echo.connect()
        connection.sendall(b"x")
        receive(connection, 1)
        echo.end()
        connection.close()


if __name__ == "__main__":
    main()
