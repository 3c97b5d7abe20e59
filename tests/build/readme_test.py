#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The program in README.md is short, compiles as it stands against the installed library, and does what it says."""

import os
import re
import select
import signal
import socket
import subprocess
import time

import suite

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


class Readme(suite.Case):
    def setUp(self):
        super().setUp()
        readme = (suite.ROOT / "README.md").read_text(encoding="utf-8")
        self.programs = re.findall(r"^```c\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        prefix = self.folder / "usr"
        self.expect(0, suite.run("make", f"O={suite.BUILD}", f"PREFIX={prefix}", "DESTDIR=", "install"))
        self.env = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{prefix}/lib"}

    def compile(self):
        self.assertEqual(len(self.programs), 1)
        source, program = self.folder / "echo.c", self.folder / "echo"
        source.write_text(self.programs[0], encoding="utf-8")
        flags = self.expect(0, suite.run("pkg-config", "--cflags", "--libs", "xrdma-reactor", env=self.env)).split()
        self.assertEqual(self.expect(0, suite.run("cc", *WARNINGS, source, "-o", program, *flags)), "")
        return program

    def test_it_is_short(self):
        lines = [line for line in self.programs[0].splitlines() if line.strip()]
        self.assertLessEqual(len(lines), 30)

    def test_it_echoes_more_than_fits_into_any_buffer(self):
        program = self.compile()
        cpu = min(os.sched_getaffinity(0))
        with subprocess.Popen([program, "-l", str(cpu), "127.0.0.1:0"], stderr=subprocess.PIPE, env=self.env,
                              text=True) as echo:
            try:
                self.exchange(self.address_of(echo), os.urandom(1 << 20) * 8)
                echo.send_signal(signal.SIGINT)
                self.assertEqual(echo.wait(20), 0)
            finally:
                echo.kill()

    def address_of(self, echo):
        for line in echo.stderr:
            match = re.search(r"echoing on (\S+):(\d+)$", line)
            if match:
                return match[1], int(match[2])
        self.fail("it does not say where it listens")
        return None

    def exchange(self, address, data):
        """Sends without reading as long as it can, so that both directions fill up; then reads all of it back."""
        sent, received, deadline = 0, bytearray(), time.monotonic() + 30
        with socket.create_connection(address, timeout=10) as connection:
            connection.setblocking(False)
            while len(received) < len(data):
                self.assertLess(time.monotonic(), deadline, f"{sent} bytes sent, {len(received)} received")
                if sent < len(data) and select.select([], [connection], [], 0.5)[1]:
                    sent += connection.send(data[sent:sent + 65536])
                elif select.select([connection], [], [], 1)[0]:
                    received += connection.recv(1 << 20)
        self.assertEqual(bytes(received), data)

    def test_bad_options_end_it_with_2_and_help_with_0(self):
        program = self.compile()
        self.assertIn("--nonsense", self.expect(2, suite.run(program, "--nonsense", env=self.env)).replace("_", "-"))
        self.assertIn("--port", self.expect(0, suite.run(program, "--help", env=self.env)))


if __name__ == "__main__":
    suite.main("readme")
