# SPDX-License-Identifier: Apache-2.0
"""The examples that take a worker into a loop of their own, as programs to be driven."""

import os
import re
import socket
import time

from harness import BUILD, CLIENT_CPU, SERVER_CPU, SLACK, Program, Skip, expect, expect_equal


class Echo(Program):
    """The server in libuv's loop."""

    def __init__(self, mode, *args, address="127.0.0.1"):
        if not os.path.exists(os.path.join(BUILD, "examples", "uv-echo")):
            raise Skip("the example was not built: libuv is not installed")
        super().__init__("-l", SERVER_CPU, "--port", f"default,mode={mode}", *args, f"{address}:0", name="uv-echo",
                         folder="examples")
        self.address = self.wait_stdout(r"^echoing on (\S+)$").group(1)
        self.port = int(self.address.rsplit(":", 1)[1])

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10 * SLACK)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def await_echoed(self, total):
        """Until its timer, which tells now and then how many bytes it has echoed, tells this."""
        self.wait_stdout(rf"^{total} ")

    def end(self):
        self.interrupt()
        self.finish()


class Ping(Program):
    """The client in a bare epoll loop."""

    def __init__(self, server, mode, rounds, *args):
        super().__init__("-l", CLIENT_CPU, "--port", f"default,mode={mode}", *args, server.address, rounds,
                         name="epoll-ping", folder="examples")
        self.rounds = rounds

    def check(self, transport, timeout):
        """To the end: all came back, over that, and no wake-up was lost."""
        self.finish(timeout=timeout)
        said = self.stdout.text()
        for line in (f"over {transport}", f"{self.rounds} of {self.rounds} came back", "reactor_wakes_rescued 0"):
            expect(line in said.splitlines(), f"no \"{line}\" in\n{said}")
        return {name: int(value) for name, value in re.findall(r"^(reactor_wakes_\w+) (\d+)$", said, re.M)}


def ping_pong(mode, address, transport, rounds, *args):
    """Both sides live in loops that are not the library's."""
    echo = Echo(mode, *args, address=address)
    wakes = Ping(echo, mode, rounds, *args).check(transport, timeout=30)
    echo.end()
    if mode == "poll":
        expect_equal(sum(wakes.values()), 0, "wakes")
    else:
        expect(wakes["reactor_wakes_timer"] > 0, f"its pauses were not slept through: {wakes}")
    if mode == "event":
        expect(wakes["reactor_wakes_fd"] > 0, f"its answers woke it never: {wakes}")
